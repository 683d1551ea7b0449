"""Arithmetic of the column form is that of the scalar form, and so Go's, row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.check import builtins
from ksp.compile import runtime as scalar
from ksp.compile.columns import feasible, numbers
from ksp.compile.node_columns import NodeColumns, Rows
from ksp.core.state import ClusterState
from ksp.model.int64 import MAX, MIN

EDGES = (0, 1, -1, 2, -2, 7, -7, 100, MAX, MIN, MAX - 1, MIN + 1, 1 << 53)
DOUBLES = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 1e300, -1e300, 9.3e18, -9.3e18,
           4503599627370497.5, math.inf, -math.inf, math.nan)  # fmt: skip
ints = st.sampled_from(EDGES) | st.integers(MIN, MAX)
doubles = st.sampled_from(DOUBLES) | st.floats()


def rows_of(size: int) -> Rows:
    columns = NodeColumns(ClusterState())
    return columns.rows(np.zeros(size, np.int64))


def column(values: Sequence[Any]) -> Any:
    return np.array(values, np.float64 if isinstance(values[0], float) else np.int64)


def same(found: Any, wanted: Sequence[Any]) -> None:
    """The same numbers, of the same types, with their zeros' signs."""
    assert found.dtype in (np.int64, np.float64, np.bool_)
    assert [repr(each) for each in found.tolist()] == [repr(each) for each in wanted]


BINARY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda a, b: numbers.divided(a, b, 5), lambda a, b: builtins.div(a, b, 5)),
    (numbers.remainders, scalar.remainder),
    (numbers.smallest, min),
    (numbers.largest, max),
]


@pytest.mark.parametrize(("of_columns", "of_one"), BINARY)
@given(st.lists(st.tuples(ints, ints), min_size=1, max_size=8))
def test_ints_divide_towards_zero_and_wrap(
    of_columns: Callable[..., Any], of_one: Callable[..., Any], pairs: list[tuple[int, int]]
) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    with np.errstate(all="ignore"):
        same(of_columns(column(left), column(right)), [of_one(a, b) for a, b in pairs])
        same(of_columns(column(left), right[0]), [of_one(a, right[0]) for a in left])
        same(of_columns(left[0], column(right)), [of_one(left[0], b) for b in right])


@given(st.lists(st.tuples(doubles, doubles), min_size=1, max_size=8))
def test_doubles_divide_and_compare_as_one_by_one(pairs: list[tuple[float, float]]) -> None:
    left, right = column([a for a, _ in pairs]), column([b for _, b in pairs])
    with np.errstate(all="ignore"):
        same(numbers.ratio(left, right, 0.25), [builtins.div(a, b, 0.25) for a, b in pairs])
        same(left / right, [builtins.double_quotient(a, b) for a, b in pairs])
        same(numbers.smallest(left, right), [min(a, b) for a, b in pairs])
        same(numbers.largest(left, right), [max(a, b) for a, b in pairs])


@given(st.lists(doubles, min_size=1, max_size=8))
def test_doubles_become_ints(values: list[float]) -> None:
    with np.errstate(all="ignore"):
        same(numbers.to_ints(column(values)), [builtins.to_int(value) for value in values])
        same(numbers.rounded(column(values)), [builtins.rounded(value) for value in values])
        same(numbers.logarithms(column(values)), [builtins.ln(value) for value in values])
        same(numbers.roots(column(values)), [builtins.sqrt(value) for value in values])


@given(st.lists(ints, min_size=1, max_size=8))
def test_ints_become_doubles_and_lose_their_sign(values: list[int]) -> None:
    same(numbers.to_doubles(column(values)), [float(value) for value in values])
    same(np.abs(column(values)), [builtins.absolute(value) for value in values])


@given(st.lists(doubles, min_size=1, max_size=12), st.lists(ints, min_size=1, max_size=12))
def test_all_rows_add_up_as_a_list_does(some: list[float], others: list[int]) -> None:
    with np.errstate(all="ignore"):
        assert repr(feasible.sum_of(column(some), None)) == repr(builtins.total(some, 0.0))
    assert feasible.sum_of(column(others), None) == builtins.total(others)
    assert repr(feasible.smallest_of(column(some), None, 1.0)) == repr(min(some))
    assert repr(feasible.largest_of(column(some), None, 1.0)) == repr(max(some))
    assert feasible.largest_of(column(others), np.zeros(len(others), np.bool_), 17) == 17


@given(st.lists(st.tuples(st.lists(st.sampled_from(DOUBLES), min_size=3, max_size=3), st.booleans()), max_size=5))
def test_the_extreme_of_items_that_only_some_rows_have(items: list[tuple[list[float], bool]]) -> None:
    mask = np.array([True, False, True])
    for made, of_list in ((numbers.least(), builtins.smallest_of), (numbers.most(), builtins.largest_of)):
        for values, masked in items:
            made.add(column(values), mask if masked else None)
        lists = [[values[row] for values, masked in items if mask[row] or not masked] for row in range(3)]
        same(made.result(rows_of(3), 9.0), [of_list(values, 9.0) for values in lists])


def test_elements_by_an_index_that_differs_from_row_to_row() -> None:
    index = np.array([0, 2, 3, -1, MAX, MIN])
    same(numbers.chosen(rows_of(6), (7, 8, 9), index, 0), [7, 9, 0, 0, 0, 0])
    same(numbers.chosen(rows_of(6), (), index, 0.0), [0.0] * 6)
    same(numbers.chosen(rows_of(6), (True,), index, False), [True, *[False] * 5])


@pytest.mark.parametrize("raw", [[3, 0, 7], [0, 0], [-5, -1], [MAX, 1], []])
def test_scores_are_scaled_as_one_by_one(raw: list[int]) -> None:
    for of_columns, of_list in ((feasible.scaled, scalar.largest), (feasible.scaled_reversed, scalar.reversed_)):
        found = of_columns(rows_of(len(raw)), np.array(raw, np.int64))
        assert ([found] * len(raw) if isinstance(found, int) else found.tolist()) == of_list([], raw)
