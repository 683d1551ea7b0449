"""Operators and choices: what they work on, what they give, and that no divisor is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ksp.check import cautions, mistakes, resources
from ksp.check.facts import Fact, absent_key, facts, nonzero
from ksp.check.fractions import COMPARISONS, fraction_help
from ksp.check.int_constants import fold, int_constant
from ksp.check.report import Report
from ksp.check.scope import Scope
from ksp.check.typed import (
    Constant,
    Expr,
    If,
    In,
    Logic,
    Op,
    unknown,
)
from ksp.check.types import (
    ANY_INT,
    BOOL,
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


class Operators:
    """Types operators."""

    def __init__(self, expressions: Expressions, report: Report) -> None:
        self.expressions = expressions
        self.report = report

    def unary(self, node: tree.Unary, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if node.operator == "-" and isinstance(node.value, tree.IntLiteral):
            value = -node.value.value
            return int_constant(self.report, node.span, value, ANY_INT if value == 0 else INT)
        if node.operator == "-" and isinstance(node.value, tree.DoubleLiteral):
            return Constant(node.span, DOUBLE, -node.value.value)
        if node.operator == "-" and isinstance(node.value, tree.QuantityLiteral):
            return self.expressions.literals.quantity(node.value, node.span, sign=-1)
        operand = self.expressions.expr(node.value, scope, expected, known)
        allowed = Bool | Unknown if node.operator == "!" else Int | Double | Unknown
        if not isinstance(operand.type, allowed):
            mistakes.wrong_operands(self.report, node.span, node.operator, [operand.type])
            return unknown(node.span)
        if node.operator == "!":
            if isinstance(operand.type, Bool) and absent_key(operand, known):
                cautions.maybe_absent(self.report, node.span, "`!`")
            elif isinstance(operand, Op) and operand.operator == "==":
                self._maybe_absent(node.span, "`!` of `==`", operand.operands, known)
            return Op(node.span, BOOL, "!", (operand,))
        return self._folded(Op(node.span, operand.type, "neg", (operand,)))

    def _folded(self, op: Op) -> Expr:
        """Integer constants are computed here, exactly: one that leaves 64 bits is a mistake, not a wrap."""
        value = fold(op)
        if value is None:
            return op
        return int_constant(self.report, op.span, value, op.type)

    def binary(self, node: tree.Binary, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        if node.operator == "in":
            return self._in(node, scope, known)
        inner = expected if node.operator not in COMPARISONS else None
        left = self.expressions.expr(node.left, scope, inner, known)
        right = self.expressions.expr(
            node.right, scope, left.type if isinstance(left.type, List | Map | Struct) else inner, known
        )
        if isinstance(left.type, Unknown) or isinstance(right.type, Unknown):
            return (
                Op(node.span, BOOL, node.operator, (left, right))
                if node.operator in COMPARISONS
                else unknown(node.span)
            )
        type = (
            self._compared(node, left, right, known)
            if node.operator in COMPARISONS
            else self._computed(node, left, right, known)
        )
        return unknown(node.span) if type is None else self._folded(Op(node.span, type, node.operator, (left, right)))

    def _compared(self, node: tree.Binary, left: Expr, right: Expr, known: frozenset[Fact]) -> Type:
        ordered = node.operator not in ("==", "!=")
        if join(left.type, right.type) is None:
            if isinstance(left.type, Int) and isinstance(right.type, Int):
                mistakes.wrong_dimension(
                    self.report, node.span, node.operator, left.type.dimension, right.type.dimension
                )
            else:
                self._wrong(node, left, right)
        elif ordered and not isinstance(left.type, Int | Double | String | Bool):
            self._wrong(node, left, right)
        elif node.operator == "!=":
            self._maybe_absent(node.span, "`!=`", (left, right), known)
        elif node.operator == "==":
            self._both_absent(node.span, (left, right), known)
        return BOOL

    def _maybe_absent(self, span: Span, what: str, sides: Sequence[Expr], known: frozenset[Fact]) -> None:
        """Where there is no such key, its value differs from every text but the empty one. Beside that it is plain what
        is meant."""
        absent = any(absent_key(side, known) is not None and isinstance(side.type, String) for side in sides)
        if absent and not any(isinstance(side, Constant) and side.value == "" for side in sides):
            cautions.maybe_absent(self.report, span, what)

    def _both_absent(self, span: Span, sides: Sequence[Expr], known: frozenset[Fact]) -> None:
        """Two labels that neither object has are the same text."""
        if all(isinstance(side.type, String) and absent_key(side, known) is not None for side in sides):
            cautions.both_absent(self.report, span)

    def _computed(self, node: tree.Binary, left: Expr, right: Expr, known: frozenset[Fact]) -> Type | None:
        operator = node.operator
        if operator in ("/", "%"):
            self._divisor(node, right, known)
        match left.type, right.type:
            case Int(a), Int(b):
                return self._int_result(node, a, b)
            case Double(), Double() if operator != "%":
                return DOUBLE
            case String(), String() if operator == "+":
                return STRING
            case List(), List() if operator == "+":
                joined = join(left.type, right.type)
                if joined is None:
                    mistakes.mixed(self.report, node.right.span, "the two lists", left.type, right.type)
                return joined
        self._wrong(node, left, right)
        return None

    def _wrong(self, node: tree.Binary, left: Expr, right: Expr) -> None:
        help = fraction_help(node.operator, (left, right))
        mistakes.wrong_operands(self.report, node.span, node.operator, [left.type, right.type], help)

    def _int_result(self, node: tree.Binary, a: tuple[int, int] | None, b: tuple[int, int] | None) -> Type:
        if node.operator in ("*", "/"):
            if a is None or b is None:
                return ANY_INT
            sign = 1 if node.operator == "*" else -1
            return Int((a[0] + sign * b[0], a[1] + sign * b[1]))
        joined = join(Int(a), Int(b))
        if joined is None:
            mistakes.wrong_dimension(self.report, node.span, node.operator, a, b)
        return joined or UNKNOWN

    def _divisor(self, node: tree.Binary, right: Expr, known: frozenset[Fact]) -> None:
        if isinstance(right, Constant):
            if right.value == 0:
                mistakes.division_by_zero(self.report, node.right.span, node.operator)
        elif nonzero(right) not in known:
            mistakes.division(self.report, node.right.span, node.operator, node.right.span.text)

    def _in(self, node: tree.Binary, scope: Scope, known: frozenset[Fact]) -> Expr:
        container = self.expressions.expr(node.right, scope, None, known)
        wanted = (
            container.type.item
            if isinstance(container.type, List)
            else container.type.key
            if isinstance(container.type, Map)
            else None
        )
        if wanted is None and not isinstance(container.type, Unknown):
            help = "for a part of a text, `text.contains(part)`" if isinstance(container.type, String) else ""
            mistakes.not_a_collection(self.report, node.right.span, container.type, "looked into with `in`", help)
        item = (
            self.expressions.wanted(node.left, scope, wanted, "what is looked for", known)
            if wanted
            else self.expressions.expr(node.left, scope, None, known)
        )
        if isinstance(container.type, Map) and container.type.resources:
            resources.check_name(self.report, node.left.span, resources.constant_name(item))
        return In(node.span, BOOL, item, container)

    def logic(self, node: tree.Logic, scope: Scope, known: frozenset[Fact]) -> Expr:
        items: list[Expr] = []
        for item in node.items:
            value = self.expressions.wanted(item, scope, BOOL, f"a part of `{node.operator}`", known)
            known |= facts(value, node.operator == "&&")
            items.append(value)
        return Logic(node.span, BOOL, node.operator, tuple(items))

    def ternary(self, node: tree.Ternary, scope: Scope, expected: Type | None, known: frozenset[Fact]) -> Expr:
        condition = self.expressions.wanted(node.condition, scope, BOOL, "a condition", known)
        then = self.expressions.expr(node.then, scope, expected, known | facts(condition, holds=True))
        otherwise = self.expressions.expr(
            node.otherwise, scope, expected or then.type, known | facts(condition, holds=False)
        )
        type = join(then.type, otherwise.type)
        if type is None:
            if isinstance(then.type, Int) and isinstance(otherwise.type, Int):
                mistakes.wrong_dimension(
                    self.report, node.otherwise.span, ":", then.type.dimension, otherwise.type.dimension
                )
            else:
                mistakes.mixed(self.report, node.otherwise.span, "the two outcomes", then.type, otherwise.type)
        return If(node.span, type or UNKNOWN, condition, then, otherwise)
