"""Nodes that are held to be alike give the same victims when each is judged by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from tests.oracle.clusters import HOSTNAME
from tests.state.crowds import RULES, START, Clusters, Random, profile
from tests.unit.core.scheduling import profile_of

from ksp.compile.tables import Tables
from ksp.core.alike import HOPELESS, Alike, Alone, Reads
from ksp.core.fits import Fits
from ksp.core.shapes import by_importance
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node

Places = tuple[int, ...]


def shape(
    state: ClusterState, fits: Fits, node: NodeInfo, budgets: Mapping[str, int]
) -> tuple[Places, Places, Places] | None:
    """The places of the victims among the pods of lower priority, first those that a budget protects, and the
    priorities of all. None if no victims help. As kube-scheduler looks for them."""
    lower = [pod for pod in by_importance(node.pods.values()) if pod.priority < fits.pod.priority]
    left = dict(budgets)
    groups: dict[bool, list[int]] = {True: [], False: []}
    for place, pod in enumerate(lower):
        app = covered(pod)
        left[app] = left.get(app, 1) - 1
        groups[app in budgets and left[app] < 0].append(place)
    with WhatIf(state, fits) as trial:
        for pod in lower:
            trial.remove(pod.uid)
        if not lower or fits(node) is not None:
            return None
        found: list[Places] = []
        for places in groups.values():
            chosen = []
            for place in places:
                trial.restore(lower[place].uid)
                if fits(node) is not None:
                    trial.remove(lower[place].uid)
                    chosen.append(place)
            found.append(tuple(chosen))
    return found[0], found[1], tuple(pod.priority for pod in lower)


def covered(pod: PodInfo) -> str:
    return pod.labels.get("app", "")


@pytest.mark.parametrize("name", ["shipped", *RULES, "all"])
def test_one_of_a_group_stands_for_all(name: str) -> None:
    found: Counter[str] = Counter()
    for seed in range(200):
        choose = Random(seed)
        clusters = Clusters(choose)
        state, incoming = clusters.cluster(), clusters.incoming()
        tables, alike = Tables(state), Alike()
        budgets: dict[str, int] = choose.pick(({}, {"web": 0}, {"web": 1, "db": 0}))
        for _ in range(choose.number(1, 3)):
            found += check(state, alike, Fits(profile(name), tables, incoming), budgets)
            clusters.change(state)
    assert found["alone"] > 20
    assert found["alike"] > 20 or name in ("Crowded", "all"), "a view over the sums of nodes sets all apart"


def check(state: ClusterState, alike: Alike, fits: Fits, budgets: Mapping[str, int]) -> Counter[str]:
    """Judges each node by itself; how many groups there are with victims, of one node and of several."""
    nodes = state.node_list()
    groups = alike.groups(Reads(fits), nodes, covered=lambda p: covered(p) in budgets and covered(p))
    assert sorted(node.name for group in groups.values() for node in group) == sorted(n.name for n in nodes)
    found: Counter[str] = Counter()
    for signature, group in groups.items():
        same = {shape(state, fits, node, budgets) for node in group}
        assert len(same) == 1, (signature, group, same)
        if signature == HOPELESS:
            assert same == {None}
        else:
            assert len(group) == 1 or not isinstance(signature, Alone)
            found["alike" if len(group) > 1 else "alone"] += same != {None}
    return found


def reads_of(state: ClusterState, pod: PodInfo) -> Reads:
    return Reads(Fits(profile("shipped"), Tables(state), pod))


def with_ports(*pods: tuple[int, int, str | None]) -> tuple[ClusterState, Clusters]:
    """Two nodes; on each the pods with these ports, priorities and starts, on the second in the reverse order."""
    state, clusters = ClusterState(), Clusters(Random(0))
    for name, there in (("n0", pods), ("n1", pods[::-1])):
        state.set_node(
            convert(Node, {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "9", "pods": "9"}}})
        )
        for (port, _, _), (_, priority, start) in zip(pods, there, strict=True):
            kind = {"cpu": "0", "app": "web", "port": port, "priority": priority, "start": start, "shy": ""}
            state.add_pod(clusters.pod(kind), name)
    assert state.nodes["n0"].host_ports == state.nodes["n1"].host_ports
    return state, clusters


def test_who_has_which_port_tells_nodes_apart() -> None:
    state, clusters = with_ports((80, 0, START[0]), (81, 0, START[1]))
    pod = clusters.pod_of("in", {"cpu": "1", "app": "in", "port": 80, "priority": 5, "start": None, "shy": ""}, {})
    fits = Fits(profile("shipped"), Tables(state), pod)
    assert [shape(state, fits, state.nodes[name], {}) for name in ("n0", "n1")] == [
        ((), (0,), (0, 0)),
        ((), (1,), (0, 0)),
    ]
    assert len(Alike().groups(Reads(fits), state.node_list())) == 2


def test_where_a_port_stands_among_others_tells_nodes_apart() -> None:
    state, clusters = with_ports((80, 0, None), (81, 9, None), (80, 9, None))
    pod = clusters.pod_of("in", {"cpu": "1", "app": "in", "port": 0, "priority": 5, "start": None, "shy": ""}, {})
    fits = Fits(profile("First"), Tables(state), pod)
    assert [shape(state, fits, state.nodes[name], {}) for name in ("n0", "n1")] == [((), (0,), (0,)), None]
    assert len(Alike().groups(Reads(fits), state.node_list())) == 2


def test_where_a_port_stands_tells_nodes_apart_though_the_same_is_there_twice() -> None:
    """As pods that were bound by others may have it: on both nodes 80, 81, 82, 81."""
    state, clusters = ClusterState(), Clusters(Random(0))
    kind = {"cpu": "0", "app": "web", "port": 0, "start": None, "shy": ""}
    for name, pods in (("n0", [(9, [80]), (0, [81]), (9, [82, 81])]), ("n1", [(9, [80, 81, 82]), (0, [81])])):
        state.set_node(convert(Node, {"metadata": {"name": name}, "status": {"allocatable": {"pods": "9"}}}))
        for i, (priority, ports) in enumerate(pods):
            container = {"name": "c", "ports": [{"containerPort": 1, "hostPort": port} for port in ports]}
            wishes = {"containers": [container]}
            state.add_pod(clusters.pod_of(f"{name}-{i}", kind | {"priority": priority}, wishes), name)
    rules = 'predicate Second { deny "x" when size(node.hostPorts) == 4 || node.hostPorts[1].port == 81 }'
    pod = clusters.pod_of("in", kind | {"priority": 5}, {})
    fits = Fits(profile_of(rules, "predicates { Second }"), Tables(state), pod)
    assert [shape(state, fits, state.nodes[name], {}) for name in ("n0", "n1")] == [((), (0,), (0,)), None]
    assert len(Alike().groups(Reads(fits), state.node_list())) == 2


def test_a_large_pool_is_judged_once() -> None:
    state, clusters = ClusterState(), Clusters(Random(0))
    kind = {"cpu": "1", "app": "web", "port": 0, "priority": 0, "start": START[0], "shy": ""}
    for i in range(50):
        status = {"allocatable": {"cpu": "3", "memory": "1Gi", "pods": "9"}}
        labels = {HOSTNAME: f"n{i}", "disk": "ssd" if i % 2 else "hdd"}
        state.set_node(convert(Node, {"metadata": {"name": f"n{i}", "labels": labels}, "status": status}))
        for _ in range(3):
            state.add_pod(clusters.pod(kind), f"n{i}")
    wanted = {"cpu": "2", "app": "in", "port": 0, "priority": 5, "start": None, "shy": ""}
    groups = [
        Alike().groups(reads_of(state, clusters.pod_of("in", wanted, wish)), state.node_list())
        for wish in ({}, {"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"disk": "none"}})
    ]
    assert [{len(group) for group in found.values()} for found in groups] == [{50}, {25}, {50}]
    assert [HOPELESS in found for found in groups] == [False, True, True]
    equal = reads_of(state, clusters.pod_of("in", wanted | {"priority": 0}, {}))
    assert list(Alike().groups(equal, state.node_list())) == [HOPELESS]
