"""Random clusters: nodes, pods and other objects as the API writes them, and changes of them.

Values come from small pools, so that labels match, ports clash, zones are shared and keys are absent now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from tests.oracle.chooser import Chooser
from tests.oracle.interpret import Cluster

from ksp.core import changes as core
from ksp.core.state import NAMESPACED_KINDS, ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.cases import OBJECTS

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDED = (
    '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "r"}}}]}',
    '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "q"}}}, {}]}',
    '{"preferAvoidPods": [{}',
    "[]",
)

NODES = ("n0", "n1", "n2", "n3", "n4")
PODS = tuple(f"p{i}" for i in range(8))
NAMESPACES = ("default", "other")
ZONES = ("a", "b", "")
APPS = ("web", "db")
IMAGES = ("web", "web:1", "repo/db", "repo:5000/db")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule", "")
CONDITIONS = ("Ready", "NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure")
# Sums and products of these do not fit into 64 bits.
HUGE = ("9223372036854775807", "9223372036854775000", "4611686018427387904", "-9223372036854775808", "-5")
LIMITS = (("cpu", "1"), ("cpu", "9"), ("memory", "200Mi"), ("memory", "0"))
TOPOLOGIES = (ZONE, HOSTNAME, "disk", "app")
CLAIMS = ("c0", "c1", "p0-v", "incoming-v")  # two are those of ephemeral volumes
VOLUMES = ("v0", "v1")

Json = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change of a cluster's state; names that do not apply as things are make it do nothing."""

    kind: str
    name: str = ""
    place: str = ""
    value: Json = field(default_factory=dict)

    def apply(self, state: ClusterState) -> None:
        _CHANGES[self.kind](state, self)


@dataclass(frozen=True)
class Scenario:
    """A cluster, the pods to place in it, and what happens in between."""

    nodes: list[Json]
    pods: list[tuple[Json, str]]
    incoming: list[Json]
    changes: list[Change]
    objects: list[Change]

    def state(self) -> ClusterState:
        state = ClusterState()
        for node in self.nodes:
            state.set_node(convert(Node, node))
        for pod, place in self.pods:
            Change("pod", pod["metadata"]["uid"], place, pod).apply(state)
        for change in self.objects:
            change.apply(state)
        return state

    def waiting(self) -> list[PodInfo]:
        return [PodInfo.of(convert(Pod, pod)) for pod in self.incoming]


def seen(state: ClusterState) -> Cluster:
    """The state as the oracle takes it."""
    return Cluster(tuple(state.pods.values()), tuple(state.node_list()), state.objects)


@st.composite
def scenarios(draw: Any, changes: int = 4) -> Scenario:
    """Clusters of up to five nodes and eight pods."""
    return ClusterMaker(Chooser(draw)).scenario(changes)


@st.composite
def variants(draw: Any, most: int = 4) -> list[Json]:
    """A pod, and others that differ from it in one thing or two."""
    maker = ClusterMaker(Chooser(draw))
    first = maker.pod("first")
    found = [first]
    for i in range(most):
        found.append(maker.variant(maker.choose.pick(found), f"variant{i}"))
    return found


class ClusterMaker:
    """Makes objects."""

    def __init__(self, choose: Chooser) -> None:
        self.choose = choose

    def scenario(self, changes: int) -> Scenario:
        choose = self.choose
        names = NODES[: choose.number(1, 4)]
        uids = PODS[: choose.number(0, 6)]
        return Scenario(
            [self.node(name) for name in names],
            [(self.pod(uid), choose.pick(NODES[: len(names) + 1])) for uid in uids],
            [self.pod(uid) for uid in ("incoming", "second")[: choose.number(1, 2)]],
            [self.change() for _ in range(choose.number(0, changes))],
            choose.some(4, self.object_change, 40),
        )

    # ---- nodes

    def node(self, name: str) -> Json:
        choose = self.choose
        labels = {} if choose.chance(15) else {HOSTNAME: name}
        for key, values in ((ZONE, ZONES), (BETA_ZONE, ZONES[1:]), ("disk", ("ssd", "hdd", "5")), ("app", APPS)):
            if choose.chance(70 if key == ZONE else 25):
                labels[key] = choose.pick(values)
        annotations = {AVOID: choose.pick(AVOIDED)} if choose.chance(15) else {}
        return {
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"unschedulable": choose.chance(15), "taints": choose.some(2, self.taint, 60)},
            "status": {
                "allocatable": self.allocatable(),
                "images": choose.some(2, self.image, 50),
                "conditions": choose.some(2, self.condition, 50),
            },
        }

    def condition(self) -> Json:
        choose = self.choose
        return {"type": choose.pick(CONDITIONS), "status": choose.pick(("True", "False", "Unknown"))}

    def taint(self) -> Json:
        choose = self.choose
        return {"key": choose.pick(("gpu", "disk")), "value": choose.pick(("", "yes")), "effect": choose.pick(EFFECTS)}

    def allocatable(self) -> Json:
        choose = self.choose
        found: Json = {"pods": choose.pick(("110", "2", "0", 3)), "cpu": choose.pick(("4", "500m", "0"))}
        if choose.chance(80):
            found["memory"] = choose.pick(("8Gi", "300Mi", "1"))
        if choose.chance(20):
            found["example.com/gpu"] = "2"
            found[f"attachable-volumes-{choose.pick(('gce-pd', 'aws-ebs', 'csi-d'))}"] = choose.pick(("1", "0"))
        if choose.chance(10):
            found[choose.pick(("cpu", "memory", "example.com/gpu", "pods"))] = choose.pick(HUGE)
        return found

    def image(self) -> Json:
        choose = self.choose
        name = choose.pick(IMAGES)
        return {
            "names": [name if ":" in name.split("/")[-1] else f"{name}:latest"],
            "sizeBytes": choose.pick((50 << 20, 2 << 30, 1)),
        }

    # ---- pods

    def pod(self, uid: str) -> Json:
        choose = self.choose
        spec: Json = {"containers": [self.container() for _ in range(choose.number(1, 2))]}
        optional: dict[str, Callable[[], Any]] = {
            "nodeName": lambda: choose.pick(NODES),
            "priority": lambda: choose.pick((0, 7, -3)),
            "nodeSelector": lambda: {choose.pick(("disk", "app", ZONE)): choose.pick(("ssd", "web", "a"))},
            "tolerations": lambda: choose.some(2, self.toleration, 0),
            "affinity": self.affinity,
            "topologySpreadConstraints": lambda: choose.some(2, self.constraint, 0),
            "volumes": lambda: choose.some(2, self.volume, 0),
            "overhead": lambda: {"cpu": choose.pick(("250m", "3"))},
            "initContainers": lambda: [self.container()],
        }
        for name, make in optional.items():
            if choose.chance(35 if name in ("tolerations", "affinity", "topologySpreadConstraints") else 15):
                spec[name] = make()
        metadata: Json = {
            "name": uid,
            "uid": uid,
            "namespace": choose.pick(NAMESPACES) if choose.chance(30) else "default",
            "labels": self.labels(),
        }
        if choose.chance(15):
            metadata["deletionTimestamp"] = "2024-01-01T00:00:00Z"
        if choose.chance(15):
            kind = choose.pick(("ReplicaSet", "StatefulSet", "ReplicaSet"))
            metadata["ownerReferences"] = [{"kind": kind, "uid": "r", "name": "r", "controller": choose.chance(80)}]
        return {"metadata": metadata, "spec": spec}

    def variant(self, pod: Json, uid: str) -> Json:
        """Another pod with that uid and, as pods of one controller, nearly all else in common."""
        choose, other = self.choose, self.pod(uid)
        metadata = {**pod["metadata"], "name": uid, "uid": uid}
        spec = dict(pod["spec"])
        for _ in range(choose.number(0, 2)):
            match choose.number(0, 6):
                case 0:
                    metadata["labels"] = {**metadata["labels"], "index": uid}
                case 1:
                    metadata["labels"] = other["metadata"]["labels"]
                case 2:
                    metadata["annotations"] = {"note": uid}
                case 3:
                    key = choose.pick(("namespace", "ownerReferences", "deletionTimestamp"))
                    metadata = {**metadata, key: other["metadata"].get(key)}
                case _:
                    names = sorted({*spec, *other["spec"]})
                    name = choose.pick(names)
                    spec = {**spec, name: other["spec"].get(name)}
        return {"metadata": metadata, "spec": {name: value for name, value in spec.items() if value is not None}}

    def labels(self) -> dict[str, str]:
        found = {"app": self.choose.pick(APPS)} if self.choose.chance(75) else {}
        return found | ({"tier": self.choose.pick(("1", "2"))} if self.choose.chance(25) else {})

    def container(self) -> Json:
        choose = self.choose
        requests: Json = {}
        for name, amounts in (("cpu", ("100m", "2", 0)), ("memory", ("100Mi", "9Gi")), ("example.com/gpu", (1, "3"))):
            if choose.chance(10 if "/" in name else 45):
                requests[name] = choose.pick(amounts if choose.chance(95) else HUGE)
        limits = dict([choose.pick(LIMITS)]) if choose.chance(25) else {}
        made: Json = {"name": "c", "image": choose.pick(IMAGES), "resources": {"requests": requests, "limits": limits}}
        if choose.chance(25):
            made["ports"] = [self.port()]
        return made

    def port(self) -> Json:
        choose = self.choose
        made = {
            "containerPort": 80,
            "hostPort": choose.pick((80, 81)),
            "hostIP": choose.pick(("", "10.0.0.1", "0.0.0.0")),
        }
        return made | ({"protocol": "UDP"} if choose.chance(20) else {})

    def toleration(self) -> Json:
        choose = self.choose
        made = {"key": choose.pick(("gpu", "disk", "")), "operator": choose.pick(("", "Exists", "Equal", "Odd"))}
        return made | {"value": choose.pick(("", "yes")), "effect": choose.pick(EFFECTS)}

    def selector(self) -> Json | None:
        choose = self.choose
        match choose.number(0, 5):
            case 0 | 1:
                return {"matchLabels": {"app": choose.pick(APPS)}}
            case 2:
                operator = choose.pick(("Exists", "DoesNotExist", "Exists", "DoesNotExist", "Odd"))
                return {"matchExpressions": [{"key": "tier", "operator": operator}]}
            case 3:
                return {
                    "matchExpressions": [{"key": "app", "operator": "In", "values": list(APPS[: choose.number(0, 2)])}]
                }
            case 4:
                return {}
        return None

    def constraint(self) -> Json:
        choose = self.choose
        made: Json = {"maxSkew": choose.pick((1, 2)), "topologyKey": choose.pick(TOPOLOGIES[:3])}
        made["whenUnsatisfiable"] = choose.pick(("DoNotSchedule", "ScheduleAnyway"))
        return made | {"labelSelector": self.selector()}

    def affinity(self) -> Json:
        choose = self.choose
        made: Json = {}
        required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
        if choose.chance(40):
            made["nodeAffinity"] = {preferred: choose.some(2, self.preference, 50)}
            if choose.chance(50):
                made["nodeAffinity"][required] = {"nodeSelectorTerms": choose.some(2, self.node_term, 10)}
        for kind in ("podAffinity", "podAntiAffinity"):
            if choose.chance(45):
                made[kind] = {required: choose.some(2, self.pod_term, 30), preferred: choose.some(2, self.weighted, 50)}
        return made

    def pod_term(self) -> Json:
        choose = self.choose
        made: Json = {"topologyKey": choose.pick(TOPOLOGIES), "labelSelector": self.selector()}
        return made | ({"namespaces": [choose.pick(NAMESPACES)]} if choose.chance(20) else {})

    def weighted(self) -> Json:
        return {"weight": self.choose.pick((1, 10, 100)), "podAffinityTerm": self.pod_term()}

    def preference(self) -> Json:
        return {"weight": self.choose.pick((1, 0, 50)), "preference": self.node_term()}

    def node_term(self) -> Json:
        choose = self.choose
        if choose.chance(15):
            return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [choose.pick(NODES)]}]}
        return {"matchExpressions": choose.some(2, self.requirement, 10)}

    def requirement(self) -> Json:
        choose = self.choose
        operator = choose.pick(("In", "NotIn", "Exists", "Gt", "Lt", "DoesNotExist", "In", "NotIn", "Exists", "Odd"))
        values = {"Exists": [], "DoesNotExist": [], "Gt": ["3"], "Lt": ["9"]}.get(operator, ["ssd", "a"])
        return {"key": choose.pick(("disk", ZONE)), "operator": operator, "values": values}

    def volume(self) -> Json:
        choose = self.choose
        match choose.number(0, 4):
            case 0 | 1:
                return {"name": "v", "persistentVolumeClaim": {"claimName": choose.pick(CLAIMS)}}
            case 4:
                return {"name": "v", "ephemeral": {}}
            case 2:
                return {
                    "name": "v",
                    "gcePersistentDisk": {"pdName": choose.pick(VOLUMES), "readOnly": choose.chance(50)},
                }
        return {"name": "v"} | choose.pick(
            (
                {"rbd": {"monitors": [choose.pick(("m0", "m1"))], "image": "i", "pool": "p"}},
                {"awsElasticBlockStore": {"volumeID": choose.pick(VOLUMES)}},
                {"azureDisk": {"diskName": "v0"}},
                {"cinder": {"volumeID": "v0"}},
                {"iscsi": {"iqn": "i", "readOnly": choose.chance(50)}},
            )
        )

    # ---- changes

    def change(self) -> Change:
        choose = self.choose
        kind = choose.pick(("pod", "pod", "node", "no pod", "object", "update", "no node", "no object"))
        match kind:
            case "pod" | "update" | "no pod":
                uid = choose.pick(PODS)
                return Change(kind, uid, choose.pick(NODES[:4]), {} if kind == "no pod" else self.pod(uid))
            case "node" | "no node":
                name = choose.pick(NODES[:4])
                return Change(kind, name, "", self.node(name) if kind == "node" else {})
            case "object":
                return self.object_change()
        return Change(
            kind,
            choose.pick(("s0", "c0", "v0", "r0", "n0", "fast")),
            choose.pick(tuple(OBJECTS)),
        )

    def object_change(self) -> Change:
        choose = self.choose
        match choose.number(0, 8):
            case 0 | 1:
                selector = choose.pick(({"app": "web"}, {"app": "db"}, {}, None))
                kind = choose.pick(("services", "services", "replicationControllers"))
                return Change("object", choose.pick(("s0", "s1")), kind, {"spec": {"selector": selector}})
            case 2:
                kind = choose.pick(("replicaSets", "statefulSets"))
                return Change("object", "r0", kind, {"spec": {"selector": self.selector()}})
            case 6:
                drivers = [{"name": "d", "allocatable": {"count": choose.pick((1, 0, None))}}]
                return Change("object", choose.pick(NODES[:2]), "csiNodes", {"spec": {"drivers": drivers}})
            case 7:
                labels = {"app": choose.pick(APPS)} if choose.chance(70) else {}
                return Change("object", choose.pick(NAMESPACES), "namespaces", {"metadata": {"labels": labels}})
            case 8 if choose.chance(50):
                return Change("object", choose.pick(NAMESPACES), "priorityClasses", {"value": choose.pick((0, 7, -3))})
            case 8:
                budget = {"spec": {"selector": self.selector()}, "status": {"disruptionsAllowed": choose.pick((0, 1))}}
                return Change("object", "s0", "podDisruptionBudgets", budget)
            case 3:
                spec: Json = {
                    "accessModes": [choose.pick(("ReadWriteOnce", "ReadWriteOncePod"))],
                    "volumeName": choose.pick(("", *VOLUMES)),
                    "storageClassName": choose.pick(("fast", "none")),
                }
                annotations = {"pv.kubernetes.io/bind-completed": "yes"} if choose.chance(60) else {}
                value = {"metadata": {"annotations": annotations}, "spec": spec}
                return Change("object", choose.pick(CLAIMS), "persistentVolumeClaims", value)
            case 4:
                source = {
                    "gcePersistentDisk": {"pdName": choose.pick(VOLUMES)},
                    "csi": {"driver": "d", "volumeHandle": "h"},
                }
                zones = {ZONE: choose.pick(("a", "b", "a__b"))} if choose.chance(50) else {}
                return Change(
                    "object",
                    choose.pick(VOLUMES),
                    "persistentVolumes",
                    {"metadata": {"labels": zones}, "spec": source},
                )
        mode = {"volumeBindingMode": "WaitForFirstConsumer"} if choose.chance(60) else {}
        return Change(
            "object", "fast", "storageClasses", {"provisioner": choose.pick(("d", "kubernetes.io/gce-pd"))} | mode
        )


def _add_pod(state: ClusterState, change: Change) -> None:
    if state.node_name_of(change.name) is None:
        state.add_pod(PodInfo.of(convert(Pod, change.value)), change.place)


def _update_pod(state: ClusterState, change: Change) -> None:
    if state.node_name_of(change.name) is not None:
        state.update_pod(PodInfo.of(convert(Pod, change.value)))


def _remove_pod(state: ClusterState, change: Change) -> None:
    if state.node_name_of(change.name) is not None:
        state.remove_pod(change.name)


def _set_node(state: ClusterState, change: Change) -> None:
    state.set_node(convert(Node, change.value))


def _remove_node(state: ClusterState, change: Change) -> None:
    if change.name in state.nodes:
        state.remove_node(change.name)


def _object(change: Change) -> Any:
    metadata = {"name": change.name, "namespace": "default", **change.value.get("metadata", {})}
    return convert(OBJECTS[change.place], {**change.value, "metadata": metadata})


def _set_object(state: ClusterState, change: Change) -> None:
    state.set_object(change.place, "default", change.name, _object(change))


def _remove_object(state: ClusterState, change: Change) -> None:
    kept = state.objects[change.place]
    found = kept.get("default", {}) if change.place in NAMESPACED_KINDS else kept
    if change.name in found:
        state.remove_object(change.place, "default", change.name)


_CHANGES: dict[str, Callable[[ClusterState, Change], None]] = {
    "pod": _add_pod,
    "update": _update_pod,
    "no pod": _remove_pod,
    "node": _set_node,
    "no node": _remove_node,
    "object": _set_object,
    "no object": _remove_object,
}


def core_changes(change: Change, state: ClusterState) -> list[core.Change]:
    """The change as a scheduler with that state is told of it; nothing if it does not apply."""
    name, node = change.name, state.node_name_of(change.name)
    namespace = "default" if change.place in NAMESPACED_KINDS else ""
    match change.kind:
        case "pod" | "update" if (node is None) == (change.kind == "pod") and _keeps_its_name(change, state):
            spec = {**change.value["spec"], "nodeName": node or change.place}
            return [core.SetPod(convert(Pod, {**change.value, "spec": spec}))]
        case "no pod" if node is not None:
            return [core.DeletePod(name)]
        case "node":
            return [core.SetNode(convert(Node, change.value))]
        case "no node":
            return [core.DeleteNode(name)]
        case "object":
            return [core.SetObject(change.place, namespace, name, _object(change))]
        case "no object":
            return [core.DeleteObject(change.place, namespace, name)]
    return []


def _keeps_its_name(change: Change, state: ClusterState) -> bool:
    """The API lets no pod go to another namespace."""
    known = state.pods.get(change.name) or next((p for p in state.invisible_pods() if p.uid == change.name), None)
    return known is None or known.namespace == change.value["metadata"]["namespace"]
