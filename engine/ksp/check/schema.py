"""The types of the Kubernetes API as a policy sees them: read from the very structs that decode the API's JSON.

A field that the structs do not have does not exist for the language. What the API does not have, but the language
gives (`pod.requests`, `node.podCount`), stands in the same structs, as `PodInfo` and `NodeInfo`.
"""

from __future__ import annotations

import types as python_types
import typing
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import msgspec

from ksp.check.types import BOOL, BYTES, DOUBLE, INT, RESOURCES, STRING, Int, List, Map, Struct, Type
from ksp.model import apps, arguments, info, meta, namespace, node, pod, policy, storage
from ksp.model.quantity import Quantity

MODULES: tuple[ModuleType, ...] = (meta, pod, node, apps, storage, policy, namespace, arguments, info)

# What a policy calls a type, where that is not the name of its struct.
RENAMED: dict[str, type] = {"Pod": info.PodInfo, "Node": info.NodeInfo}
HIDDEN: frozenset[type] = frozenset({pod.Pod, node.Node, info.PodInfo, info.NodeInfo})

POD = Struct("Pod")
NODE = Struct("Node")
LABELS = Map(STRING, STRING)

# The fields that a policy sees of the types that hold more than the language shows.
SHOWN: dict[str, frozenset[str]] = {
    "PodDisruptionBudgetSpec": frozenset(["selector"]),
    "Pod": frozenset(
        [
            "metadata",
            "spec",
            "status",
            "name",
            "namespace",
            "uid",
            "labels",
            "annotations",
            "requests",
            "nonzeroRequests",
            "hostPorts",
            "claimNames",
            "requiredAffinity",
            "preferredAffinity",
            "requiredAntiAffinity",
            "preferredAntiAffinity",
            "affinityError",
            "terminating",
            "node",
        ]
    ),
    "Node": frozenset(
        [
            "metadata",
            "spec",
            "status",
            "name",
            "uid",
            "labels",
            "annotations",
            "allocatable",
            "requested",
            "nonzeroRequested",
            "podCount",
            "hostPorts",
            "images",
        ]
    ),
}

# Fields whose type the struct does not say: derived resource lists, and sizes.
DERIVED: dict[tuple[str, str], Type] = {
    ("Pod", "requests"): RESOURCES,
    ("Pod", "nonzeroRequests"): RESOURCES,
    ("Node", "allocatable"): RESOURCES,
    ("Node", "requested"): RESOURCES,
    ("Node", "nonzeroRequested"): RESOURCES,
    ("Node", "images"): Map(STRING, Int(BYTES)),
}

# `cluster.X`: the type of its objects, and whether they are found by namespace first.
OBJECTS: dict[str, tuple[str, bool]] = {
    "services": ("Service", True),
    "replicationControllers": ("ReplicationController", True),
    "replicaSets": ("ReplicaSet", True),
    "statefulSets": ("StatefulSet", True),
    "persistentVolumeClaims": ("PersistentVolumeClaim", True),
    "persistentVolumes": ("PersistentVolume", False),
    "storageClasses": ("StorageClass", False),
    "csiNodes": ("CSINode", False),
    "podDisruptionBudgets": ("PodDisruptionBudget", True),
    "priorityClasses": ("PriorityClass", False),
    "namespaces": ("Namespace", False),
}
RELATIONS: dict[str, Type] = {"pods": POD, "nodes": NODE}


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A field of a struct type.

    `path` are the Python attributes that lead to it; `nullable` if the API tells absent from zero; `quantities` if the
    attribute holds a resource list as the API writes it, which reads as a map of ints.
    """

    owner: str
    name: str
    type: Type
    path: tuple[str, ...]
    nullable: bool = False
    quantities: bool = False


@cache
def struct_names() -> dict[str, type]:
    """Every struct type that a policy can name, and its class."""
    found = {
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value not in HIDDEN and name[0] != "_"
    }
    return found | RENAMED


@cache
def name_of(kind: type) -> str:
    """What a policy calls a struct class."""
    return next((name for name, renamed in RENAMED.items() if renamed is kind), kind.__name__)


@cache
def fields_of(name: str) -> dict[str, FieldInfo]:
    """The fields of a struct type by name; an object with metadata shows the common ones without it, too."""
    kind = struct_names()[name]
    hints = typing.get_type_hints(kind)
    shown = SHOWN.get(name)
    fields = {
        api_name: _field(name, api_name, attribute, hints[attribute])
        for attribute, api_name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)  # type: ignore[attr-defined]
        if shown is None or api_name in shown
    }
    if "metadata" in fields and shown is None:
        for short in ("labels", "annotations", "name", "namespace", "uid"):
            fields.setdefault(short, _through_metadata(name, short))
    return fields


def _through_metadata(owner: str, name: str) -> FieldInfo:
    field = fields_of("ObjectMeta")[name]
    return FieldInfo(owner, name, field.type, ("metadata", *field.path), field.nullable)


def _field(owner: str, name: str, attribute: str, hint: object) -> FieldInfo:
    nullable, inner = _without_none(hint)
    quantities = inner == dict[str, Quantity]
    type = DERIVED.get((owner, name)) or (RESOURCES if quantities else type_of(inner))
    return FieldInfo(owner, name, type, (attribute,), nullable, quantities)


def _without_none(hint: object) -> tuple[bool, object]:
    if typing.get_origin(hint) in (typing.Union, python_types.UnionType):
        arguments_ = typing.get_args(hint)
        rest = tuple(a for a in arguments_ if a is not type(None))
        if len(rest) < len(arguments_):
            return True, typing.Union[rest]  # noqa: UP007 - built from a tuple
    return False, hint


SCALARS: dict[object, Type] = {str: STRING, bool: BOOL, int: INT, float: DOUBLE}


def type_of(hint: object) -> Type:
    """The type of the language for a struct field's annotation."""
    if hint in SCALARS:
        return SCALARS[hint]
    origin, arguments_ = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return List(type_of(arguments_[0]))
    if origin is dict:
        return Map(type_of(arguments_[0]), type_of(arguments_[1]))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return Struct(name_of(hint))
    return STRING if hint == Quantity else _no_type(hint)


def _no_type(hint: object) -> Type:
    raise TypeError(f"no type of the language for {hint!r}")


def objects_type(kind: str) -> Type:
    """The type of `cluster.KIND`."""
    struct, namespaced = OBJECTS[kind]
    by_name = Map(STRING, Struct(struct))
    return Map(STRING, by_name) if namespaced else by_name
