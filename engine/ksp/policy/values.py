"""Arguments from outside, as JSON gives them, to values of a parameter's type."""

from __future__ import annotations

from typing import Any

from ksp.check.schema import struct_names
from ksp.check.types import Bool, Double, Int, List, Map, String, Struct, Type, show
from ksp.compile.zeros import zero_of
from ksp.model.decode import DecodeError, convert
from ksp.model.int64 import MAX, MIN


class ArgumentError(ValueError):
    """An argument that does not have its parameter's type. The text names the place in it."""


def value_of(type: Type, given: Any, path: str) -> Any:
    """The run-time value; null is the zero. Raises ArgumentError."""
    if given is None:
        return zero_of(type)
    match type, given:
        case (Bool(), bool()) | (String(), str()):
            return given
        case Int(), int() if not isinstance(given, bool) and MIN <= given <= MAX:
            return given
        case Double(), int() | float() if not isinstance(given, bool):
            return float(given)
        case List(item), list():
            return tuple(value_of(item, value, f"{path}[{i}]") for i, value in enumerate(given))
        case Map(_, value), dict():
            return {str(key): value_of(value, inner, f"{path}.{key}") for key, inner in given.items()}
        case Struct(name), dict():
            return _struct(struct_names()[name], given, path)
    raise ArgumentError(f"{path}: must be {show(type)}, not {_shown(given)}")


def _struct(kind: type, given: dict[str, Any], path: str) -> Any:
    try:
        return convert(kind, given)
    except DecodeError as error:
        raise ArgumentError(f"{path}{error.path.removeprefix('$')}: {error.message}") from error


def _shown(given: Any) -> str:
    return {bool: "a bool", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}.get(
        type(given), "that"
    )
