"""What a condition guarantees to the expression that it guards: that a divisor is not 0, that a key is there.

A fact is a kind and the text of the expression that it is about: the same text means the same thing within one
expression, as no name can be hidden by another.
"""

from __future__ import annotations

from ksp.check.types import Double, Int
from ksp.check.typed import At, Constant, Expr, In, Logic, Op

Fact = tuple[str, ...]

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def text(expr: Expr) -> str:
    return expr.span.text


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
            return frozenset({("in", text(item), text(container))})
        case Op(operator=operator, operands=(left, right)) if operator in NEGATED:
            return _compared(operator if holds else NEGATED[operator], left, right)
    return frozenset()


def _compared(operator: str, left: Expr, right: Expr) -> frozenset[Fact]:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        left, right, operator = right, left, MIRRORED[operator]
    if not isinstance(right, Constant) or not isinstance(right.type, Int | Double):
        return frozenset()
    limit = right.value
    assert isinstance(limit, int | float)
    excludes_zero = {
        "==": limit != 0, "!=": limit == 0, ">": limit >= 0, "<": limit <= 0, ">=": limit > 0, "<=": limit < 0,
    }[operator]  # fmt: skip
    return frozenset({("nonzero", text(left))}) if excludes_zero else frozenset()


def absent_key(expr: Expr, known: frozenset[Fact]) -> Expr | None:
    """A lookup in it, at the top, whose key may be absent as far as is known."""
    if isinstance(expr, At) and ("in", text(expr.key), text(expr.value)) not in known:
        return expr
    return None
