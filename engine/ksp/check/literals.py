"""Literals: numbers, quantities, texts with values in them, lists, maps and structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ksp.check import mistakes, resources, schema
from ksp.check.facts import Fact
from ksp.check.int_constants import int_constant
from ksp.check.quantities import quantity
from ksp.check.report import Report
from ksp.check.schema import FieldInfo
from ksp.check.scope import Scope
from ksp.check.typed import (
    Constant,
    Expr,
    ListOf,
    MapOf,
    StructOf,
    Text,
    unknown,
)
from ksp.check.types import (
    ANY,
    ANY_INT,
    BOOL,
    CPU,
    DOUBLE,
    INT,
    STRING,
    UNKNOWN,
    Bool,
    Double,
    Int,
    List,
    Map,
    String,
    Struct,
    Type,
    Unknown,
    join,
)
from ksp.source.text import Span
from ksp.syntax import tree

if TYPE_CHECKING:
    from ksp.check.expressions import Expressions


class Literals:
    """Types literals. A map is a struct where one is expected; the items of a list are of one type."""

    def __init__(self, expressions: Expressions, report: Report) -> None:
        self.expressions = expressions
        self.report = report

    def literal(self, node: tree.IntLiteral | tree.DoubleLiteral | tree.BoolLiteral | tree.QuantityLiteral) -> Expr:
        match node:
            case tree.BoolLiteral(span=span, value=truth):
                return Constant(span, BOOL, truth)
            case tree.DoubleLiteral(span=span, value=real):
                return Constant(span, DOUBLE, real)
            case tree.IntLiteral(span=span, value=value):
                return int_constant(self.report, span, value, ANY_INT if value == 0 else INT)
            case tree.QuantityLiteral(span=span):
                return self.quantity(node, span)

    def quantity(self, node: tree.QuantityLiteral, span: Span, sign: int = 1) -> Expr:
        """A quantity with its sign, at `span`."""
        amount, dimension = quantity(node.number, node.suffix)
        if amount.denominator != 1:
            unit = "millicores" if dimension == CPU else "bytes"
            mistakes.bad_quantity(self.report, node.span, node.span.text, unit)
        return int_constant(self.report, span, sign * int(amount), Int(ANY if amount == 0 else dimension))

    def string(self, node: tree.StringLiteral, scope: Scope, known: frozenset[Fact]) -> Expr:
        parts: list[str | Expr] = []
        for part in node.parts:
            if isinstance(part, str):
                parts.append(part)
                continue
            value = self.expressions.expr(part, scope, None, known)
            if not isinstance(value.type, Bool | Int | Double | String | Unknown):
                mistakes.wrong_type(
                    self.report, part.span, "a string, a number or a bool", value.type, "what a text shows"
                )
            parts.append(value)
        if all(isinstance(part, str) for part in parts):
            return Constant(node.span, STRING, "".join(part for part in parts if isinstance(part, str)))
        return Text(node.span, STRING, tuple(parts))

    def list_(self, node: tree.ListLiteral, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        wanted = expected.item if isinstance(expected, List) else None
        items: list[Expr] = []
        for item in node.items:
            first = items[0].type if items and isinstance(items[0].type, Struct | Map) else None
            items.append(self.expressions.expr(item, scope, wanted or first, known))
        return ListOf(node.span, List(self._common(items, wanted, "the items of a list")), tuple(items))

    def _common(self, items: Sequence[Expr], wanted: Type | None, what: str) -> Type:
        """The one type of all items."""
        common: Type = UNKNOWN
        for item in items:
            joined = join(common, item.type)
            if joined is None:
                mistakes.mixed(self.report, item.span, what, common, item.type)
                return UNKNOWN
            common = joined
        return wanted if wanted is not None and not items else common

    def map_(self, node: tree.MapLiteral, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if isinstance(expected, Struct):
            return self._struct(node, scope, expected, known)
        key_type = expected.key if isinstance(expected, Map) else None
        value_type = expected.value if isinstance(expected, Map) else None
        is_resource_list = isinstance(expected, Map) and expected.resources
        entries: list[tuple[Expr, Expr]] = []
        seen: set[tuple[type, object]] = set()
        for entry in node.entries:
            if is_resource_list and isinstance(entry.key, tree.Name):
                key: Expr = Constant(entry.key.span, STRING, entry.key.name)
            else:
                key = self._map_key(entry.key, scope, key_type, known)
            if isinstance(key, Constant) and not isinstance(key.type, Unknown):
                if (type(key.value), key.value) in seen:
                    mistakes.entry_twice(self.report, entry.key.span, entry.key.span.text)
                seen.add((type(key.value), key.value))
            name = resources.constant_name(key) if is_resource_list else None
            if name is not None:
                wanted = resources.check_name(self.report, entry.key.span, name)
                entries.append((key, self.expressions.wanted(entry.value, scope, wanted, f"`{name}`", known)))
            else:
                entries.append((key, self.expressions.expr(entry.value, scope, value_type, known)))
        keys = self._common([key for key, _ in entries], key_type, "the keys of a map")
        if node.entries and not isinstance(keys, String | Int | Bool | Unknown):
            wanted_key = "a string, an int or a bool"
            mistakes.wrong_type(self.report, node.entries[0].key.span, wanted_key, keys, "the key of a map")
            keys = UNKNOWN
        if is_resource_list:
            return MapOf(node.span, Map(STRING, ANY_INT, resources=True), tuple(entries))
        values = self._common([value for _, value in entries], value_type, "the values of a map")
        return MapOf(node.span, Map(keys, values), tuple(entries))

    def _map_key(self, node: tree.Expr, scope: Scope, key_type: Type | None, known: frozenset[Fact]) -> Expr:
        if isinstance(node, tree.Name) and scope.find(node.name) is None and not scope.is_broken(node.name):
            mistakes.bare_key(self.report, node.span, node.name)
            return unknown(node.span)
        return self.expressions.expr(node, scope, key_type, known)

    def _struct(self, node: tree.MapLiteral, scope: Scope, struct: Struct, known: frozenset[Fact]) -> Expr:
        fields = schema.fields_of(struct.name)
        given: dict[str, tuple[FieldInfo, Expr]] = {}
        for entry in node.entries:
            name = self._field_name(entry.key)
            field = fields.get(name) if name is not None else None
            if name is None:
                mistakes.not_a_field_name(self.report, entry.key.span, struct.name)
            elif field is None or len(field.path) != 1:
                mistakes.unknown_field(self.report, entry.key.span, struct.name, name, fields)
            elif name in given:
                mistakes.entry_twice(self.report, entry.key.span, name)
            else:
                given[name] = (
                    field,
                    self.expressions.wanted(entry.value, scope, _loose(field.type), f"`{name}`", known),
                )
                if (struct.name, name) == ("ResourceSpec", "name"):
                    resources.check_name(self.report, entry.value.span, resources.constant_name(given[name][1]))
        return StructOf(node.span, struct, tuple(given.values()))

    def _field_name(self, key: tree.Expr) -> str | None:
        match key:
            case tree.Name(name=name):
                return name
            case tree.StringLiteral(parts=(str() as name,)):
                return name
        return None


def _loose(type: Type) -> Type:
    """A struct's own int takes any dimension: a parameter's weight may be a quantity."""
    return ANY_INT if isinstance(type, Int) else type
