"""What the text of a string or a number stands for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ksp.syntax import limits

_PIECE = re.compile(
    r"(?P<text>[^\\$]+)"
    r"|(?P<code>\\(?:[xX](?P<byte>[0-9A-Fa-f]{2})|u(?P<short>[0-9A-Fa-f]{4})|U(?P<long>[0-9A-Fa-f]{8})"
    r"|(?P<octal>[0-3][0-7]{2})))"
    r"|(?P<escape>\\[\\\"'`?abfnrtv$])"
    r"|(?P<wrong>\\.?)"
    r"|(?P<expression>\$\{[^{}]*\})"
    r"|(?P<open>\$\{[^{}]*)"
    r"|(?P<dollar>\$)",
    re.DOTALL,
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LARGEST = 2**63
_QUANTITY = re.compile(r"([0-9.]+)([A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a string literal: `kind` is text, expression (`value` empty), or a mistake: escape, open, or brace.
    `start` and `end` count from the start of the literal."""

    kind: str
    value: str
    start: int
    end: int


def string_pieces(literal: str) -> Iterator[Piece]:
    """The pieces of a literal with its quotes, in order, escapes resolved."""
    position, end = 1, len(literal) - 1
    while position < end:
        match = _PIECE.match(literal, position, end)
        assert match is not None
        kind = match.lastgroup or ""
        yield _piece(literal, match, kind)
        position = match.end()


def _piece(literal: str, match: re.Match[str], kind: str) -> Piece:
    start, end, text = match.start(), match.end(), match.group()
    if kind == "code":
        char = _character(match)
        return Piece("text", char, start, end) if char else Piece("escape", "", start, end)
    if kind == "escape":
        return Piece("text", _ESCAPES.get(text[1], text[1]), start, end)
    if kind == "wrong":
        return Piece("escape", "", start, end)
    if kind == "expression":
        return Piece("expression", "", start, end)
    if kind == "open":
        return Piece("brace" if literal[end] == "{" else "open", "", start, end)
    return Piece("text", text, start, end)


def _character(match: re.Match[str]) -> str:
    """The character of a numeric escape; "" if there is none such."""
    octal = match["octal"]
    code = int(octal, 8) if octal else int(match["byte"] or match["short"] or match["long"], 16)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else ""


def raw_text(literal: str) -> str:
    """The text of `r"…"`."""
    return literal[2:-1]


def int_value(text: str) -> int | None:
    """The value of an int literal; None if it is above 2**63 (which is there for the sake of its negative)."""
    if len(text) > limits.MAX_NUMBER_LENGTH:
        return None
    value = int(text, 16) if text[:2] in ("0x", "0X") else int(text)
    return value if value <= _LARGEST else None


def double_value(text: str) -> float | None:
    """The value of a double literal; None if no double is that large."""
    value = float(text) if len(text) <= limits.MAX_NUMBER_LENGTH else math.inf
    return value if math.isfinite(value) else None


def quantity_parts(text: str) -> tuple[str, str] | None:
    """Number and suffix of a quantity; None if the number is longer than any is meant to be."""
    match = _QUANTITY.fullmatch(text)
    assert match is not None
    return (match[1], match[2]) if len(text) <= limits.MAX_NUMBER_LENGTH else None
