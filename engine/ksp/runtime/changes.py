"""From what informers tell to changes of the core.

Each informer has one handler here. It turns a call into a `Change` and passes it on at once; the order in which an
informer tells of things is kept. A pod whose uid differs from that of the pod of the same name before is another pod:
the old one is taken away first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from ksp.core.changes import Change, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.profile import Profile

# The kinds that rules can ask for, by the names that rules use.
OBJECTS: Final = {
    "Service": "services", "ReplicationController": "replicationControllers", "ReplicaSet": "replicaSets",
    "StatefulSet": "statefulSets", "PersistentVolumeClaim": "persistentVolumeClaims",
    "PersistentVolume": "persistentVolumes", "StorageClass": "storageClasses", "CSINode": "csiNodes",
    "PodDisruptionBudget": "podDisruptionBudgets", "PriorityClass": "priorityClasses", "Namespace": "namespaces",
}  # fmt: skip
IF_READ: Final = frozenset({"PriorityClass", "Namespace"})
"""Kinds that are watched only if a rule reads them. Scheduling itself has no use for them, and the role that
kube-scheduler has in a cluster gives no right to see them, or not in all versions."""
KINDS: Final = tuple(kind for kind in ("Pod", "Node", *OBJECTS) if kind not in IF_READ)
"""The kinds that the scheduler always watches."""


def kinds_of(profiles: Iterable[Profile]) -> tuple[str, ...]:
    """The kinds that a scheduler with these rules watches."""
    read: set[str] = set()
    for profile in profiles:
        read.update(*(rule.footprint.objects for rule in profile.predicates))
        read.update(*(rule.footprint.objects for rule in profile.priorities))
    return (*KINDS, *(kind for kind, name in OBJECTS.items() if kind in IF_READ and name in read))


Deliver = Callable[[Change], None]
T_contra = TypeVar("T_contra", contravariant=True)


class Handler(Protocol[T_contra]):
    """What an informer calls, once for each thing that happens to an object."""

    def on_add(self, obj: T_contra) -> None: ...

    def on_update(self, old: T_contra, new: T_contra) -> None: ...

    def on_delete(self, obj: T_contra, known_final_state: bool) -> None: ...


class HasMetadata(Protocol):
    """Any object of the API."""

    @property
    def metadata(self) -> ObjectMeta: ...


class PodHandler:
    """Pods, by uid."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def on_add(self, obj: Pod) -> None:
        self._deliver(SetPod(obj))

    def on_update(self, old: Pod, new: Pod) -> None:
        before = uid_of(old)
        if before != uid_of(new):
            self._deliver(DeletePod(before))
        self._deliver(SetPod(new))

    def on_delete(self, obj: Pod, known_final_state: bool) -> None:
        self._deliver(DeletePod(uid_of(obj)))


class NodeHandler:
    """Nodes, by name. A node that was deleted and made anew counts as changed: rules see only what it is now."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def on_add(self, obj: Node) -> None:
        self._deliver(SetNode(obj))

    def on_update(self, old: Node, new: Node) -> None:
        self._deliver(SetNode(new))

    def on_delete(self, obj: Node, known_final_state: bool) -> None:
        self._deliver(DeleteNode(obj.metadata.name))


class ObjectHandler:
    """Objects of another kind, by namespace and name. `kind` is as rules name it."""

    def __init__(self, deliver: Deliver, kind: str) -> None:
        self._deliver = deliver
        self._kind = kind

    def on_add(self, obj: HasMetadata) -> None:
        self._deliver(SetObject(self._kind, obj.metadata.namespace, obj.metadata.name, obj))

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        self._deliver(SetObject(self._kind, new.metadata.namespace, new.metadata.name, new))

    def on_delete(self, obj: HasMetadata, known_final_state: bool) -> None:
        self._deliver(DeleteObject(self._kind, obj.metadata.namespace, obj.metadata.name))


def handlers(deliver: Deliver, kinds: Iterable[str]) -> Iterator[tuple[str, PodHandler | NodeHandler | ObjectHandler]]:
    """A handler for each of the kinds."""
    for kind in kinds:
        match kind:
            case "Pod":
                yield kind, PodHandler(deliver)
            case "Node":
                yield kind, NodeHandler(deliver)
            case _:
                yield kind, ObjectHandler(deliver, OBJECTS[kind])


def uid_of(pod: Pod) -> str:
    """The pod's uid as PodInfo has it."""
    meta = pod.metadata
    return meta.uid or f"{meta.namespace}/{meta.name}"
