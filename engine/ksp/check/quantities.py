"""Quantity literals: exact ints in the base unit of their dimension."""

from __future__ import annotations

from fractions import Fraction

from ksp.check.types import BYTES, CPU, Dimension

BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
DECIMAL = {"k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def quantity(number: str, suffix: str) -> tuple[Fraction, Dimension]:
    """The value in millicores or bytes, perhaps not whole, and the dimension. `m` is milli: of a core."""
    value = Fraction(number)
    if suffix == "m":
        return value, CPU
    if suffix == "cpu":
        return value * 1000, CPU
    if suffix in BINARY:
        return value * 2 ** BINARY[suffix], BYTES
    return value * Fraction(10) ** DECIMAL[suffix], BYTES
