"""Which parts of the node an expression reads: whether its value can be computed once for each combination of them.

A part is a label or annotation by a key that is known early, or what a path of fields leads to (`spec.taints`). What a
map that is known early has under the node's name is another kind: few nodes may be in there. Amounts, the node's name
itself, labels by a key that an inner loop gives, and the node as a whole are none: they differ from node to node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from ksp.check.schema import FieldInfo
from ksp.check.stages import children
from ksp.check.typed import At, Binding, Comprehend, Expr, Has, In, LetIn, NodeScore, Read, Ref
from ksp.check.types import Double, Int, Map
from ksp.compile.places import key_of

TEXTS = ("labels", "annotations")
SUMS = frozenset({"requested", "nonzeroRequested", "podCount"})
AMOUNTS = frozenset({"allocatable", "requested", "nonzeroRequested", "images"})
NESTED = ("metadata", "spec", "status")


class UnfitError(Exception):
    """The rule, or a part of it, has no column form; why, in the words of a policy's author."""


@dataclass(frozen=True, slots=True)
class PartOf:
    """A part of the node: the attributes that lead to it, and then a key, if it is an entry of a map of texts."""

    path: tuple[str, ...]
    key: Expr | None = None

    @property
    def has_column(self) -> bool:
        """It can be told apart, or read, without asking a function for each of its values."""
        return self.path[0] in ("labels", "images", "allocatable")


NAME = PartOf(("name",))


@dataclass(slots=True)
class NodeReads:
    """`parts` that are read, `maps` by the node's name; `whole` says what else is read, "" if nothing is. `deep` if an
    entry of a map is more than a number; `seen` are the names that were looked behind."""

    parts: list[PartOf] = field(default_factory=list)
    maps: list[Expr] = field(default_factory=list)
    whole: str = ""
    deep: bool = False
    seen: set[Binding] = field(default_factory=set)

    @property
    def plain(self) -> bool:
        """Nothing but parts in which few nodes differ, and which have no better form: no labels, as some name nodes."""
        return not self.whole and not self.maps and not any(part.has_column for part in self.parts)

    @property
    def best_by_parts(self) -> bool:
        """Code over arrays would do worse."""
        return self.plain or (self.deep and not self.whole)


def is_node(expr: Expr) -> bool:
    """`node` itself."""
    return isinstance(expr, Ref) and key_of(expr.binding) == "node"


def node_path(expr: Expr) -> tuple[FieldInfo, ...] | None:
    """The fields that lead from the node to the expression."""
    steps: list[FieldInfo] = []
    while isinstance(expr, Read):
        steps.append(expr.field)
        expr = expr.value
    return tuple(reversed(steps)) if steps and is_node(expr) else None


def _short(path: tuple[FieldInfo, ...]) -> tuple[FieldInfo, ...]:
    """`node.metadata.labels` is `node.labels`."""
    short = path[0].name == "metadata" and len(path) > 1 and path[1].name in (*TEXTS, "name", "uid")
    return path[1:] if short else path


def texts_of_node(expr: Expr) -> str:
    """`labels` or `annotations`, if the expression is that of the node; else ""."""
    path = node_path(expr)
    if path is None:
        return ""
    short = _short(path)
    return short[0].name if len(short) == 1 and short[0].name in TEXTS else ""


def amounts_of_node(expr: Expr) -> str:
    """The attribute of the map of amounts that the expression is; else ""."""
    path = node_path(expr)
    named = path is not None and len(path) == 1 and path[0].name in AMOUNTS
    return path[0].path[0] if path is not None and named else ""


def _is_allocatable(expr: Expr) -> bool:
    return amounts_of_node(expr) == "allocatable"


def is_name(expr: Expr) -> bool:
    path = node_path(expr)
    return path is not None and [field.name for field in _short(path)] == ["name"]


class Reader:
    """Finds what expressions read of the node. `late` says which do at all; `names` gives the names that one reads and
    does not bind itself, those that its lets read among them, `lets` the values of names."""

    def __init__(
        self, late: Callable[[Expr], bool], names: Callable[[Expr], AbstractSet[object]], lets: Mapping[Binding, Expr]
    ) -> None:
        self.late = late
        self.names = names
        self.lets = lets

    def of(self, *exprs: Expr, bound: frozenset[Binding] = frozenset()) -> NodeReads:
        """What the expressions read; `bound` are names of loops in which they stand."""
        found = NodeReads()
        for expr in exprs:
            self._gather(expr, bound, found)
        return found

    def resolved(self, expr: Expr) -> Expr:
        """The value of a name that reads the node."""
        while isinstance(expr, Ref) and expr.binding in self.lets and self.late(expr):
            expr = self.lets[expr.binding]
        return expr

    def text(self, expr: Expr) -> PartOf | None:
        """The part, if the expression is a text of the node."""
        expr = self.resolved(expr)
        if is_name(expr):
            return NAME
        if isinstance(expr, At) and texts_of_node(expr.value) and not self.late(expr.key):
            return PartOf((texts_of_node(expr.value),), expr.key)
        return None

    def _gather(self, expr: Expr, bound: frozenset[Binding], found: NodeReads) -> None:
        if found.whole or (not self.late(expr) and not self._reads(expr, bound)):
            return
        match expr:
            case At(value=value, key=key) if texts_of_node(value):
                self._entry(texts_of_node(value), key, bound, found)
            case In(item=item, container=container) if texts_of_node(container):
                self._entry(texts_of_node(container), item, bound, found)
            case At(value=value, key=key) if _is_allocatable(value):
                self._entry("allocatable", key, bound, found)
            case In(item=item, container=container) if _is_allocatable(container):
                self._entry("allocatable", item, bound, found)
            case At(value=value, key=key) if is_name(key) and self._is_early_map(value, bound):
                found.maps.append(value)
                found.deep |= not isinstance(expr.type, Int | Double)
            case In(item=item, container=container) if is_name(item) and self._is_early_map(container, bound):
                found.maps.append(container)
            case Read() | Has() if node_path(expr if isinstance(expr, Read) else expr.value) is not None:
                self._path(expr, found)
            case Ref(binding=binding) if binding in self.lets and binding not in bound:
                if binding not in found.seen:
                    found.seen.add(binding)
                    self._gather(self.lets[binding], bound, found)
            case Ref() if self.late(expr) and binding_of(expr) not in bound:
                found.whole = "the node as a whole" if is_node(expr) else f"`{expr.binding.name}`"
            case NodeScore():
                found.whole = "scores of nodes"
            case Comprehend(variables=variables):
                self._gather(expr.range, bound, found)
                self._gather(expr.body, bound | {*variables}, found)
            case LetIn(binding=binding):
                self._gather(expr.value, bound, found)
                self._gather(expr.body, bound | {binding}, found)
            case _:
                for child in children(expr):
                    self._gather(child, bound, found)

    def _reads(self, expr: Expr, bound: frozenset[Binding]) -> bool:
        """It reads one of the names that loops in the expression give."""
        return bool(bound) and not bound.isdisjoint(self.names(expr))

    def _is_early_map(self, expr: Expr, bound: frozenset[Binding]) -> bool:
        return isinstance(expr.type, Map) and not self.late(expr) and not self._reads(expr, bound)

    def _entry(self, which: str, key: Expr, bound: frozenset[Binding], found: NodeReads) -> None:
        if self.late(key) or self._reads(key, bound):
            found.whole = f"node.{which} by keys that it finds on the way"
        else:
            found.parts.append(PartOf((which,), key))

    def _path(self, expr: Read | Has, found: NodeReads) -> None:
        path = node_path(expr if isinstance(expr, Read) else expr.value) or ()
        path = _short((*path, expr.field) if isinstance(expr, Has) else path)
        first = path[0]
        if first.name in SUMS or first.name == "allocatable" or first.name in TEXTS or first.name in ("name", "uid"):
            found.whole = f"node.{first.name}"
        elif first.name in NESTED and len(path) == 1:
            found.whole = f"all of node.{first.name}"
        elif first.name in NESTED:
            found.parts.append(PartOf((first.path[0], path[1].path[0])))
        else:
            found.parts.append(PartOf(first.path))


def binding_of(expr: Ref) -> Binding:
    return expr.binding
