"""Arithmetic of the column form: over arrays what the scalar form does with one number.

Ints are int64 and wrap; they divide towards zero. Doubles are IEEE 754, computed operation by operation in the order of
the text. Where an operand is early it is a Python number. NumPy's warnings are for the caller to turn off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksp.check import builtins
from ksp.compile.node_rows import Rows
from ksp.compile.node_values import BoolArray, IntArray

DoubleArray = NDArray[np.float64]
Array = NDArray[Any]


def filled(rows: Rows, value: Any) -> Array:
    """The same value for each row."""
    return np.full(rows.size, value, np.bool_ if isinstance(value, bool) else type(value))


def divided(a: Any, b: Any, otherwise: Any) -> IntArray:
    """a / b of ints, towards zero; `otherwise` where b is 0."""
    quotient: IntArray = np.floor_divide(a, b)
    if _any_negative(a) or _any_negative(b):
        quotient = quotient + ((np.remainder(a, b) != 0) & (np.less(a, 0) != np.less(b, 0)))
    if isinstance(b, int):
        return quotient if b else np.full_like(quotient, 0) + otherwise
    zero = b == 0
    return np.where(zero, otherwise, quotient) if zero.any() else quotient


def _any_negative(values: Any) -> bool:
    return values < 0 if isinstance(values, int) else bool(np.minimum.reduce(values, initial=0) < 0)


def remainders(a: Any, b: Any) -> IntArray:
    """a % b of ints, with the sign of a; 0 where b is 0."""
    harmless = np.where(np.equal(b, 0) | np.equal(b, -1), 1, b)
    found: IntArray = np.fmod(a, harmless)
    return found


def ratio(a: Any, b: Any, otherwise: Any) -> DoubleArray:
    """a / b of doubles; `otherwise` where b is 0."""
    if isinstance(b, float):
        whole: DoubleArray = np.true_divide(a, b) if b else np.full(np.shape(a), otherwise, np.float64)
        return whole
    zero = np.equal(b, 0)
    quotient: DoubleArray = np.true_divide(a, b)
    return np.where(zero, otherwise, quotient) if zero.any() else quotient


def to_ints(values: DoubleArray) -> IntArray:
    """Doubles to ints: towards zero, 0 for NaN and infinities, and what is too large to the largest."""
    if values.min(initial=0.0) > -9e18 and values.max(initial=0.0) < 9e18:  # neither of them if there is a NaN
        return values.astype(np.int64)
    return np.array([builtins.to_int(value) for value in values.tolist()], np.int64)


def to_doubles(values: IntArray) -> DoubleArray:
    """The nearest double of each int."""
    return values.astype(np.float64)


def rounded(values: DoubleArray) -> IntArray:
    """The nearest int of each double, halves away from 0."""
    whole = np.trunc(values)
    return to_ints(np.where(np.abs(values - whole) >= 0.5, whole + np.sign(values), whole))


def logarithms(values: DoubleArray) -> DoubleArray:
    """The natural logarithm of each, as `math.log` has it; 0 for what is not positive."""
    different, inverse = np.unique(values, return_inverse=True)
    return np.array([builtins.ln(value) for value in different.tolist()], np.float64)[inverse]


def roots(values: DoubleArray) -> DoubleArray:
    """The square root of each; 0 for what is not positive. IEEE 754 says which double that is, as `math.sqrt` does."""
    return np.sqrt(np.where(np.greater(values, 0.0), values, 0.0))


def smallest(first: Any, *others: Any) -> Array:
    """The smallest of the arguments, row by row: the first of those that are equal, and of NaNs."""
    for other in others:
        first = np.where(np.less(other, first), other, first)
    return np.asarray(first)


def largest(first: Any, *others: Any) -> Array:
    for other in others:
        first = np.where(np.greater(other, first), other, first)
    return np.asarray(first)


def chosen(rows: Rows, numbers: Sequence[Any], index: IntArray, zero: Any) -> Array:
    """The element of a list at the index of each row, or the zero where there is none."""
    table = filled(rows, zero)[:0] if not numbers else np.array(numbers, np.asarray(zero).dtype)
    inside = (index >= 0) & (index < len(numbers))
    return np.append(table, zero)[np.where(inside, index, len(numbers))]


def among(rows: Rows, values: Array, items: Sequence[Any]) -> BoolArray:
    """Each value is one of the items; a NaN is none."""
    found = np.zeros(rows.size, np.bool_)
    for item in items:
        found = found | (values == item)
    return found


def as_array(rows: Rows, value: Any) -> Array:
    """What a loop added up: where it had nothing to go through, it is still a number."""
    return value if isinstance(value, np.ndarray) else filled(rows, value)


class Extreme:
    """The smallest or largest item of a list, row by row, as the items come."""

    def __init__(self, better: np.ufunc) -> None:
        self.better = better
        self.best: Any = None
        self.found: BoolArray | bool = False

    def add(self, value: Any, mask: BoolArray | None) -> None:
        """One item; with a mask only some of the rows have it."""
        if self.found is False:
            self.best, self.found = value, True if mask is None else mask
            return
        takes = self.better(value, self.best)
        if self.found is not True:
            takes = takes | ~self.found
        if mask is not None:
            takes = takes & mask
        self.best = np.where(takes, value, self.best)
        self.found = True if mask is None or self.found is True else self.found | mask

    def result(self, rows: Rows, otherwise: Any) -> Array:
        """The best; `otherwise` for rows that had no item."""
        if self.found is False:
            return as_array(rows, otherwise)
        if self.found is True:
            return as_array(rows, self.best)
        best: Array = np.where(self.found, self.best, otherwise)
        return best


def least() -> Extreme:
    return Extreme(np.less)


def most() -> Extreme:
    return Extreme(np.greater)
