"""What rules read, and which events can help a pod that they denied."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import rule

from ksp.compile.footprint import Footprint, footprint_of

ADD, DELETE, UPDATE, STATUS = (f"AssignedPod{what}" for what in ("Add", "Delete", "Update", "Status"))
LESS = {DELETE, UPDATE}
ANY = LESS | {ADD}
COUNT = "view w = count p in cluster.pods by p.node.name"


def footprint(body: str) -> Footprint:
    return footprint_of(rule(f"predicate P {{ {body} }}"))


# Each with the events beside NodeAdd, which can always help.
HELPED: dict[str, tuple[str, set[str]]] = {
    # of a sum compared with a limit, less
    "a sum under a limit": ('deny "x" when node.requested.cpu + pod.requests.cpu > 4cpu', LESS),
    "what is left": ('deny "x" when node.podCount > node.allocatable.pods', LESS | {"NodeAllocatable"}),
    "an entry by name": ('for name, n in pod.requests { deny "x" when node.requested[name] > n }', LESS),
    "ports": ('deny "x" when node.hostPorts.exists(p, p.port == 80)', LESS),
    "a sum over a limit": ('deny "x" when node.podCount < 3', ANY),
    "the other side": ('deny "x" when 3 < node.podCount', LESS),
    "not": ('deny "x" when !(node.podCount > 3)', ANY),
    "equal": ('deny "x" when node.podCount == 3', ANY),
    "a let": ('let n = node.podCount deny "x" when n > 3', ANY),
    "both ways": ('deny "x" when node.podCount > 3 deny "y" when node.podCount < 1', ANY),
    "a stop": ('stop when node.podCount > 9 deny "x" when node.name == "n"', ANY),
    "amounts one by one": ('deny "x" when node.requested.exists(k, v, v < 3)', ANY),
    # of views
    "a count": (f'{COUNT} deny "x" when w[node.name] > 0', LESS),
    "its entries": (f'{COUNT} deny "x" when size(w) > 3', LESS),
    "its keys": (f'{COUNT} deny "x" when w.exists(k, k == node.name)', LESS),
    "no entry": (f'{COUNT} deny "x" when size(w) == 0', ANY),
    "all": (f'{COUNT} deny "x" when w.all(k, k != node.name)', ANY),
    "its values": (f'{COUNT} deny "x" when w.values().exists(v, v < 3)', ANY),
    "its first key": (f'{COUNT} deny "x" when w.keys()[0] > "b"', ANY),
    "a sum of what may be less than 0": (
        'view w = sum p.spec.priority for p in cluster.pods deny "x" when w > 3',
        ANY,
    ),
    "nodes by their pods": (
        'view w = count n in cluster.nodes where n.podCount < 3 deny "x" when w > 2',
        ANY | {"NodeDelete"},
    ),
    "pods by those beside them": (
        'view w = count p in cluster.pods where p.node.podCount < 3 deny "x" when w > 2',
        ANY,
    ),
    # of what rows are read for
    "labels of nodes": (
        'view w = count p in cluster.pods by p.node.labels["zone"] deny "x" when w["a"] > 1',
        LESS | {"NodeLabel"},
    ),
    "status of pods": (
        'view w = count p in cluster.pods where p.status.phase == "Running" deny "x" when w > 0',
        LESS | {STATUS},
    ),
    "a first row": (
        'view f = first n in cluster.nodes where n.labels["a"] == "b" deny "x" when "c" in f.annotations',
        {"NodeDelete", "NodeLabel", "NodeUpdate"},
    ),
    # nodes that come, go or move to another zone change their order, and so which row is the first
    "a first row of any": (
        'view f = first n in cluster.nodes deny "x" when f.spec.unschedulable',
        {"NodeDelete", "NodeLabel", "NodeTaint"},
    ),
    "a first pod": (
        'view f = first p in cluster.pods deny "x" when f.name == "a"',
        ANY | {"NodeDelete", "NodeLabel"},
    ),
    "the node of a first row": (
        'view f = first p in cluster.pods where p.labels["a"] == "b" deny "x" when "c" in f.node.labels',
        ANY | {"NodeLabel", "NodeDelete"},
    ),
    "a whole row": (
        'view f = first n in cluster.nodes where n.name > "a" let g = f deny "x" when g.name == "b"',
        ANY | {"NodeDelete", "NodeLabel", "NodeTaint", "NodeAllocatable", "NodeUpdate"},
    ),
    # parts of a node
    "labels": ('deny "x" when node.labels["a"] == "b"', {"NodeLabel"}),
    "labels by their other name": ('deny "x" when node.metadata.labels["a"] == "b"', {"NodeLabel"}),
    "allocatable by its other name": ('deny "x" when "a.io/a" in node.status.allocatable', {"NodeAllocatable"}),
    "conditions": ('deny "x" when node.status.conditions.exists(c, c.type == "a")', {"NodeUpdate"}),
    "its name": ('deny "x" when node.name == "a"', set()),
    "the spec as one": ('deny "x" when node.spec == pod.node.spec', {"NodeTaint", "NodeUpdate"}),
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
