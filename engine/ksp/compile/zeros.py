"""What an absent value of each type reads as."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType

from ksp.check.schema import struct_names
from ksp.check.types import Bool, Double, Int, List, Map, String, Struct, Type, Unknown
from ksp.model.info import EMPTY_NODE, EMPTY_POD, NodeInfo, PodInfo
from ksp.model.selector import NOTHING, LabelSelector

EMPTY_MAP: MappingProxyType[object, object] = MappingProxyType({})


@cache
def zero_of(type: Type) -> object:
    """The zero: shared, and never changed by anyone."""
    match type:
        case Bool():
            return False
        case Int():
            return 0
        case Double():
            return 0.0
        case String():
            return ""
        case List():
            return ()
        case Map():
            return EMPTY_MAP
        case Struct(name):
            return _struct(struct_names()[name])
        case Unknown():
            raise AssertionError("a type that is not known reached the compiler")


def _struct(kind: type) -> object:
    shared = {PodInfo: EMPTY_POD, NodeInfo: EMPTY_NODE, LabelSelector: NOTHING}
    return shared[kind] if kind in shared else kind()
