"""Signed 64-bit integers, which wrap around as in Go."""

from __future__ import annotations

from typing import Final

MIN: Final = -(2**63)
MAX: Final = 2**63 - 1


def wrap(n: int) -> int:
    """The low 64 bits of any integer, as a signed number."""
    return n if MIN <= n <= MAX else ((n - MIN) & (2**64 - 1)) + MIN


def saturate(n: int) -> int:
    """The nearest number that 64 bits can hold."""
    return max(MIN, min(n, MAX))
