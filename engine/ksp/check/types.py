"""The types of the language: closed, structural, known before anything runs.

An `int` carries a dimension, the exponents of cpu (in milli) and of bytes: `(1, 0)` is cpu, `(0, 2)` is bytes squared,
`(0, 0)` a plain number. `None` is the dimension that fits any: of 0, of an entry of a resource map whose name is not
constant, of an `int` parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

Dimension = tuple[int, int] | None

PLAIN: Dimension = (0, 0)
CPU: Dimension = (1, 0)
BYTES: Dimension = (0, 1)
ANY: Dimension = None


@dataclass(frozen=True, slots=True)
class Bool:
    """true or false"""


@dataclass(frozen=True, slots=True)
class Int:
    """A signed 64-bit integer of a dimension."""

    dimension: Dimension = PLAIN


@dataclass(frozen=True, slots=True)
class Double:
    """An IEEE 754 double."""


@dataclass(frozen=True, slots=True)
class String:
    """Unicode text, counted in code points."""


@dataclass(frozen=True, slots=True)
class List:
    """A list; `item` is Unknown for the empty literal."""

    item: Type


@dataclass(frozen=True, slots=True)
class Map:
    """A map; keys are strings, ints or bools. `resources` marks resource lists, whose entries have the dimension of
    their name."""

    key: Type
    value: Type
    resources: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """A type of the Kubernetes API, or of a rule's parameters, by its name in the schema."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """What has a mistake in it: fits everything, so that one mistake is reported once."""


Type = Bool | Int | Double | String | List | Map | Struct | Unknown

BOOL = Bool()
INT = Int()
ANY_INT = Int(ANY)
DOUBLE = Double()
STRING = String()
UNKNOWN = Unknown()
RESOURCES = Map(STRING, ANY_INT, resources=True)


def fits(actual: Type, wanted: Type) -> bool:
    """A value of the one type can stand where the other is wanted."""
    return join(actual, wanted) is not None


def join(a: Type, b: Type) -> Type | None:
    """The type that both fit, the more definite of the two; None if there is none."""
    match a, b:
        case (Unknown(), _):
            return b
        case (_, Unknown()):
            return a
        case (Int(x), Int(y)):
            return b if x is None else a if y is None or x == y else None
        case (List(x), List(y)):
            item = join(x, y)
            return None if item is None else List(item)
        case (Map(), Map()):
            return _join_maps(a, b)
        case _:
            return a if a == b else None


def _join_maps(a: Map, b: Map) -> Type | None:
    key, value = join(a.key, b.key), join(a.value, b.value)
    return None if key is None or value is None else Map(key, value, a.resources and b.resources)


def is_known(type: Type) -> bool:
    """No part of it is Unknown."""
    match type:
        case Unknown():
            return False
        case List(item):
            return is_known(item)
        case Map(key, value):
            return is_known(key) and is_known(value)
        case _:
            return True


def show(type: Type) -> str:
    """The type as a policy would write it."""
    match type:
        case Bool():
            return "bool"
        case Int(dimension):
            return show_dimension(dimension)
        case Double():
            return "double"
        case String():
            return "string"
        case List(item):
            return f"list<{show(item)}>"
        case Map(key, value, resources):
            return "ResourceList" if resources else f"map<{show(key)}, {show(value)}>"
        case Struct(name):
            return name
        case Unknown():
            return "?"


def show_dimension(dimension: Dimension) -> str:
    """`int`, `cpu`, `bytes`, or a product such as `cpu*bytes^2`."""
    if dimension is None or dimension == PLAIN:
        return "int"
    parts = [(name, power) for name, power in zip(("cpu", "bytes"), dimension, strict=True) if power]
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in parts)


def resource_dimension(name: str) -> Dimension:
    """The dimension of a resource by its name: cpu in milli, memory and storage in bytes, all else a plain count."""
    if name == "cpu":
        return CPU
    if name in ("memory", "ephemeral-storage", "storage") or name.startswith("hugepages-"):
        return BYTES
    return PLAIN
