"""Names and places in generated code."""

from __future__ import annotations

import ast
import keyword

from hypothesis import given
from hypothesis import strategies as st

from ksp.compile.places import RESERVED, Frame, Names, shape
from ksp.compile.runtime import RUNTIME


@given(st.lists(st.sampled_from(["x", "x_2", "x_2_2", "x_3", "v", "_v", "é", "", "2x", "if", "len", "node", "None"])))
def test_no_name_is_given_twice(wanted: list[str]) -> None:
    names = Names()
    given_ = [names.fresh(each) for each in wanted]
    assert len(set(given_)) == len(given_)
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in given_)
    assert not {*given_} & RESERVED
    assert not any(name.startswith("_") for name in given_)


def test_what_the_runtime_gives_cannot_be_named_by_a_policy() -> None:
    assert {name for name in RUNTIME if not name.startswith("_")} <= RESERVED


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def test_loops_that_differ_in_their_variables_only_have_one_shape() -> None:
    assert shape(parsed("[a + k for a in xs]"), {}) == shape(parsed("[b + k for b in xs]"), {})
    assert shape(parsed("[a + k for a in xs]"), {}) != shape(parsed("[b + j for b in xs]"), {})
    assert shape(parsed("any(a for a in xs if a > b)"), {}) != shape(parsed("any(b for b in xs if b > a)"), {})
    assert shape(parsed("1"), {}) != shape(parsed("True"), {}) != shape(parsed("1.0"), {})
    assert shape(parsed("0.0"), {}) != shape(parsed("-0.0"), {})


def test_a_value_is_computed_once_in_a_place_and_in_those_within() -> None:
    names = Names()
    outer = Frame(None, names)
    inner = Frame(outer, names)
    first = outer.assign(parsed("a.b"), "b")
    assert inner.assign(parsed("a.b"), "other") == first
    assert inner.assign(parsed("a.c"), "b") != first
    assert (len(outer.lines), len(inner.lines)) == (1, 1)
