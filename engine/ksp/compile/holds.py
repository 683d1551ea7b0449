"""What values of a type hold."""

from __future__ import annotations

from ksp.check.schema import RENAMED
from ksp.check.types import Double, List, Map, Struct, Type


def holds_objects(type: Type) -> bool:
    """A value of the type is, or holds, a pod or node: more than its own text would say."""
    match type:
        case Struct(name):
            return name in RENAMED
        case List(item):
            return holds_objects(item)
        case Map(_, value):
            return holds_objects(value)
    return False


def holds_doubles(type: Type) -> bool:
    """A list or map with doubles in it. Python finds a NaN equal to itself in there; the language does not."""
    match type:
        case List(item):
            return isinstance(item, Double) or holds_doubles(item)
        case Map(_, value):
            return isinstance(value, Double) or holds_doubles(value)
    return False
