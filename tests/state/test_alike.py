"""Nodes that are held to be alike give the same victims when each is judged by itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from tests.oracle.chooser import Chooser
from tests.oracle.clusters import HOSTNAME, ZONE, Json
from tests.unit.core.scheduling import default_profile, profile_of

from ksp.compile.tables import Tables
from ksp.core.alike import HOPELESS, Alike, by_importance
from ksp.core.fits import Fits
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.profile import Profile

Places = tuple[int, ...]
START = ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", None)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

# Rules that the shipped ones are not: a sum over nodes in a view, a sum beside a label, ports by their order, a sum
# beside a view, and the sums that only priorities read.
RULES: Mapping[str, str] = {
    "Crowded": 'view full = count n in cluster.nodes where n.podCount > 1 deny "crowded" when full > 2',
    "Spare": 'deny "spare" when node.labels["disk"] == "ssd" && node.requested.cpu > 1cpu',
    "First": 'deny "first" when size(node.hostPorts) > 1 && node.hostPorts[0].port == 80',
    "Company": """view web = count p in cluster.pods where p.labels["app"] == "web" by p.node.name
        deny "company" when web[node.name] > 0 && node.podCount > 2""",
    "Guessed": 'deny "guessed" when node.nonzeroRequested.cpu > 1cpu',
}


def profile(name: str) -> Profile:
    if name == "shipped":
        return default_profile()
    rules = "\n".join(f"predicate {rule} {{ {body} }}" for rule, body in RULES.items())
    return profile_of(rules, f"predicates {{ {', '.join(RULES) if name == 'all' else name} }}")


def term(app: str, key: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


# Of what pods and nodes are made, and what else they could be: one of these is the difference between two of them.
POD: Mapping[str, Sequence[Any]] = {
    "cpu": ("1", "2", "0"),
    "app": ("web", "db"),
    "port": (0, 0, 80, 81),
    "priority": (0, 0, 3, 5, 9),
    "start": START,
    "shy": ("", "", "", "", "", HOSTNAME, ZONE),  # of incoming pods: the domain that it does not share with them
}
NODE: Mapping[str, Sequence[Any]] = {
    "cpu": ("3", "4"),
    "disk": ("ssd", "hdd"),
    "zone": ("a", "b"),
    "taints": ([], [], [{"key": "k", "effect": "NoSchedule"}]),
}
WISHES: Sequence[Json] = (
    {},
    {},
    {},
    {"nodeSelector": {"disk": "ssd"}},
    {"affinity": {"podAntiAffinity": {REQUIRED: [term("web", HOSTNAME)]}}},
    {"affinity": {"podAntiAffinity": {REQUIRED: [term("db", ZONE)]}}},
    {"affinity": {"podAffinity": {REQUIRED: [term("web", HOSTNAME)]}}},
    {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term("web", ZONE)}]},
)


class Clusters:
    """Clusters of nodes that have the same in most respects, with pods that have the same in most respects."""

    def __init__(self, choose: Chooser) -> None:
        self.choose = choose
        self.kind = {name: choose.pick(values) for name, values in NODE.items()}
        self.load = [self.any_pod() for _ in range(choose.number(1, 3))]
        self.made = 0

    def any_pod(self) -> Json:
        return {name: self.choose.pick(values) for name, values in POD.items()}

    def another(self, kind: Json, of: Mapping[str, Sequence[Any]]) -> Json:
        """In one respect, perhaps."""
        name = self.choose.pick(sorted(of))
        return kind | {name: self.choose.pick(of[name])}

    def node(self, name: str) -> Node:
        kind = self.another(self.kind, NODE) if self.choose.chance(30) else self.kind
        labels = {HOSTNAME: name, ZONE: kind["zone"], "disk": kind["disk"]}
        status = {"allocatable": {"cpu": kind["cpu"], "memory": "1Gi", "pods": "9"}}
        return convert(
            Node, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": kind["taints"]}, "status": status}
        )

    def pod(self, kind: Json) -> PodInfo:
        self.made += 1
        return self.pod_of(f"p{self.made}", kind, {})

    def incoming(self) -> PodInfo:
        kind = {"cpu": "2", "app": "in", "port": self.choose.pick((0, 80)), "priority": 5, "start": None, "shy": ""}
        return self.pod_of("incoming", kind, self.choose.pick(WISHES))

    def pod_of(self, uid: str, kind: Json, wishes: Json) -> PodInfo:
        ports = [{"containerPort": 1, "hostPort": kind["port"]}] if kind["port"] else []
        container = {"name": "c", "resources": {"requests": {"cpu": kind["cpu"]}}, "ports": ports}
        spec: Json = {"containers": [container], "priority": kind["priority"]}
        if kind["shy"]:
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: [term("in", kind["shy"])]}}
        metadata = {"name": uid, "uid": uid, "namespace": "default", "labels": {"app": kind["app"]}}
        return PodInfo.of(
            convert(Pod, {"metadata": metadata, "spec": spec | wishes, "status": {"startTime": kind["start"]}})
        )

    def cluster(self) -> ClusterState:
        state = ClusterState()
        for i in range(self.choose.number(2, 4)):
            state.set_node(self.node(f"n{i}"))
            load = [self.another(kind, POD) if self.choose.chance(15) else kind for kind in self.load]
            if self.choose.chance(20):
                load.reverse()
            for kind in load:
                state.add_pod(self.pod(kind), f"n{i}")
        return state

    def change(self, state: ClusterState) -> None:
        """A pod leaves or comes, or a node becomes another."""
        name = self.choose.pick(sorted(state.nodes))
        node = state.nodes[name]
        match self.choose.number(0, 2):
            case 0 if node.pods:
                state.remove_pod(self.choose.pick(list(node.pods)))
            case 1:
                state.set_node(self.node(name))
            case _:
                state.add_pod(self.pod(self.choose.pick(self.load)), name)


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


class Random(Chooser):
    """Chooses by dice: nothing shrinks, but hundreds of clusters take a second."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def number(self, least: int, most: int) -> int:
        return self.dice.randint(least, most)

    def chance(self, percent: int) -> bool:
        return self.dice.randrange(100) < percent


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
            apart = set(choose.some(2, partial(choose.pick, sorted(state.nodes)), 70))
            found += check(state, alike, Fits(profile(name), tables, incoming), budgets, apart)
            clusters.change(state)
    assert found["alone"] > 20
    assert found["alike"] > 20 or name in ("Crowded", "all"), "a view over the sums of nodes sets all apart"


def check(state: ClusterState, alike: Alike, fits: Fits, budgets: Mapping[str, int], apart: set[str]) -> Counter[str]:
    """Judges each node by itself; how many groups there are with victims, of one node and of several."""
    nodes = state.node_list()
    groups = alike.groups(fits, nodes, apart=apart, covered=lambda p: covered(p) in budgets and covered(p))
    assert sorted(node.name for group in groups.values() for node in group) == sorted(node.name for node in nodes)
    found: Counter[str] = Counter()
    for signature, group in groups.items():
        same = {shape(state, fits, node, budgets) for node in group}
        assert len(same) == 1, (signature, group, same)
        if signature == HOPELESS:
            assert same == {None}
        else:
            assert len(group) == 1 or apart.isdisjoint(node.name for node in group)
            found["alike" if len(group) > 1 else "alone"] += same != {None}
    return found


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
    assert len(Alike().groups(fits, state.node_list())) == 2


def test_where_a_port_stands_among_others_tells_nodes_apart() -> None:
    state, clusters = with_ports((80, 0, None), (81, 9, None), (80, 9, None))
    pod = clusters.pod_of("in", {"cpu": "1", "app": "in", "port": 0, "priority": 5, "start": None, "shy": ""}, {})
    fits = Fits(profile("First"), Tables(state), pod)
    assert [shape(state, fits, state.nodes[name], {}) for name in ("n0", "n1")] == [((), (0,), (0,)), None]
    assert len(Alike().groups(fits, state.node_list())) == 2


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
        Alike().groups(Fits(profile("shipped"), Tables(state), clusters.pod_of("in", wanted, wish)), state.node_list())
        for wish in ({}, {"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"disk": "none"}})
    ]
    assert [{len(group) for group in found.values()} for found in groups] == [{50}, {25}, {50}]
    assert [HOPELESS in found for found in groups] == [False, True, True]
    equal = Fits(profile("shipped"), Tables(state), clusters.pod_of("in", wanted | {"priority": 0}, {}))
    assert list(Alike().groups(equal, state.node_list())) == [HOPELESS]
