"""Constant integer arithmetic, exact."""

from __future__ import annotations

from ksp.check import mistakes
from ksp.check.report import Report
from ksp.check.typed import Constant, Op
from ksp.check.types import Int, Type
from ksp.model.int64 import MAX, MIN
from ksp.source.text import Span


def fold(op: Op) -> int | None:
    """The exact value of an operator on integer constants; None for anything else."""
    if not isinstance(op.type, Int) or not all(
        isinstance(o, Constant) and isinstance(o.type, Int) for o in op.operands
    ):
        return None
    values = [o.value for o in op.operands if isinstance(o, Constant) and isinstance(o.value, int)]
    match op.operator, values:
        case "neg", [a]:
            return -a
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b] if b != 0:
            quotient = abs(a) // abs(b)
            return quotient if (a < 0) == (b < 0) else -quotient
        case "%", [a, b] if b != 0:
            remainder = abs(a) % abs(b)
            return -remainder if a < 0 else remainder
    return None


def int_constant(report: Report, span: Span, value: int, type: Type) -> Constant:
    """The constant; 0 in its place where 64 bits cannot hold it, which is reported."""
    if not MIN <= value <= MAX:
        mistakes.out_of_range(report, span)
        value = 0
    return Constant(span, type, value)
