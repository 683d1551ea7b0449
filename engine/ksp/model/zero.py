"""The zero of every type: what a field, an element or an object that is not there reads as."""

from __future__ import annotations

import typing
from functools import cache
from types import MappingProxyType, UnionType
from typing import Final

import msgspec

from ksp.model.info import EMPTY_NODE, EMPTY_POD, NodeInfo, PodInfo
from ksp.model.selector import NOTHING, LabelSelector

EMPTY_MAP: Final[MappingProxyType[str, object]] = MappingProxyType({})

_KNOWN: Final[dict[object, object]] = {
    str: "", int: 0, bool: False, float: 0.0, LabelSelector: NOTHING, NodeInfo: EMPTY_NODE, PodInfo: EMPTY_POD
}  # fmt: skip


@cache
def zero(hint: typing.Any) -> object:
    """The zero of an annotation, always the same object. An optional type has the zero of what it may hold.

    A type that no struct of the model uses raises TypeError.
    """
    if hint in _KNOWN:
        return _KNOWN[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint()
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return zero(arguments[0])
    if origin is tuple:
        return ()
    if origin is dict:
        return EMPTY_MAP
    if origin in (typing.Union, UnionType):
        return _zero_of_union(tuple(kind for kind in arguments if kind is not type(None)))
    raise TypeError(f"no zero of {hint!r}")


def _zero_of_union(kinds: tuple[object, ...]) -> object:
    """Of several kinds only a quantity is one of; its zero is the number."""
    return zero(kinds[0]) if len(kinds) == 1 else 0
