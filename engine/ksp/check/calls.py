"""Calls: functions and methods of the function table, the policy's own `fn`, and macros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ksp.check import mistakes, schema
from ksp.check.builtins import parser, pattern
from ksp.check.facts import Fact
from ksp.check.functions import FUNCTIONS, MACROS, MATCHES, METHODS, Row, parse_row, receiver_name
from ksp.check.report import Report
from ksp.check.scope import IN_EVERY_RULE, Named, Scope
from ksp.check.stages import stage_of
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Function,
    Has,
    In,
    Invoke,
    Kind,
    Read,
    unknown,
)
from ksp.check.types import (
    ANY_INT,
    BOOL,
    INT,
    STRING,
    UNKNOWN,
    Int,
    List,
    Map,
    Struct,
    Type,
    Unknown,
    fits,
    show,
)
from ksp.source.text import Span
from ksp.syntax import tree

if TYPE_CHECKING:
    from ksp.check.expressions import Expressions

SAME_TYPE = frozenset({"div", "min", "max", "abs"})  # functions of the type of their arguments


class Calls:
    """Types calls. A method whose name nobody knows may be a misspelt macro: its arguments are not looked at then."""

    def __init__(self, expressions: Expressions, report: Report) -> None:
        self.expressions = expressions
        self.report = report

    def call(self, node: tree.Call, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if node.name == "has":
            return self._has(node, scope, known)
        found = scope.find(node.name)
        if isinstance(found, Function):
            return self._invoke(node, found, scope, known)
        if node.name in FUNCTIONS:
            rows = FUNCTIONS[node.name]
            wanted = expected if node.name in SAME_TYPE else None
            arguments = [self.expressions.expr(a, scope, wanted, known) for a in node.arguments]
            return self._apply(node.span, node.name_span, rows, arguments)
        for argument in node.arguments:
            self.expressions.expr(argument, scope, None, known)
        if found is not None:
            mistakes.not_a_function(self.report, node.name_span, node.name)
        elif not scope.is_broken(node.name):
            mistakes.unknown_function(self.report, node.name_span, node.name, [*scope.functions(), *FUNCTIONS, "has"])
        return unknown(node.span)

    def _has(self, node: tree.Call, scope: Scope, known: frozenset[Fact]) -> Expr:
        argument = node.arguments[0] if len(node.arguments) == 1 else None
        if not isinstance(argument, tree.Field):
            for given in node.arguments:
                self.expressions.expr(given, scope, None, known)
            mistakes.bad_has(self.report, node.span)
            return unknown(node.span)
        read = self.expressions.field(argument, scope, known)
        match read:
            case Read(value=value, field=field) if field.owner != "cluster":
                return Has(node.span, BOOL, value, field)
            case At(value=value, key=key):
                return In(node.span, BOOL, key, value)
        if not isinstance(read.type, Unknown):
            mistakes.bad_has(self.report, node.span)
        return unknown(node.span)

    def _invoke(self, node: tree.Call, function: Function, scope: Scope, known: frozenset[Fact]) -> Expr:
        parameters = function.parameters
        arguments = [
            self.expressions.expr(a, scope, parameters[i].type if i < len(parameters) else None, known)
            for i, a in enumerate(node.arguments)
        ]
        matching = len(arguments) == len(parameters) and all(
            fits(a.type, p.type) for a, p in zip(arguments, parameters, strict=True)
        )
        if not matching:
            types = [a.type for a in arguments]
            if len(types) == len(parameters) and _same_but_dimensions(types, [p.type for p in parameters]):
                for argument, parameter in zip(arguments, parameters, strict=True):
                    self._dimension_of(argument, parameter)
            else:
                mistakes.wrong_arguments(self.report, node.span, node.name, types, [function.signature])
            return Constant(node.span, function.result, 0)
        return Invoke(node.span, function.result, function, tuple(arguments))

    def _dimension_of(self, argument: Expr, parameter: Binding) -> None:
        given, wanted = _number_of(argument.type), _number_of(parameter.type)
        if given is not None and wanted is not None and not fits(given, wanted):
            what = f"`{parameter.name}`"
            mistakes.dimension_wanted(self.report, argument.span, wanted.dimension, given.dimension, what)

    def _apply(self, span: Span, name_span: Span, rows: Sequence[Row], arguments: Sequence[Expr]) -> Expr:
        types = [a.type for a in arguments]
        for row in rows:
            offset = 1 if row.method else 0
            if row.arity[0] + offset <= len(types) <= row.arity[1] + offset:
                result = row.typing(types)
                if result is not None:
                    return self._row_applied(span, row, arguments, result)
        if not any(isinstance(type, Unknown) for type in types):
            self._not_applied(name_span, rows, types)
        return unknown(span)

    def _not_applied(self, span: Span, rows: Sequence[Row], types: Sequence[Type]) -> None:
        """Why no row takes arguments of these types."""
        name = rows[0].name
        loose = [_without_dimension(type) for type in types]
        if any(row.accepts(loose) for row in rows):
            dimensions = [
                type.dimension for type in map(_number_of, types) if type is not None and type.dimension is not None
            ]
            first = dimensions[0]
            mistakes.wrong_dimension(self.report, span, name, first, next((d for d in dimensions if d != first), first))
        elif rows[0].method:
            signatures = [part for row in rows for part in row.signatures_for(receiver_name(types[0]))]
            mistakes.wrong_arguments(
                self.report, span, f"{show(types[0])}.{name}", types[1:], dict.fromkeys(signatures)
            )
        else:
            mistakes.wrong_arguments(self.report, span, name, types, dict.fromkeys(r.signature for r in rows))

    def _row_applied(self, span: Span, row: Row, arguments: Sequence[Expr], result: Type) -> Expr:
        if row is MATCHES:
            self._check_pattern(arguments[1])
        return Apply(span, result, row, tuple(arguments))

    def _check_pattern(self, argument: Expr) -> None:
        if not isinstance(argument, Constant) or not isinstance(argument.value, str):
            mistakes.pattern_not_constant(self.report, argument.span)
            return
        try:
            pattern(argument.value)
        except Exception as error:  # noqa: BLE001 - re2.error is known only once re2 is loaded
            reason = error.args[0] if error.args else error
            mistakes.bad_pattern(
                self.report, argument.span, reason.decode() if isinstance(reason, bytes) else str(reason)
            )

    def method(self, node: tree.Method, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        parsed = self._parse_call(node, scope, known)
        if parsed is not None:
            return parsed
        value = self.expressions.expr(node.value, scope, None, known)
        if node.name in MACROS:
            return self._macro(node, value, scope, known)
        rows = [row for row in METHODS.get(node.name, []) if row.is_method_of(value.type)]
        if not rows:  # nor are its arguments looked at: they may hold the variables of a misspelt macro
            if not isinstance(value.type, Unknown):
                self._no_method(node, value.type)
            return unknown(node.span)
        wanted = value.type.item if isinstance(value.type, List) else None
        arguments = [
            self.expressions.expr(a, scope, wanted or expected_argument(node.name), known) for a in node.arguments
        ]
        return self._apply(node.span, node.name_span, rows, [value, *arguments])

    def _no_method(self, node: tree.Method, type: Type) -> None:
        methods = [name for name, rows in METHODS.items() if any(row.is_method_of(type) for row in rows)]
        macros = MACROS if isinstance(type, List | Map) else ()
        is_field = isinstance(type, Struct) and node.name in schema.fields_of(type.name)
        mistakes.unknown_method(self.report, node.name_span, node.name, [*methods, *macros], type, is_field=is_field)

    def _parse_call(self, node: tree.Method, scope: Scope, known: frozenset[Fact]) -> Expr | None:
        """`TYPE.parse(json)`"""
        if node.name != "parse" or not isinstance(node.value, tree.Name) or scope.find(node.value.name) is not None:
            return None
        kind = schema.struct_names().get(node.value.name)
        if kind is None:
            return None
        if kind in schema.RENAMED.values():
            mistakes.not_parsed(self.report, node.span, node.value.name)
            return unknown(node.span)
        arguments = [self.expressions.expr(a, scope, STRING, known) for a in node.arguments]
        return self._apply(node.span, node.name_span, [parse_row(node.value.name, parser(kind))], arguments)

    def _macro(self, node: tree.Method, value: Expr, scope: Scope, known: frozenset[Fact]) -> Expr:
        if isinstance(value.type, Unknown):
            return unknown(node.span)
        *names, body_node = node.arguments or (None,)
        if body_node is None or len(names) not in (1, 2) or not all(isinstance(n, tree.Name) for n in names):
            mistakes.bad_macro(self.report, node.span, node.name, "takes one or two names and an expression")
            return unknown(node.span)
        variables = self.variables([(n.name, n.span) for n in names if isinstance(n, tree.Name)], value, scope)
        inner = scope.inner()
        inner.names.update({v.name: v for v in variables})
        wants_bool = node.name != "map"
        body = (
            self.expressions.wanted(body_node, inner, BOOL, f"the condition of `{node.name}`", known)
            if wants_bool
            else self.expressions.expr(body_node, inner, None, known)
        )
        return Comprehend(
            node.span, _macro_type(node.name, value.type, variables, body), node.name, variables, value, body
        )

    def variables(self, names: Sequence[tuple[str, Span]], value: Expr, scope: Scope) -> tuple[Binding, ...]:
        """The variables of a macro or a `for` over a value: item; index and item; key; or key and value."""
        match value.type:
            case List(item):
                types: tuple[Type, ...] = (item,) if len(names) == 1 else (INT, item)
            case Map(key, entry):
                types = (key,) if len(names) == 1 else (key, entry)
            case other:
                types = (UNKNOWN, UNKNOWN)
                if not isinstance(other, Unknown):
                    mistakes.not_a_collection(self.report, value.span, other, "gone through")
        stage = stage_of(value)
        found: dict[str, Binding] = {}
        for (name, span), type in zip(names, types, strict=False):
            clash: Named | None = found.get(name) or scope.clash(name)
            if clash is not None:
                mistakes.declared_twice(self.report, span, name, clash.span, IN_EVERY_RULE)
            is_key = isinstance(value.type, Map) and len(names) == 1
            found[name] = Binding(name, Kind.VARIABLE, type, span, stage, is_key=is_key)
        return tuple(found.values())


def _number_of(type: Type) -> Int | None:
    """The int, or the int in a list."""
    return type if isinstance(type, Int) else _number_of(type.item) if isinstance(type, List) else None


def _without_dimension(type: Type) -> Type:
    match type:
        case Int():
            return ANY_INT
        case List(item):
            return List(_without_dimension(item))
    return type


def _same_but_dimensions(given: Sequence[Type], wanted: Sequence[Type]) -> bool:
    return all(fits(_without_dimension(g), w) for g, w in zip(given, wanted, strict=True))


def expected_argument(method: str) -> Type | None:
    return Struct("Taint") if method == "tolerates" else None


def _macro_type(name: str, over: Type, variables: tuple[Binding, ...], body: Expr) -> Type:
    match name, over:
        case "map", _:
            return List(body.type)
        case "filter", List():
            return over
        case "filter", Map(key, _):
            return List(key) if len(variables) == 1 else over
        case "filter", _:
            return UNKNOWN
    return BOOL
