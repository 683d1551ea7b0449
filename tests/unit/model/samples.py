"""Values made from the types themselves, so that no field can be forgotten."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

Steps = tuple[str | int, ...]


def full(kind: type) -> Any:
    """JSON of an object in which every field is set, and every list and map has one entry."""
    return _full(inspect.type_info(kind))


def _full(kind: inspect.Type) -> Any:
    match kind:
        case inspect.StructType(fields=fields):
            return {field.encode_name: _full(field.type) for field in fields}
        case inspect.VarTupleType(item_type=item):
            return [_full(item)]
        case inspect.DictType(value_type=item):
            return {"some/key": _full(item)}
        case inspect.UnionType():
            return _full(_only(kind))
        case inspect.IntType():
            return 7
        case inspect.BoolType():
            return True
        case _:
            return "text"


def _only(kind: inspect.UnionType) -> inspect.Type:
    """What an optional type may hold; of a quantity's forms, the text."""
    options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
    return next((option for option in options if isinstance(option, inspect.StrType)), options[0])


def places(value: Any, kind: inspect.Type, steps: Steps = ()) -> Iterator[tuple[Steps, inspect.Type | None]]:
    """Every place in a value: fields with None, elements and map values with their type."""
    if isinstance(kind, inspect.UnionType) and not isinstance(value, str):
        kind = _only(kind)
    match kind:
        case inspect.StructType(fields=fields):
            for field in fields:
                yield (*steps, field.encode_name), None
                yield from places(value[field.encode_name], field.type, (*steps, field.encode_name))
        case inspect.VarTupleType(item_type=item):
            for i, element in enumerate(value):
                yield (*steps, i), item
                yield from places(element, item, (*steps, i))
        case inspect.DictType(value_type=item):
            for key, entry in value.items():
                yield (*steps, key), item
                yield from places(entry, item, (*steps, key))
        case _:
            pass


def zero_json(kind: inspect.Type) -> Any:
    """What null stands for where an element of this type is expected."""
    match kind:
        case inspect.StructType():
            return {}
        case inspect.VarTupleType():
            return []
        case inspect.DictType():
            return {}
        case inspect.StrType():
            return ""
        case inspect.BoolType():
            return False
        case _:
            return 0


def put(value: Any, steps: Steps, new: Any) -> Any:
    """A copy with another value at one place."""
    changed = copy.deepcopy(value)
    _holder(changed, steps)[steps[-1]] = new
    return changed


def without(value: Any, steps: Steps) -> Any:
    """A copy that lacks one field."""
    changed = copy.deepcopy(value)
    del _holder(changed, steps)[steps[-1]]
    return changed


def _holder(value: Any, steps: Steps) -> Any:
    for step in steps[:-1]:
        value = value[step]
    return value
