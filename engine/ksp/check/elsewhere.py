"""A field that was looked for one level too high or too low: where the API has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ksp.check import schema
from ksp.check.typed import Expr, Read
from ksp.check.types import Struct

DEEPEST = 2  # structs that are looked into below one another: `spec.affinity.nodeAffinity`
LONGEST = 40  # characters of the user's text that are repeated before the field


def field_elsewhere(value: Expr, name: str) -> str:
    """The expression that reads a field of this name below the value, or below what the value is read from; "" if there
    is none."""
    holder: Expr | None = value
    while holder is not None:
        path = paths_below(holder.type.name).get(name) if isinstance(holder.type, Struct) else None
        if path is not None:
            text = holder.span.text
            return f"{text}.{path}" if len(text) <= LONGEST and "\n" not in text else path
        holder = holder.value if isinstance(holder, Read) else None
    return ""


@cache
def paths_below(struct: str) -> Mapping[str, str]:
    """By the name of a field, the fields that lead to it from a struct, with dots between: the shortest way.

    Pods lead to nodes and back: these are not gone through, since what is meant is a part of the same object.
    """
    found: dict[str, str] = {}
    level = [("", struct)]
    for _ in range(DEEPEST + 1):
        below: list[tuple[str, str]] = []
        for prefix, owner in level:
            for name, field in schema.fields_of(owner).items():
                found.setdefault(name, prefix + name)
                if isinstance(field.type, Struct) and field.type not in (schema.POD, schema.NODE):
                    below.append((f"{prefix}{name}.", field.type.name))
        level = below
    return found
