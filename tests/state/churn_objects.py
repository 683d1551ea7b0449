"""Objects of a small cluster that is too full, in few words: pods that are in each other's way, by priority, room,
ports, labels, disks and claims; and the volumes that they share.

What is written here is what somebody sends to the API server; `tests.state.churn_world` is that server.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace
from tests.state.templates import (
    DB,
    HOSTNAME,
    IS_DB,
    WEB,
    Json,
    asking,
    claiming,
    disk,
    likes,
    near,
    ports,
    spread,
)

from ksp.core.node_order import ZONE
from ksp.core.state import NAMESPACED_KINDS
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.sim.cases import OBJECTS

POD_NAMES: Final = tuple(f"p{i}" for i in range(10))
NODE_NAMES: Final = ("n0", "n1", "n2")
NAMESPACE: Final = "default"
DELETED: Final = "2020-01-01T00:00:00Z"

LOW: Final[Json] = {"priority": 0}
MIDDLE: Final[Json] = {"priority": 10}
HIGH: Final[Json] = {"priority": 20}
NEVER: Final[Json] = {"preemptionPolicy": "Never"}
OWN_CLAIM: Final[Json] = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}

# Spec and metadata. Priorities and policies of preemption are given to each pod on top, unless they stand here.
PODS: Final[tuple[tuple[Json, Json], ...]] = (
    (asking(cpu="1"), WEB),
    (asking(cpu="2"), DB),
    (asking(cpu="3"), WEB),
    (asking(cpu="1"), DB),
    (asking(), WEB),
    ({**asking(cpu="1"), **near("podAntiAffinity", HOSTNAME)}, WEB),
    ({**asking(cpu="1"), **near("podAntiAffinity", ZONE, IS_DB)}, WEB),
    ({**asking(cpu="1"), **near("podAffinity", ZONE, IS_DB)}, WEB),
    ({**asking(cpu="1"), **spread(ZONE, "DoNotSchedule")}, WEB),
    ({**asking(cpu="1"), **spread(HOSTNAME, "ScheduleAnyway")}, WEB),
    (ports(80), WEB),
    (ports(80, hostIP="10.0.0.1"), DB),
    ({**asking(cpu="2"), "nodeSelector": {"disk": "ssd"}}, WEB),
    ({**asking(cpu="1"), **disk("d0")}, WEB),
    ({**asking(cpu="1"), **disk("d0", read_only=True)}, DB),
    ({**asking(cpu="1"), **claiming("c0")}, WEB),
    ({**asking(cpu="2"), **claiming("c0", "c1")}, DB),
    ({**asking(cpu="1"), **claiming("c1")}, WEB),
    ({**asking(cpu="1"), **claiming("once")}, WEB),
    ({**asking(cpu="2"), **claiming("c2", "c2")}, DB),
    ({**asking(cpu="1"), **OWN_CLAIM}, WEB),
    ({**asking(cpu="1"), "schedulingGates": [{"name": "wait"}]}, WEB),
    ({**asking(cpu="1"), "tolerations": [{"operator": "Exists"}]}, DB),
    ({**asking(cpu="1"), "resourceClaims": [{"name": "gpu"}]}, WEB),
    ({**asking(cpu="1"), **likes("podAffinity", ZONE, 5)}, DB),
    ({**asking(cpu="1"), **likes("podAntiAffinity", HOSTNAME, 50, IS_DB)}, DB),
    ({**asking(cpu="500m"), **spread(ZONE, "ScheduleAnyway", nodeTaintsPolicy="Honor")}, WEB),
    (asking(cpu="many"), WEB),
    ({**asking(cpu="1"), "schedulerName": "another"}, WEB),
)  # fmt: skip
RANKS: Final[tuple[Json, ...]] = (LOW, MIDDLE, HIGH, HIGH, {**MIDDLE, **NEVER})
FILLING: Final = (1, 2, 2, 5, 6, 10, 13, 18)
"""Templates of pods that are in others' way."""
NEEDY: Final = (0, 1, 2, 2, 5, 6, 8, 10, 11, 12, 13, 16, 18)
"""And of pods that they are in the way of."""
CLAIMING: Final = tuple(i for i, (spec, _) in enumerate(PODS) if spec.get("volumes"))
PLAIN: Final = tuple(i for i, (spec, _) in enumerate(PODS) if not spec.keys() & {"schedulingGates", "schedulerName"})
"""Templates of pods that an update may make of each other."""


def pod(template: int, rank: int, name: str, uid: str, place: str = "") -> Pod:
    """A pod as somebody makes it."""
    spec, metadata = PODS[template]
    who = {"name": name, "uid": uid, "namespace": NAMESPACE, "creationTimestamp": DELETED}
    return convert(Pod, {"metadata": {**metadata, **who}, "spec": {**spec, **RANKS[rank], "nodeName": place}})


# Labels, spec and allocatable amounts of nodes.
NODES: Final[tuple[tuple[Json, Json, Json], ...]] = (
    ({ZONE: "a"}, {}, {"cpu": "4", "pods": "4"}),
    ({ZONE: "b", "disk": "ssd"}, {}, {"cpu": "3", "pods": "3"}),
    ({ZONE: "b"}, {}, {"cpu": "3", "pods": "4"}),
    ({ZONE: "a", "disk": "ssd"}, {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {"cpu": "4", "pods": "4"}),
    ({ZONE: "a"}, {"unschedulable": True}, {"cpu": "4", "pods": "4"}),
    ({}, {"taints": [{"key": "old", "effect": "PreferNoSchedule"}]}, {"cpu": "2", "pods": "2"}),
)


def node(name: str, shape: int) -> Node:
    """A node; its own label is its name."""
    labels, spec, allocatable = NODES[shape]
    metadata = {"name": name, "uid": name, "labels": {**labels, HOSTNAME: name}}
    return convert(Node, {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}})


# ---- storage and what selects pods

PROVISIONER: Final = "example.com/d"
LATER: Final = {"volumeBindingMode": "WaitForFirstConsumer"}
IN_A: Final = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
BY_HAND: Final[Json] = {"provisioner": "kubernetes.io/no-provisioner", **LATER}
ON_DEMAND: Final[Json] = {"provisioner": PROVISIONER, **LATER}


def _at(zone: str) -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


def _volume(size: str, **more: Any) -> Json:
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "hand", **more}
    return {"spec": spec, "status": {"phase": "Available"}}


def _claim(of: str, size: str = "1Gi", mode: str = "ReadWriteOnce") -> Json:
    return {
        "spec": {"storageClassName": of, "accessModes": [mode], "resources": {"requests": {"storage": size}}},
        "status": {"phase": "Pending"},
    }


ADMITTING: Final[Json] = {"selector": {"matchLabels": {"app": "web"}}}
OTHERS: Final[dict[tuple[str, str], tuple[Json, ...]]] = {
    ("storageClasses", "hand"): (BY_HAND,),
    ("storageClasses", "make"): (ON_DEMAND, {**ON_DEMAND, "allowedTopologies": IN_A}, {"provisioner": PROVISIONER}),
    ("persistentVolumes", "v0"): (_volume("1Gi", **_at("a")), _volume("2Gi")),
    ("persistentVolumes", "v1"): (_volume("2Gi", **_at("b")), _volume("1Gi", **_at("b"))),
    ("persistentVolumes", "v2"): (
        _volume("3Gi", **_at("b")),
        _volume("1Gi", claimRef={"namespace": NAMESPACE, "name": "c0"}),
        {"spec": {"storageClassName": "hand", "accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Available"}},
    ),
    ("persistentVolumeClaims", "c0"): (_claim("hand"), _claim("make"), _claim("gone")),
    ("persistentVolumeClaims", "c1"): (_claim("make"), _claim("hand", "2Gi")),
    ("persistentVolumeClaims", "c2"): (_claim("make"), _claim("hand")),
    ("persistentVolumeClaims", "once"): (_claim("make", mode="ReadWriteOncePod"),),
    ("podDisruptionBudgets", "b"): (
        {"spec": ADMITTING, "status": {"disruptionsAllowed": 0}},
        {"spec": ADMITTING, "status": {"disruptionsAllowed": 1}},
        {"spec": {"selector": {}}},
    ),
    ("services", "s"): ({"spec": {"selector": {"app": "web"}}}, {"spec": {"selector": {"app": "db"}}}),
}  # fmt: skip
"""What objects of other kinds there can be, by kind and name, and what each can be as somebody makes it."""

KINDS: Final[dict[str, type]] = {**OBJECTS, "podDisruptionBudgets": PodDisruptionBudget}


def other(kind: str, name: str, shape: int, uid: str) -> Any:
    """One of OTHERS."""
    value = OTHERS[kind, name][shape % len(OTHERS[kind, name])]
    namespace = NAMESPACE if kind in NAMESPACED_KINDS else ""
    metadata = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": DELETED}
    made: Any = KINDS[kind]
    return convert(made, {**value, "metadata": metadata})


# ---- changes of an object


def with_metadata(obj: Any, **fields: Any) -> Any:
    return replace(obj, metadata=replace(obj.metadata, **fields))


def with_spec(obj: Any, **fields: Any) -> Any:
    return replace(obj, spec=replace(obj.spec, **fields))


def with_status(obj: Any, **fields: Any) -> Any:
    return replace(obj, status=replace(obj.status, **fields))


def annotated(obj: Any, key: str, value: str | None) -> Any:
    """With the annotation, or without one of that key."""
    others = {k: v for k, v in obj.metadata.annotations.items() if k != key}
    return with_metadata(obj, annotations=others if value is None else {**others, key: value})
