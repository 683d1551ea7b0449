"""Texts of others in messages."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.kube.printable import printable


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("as it is", "as it is"),
        ("a\tb\r\nc\x00d\x7fe\x85f", "a b  c d e f"),
        ("\u2028\u202e\udc80", "   "),
        ("naïve ✓", "naïve ✓"),
        ("", ""),
    ],
)
def test_what_does_not_print_becomes_a_space(text: str, clean: str) -> None:
    assert printable(text, 100) == clean


def test_a_long_text_is_cut_between_characters() -> None:
    assert printable("x" * 10, 10) == "x" * 10
    assert printable("x" * 11, 10) == "xxxxxx ..."
    assert printable("é" * 6, 11) == "ééé ..."


@given(st.text(), st.integers(4, 60))
def test_the_result_always_fits_and_prints(text: str, limit: int) -> None:
    clean = printable(text, limit)
    assert len(clean.encode()) <= limit
    assert not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in clean)
