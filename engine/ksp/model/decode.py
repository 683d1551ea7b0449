"""From JSON to structs, with the API's rule for null: it means what Go's zero means, wherever it stands.

Nearly all objects have no null where a struct has a value, and are decoded in one strict pass. Only when that fails is
the object decoded untyped, relieved of its nulls as the types say, and converted; that pass also finds the place of
what is wrong. It goes no deeper than the types, however deep the text.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import inspect

from ksp.model.apps import ReplicaSet, ReplicationController, Service, StatefulSet
from ksp.model.int64 import MAX, MIN
from ksp.model.namespace import Namespace
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget, PriorityClass
from ksp.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

T = TypeVar("T", bound=msgspec.Struct)

# The kinds that scheduling reads.
KINDS: Final[dict[str, type[msgspec.Struct]]] = {
    "CSINode": CSINode,
    "Namespace": Namespace,
    "Node": Node,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "Pod": Pod,
    "PodDisruptionBudget": PodDisruptionBudget,
    "PriorityClass": PriorityClass,
    "ReplicaSet": ReplicaSet,
    "ReplicationController": ReplicationController,
    "Service": Service,
    "StatefulSet": StatefulSet,
    "StorageClass": StorageClass,
}

# Those whose objects are in no namespace.
CLUSTER_SCOPED: Final = frozenset({"CSINode", "Namespace", "Node", "PersistentVolume", "PriorityClass", "StorageClass"})

# The API groups of those that are not in the core.
_GROUPS: Final = {
    "CSINode": "storage.k8s.io",
    "PodDisruptionBudget": "policy",
    "PriorityClass": "scheduling.k8s.io",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "StorageClass": "storage.k8s.io",
}

# The way from an object to what lies in it: fields and keys, and indexes of lists.
Steps = tuple[str | int, ...]

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DecodeError(Exception):
    """What is wrong, and where: `steps` lead there, `path` writes them as `$.spec.containers[0].image`."""

    def __init__(self, steps: Steps, message: str) -> None:
        self.steps = steps
        self.path = "$" + "".join(_written(step) for step in steps)
        self.message = message
        super().__init__(f"{self.path}: {message}")


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _SIMPLE_KEY.fullmatch(step) else f'["{step}"]'


def kind_of(api_version: str, kind: str) -> type[msgspec.Struct] | None:
    """The struct for an object's apiVersion (`v1`, `apps/v1`) and kind; None if scheduling does not read that kind."""
    group, slash, _version = api_version.partition("/")
    return KINDS.get(kind) if (group if slash else "") == _GROUPS.get(kind, "") else None


def decode(kind: type[T], data: bytes) -> T:
    """The object in a JSON text. Raises DecodeError."""
    try:
        decoded: T = _decoder(kind).decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return convert(kind, _parse(data))
    return decoded


def convert(kind: type[T], value: object) -> T:
    """The object in a value of dicts, lists and scalars, as JSON and YAML parsers give it. Raises DecodeError."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        relieved = _relieve(value, _type_of(kind), ())
    return msgspec.convert(relieved, kind)


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


@cache
def _type_of(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _parse(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        raise DecodeError((), f"not valid UTF-8 (byte {error.start})") from error
    except RecursionError as error:
        raise DecodeError((), "nested too deeply") from error
    except ValueError as error:
        raise DecodeError((), f"not valid JSON: {str(error).removeprefix('JSON is malformed: ')}") from error


def _relieve(value: Any, kind: inspect.Type, steps: Steps) -> Any:
    """The value without nulls, and without what the type does not have. Raises DecodeError for any other mismatch."""
    match kind:
        case inspect.StructType():
            return _struct(value, kind, steps)
        case inspect.VarTupleType(item_type=item):
            elements = _checked(value, list, "a list", steps, [])
            return [_relieve(element, item, (*steps, i)) for i, element in enumerate(elements)]
        case inspect.DictType(value_type=item):
            entries = _checked(value, dict, "an object", steps, {})
            return {_key(key, steps): _relieve(entry, item, (*steps, key)) for key, entry in entries.items()}
        case inspect.UnionType(types=types):
            kinds = [option for option in types if not isinstance(option, inspect.NoneType)]
            return _relieve(value, kinds[0], steps) if len(kinds) == 1 else _quantity(value, steps)
        case inspect.BoolType():
            return _checked(value, bool, "true or false", steps, False)
        case inspect.IntType():
            return _integer(value, steps)
        case _:
            return _checked(value, str, "a string", steps, "")


def _struct(value: Any, kind: inspect.StructType, steps: Steps) -> dict[str, Any]:
    fields = _checked(value, dict, "an object", steps, {})
    return {
        field.encode_name: _relieve(fields[field.encode_name], field.type, (*steps, field.encode_name))
        for field in kind.fields
        if fields.get(field.encode_name) is not None
    }


def _checked(value: Any, kind: type, what: str, steps: Steps, zero: Any) -> Any:
    if value is None:
        return zero
    return value if isinstance(value, kind) else _mismatch(steps, what, value)


def _integer(value: Any, steps: Steps) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        _mismatch(steps, "an integer", value)
    if not MIN <= value <= MAX:
        raise DecodeError(steps, "the number does not fit in 64 bits")
    return value


def _quantity(value: Any, steps: Steps) -> str | int | float:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        _mismatch(steps, "a quantity (a string or a number)", value)
    return value


def _key(key: object, steps: Steps) -> str:
    return key if isinstance(key, str) else _mismatch(steps, "strings as keys", key)


def _mismatch(steps: Steps, expected: str, value: object) -> NoReturn:
    raise DecodeError(steps, f"expected {expected}, got {_what(value)}")


def _what(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if not MIN <= value <= MAX:
            return "a number of more than 64 bits"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the string "{value[:40]}"'
        case dict():
            return "an object"
        case list():
            return "a list"
        case dt.date():
            return "a time (write it in quotes)"
        case _:
            return f"a {type(value).__name__}"
