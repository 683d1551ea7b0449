"""The sentence that users read when nothing fits."""

from __future__ import annotations

import pytest

from ksp.core.fit_error import fit_error


def test_reasons_are_counted_over_the_nodes() -> None:
    reasons = ["Too many pods", "Insufficient cpu", "Too many pods", "Insufficient cpu", "Too many pods"]
    assert fit_error(5, reasons) == "0/5 nodes are available: 2 Insufficient cpu, 3 Too many pods."


@pytest.mark.parametrize(
    ("reasons", "items"),
    [
        (["b"] * 2 + ["a"] * 10, "10 a, 2 b"),  # texts, their counts included: "10 a" < "2 b"
        (["b"] * 10 + ["a"] * 2, "10 b, 2 a"),
        (["b", "a"], "1 a, 1 b"),
        (["Z", "a", "É"], "1 Z, 1 a, 1 É"),  # code points, no one's alphabet
    ],
)
def test_items_are_sorted_as_texts(reasons: list[str], items: str) -> None:
    assert fit_error(12, reasons) == f"0/12 nodes are available: {items}."


def test_a_node_with_two_reasons_counts_twice() -> None:
    assert fit_error(1, ["Insufficient cpu", "Insufficient memory"]) == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."
    )


def test_without_reasons_the_sentence_is_still_one() -> None:
    assert fit_error(3, []) == "0/3 nodes are available: ."
