"""Pods, nodes and other objects of a cluster in which much depends on much, in few words.

Pods are made by templates, as controllers make them: those of one template are alike but for their names, and for
labels and claims that are each pod's own. Values come from small pools, so that one thing touches another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ksp.core.changes import DeleteObject, SetObject
from ksp.core.node_order import BETA_ZONE, ZONE
from ksp.core.state import NAMESPACED_KINDS
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.cases import OBJECTS

Json = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
AVOID: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
IS_WEB: Final[Json] = {"matchLabels": {"app": "web"}}
IS_DB: Final[Json] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "cache"]}]}
BROKEN: Final[Json] = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}


def asking(**requests: str) -> Json:
    names = {"gpu": "example.com/gpu"}
    requested = {names.get(name, name): amount for name, amount in requests.items()}
    return {"containers": [{"name": "c", "image": "web", "resources": {"requests": requested}}]}


def near(kind: str, key: str, selector: Json = IS_WEB, **term: Any) -> Json:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": selector, **term}]}}}


def likes(kind: str, key: str, weight: int, selector: Json = IS_WEB) -> Json:
    term = {"topologyKey": key, "labelSelector": selector}
    return {"affinity": {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}}


def spread(key: str, action: str, selector: Json = IS_WEB, skew: int = 1, **more: str) -> Json:
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector, **more}
    return {"topologySpreadConstraints": [constraint]}


def on_nodes(**affinity: Any) -> Json:
    return {"affinity": {"nodeAffinity": affinity}}


def ports(*host_ports: int, **more: str) -> Json:
    listed = [{"containerPort": 80, "hostPort": port, **more} for port in host_ports]
    return {"containers": [{"name": "c", "image": "repo/db", "ports": listed}]}


def claiming(*claims: str) -> Json:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)]
    return {"volumes": volumes}


def disk(name: str, *, read_only: bool = False) -> Json:
    return {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}]}


def owned(kind: str, uid: str) -> Json:
    return {"ownerReferences": [{"kind": kind, "uid": uid, "name": uid, "controller": True}]}


WEB: Final[Json] = {"labels": {"app": "web"}}
DB: Final[Json] = {"labels": {"app": "db"}}
TO_SSD: Final[Json] = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
}
TO_N1: Final[Json] = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
}
LIKES_SSD: Final = [
    {"weight": 9, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
]
LIKES_NOTHING: Final = [{"weight": 9, "preference": {"matchExpressions": [{"key": "disk", "operator": "Odd"}]}}]
TOLERANT: Final = {"tolerations": [{"operator": "Exists"}]}
BUSY: Final = {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]}

# Spec and metadata. NAME stands for the pod's own name.
PODS: Final[tuple[tuple[Json, Json], ...]] = (
    (asking(cpu="1"), WEB),
    (asking(cpu="2", memory="3Gi"), DB),
    ({**asking(cpu="3"), "priority": 10}, {}),
    (asking(), {**WEB, **owned("ReplicaSet", "r")}),
    # pods against pods
    ({**asking(memory="1Gi"), **near("podAntiAffinity", HOSTNAME)}, WEB),
    ({**asking(cpu="500m"), **near("podAntiAffinity", ZONE)}, DB),
    ({**asking(cpu="500m"), **near("podAffinity", ZONE)}, WEB),
    ({**asking(cpu="100m"), **near("podAffinity", HOSTNAME, IS_DB)}, WEB),
    ({**asking(), **near("podAntiAffinity", ZONE, IS_DB, namespaces=["other"])}, {**WEB, "namespace": "other"}),
    ({**asking(cpu="1"), **likes("podAffinity", ZONE, 5)}, DB),
    ({**asking(cpu="1"), **likes("podAntiAffinity", HOSTNAME, 50, IS_DB)}, DB),
    ({**asking(), **near("podAntiAffinity", ZONE, BROKEN)}, WEB),
    # domains
    ({**asking(cpu="100m"), **spread(ZONE, "DoNotSchedule")}, WEB),
    ({**asking(cpu="100m"), **spread(HOSTNAME, "DoNotSchedule", {})}, DB),
    ({**asking(cpu="100m"), **spread(HOSTNAME, "ScheduleAnyway")}, WEB),
    ({**asking(cpu="100m"), **spread(ZONE, "ScheduleAnyway", skew=3)}, {**WEB, "namespace": "other"}),
    ({**asking(), **spread(ZONE, "DoNotSchedule", BROKEN)}, WEB),
    # nodes
    ({**asking(cpu="1"), "nodeSelector": {"disk": "ssd"}}, WEB),
    ({**asking(cpu="1"), **on_nodes(**{REQUIRED: TO_SSD})}, WEB),
    ({**asking(cpu="1"), **TOLERANT, **on_nodes(**{REQUIRED: TO_N1})}, DB),
    ({**asking(cpu="1"), **on_nodes(**{PREFERRED: LIKES_SSD})}, WEB),
    ({**asking(cpu="1"), **on_nodes(**{PREFERRED: LIKES_NOTHING})}, WEB),
    ({**asking(cpu="1"), **TOLERANT}, WEB),
    ({**asking(gpu="1"), **BUSY}, {}),
    (ports(80), WEB),
    (ports(80, 81, hostIP="10.0.0.1"), DB),
    # labels and claims of their own: the pods of a StatefulSet, of an indexed Job
    (
        {**asking(cpu="500m"), **claiming("data-NAME")},
        {"labels": {"app": "db", "statefulset.kubernetes.io/pod-name": "NAME"}, **owned("StatefulSet", "s")},
    ),
    ({**asking(cpu="500m"), "hostname": "NAME"}, {"labels": {"batch.kubernetes.io/job-completion-index": "NAME"}}),
    ({**asking(cpu="500m"), **near("podAntiAffinity", HOSTNAME, IS_DB), **claiming("data-NAME")}, DB),
    # volumes
    ({**asking(cpu="100m"), **claiming("shared")}, WEB),
    ({**asking(cpu="100m"), **claiming("shared", "other")}, DB),
    ({**asking(cpu="100m"), **disk("d0")}, WEB),
    ({**asking(cpu="100m"), **disk("d0", read_only=True)}, WEB),
    # what ends early
    ({**asking(cpu="1"), "schedulingGates": [{"name": "wait"}]}, WEB),
    ({**asking(cpu="1"), "resourceClaims": [{"name": "gpu"}]}, WEB),
    (asking(cpu="many"), WEB),
    ({**asking(cpu="1"), "schedulerName": "another"}, WEB),
)  # fmt: skip


def pod(template: int, name: str, uid: str, *, place: str = "", terminating: bool = False, **status: Any) -> Pod:
    """A pod as the API shows it; `place` is the node that it is bound to."""
    spec, metadata = _named(PODS[template], name)
    metadata = {"name": name, "uid": uid, "namespace": "default", **metadata}
    if terminating:
        metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    return convert(Pod, {"metadata": metadata, "spec": {**spec, "nodeName": place}, "status": status})


def _named(value: Any, name: str) -> Any:
    match value:
        case str():
            return value.replace("NAME", name)
        case dict():
            return {key: _named(inner, name) for key, inner in value.items()}
        case list() | tuple():
            return [_named(inner, name) for inner in value]
    return value


def _all(**allocatable: str) -> Json:
    names = {"gpu": "example.com/gpu", "disks": "attachable-volumes-gce-pd", "csi": "attachable-volumes-csi-d"}
    return {names.get(name, name): amount for name, amount in allocatable.items()}


AVOIDED: Final = '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "r"}}}]}'
IMAGES: Final = [{"names": ["web:latest"], "sizeBytes": 900 << 20}, {"names": ["repo/db:latest"], "sizeBytes": 1 << 30}]
SMALL: Final = _all(cpu="4", memory="8Gi", pods="4")
LARGE: Final = _all(cpu="8", memory="16Gi", pods="9", gpu="2", disks="1", csi="1")

OLD: Final = [{"key": "old", "effect": "PreferNoSchedule"}]

# Labels, annotations, spec and status of nodes.
NODES: Final[tuple[tuple[Json, Json, Json, Json], ...]] = (
    ({ZONE: "a"}, {}, {}, {"allocatable": SMALL}),
    ({ZONE: "b", "disk": "ssd"}, {}, {}, {"allocatable": SMALL}),
    ({ZONE: "b"}, {}, {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {"allocatable": LARGE}),
    ({ZONE: "a", "disk": "hdd"}, {}, {"taints": OLD}, {"allocatable": LARGE}),
    ({ZONE: "a"}, {}, {"unschedulable": True}, {"allocatable": LARGE}),
    ({}, {}, {}, {"allocatable": LARGE, "images": IMAGES}),
    ({BETA_ZONE: "b", ZONE: "a", "disk": "ssd"}, {AVOID: AVOIDED}, {}, {"allocatable": LARGE, "images": IMAGES[:1]}),
    ({ZONE: "b", "disk": "ssd"}, {AVOID: "{"}, {}, {"allocatable": _all(cpu="2", memory="2Gi", pods="3", disks="0")}),
    ({ZONE: "c"}, {}, {}, {"allocatable": _all(cpu="8", memory="9Gi", pods="many")}),
)  # fmt: skip


def node(name: str, shape: int, *, hostname: bool = True) -> Node:
    labels, annotations, spec, status = NODES[shape]
    labels = {**labels, HOSTNAME: name} if hostname else labels
    return convert(
        Node, {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec, "status": status}
    )


# ---- objects of other kinds

BOUND: Final = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
WAITS: Final = {"provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer"}
IN_A: Final = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]


def _claims() -> list[Json]:
    return [
        {"spec": {"storageClassName": "fast"}},
        {"spec": {"storageClassName": "slow"}},
        {"metadata": BOUND, "spec": {"storageClassName": "fast", "volumeName": "v0"}},
        {"metadata": BOUND, "spec": {"storageClassName": "fast", "volumeName": "v1"}},
        {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "spec": {"storageClassName": "fast"}},
        {
            "metadata": BOUND,
            "spec": {"storageClassName": "fast", "volumeName": "v0", "accessModes": ["ReadWriteOncePod"]},
        },
    ]


def _volumes(handle: str) -> list[Json]:
    to_ssd = {"nodeAffinity": {"required": TO_SSD}, "csi": {"driver": "d", "volumeHandle": handle}}
    room = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}
    return [
        {"spec": {"csi": {"driver": "d", "volumeHandle": handle}}},
        {"metadata": {"labels": {ZONE: "a"}}, "spec": {"gcePersistentDisk": {"pdName": handle}}},
        {"metadata": {"labels": {ZONE: "a__b"}}, "spec": {**to_ssd, **room}},
        {"spec": {**to_ssd, "claimRef": {"namespace": "default", "name": "shared"}}},
    ]


def _limits(*counts: int | None) -> list[Json]:
    return [{"spec": {"drivers": [{"name": "d", "allocatable": {"count": count}}]}} for count in counts]


SELECTORS: Final[list[Json]] = [{"selector": {"app": "web"}}, {"selector": {"app": "db"}}, {"selector": {}}]
LABEL_SELECTORS: Final[list[Json]] = [{"selector": IS_WEB}, {"selector": IS_DB}]
KNOWN: Final[Mapping[tuple[str, str], list[Json]]] = {
    ("services", "s"): [{"spec": each} for each in SELECTORS],
    ("services", "t"): [{"spec": each} for each in SELECTORS[:2]],
    ("replicationControllers", "rc"): [{"spec": each} for each in SELECTORS[:2]],
    ("replicaSets", "r"): [{"spec": each} for each in LABEL_SELECTORS],
    ("statefulSets", "s"): [{"spec": each} for each in LABEL_SELECTORS],
    **{("persistentVolumeClaims", f"data-p{i}"): _claims() for i in range(4)},
    ("persistentVolumeClaims", "shared"): _claims(),
    ("persistentVolumeClaims", "other"): _claims(),
    ("persistentVolumes", "v0"): _volumes("h0"),
    ("persistentVolumes", "v1"): _volumes("h1"),
    ("storageClasses", "fast"): [WAITS, {**WAITS, "allowedTopologies": IN_A}, {"provisioner": "d"}],
    ("storageClasses", "slow"): [
        {**WAITS, "provisioner": "kubernetes.io/no-provisioner"},
        {"provisioner": "kubernetes.io/gce-pd", "volumeBindingMode": "Immediate"},
    ],
    **{("csiNodes", f"n{i}"): _limits(1, None, 0) for i in range(3)},
}
"""What objects there can be, by kind and name, and what they can be."""

EVERY_OBJECT: Final[tuple[tuple[str, str, int], ...]] = tuple(
    (kind, name, at) for (kind, name), values in KNOWN.items() for at in (*range(len(values)), -1)
)


def object_change(kind: str, name: str, at: int) -> SetObject | DeleteObject:
    """One of them is what KNOWN has `at` that place; for -1 it is gone."""
    namespace = "default" if kind in NAMESPACED_KINDS else ""
    if at < 0:
        return DeleteObject(kind, namespace, name)
    value = KNOWN[kind, name][at]
    metadata = {"name": name, "namespace": namespace, **value.get("metadata", {})}
    make: Callable[..., Any] = convert
    return SetObject(kind, namespace, name, make(OBJECTS[kind], {**value, "metadata": metadata}))
