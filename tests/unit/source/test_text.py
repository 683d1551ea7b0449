from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ksp.source.text import Source, Span


@given(st.text(st.sampled_from("ab\n\r"), max_size=30), st.integers(-3, 40))
def test_place_and_line_agree(text: str, offset: int) -> None:
    source = Source("test", text)
    line, column = source.place(offset)
    inside = max(0, min(offset, len(text)))
    assert line == text.count("\n", 0, inside) + 1
    assert column == inside - (text.rfind("\n", 0, inside) + 1) + 1
    assert source.line(line) == text.split("\n")[line - 1].rstrip("\r")


def test_there_is_no_line_outside() -> None:
    source = Source("test", "a\nb")
    assert [source.line(number) for number in (0, 1, 2, 3)] == ["", "a", "b", ""]


def test_spans() -> None:
    source = Source("test", "let x = y")
    assert Span(source, 4, 5).text == "x"
    assert Span(source, 4, 5).to(Span(source, 8, 9)).text == "x = y"


def test_sources_are_equal_only_to_themselves() -> None:
    assert Source("test", "a") != Source("test", "a")
