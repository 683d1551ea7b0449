"""What a condition guarantees to the expression that it guards: that a divisor is not 0, that a key is there.

A fact is a kind and the shape of the expression that it is about: two expressions of one shape have one value, as names
stand for the same bindings in both.
"""

from __future__ import annotations

from collections.abc import Hashable

from ksp.check.stages import children
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Has,
    In,
    Invoke,
    Logic,
    Op,
    Read,
    Ref,
    StructOf,
    Text,
)
from ksp.check.types import Double, Int

Fact = tuple[Hashable, ...]
Numbers = dict[Binding, int]
NO_FACTS: frozenset[Fact] = frozenset()

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def shape(expr: Expr, bound: Numbers | None = None) -> Hashable:
    """The expression without its place in the text; the variables that it binds count by their order."""
    bound = bound or {}
    if isinstance(expr, Comprehend):
        inner = bound | {variable: len(bound) + i for i, variable in enumerate(expr.variables)}
        return ("Comprehend", expr.kind, len(expr.variables), shape(expr.range, bound), shape(expr.body, inner))
    parts: list[Hashable] = [type(expr).__name__, _head(expr, bound)]
    for child in children(expr):  # a plain loop: a comprehension would take a second frame for each level
        parts.append(shape(child, bound))  # noqa: PERF401
    return tuple(parts)


def _head(expr: Expr, bound: Numbers) -> Hashable:
    """What tells the expression from others with the same parts."""
    match expr:
        case Constant(value=value):
            return (type(value).__name__, value)
        case Ref(binding=binding):
            return bound.get(binding, binding)
        case Read(field=field) | Has(field=field):
            return (field.owner, field.name)
        case Op(operator=operator) | Logic(operator=operator):
            return operator
        case Apply(row=row):
            return (row.name, row.signature)
        case Invoke(function=function):
            return function
        case StructOf(fields=fields):
            return tuple(field.name for field, _ in fields)
        case Text(parts=parts):
            return tuple(part if isinstance(part, str) else None for part in parts)
    return None


def facts(condition: Expr, holds: bool) -> frozenset[Fact]:
    """What is known where the condition is true, or where it is false."""
    match condition:
        case Op(operator="!", operands=(inner,)):
            return facts(inner, not holds)
        case Logic(operator=operator, items=items):
            known = [facts(item, holds) for item in items]
            if (operator == "&&") == holds:
                return frozenset().union(*known)
            return frozenset.intersection(*known)
        case In(item=item, container=container) if holds:
            return frozenset({("in", shape(item), shape(container))})
        case Op(operator=operator, operands=(left, right)) if operator in NEGATED:
            return _compared(operator if holds else NEGATED[operator], left, right)
    return frozenset()


def _compared(operator: str, left: Expr, right: Expr) -> frozenset[Fact]:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right, operator = right, left, MIRRORED[operator]
    if isinstance(right, Constant) and isinstance(right.value, str) and isinstance(left, At):
        there = (operator == "==" and right.value != "") or (operator == "!=" and right.value == "")
        return frozenset({("in", shape(left.key), shape(left.value))}) if there else frozenset()
    if not isinstance(right, Constant) or not isinstance(right.type, Int | Double):
        return frozenset()
    limit = right.value
    assert isinstance(limit, int | float)
    excludes_zero = {
        "==": limit != 0, "!=": limit == 0, ">": limit >= 0, "<": limit <= 0, ">=": limit > 0, "<=": limit < 0,
    }[operator]  # fmt: skip
    return frozenset({nonzero(left)}) if excludes_zero else frozenset()


def nonzero(expr: Expr) -> Fact:
    """The fact that it is not 0."""
    return ("nonzero", shape(expr))


def absent_key(expr: Expr, known: frozenset[Fact]) -> Expr | None:
    """A lookup in it, at the top, whose key may be absent as far as is known."""
    if isinstance(expr, At) and ("in", shape(expr.key), shape(expr.value)) not in known:
        return expr
    return None
