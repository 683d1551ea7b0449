"""Which int arithmetic cannot leave 64 bits, so that nothing need be wrapped."""

from __future__ import annotations

from ksp.check.typed import Apply, Constant, Expr, If, Op

Interval = tuple[int, int]
FULL: Interval = (-(2**63), 2**63 - 1)
SIZES: Interval = (0, 2**31)


def fits_in_64_bits(expr: Op) -> bool:
    """The operator's exact result lies in 64 bits, whatever the values."""
    low, high = _exact(expr)
    return low >= FULL[0] and high <= FULL[1]


def interval(expr: Expr) -> Interval:
    """Bounds of a value."""
    match expr:
        case Constant(value=bool()):
            return FULL
        case Constant(value=int() as value):
            return value, value
        case Apply(row=row) if row.name in ("size", "indexOf", "lastIndexOf"):
            return -1, SIZES[1]
        case If(then=then, otherwise=otherwise):
            a, b = interval(then), interval(otherwise)
            return min(a[0], b[0]), max(a[1], b[1])
        case Op() if expr.operator in ("+", "-", "*", "neg"):
            return _exact(expr) if fits_in_64_bits(expr) else FULL
    return FULL


def _exact(expr: Op) -> Interval:
    if expr.operator == "neg":
        low, high = interval(expr.operands[0])
        return -high, -low
    if expr.operator not in ("+", "-", "*"):
        return FULL[0] - 1, FULL[1] + 1
    (a, b), (c, d) = interval(expr.operands[0]), interval(expr.operands[1])
    if expr.operator == "+":
        return a + c, b + d
    if expr.operator == "-":
        return a - d, b - c
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)
