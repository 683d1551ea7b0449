"""What happens in a cluster, in the words of footprints, and which parts of nodes and pods each event changes.

The names follow kube-scheduler's. Where what changes has an order, so has the event: `NodeTaint(less)` says that a
taint went, or that the node is schedulable again; `AssignedPodPorts(more)` that a pod with host ports came to a node. A
change is a set of events: a pod that leaves is `AssignedPodDelete`, `AssignedPodRequests(less)` and, if it has ports,
`AssignedPodPorts(less)`. `ksp.core.wake` says which events a change is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MORE: Final = "(more)"
LESS: Final = "(less)"

NODE_ADD: Final = "NodeAdd"
NODE_DELETE: Final = "NodeDelete"
NODE_LABEL: Final = "NodeLabel"
NODE_UPDATE: Final = "NodeUpdate"
TAINTS_MORE, TAINTS_LESS = f"NodeTaint{MORE}", f"NodeTaint{LESS}"
ALLOCATABLE_MORE, ALLOCATABLE_LESS = f"NodeAllocatable{MORE}", f"NodeAllocatable{LESS}"
POD_ADD: Final = "AssignedPodAdd"
POD_DELETE: Final = "AssignedPodDelete"
POD_LABELS: Final = "AssignedPodLabels"
POD_TERMINATING: Final = "AssignedPodTerminating"
POD_SPEC: Final = "AssignedPodSpec"
POD_UPDATE: Final = "AssignedPodUpdate"
POD_STATUS: Final = "AssignedPodStatus"
REQUESTS_MORE, REQUESTS_LESS = f"AssignedPodRequests{MORE}", f"AssignedPodRequests{LESS}"
PORTS_MORE, PORTS_LESS = f"AssignedPodPorts{MORE}", f"AssignedPodPorts{LESS}"

OBJECT_EVENTS: Final = {
    "services": "Service", "replicationControllers": "ReplicationController", "replicaSets": "ReplicaSet",
    "statefulSets": "StatefulSet", "persistentVolumeClaims": "PersistentVolumeClaim",
    "persistentVolumes": "PersistentVolume", "storageClasses": "StorageClass", "csiNodes": "CSINode",
    "podDisruptionBudgets": "PodDisruptionBudget", "priorityClasses": "PriorityClass", "namespaces": "Namespace",
}  # fmt: skip

EVERYTHING: Final = "*"

# What makes the rows of a view more, or fewer.
ROWS_MORE: Final = {"pods": frozenset({POD_ADD}), "nodes": frozenset({NODE_ADD})}
ROWS_LESS: Final = {"pods": frozenset({POD_DELETE}), "nodes": frozenset({NODE_DELETE})}

_TAINTS: Final = (frozenset({TAINTS_MORE}), frozenset({TAINTS_LESS}))
_ALLOCATABLE: Final = (frozenset({ALLOCATABLE_MORE}), frozenset({ALLOCATABLE_LESS}))
_REQUESTS: Final = (frozenset({REQUESTS_MORE}), frozenset({REQUESTS_LESS}))

# Parts of a node that have an order: what makes each more, and what less. Of lists and maps, more is another element or
# entry, or a larger amount; true is more than false.
ORDERED: Final = {
    "spec.taints": _TAINTS, "spec.unschedulable": _TAINTS, "allocatable": _ALLOCATABLE,
    "status.allocatable": _ALLOCATABLE, "requested": _REQUESTS, "nonzeroRequested": _REQUESTS,
    "podCount": (frozenset({POD_ADD}), frozenset({POD_DELETE})),
    "hostPorts": (frozenset({PORTS_MORE}), frozenset({PORTS_LESS})),
}  # fmt: skip
# Those that are sums over its pods: they change when a pod comes or leaves.
OF_PODS: Final = frozenset({"requested", "nonzeroRequested", "podCount", "hostPorts"})

_OF_NODES: Final = {part: more | less for part, (more, less) in ORDERED.items()} | dict.fromkeys(
    ("labels", "metadata.labels"), frozenset({NODE_LABEL})
)
_OF_ROWS: Final = {
    **dict.fromkeys(("labels", "metadata.labels"), frozenset({POD_LABELS})),
    **dict.fromkeys(("terminating", "metadata.deletionTimestamp"), frozenset({POD_TERMINATING})),
    **dict.fromkeys(("requests", "nonzeroRequests"), frozenset({REQUESTS_MORE, REQUESTS_LESS})),
    "hostPorts": frozenset({PORTS_MORE, PORTS_LESS}),
    "status": frozenset({POD_STATUS}),
    "spec.nodeName": frozenset({POD_ADD}),  # not there until the watch shows the pod on its node
}
_NEVER: Final = frozenset({"name", "uid", "metadata.name", "metadata.uid"})
_NEVER_OF_PODS: Final = _NEVER | {"namespace", "metadata.namespace"}
_ALL_OF_NODES: Final = frozenset({NODE_UPDATE}).union(*_OF_NODES.values())
_OF_SPEC: Final = frozenset(
    {
        "requiredAffinity", "preferredAffinity", "requiredAntiAffinity", "preferredAntiAffinity", "affinityError",
        "claimNames",
    }
)  # fmt: skip
_ALL_OF_ROWS: Final = frozenset({POD_UPDATE, POD_SPEC}).union(*_OF_ROWS.values())


def head(part: str) -> str:
    """A part without the key of an entry, or what is read of elements."""
    return part.split("[", maxsplit=1)[0]


def of_node_part(part: str) -> frozenset[str]:
    """After which a part of a node can be another."""
    if head(part) == EVERYTHING:
        return _ALL_OF_NODES
    return _after(head(part), _OF_NODES, _NEVER, NODE_UPDATE)


def of_row_part(part: str) -> frozenset[str]:
    """After which a part of a pod on a node can be another: the pod itself, or with `node.` what it is on."""
    name = head(part)
    if name == EVERYTHING:
        return _ALL_OF_ROWS | _ALL_OF_NODES
    if name == "node":
        return _ALL_OF_NODES
    if name.startswith("node."):
        return of_node_part(part.removeprefix("node."))
    if name.startswith("status."):
        return _OF_ROWS["status"]
    of_spec = name == "spec" or name.startswith("spec.") or name in _OF_SPEC
    return _after(name, _OF_ROWS, _NEVER_OF_PODS, POD_SPEC if of_spec else POD_UPDATE)


def _after(name: str, known: dict[str, frozenset[str]], never: frozenset[str], otherwise: str) -> frozenset[str]:
    """The events of a part; what has none of its own shares one, and what holds others has theirs, too."""
    if name in never:
        return frozenset()
    if name in known:
        return known[name]
    return frozenset({otherwise}).union(*(events for inner, events in known.items() if inner.startswith(f"{name}.")))


def shown(events: Iterable[str]) -> list[str]:
    """Events for readers, sorted: one that helps either way without its direction."""
    known = frozenset(events)
    names = {event.removesuffix(MORE).removesuffix(LESS) for event in known}
    both = {name for name in names if {name + MORE, name + LESS} <= known}
    return sorted(both | {event for event in known if event.removesuffix(MORE).removesuffix(LESS) not in both})
