"""Fractions beside ints: how a policy writes them. Amounts are whole, and shares are in percent."""

from __future__ import annotations

from collections.abc import Sequence

from ksp.check.facts import MIRRORED
from ksp.check.typed import Constant, Expr, Op
from ksp.check.types import BYTES, CPU, Double, Int

COMPARISONS = frozenset(MIRRORED)


def fraction_help(operator: str, operands: Sequence[Expr]) -> str:
    """How to say in ints what an operator on an int and a literal with a fraction means; "" if that is not clear."""
    fraction = next((o.value for o in operands if isinstance(o, Constant) and isinstance(o.type, Double)), None)
    other = next((o for o in operands if isinstance(o.type, Int)), None)
    if fraction is None or other is None or not isinstance(other.type, Int):
        return ""
    seen = operator if other is operands[0] else MIRRORED.get(operator, operator)
    return _help(seen, float(fraction), other, other.type)


def _help(operator: str, fraction: float, other: Expr, type: Int) -> str:
    percent = round(fraction * 100)
    if operator in ("*", "/") and percent > 0:
        share = f"x * {percent} / 100" if operator == "*" else f"x * 100 / {percent}"
        return f"for a share multiply first: `{share}`"
    if operator not in COMPARISONS:
        return ""
    if type.dimension == CPU:
        return f"write the amount as a quantity: `{round(fraction * 1000)}m`"
    if type.dimension == BYTES:
        return "write the amount as a quantity, such as `512Mi`"
    if isinstance(other, Op) and other.operator == "/":
        return f"`/` of ints leaves no fraction: write `100 * a {operator} {percent} * b`"
    return ""
