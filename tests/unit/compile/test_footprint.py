"""What rules read, and which events can help a pod that they denied."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import rule

from ksp.compile.events import shown
from ksp.compile.footprint import Footprint, footprint_of

ADD, DELETE, LABELS, STATUS, UPDATE = (f"AssignedPod{what}" for what in ("Add", "Delete", "Labels", "Status", "Update"))
SPEC = "AssignedPodSpec"
MORE, LESS = "AssignedPodRequests(more)", "AssignedPodRequests(less)"
PORTS_MORE, PORTS_LESS = "AssignedPodPorts(more)", "AssignedPodPorts(less)"
ROOMIER, TIGHTER = "NodeAllocatable(more)", "NodeAllocatable(less)"
TAINTED, UNTAINTED = "NodeTaint(more)", "NodeTaint(less)"
ALLOCATABLE = {ROOMIER, TIGHTER}
TAINTS = {TAINTED, UNTAINTED}
PORTS = {PORTS_MORE, PORTS_LESS}
OF_PODS = {ADD, DELETE, MORE, LESS, PORTS_MORE, PORTS_LESS}
ROWS = {ADD, DELETE}
COUNT = "view w = count p in cluster.pods by p.node.name"


def footprint(body: str) -> Footprint:
    return footprint_of(rule(f"predicate P {{ {body} }}"))


# Each with the events beside NodeAdd, which can always help.
HELPED: dict[str, tuple[str, set[str]]] = {
    # of a sum compared with a limit, less
    "a sum under a limit": ('deny "x" when node.requested.cpu + pod.requests.cpu > 4cpu', {LESS}),
    "what is left": ('deny "x" when node.podCount > node.allocatable.pods', {DELETE, ROOMIER}),
    "an entry by name": ('for name, n in pod.requests { deny "x" when node.requested[name] > n }', {LESS}),
    "ports": ('deny "x" when node.hostPorts.exists(p, p.port == 80)', {PORTS_LESS}),
    "a sum over a limit": ('deny "x" when node.podCount < 3', {ADD}),
    "the other side": ('deny "x" when 3 < node.podCount', {DELETE}),
    "not": ('deny "x" when !(node.podCount > 3)', {ADD}),
    "equal": ('deny "x" when node.podCount == 3', ROWS),
    "a let": ('let n = node.podCount deny "x" when n > 3', {DELETE}),
    "a let of a let": ('let n = node.podCount let m = 3 - n deny "x" when m < 1', {DELETE}),
    "a function": ('fn full(n: int): bool = n + n > 3 deny "x" when full(node.podCount)', {DELETE}),
    "both ways": ('deny "x" when node.podCount > 3 deny "y" when node.podCount < 1', ROWS),
    "a stop": ('stop when node.podCount > 9 deny "x" when node.name == "n"', {ADD}),
    "a stop the other way": ('stop when node.podCount < 9 deny "x" when node.name == "n"', {DELETE}),
    "a stop against a denial": ('stop when node.podCount > 9 deny "x" when node.podCount > 3', ROWS),
    "amounts one by one": ('deny "x" when node.requested.exists(k, v, v < 3)', {MORE, LESS}),
    "products": ('deny "x" when node.podCount * pod.spec.priority > 3', ROWS),
    "a choice by the pod": (
        'deny "x" when node.podCount > (pod.name == "a" ? node.allocatable.pods : 3)',
        {DELETE, ROOMIER},
    ),
    "a choice by the node": ('deny "x" when (node.podCount > 3 ? 1 : 2) > 1', ROWS),
    "in a reason only": ('deny "${node.podCount}" when node.name == "a"', set()),
    "a loop over what moves": ('for p in node.hostPorts { deny "x" when p.port == 80 }', {PORTS_LESS}),
    "a loop that stops": ('for p in node.hostPorts { stop when p.port == 80 deny "x" when p.port == 81 }', PORTS),
    "a loop with indexes": ('for i, p in node.hostPorts { deny "x" when i == 1 && p.port == 80 }', PORTS),
    "some of a list": ('let mine = node.hostPorts.filter(p, p.port > 80) deny "x" when size(mine) > 1', {PORTS_LESS}),
    "all of a list": ('deny "x" when !node.hostPorts.all(p, p.port == 80)', {PORTS_LESS}),
    "what a list lacks": ('deny "x" when !(80 in node.hostPorts.map(p, p.port))', {PORTS_MORE}),
    "the first of a list": ('deny "x" when node.hostPorts[0].port == 80', PORTS),
    "a fail": ('fail "x" when node.podCount > 3 deny "y" when node.name == "a"', {DELETE}),
    "beside a function of nodes": (
        'param t: NodeSelectorTerm = {} deny "x" when !t.matches(node) || node.podCount > 3',
        {DELETE, "NodeLabel"},
    ),
    # of views
    "a count": (f'{COUNT} deny "x" when w[node.name] > 0', {DELETE}),
    "its entries": (f'{COUNT} deny "x" when size(w) > 3', {DELETE}),
    "its keys": (f'{COUNT} deny "x" when w.exists(k, k == node.name)', {DELETE}),
    "no entry": (f'{COUNT} deny "x" when size(w) == 0', {ADD}),
    "must not be 0": (f'{COUNT} deny "x" when !(w[node.name] > 0)', {ADD}),
    "must not be 0, in a function": (
        f'{COUNT} fn near(m: map<string, int>): bool = m[node.name] > 0 deny "x" when !near(w)',
        {ADD},
    ),
    "must be there": (f'{COUNT} deny "x" when !(node.name in w)', {ADD}),
    "the first of a group": (f'{COUNT} deny "x" when !(size(w) == 0 || w[node.name] > 0)', ROWS),
    "all": (f'{COUNT} deny "x" when w.all(k, k != node.name)', {ADD}),
    "its values": (f'{COUNT} deny "x" when w.values().exists(v, v < 3)', ROWS),
    "its first key": (f'{COUNT} deny "x" when w.keys()[0] > "b"', ROWS),
    "a sum of what may be less than 0": (
        'view w = sum p.spec.priority for p in cluster.pods deny "x" when w > 3',
        ROWS | {SPEC},
    ),
    "too few nodes": ('view w = count n in cluster.nodes deny "x" when w < 3', set()),
    "too many nodes": ('view w = count n in cluster.nodes deny "x" when w > 3', {"NodeDelete"}),
    "nodes by their pods": (
        'view w = count n in cluster.nodes where n.podCount < 3 deny "x" when w > 2',
        ROWS | {"NodeDelete"},
    ),
    "pods by those beside them": (
        'view w = count p in cluster.pods where p.node.podCount < 3 deny "x" when w > 2',
        ROWS,
    ),
    # of what rows are read for
    "labels of nodes": (
        'view w = count p in cluster.pods by p.node.labels["zone"] deny "x" when w["a"] > 1',
        {DELETE, "NodeLabel"},
    ),
    "labels of pods": (
        'view w = count p in cluster.pods where p.labels["a"] == "b" && p.namespace == "c" deny "x" when w > 0',
        {DELETE, LABELS},
    ),
    "pods that end": (
        'view w = count p in cluster.pods where !p.terminating deny "x" when w > 0',
        {DELETE, "AssignedPodTerminating"},
    ),
    "requests of pods": (
        'view w = count p in cluster.pods where p.requests.cpu > 1cpu deny "x" when w > 0',
        {DELETE, MORE, LESS},
    ),
    "metadata of pods": (
        'view w = count p in cluster.pods where p.metadata == pod.metadata deny "x" when w > 0',
        {DELETE, UPDATE, LABELS, "AssignedPodTerminating"},
    ),
    "annotations of pods": (
        'view w = count p in cluster.pods where "a" in p.annotations deny "x" when w > 0',
        {DELETE, UPDATE},
    ),
    "terms of pods": (
        'view w = count p in cluster.pods, t in p.requiredAntiAffinity where t.matches(pod) deny "x" when w > 0',
        {DELETE, SPEC},
    ),
    "the spec of pods": (
        'view w = count p in cluster.pods where p.spec == pod.spec deny "x" when w > 0',
        {DELETE, SPEC, ADD},
    ),
    "where pods are": (
        'view w = count p in cluster.pods where p.spec.nodeName == "a" deny "x" when w > 0',
        {DELETE, ADD},
    ),
    "status of pods": (
        'view w = count p in cluster.pods where p.status.phase == "Running" deny "x" when w > 0',
        {DELETE, STATUS},
    ),
    "a first row": (
        'view f = first n in cluster.nodes where n.labels["a"] == "b" deny "x" when "c" in f.annotations',
        {"NodeDelete", "NodeLabel", "NodeUpdate"},
    ),
    # nodes that come, go or move to another zone change their order, and so which row is the first
    "a first row of any": (
        'view f = first n in cluster.nodes deny "x" when f.spec.unschedulable',
        {"NodeDelete", "NodeLabel"} | TAINTS,
    ),
    "a first pod": (
        'view f = first p in cluster.pods deny "x" when f.name == "a"',
        ROWS | {"NodeDelete", "NodeLabel"},
    ),
    "the node of a first row": (
        'view f = first p in cluster.pods where p.labels["a"] == "b" deny "x" when "c" in f.node.labels',
        ROWS | {LABELS, "NodeLabel", "NodeDelete"},
    ),
    "a whole row": (
        'view f = first n in cluster.nodes where n.name > "a" let g = f deny "x" when g.name == "b"',
        OF_PODS | ALLOCATABLE | TAINTS | {"NodeDelete", "NodeLabel", "NodeUpdate"},
    ),
    # parts of a node
    "labels": ('deny "x" when node.labels["a"] == "b"', {"NodeLabel"}),
    "labels by their other name": ('deny "x" when node.metadata.labels["a"] == "b"', {"NodeLabel"}),
    "room": ('deny "x" when node.allocatable.cpu < pod.requests.cpu', {ROOMIER}),
    "too much room": ('deny "x" when node.allocatable.cpu > 4cpu', {TIGHTER}),
    "allocatable by its other name": ('deny "x" when "a.io/a" in node.status.allocatable', {TIGHTER}),
    "taints": ('deny "x" when node.spec.taints.exists(t, t.effect == "NoSchedule")', {UNTAINTED}),
    "a taint that must be there": ('deny "x" when !node.spec.taints.exists(t, t.key == "gpu")', {TAINTED}),
    "unschedulable": ('deny "x" when node.spec.unschedulable', {UNTAINTED}),
    "conditions": ('deny "x" when node.status.conditions.exists(c, c.type == "a")', {"NodeUpdate"}),
    "its name": ('deny "x" when node.name == "a"', set()),
    "the spec as one": ('deny "x" when node.spec == pod.node.spec', TAINTS | {"NodeUpdate"}),
    "the spec as one, and a part": (
        'let s = node.spec deny "x" when size(s.taints) > 0 && !node.spec.unschedulable',
        TAINTS | {"NodeUpdate"},
    ),
    "a term": (
        'param t: NodeSelectorTerm = {} deny "x" when !t.matches(node)',
        {"NodeLabel"},
    ),
    # other objects
    "services": (
        'deny "x" when size(cluster.services[pod.namespace]) > 0 && node.name > "a"',
        {"ServiceAdd", "ServiceUpdate", "ServiceDelete"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "events"), HELPED.values(), ids=HELPED)
def test_events_that_can_help(body: str, events: set[str]) -> None:
    assert footprint(body).events == {"NodeAdd", *events}


def test_reads_are_by_part_and_by_entry_where_the_key_is_constant() -> None:
    found = footprint(
        'deny "x" when node.labels["a"] == pod.labels["b"] || node.allocatable[pod.name] > node.requested.cpu'
    )
    assert found.pod == ('labels["b"]', "name")
    assert found.node == ("allocatable[…]", 'labels["a"]', 'requested["cpu"]')


# Each with what it reads of a node, where it goes through the feasible ones or passes nodes on.
OF_NODES = {
    "score size(feasible.filter(n, n.podCount > 1))": {"podCount"},
    'score feasible.exists(n, "a" in n.labels && n.labels["b"] == "c") ? 1 : 0': {'labels["a"]', 'labels["b"]'},
    "score feasible[0].podCount": {"podCount"},
    "let some = feasible.filter(n, n.podCount > 1) score some.map(n, size(n.labels)).sum()": {"podCount", "labels"},
    "let first = feasible[0] score first.podCount": {"podCount"},
    "fn crowd(n: Node): int = n.podCount * n.podCount score crowd(feasible[0])": {"podCount"},
    "param t: NodeSelectorTerm = {} score size(feasible.filter(n, t.matches(n)))": {"labels", "name"},
    "score node.podCount normalize { score node.score }": {"podCount"},
    "score feasible.exists(n, n == node) ? 1 : 0": {"*"},
}


@pytest.mark.parametrize(("body", "parts"), OF_NODES.items(), ids=OF_NODES)
def test_reads_of_feasible_nodes(body: str, parts: set[str]) -> None:
    assert {*footprint_of(rule(f"priority P {{ {body} }}")).node} == parts


OF_ROWS = {
    "view w = count p in cluster.pods where t.matches(p.node) score w": {"node.labels", "node.name"},
    'fn zone(n: Node): string = n.labels["a"] + n.labels["b"] view w = count p in cluster.pods by zone(p.node) '
    "score size(w)": {'node.labels["a"]', 'node.labels["b"]'},
    "score 1 normalize { view f = first n in feasible where n.podCount > 1 score f.score }": {"podCount"},
    "score 1 normalize { view f = sum n.score for n in feasible where n.podCount > 1 score f }": {"podCount"},
}


@pytest.mark.parametrize(("body", "parts"), OF_ROWS.items(), ids=OF_ROWS)
def test_reads_of_rows_that_are_passed_on(body: str, parts: set[str]) -> None:
    found = footprint_of(rule(f"priority P {{ param t: NodeSelectorTerm = {{}} {body} }}"))
    assert [{*view.rows} for view in found.views] == [parts]
    assert not found.node


def test_functions_read_what_they_do_in_their_place() -> None:
    assert footprint('fn zone(n: Node): string = n.labels["zone"] deny "x" when zone(node) == ""').node == (
        'labels["zone"]',
    )


def test_events_that_help_either_way_are_shown_without_their_direction() -> None:
    assert shown({"NodeAdd", TAINTED, UNTAINTED, ROOMIER}) == ["NodeAdd", ROOMIER, "NodeTaint"]
