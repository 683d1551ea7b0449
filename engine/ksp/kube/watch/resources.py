"""The kinds that a scheduler watches: one row each, and where the API serves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from ksp.model.apps import ReplicaSet, ReplicationController, Service, StatefulSet
from ksp.model.config_map import ConfigMap
from ksp.model.meta import ObjectMeta
from ksp.model.namespace import Namespace
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget, PriorityClass, as_in_v1
from ksp.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass


class Object(Protocol):
    """What all structs of `ksp.model` that stand for an object have."""

    @property
    def metadata(self) -> ObjectMeta: ...


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """A version of an API group; the core's group is empty."""

    group: str
    version: str

    @property
    def prefix(self) -> str:
        """The path under which its resources lie: `/api/v1`, `/apis/apps/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def _everything(_value: object) -> bool:
    return True


def _unchanged(value: Any, _version: str) -> Any:
    return value


def _unfinished(pod: Pod) -> bool:
    return pod.status.phase not in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind: `plural` is its name in paths and rules, `versions` are what ksp understands, the best first.

    `fields` is a field selector: what it leaves out is never sent. `keeps` says the same of an object, for servers that
    do not heed the selector. `as_best` makes of an object that was written in a version what it is in the best one; of
    a resource as it is `served_in` a version that version is `served`. With `namespace` and `name` it is one object.
    `with_bytes` makes of an object and its JSON the object that is to be kept.
    """

    kind: str
    plural: str
    struct: type[msgspec.Struct]
    versions: tuple[GroupVersion, ...]
    namespaced: bool = True
    fields: str = ""
    keeps: Callable[[Any], bool] = _everything
    as_best: Callable[[Any, str], Any] = _unchanged
    served: GroupVersion | None = None
    namespace: str = ""
    name: str = ""
    with_bytes: Callable[[Any, bytes], Any] | None = None

    def path_in(self, version: GroupVersion) -> str:
        """Where it is listed in that version."""
        where = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{version.prefix}/{where}{self.plural}"

    def served_in(self, version: GroupVersion) -> Resource:
        """As a server gives it that has it in that version."""
        return replace(self, served=version)

    def understood(self, value: Any) -> Any:
        """An object as it came from the server, in the meaning of the best version."""
        return value if self.served is None else self.as_best(value, str(self.served))

    @property
    def group(self) -> str:
        """The API group, which all versions share."""
        return self.versions[0].group

    @property
    def scope(self) -> str:
        """Where the scheduler lists it, for messages. Namespaced kinds are listed in all namespaces, unless one is
        named."""
        if self.namespace:
            return f"in the namespace {self.namespace}"
        return "in all namespaces" if self.namespaced else "at cluster scope"

    @property
    def rule(self) -> str:
        """The rule that a ClusterRole needs, or the Role in the namespace, in YAML's flow style."""
        names = f', resourceNames: ["{self.name}"]' if self.name else ""
        return f'apiGroups: ["{self.group}"], resources: ["{self.plural}"]{names}, verbs: ["get","list","watch"]'

    @property
    def role(self) -> str:
        """What has to have that rule."""
        return f"Role of the namespace {self.namespace}" if self.namespace else "ClusterRole"


CORE: Final = (GroupVersion("", "v1"),)
APPS: Final = (GroupVersion("apps", "v1"),)
# An empty selector of a budget selects no pod in v1beta1, and every pod of its namespace in v1.
POLICY: Final = (GroupVersion("policy", "v1"), GroupVersion("policy", "v1beta1"))
STORAGE: Final = (GroupVersion("storage.k8s.io", "v1"), GroupVersion("storage.k8s.io", "v1beta1"))
SCHEDULING: Final = (GroupVersion("scheduling.k8s.io", "v1"),)

# Pods that have finished hold nothing on their node, and a cluster may keep very many of them.
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"

_ROWS: Final = (
    Resource("Pod", "pods", Pod, CORE, fields=UNFINISHED, keeps=_unfinished),
    Resource("Node", "nodes", Node, CORE, namespaced=False),
    Resource("Service", "services", Service, CORE),
    Resource("ReplicationController", "replicationcontrollers", ReplicationController, CORE),
    Resource("ReplicaSet", "replicasets", ReplicaSet, APPS),
    Resource("StatefulSet", "statefulsets", StatefulSet, APPS),
    Resource("PersistentVolumeClaim", "persistentvolumeclaims", PersistentVolumeClaim, CORE),
    Resource("PersistentVolume", "persistentvolumes", PersistentVolume, CORE, namespaced=False),
    Resource("StorageClass", "storageclasses", StorageClass, STORAGE, namespaced=False),
    Resource("CSINode", "csinodes", CSINode, STORAGE, namespaced=False),
    Resource("PodDisruptionBudget", "poddisruptionbudgets", PodDisruptionBudget, POLICY, as_best=as_in_v1),
    Resource("PriorityClass", "priorityclasses", PriorityClass, SCHEDULING, namespaced=False),
    Resource("Namespace", "namespaces", Namespace, CORE, namespaced=False),
)


def one_config_map(namespace: str, name: str) -> Resource:
    """A ConfigMap, and no other. Who may get, list and watch it by its name may follow it."""
    return Resource(
        "ConfigMap", "configmaps", ConfigMap, CORE, fields=f"metadata.name={name}", namespace=namespace, name=name
    )


# By kind.
RESOURCES: Final[Mapping[str, Resource]] = MappingProxyType({row.kind: row for row in _ROWS})


def key_of(meta: ObjectMeta) -> str:
    """`namespace/name`, or `name` for what is in no namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
