"""The objects of `test` blocks: what is wrong with them, and the structs that they are.

A field that the API has and ksp does not read is allowed, as in a manifest. A field that nothing has, but that is spelt
nearly like one that ksp reads, is a mistake: the test would say something else than it seems to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from ksp.check.mistakes import article
from ksp.check.typed import Test, TestObject
from ksp.model.decode import KINDS, DecodeError, convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.source.diagnostic import Diagnostic, Severity

WRITTEN = ("apiVersion", "kind")
"""What every object has, and its struct does not need."""


def object_mistakes(test: Test) -> Iterator[Diagnostic]:
    """What is wrong with the objects that the test writes out. Those from files are not looked at."""
    for given in test.objects:
        if not given.path:
            yield from _mistakes(given)


def decoded(given: TestObject) -> msgspec.Struct:
    """The object that a test writes out. Raises DecodeError."""
    return convert(KINDS[given.kind], given.value)


def mistake(given: TestObject, message: str, label: str = "not a valid object") -> Diagnostic:
    """A mistake in an object of a test: literals have no place of their own, so the object's name bears it."""
    return Diagnostic("KSP0602", Severity.ERROR, message, given.span, label)


def amount_error(value: msgspec.Struct) -> str:
    """Why the amounts of a pod or node cannot be read, "" if they can."""
    match value:
        case Pod():
            return PodInfo.of(value).error
        case Node():
            return NodeInfo.of(value).error
    return ""


def _mistakes(given: TestObject) -> Iterator[Diagnostic]:
    try:
        error = amount_error(decoded(given))
    except DecodeError as caught:
        yield mistake(given, f"`{_path(caught.path)}` of `{given.name}`: {caught.message}")
        return
    if error:
        yield mistake(given, f"`{given.name}`: {error}")
    for path, owner, known in _unknown(given.value, inspect.type_info(KINDS[given.kind]), ""):
        name = path.rpartition(".")[2]
        at_top = path == name and given.kind in ("Pod", "Node")
        near = _nearest(name, known) or (_further_in(name, given.kind) if at_top else None)
        if near is not None or at_top:
            label = f"did you mean `{near}`?" if near else "no such field"
            yield mistake(given, f"{article(owner)} has no field `{name}`: `{path}` of `{given.name}`", label)


def _path(path: str) -> str:
    return path.removeprefix("$").removeprefix(".")


# ---- fields


def _further_in(name: str, kind: str) -> str | None:
    """Of pods and nodes all is known that can stand at the top; what stands there by mistake may belong further in."""
    for part in ("spec", "status"):
        field = next(f for f in _fields(inspect.type_info(KINDS[kind])) if f.encode_name == part)
        near = _nearest(name, [inner.encode_name for inner in _fields(field.type)])
        if near is not None:
            return f"{part}.{near}"
    return "requests" if kind == "Pod" and _nearest(name, ["requests"]) else None


def _fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    return kind.fields if isinstance(kind, inspect.StructType) else ()


def _unknown(value: Any, kind: inspect.Type, path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Fields that the structs do not have: their path, the type that they stand in, and the fields which that has."""
    match kind:
        case inspect.StructType(cls=cls, fields=fields) if isinstance(value, dict):
            known = {field.encode_name: field.type for field in fields}
            for name, inner in value.items():
                here = f"{path}.{name}" if path else name
                if name in known:
                    yield from _unknown(inner, known[name], here)
                elif here not in WRITTEN:
                    yield here, cls.__name__, list(known)
        case inspect.VarTupleType(item_type=item) if isinstance(value, list):
            for i, element in enumerate(value):
                yield from _unknown(element, item, f"{path}[{i}]")
        case inspect.DictType(value_type=item) if isinstance(value, dict):
            for key, inner in value.items():
                yield from _unknown(inner, item, f"{path}.{key}")
        case inspect.UnionType(types=types):
            for option in types:
                if isinstance(option, inspect.StructType):
                    yield from _unknown(value, option, path)


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """The known field that the name is a slip of: other capitals, or at most two letters off. The API's own names are
    further apart than that (`serviceAccount` is a field of its own)."""
    slack = min(2, len(name) // 4)
    rated = min(((edits(name.lower(), other.lower()), other) for other in known), default=None)
    return rated[1] if rated is not None and rated[0] <= slack else None


def edits(a: str, b: str) -> int:
    """How many letters to add, take away, change or swap with the next, to make the one of the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]
