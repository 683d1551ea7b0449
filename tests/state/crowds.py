"""Clusters of nodes that have the same in most respects, and rules that the shipped ones are not: for tests of what
preemption makes of nodes that are alike, and of those that only seem so."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.chooser import Chooser
from tests.oracle.clusters import HOSTNAME, ZONE, Json
from tests.unit.core.scheduling import default_profile, profile_of

from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.profile import Profile

START = ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", None)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

# Rules that the shipped ones are not: a sum over nodes in a view, a sum beside a label, ports by their order, a sum
# beside a view, the sums that only priorities read, a failure, and what is said of all nodes.
RULES: Mapping[str, str] = {
    "Crowded": 'view full = count n in cluster.nodes where n.podCount > 1 deny "crowded" when full > 2',
    "Spare": 'deny "spare" when node.labels["disk"] == "ssd" && node.requested.cpu > 1cpu',
    "First": 'deny "first" when size(node.hostPorts) > 1 && node.hostPorts[0].port == 80',
    "Company": """view web = count p in cluster.pods where p.labels["app"] == "web" by p.node.name
        deny "company" when web[node.name] > 0 && node.podCount > 2""",
    "Guessed": 'deny "guessed" when node.nonzeroRequested.cpu > 1cpu',
    "Broken": """deny "full" when node.podCount > 1
        fail "broken" when node.podCount == 1 && node.labels["disk"] == "ssd\"""",
    "Closed": """view web = count p in cluster.pods where p.labels["app"] == "web"
        prefilter { deny "closed" when web > 2 }""",
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
    "app": ("web", "web", "db", "db", ""),
    "port": (0, 0, 80, 81),
    "priority": (0, 0, 3, 5, 9),
    "start": START,
    "leaving": (False, False, False, True),
    "namespace": ("default", "default", "other"),
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
        metadata = {
            "name": uid, "uid": uid, "namespace": kind.get("namespace", "default"),
            "labels": {"app": kind["app"]} if kind["app"] else {},
            "deletionTimestamp": START[1] if kind.get("leaving") else None,
        }  # fmt: skip
        status = {"startTime": kind["start"], "nominatedNodeName": kind.get("nominated", "")}
        return PodInfo.of(convert(Pod, {"metadata": metadata, "spec": spec | wishes, "status": status}))

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
        """A pod leaves, becomes another or comes, or a node does."""
        name = self.choose.pick(sorted(state.nodes))
        node = state.nodes[name]
        match self.choose.number(0, 5):
            case 0 if node.pods:
                state.remove_pod(self.choose.pick(list(node.pods)))
            case 1:
                state.set_node(self.node(self.choose.pick([name, f"n{self.choose.number(0, 3)}"])))
            case 2 if node.pods:
                old = self.choose.pick(list(node.pods.values()))
                state.update_pod(self.pod_of(old.uid, self.any_pod() | {"namespace": old.namespace}, {}))
            case 3 if len(state.nodes) > 1 and self.choose.chance(50):
                state.remove_node(name)
            case _:
                state.add_pod(self.pod(self.choose.pick(self.load)), name)


class Random(Chooser):
    """Chooses by dice: nothing shrinks, but hundreds of clusters take a second."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def number(self, least: int, most: int) -> int:
        return self.dice.randint(least, most)

    def chance(self, percent: int) -> bool:
        return self.dice.randrange(100) < percent
