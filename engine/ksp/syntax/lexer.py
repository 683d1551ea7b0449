"""Text to tokens. What cannot be a token is reported, and a harmless token of the likely kind takes its place, so that
one mistake is not reported twice."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token
from lark.exceptions import UnexpectedCharacters
from lark.lexer import BasicLexer, LexerState, LineCounter
from lark.utils import TextSlice

from ksp.source.diagnostic import Diagnostic
from ksp.source.text import Source, Span
from ksp.syntax import limits, mistakes

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]|\r(?!\n)"
)
"""Control characters, marks that reorder or hide text, and halves of characters."""

_MISTAKE = re.compile(
    r"(?P<number>\.?[0-9][A-Za-z0-9_.]*)"
    r"|(?P<string>[rR]?[\"'][^\n]*)"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<other>(?P<char>[^ \t\r\n\"'])(?P=char)*)"
)

_HELP = {
    ";": "statements need no `;`",
    "#": "comments start with `//`",
    "`": "strings stand between `\"` or `'`",
    "@": "",
    "$": "a value enters a string by `${…}`; elsewhere write its name alone",
    "\\": "a line needs no mark to go on",
    "\u201c": "strings stand between plain quotes, `\"` or `'`",
    "\u201d": "strings stand between plain quotes, `\"` or `'`",
    "\u2018": "strings stand between plain quotes, `\"` or `'`",
    "\u2019": "strings stand between plain quotes, `\"` or `'`",
}
_STAND_INS = {"number": ("INT", "0"), "string": ("STRING", '""')}
_MEANT = {"&": ("AND", "&&"), "|": ("OR", "||")}


@dataclass(frozen=True, slots=True)
class Scan:
    """The tokens of a text, with an end token; and what is wrong with its characters."""

    tokens: list[Token]
    diagnostics: list[Diagnostic]
    is_complete: bool
    """False where too much was wrong to go on to the end."""


def hidden_characters(source: Source) -> tuple[str, list[Diagnostic]]:
    """The text with a blank for every invisible character, and a diagnostic for each."""
    diagnostics: list[Diagnostic] = []
    if not _HIDDEN.search(source.text):
        return source.text, diagnostics
    for match in _HIDDEN.finditer(source.text):
        span = Span(source, match.start(), match.end())
        is_mark = match.start() == 0 and match.group() == "\ufeff"
        diagnostics.append(mistakes.byte_order_mark(span) if is_mark else mistakes.hidden_character(span))
        if len(diagnostics) >= limits.MAX_ERRORS:
            break
    return _HIDDEN.sub(" ", source.text), diagnostics


class _Scanner:
    """One run over a part of a text. `text` is as long as the source's, without what is invisible."""

    def __init__(self, source: Source, text: str, start: int, end: int) -> None:
        self.source = source
        self.tokens: list[Token] = []
        self.diagnostics: list[Diagnostic] = []
        self.said_last = (0, "")
        counter = LineCounter("\n")  # type: ignore[no-untyped-call]
        counter.char_pos = start
        self.state = LexerState(TextSlice(text, start, end), counter)

    def run(self, lexer: BasicLexer) -> Scan:
        tokens = self.tokens
        while len(tokens) <= limits.MAX_TOKENS and len(self.diagnostics) < limits.MAX_ERRORS:
            try:
                tokens.append(lexer.next_token(self.state))
            except UnexpectedCharacters:
                self.replace(self.state.line_ctr.char_pos)
            except EOFError:
                break
        is_complete = self.state.line_ctr.char_pos >= self.state.text.end
        if len(tokens) > limits.MAX_TOKENS:
            span = self.span(tokens[-1].start_pos, tokens[-1].end_pos)
            self.diagnostics.append(mistakes.too_many(span, "tokens", limits.MAX_TOKENS))
            tokens.clear()
            is_complete = False
        self.tokens.append(self.token("$END", "", self.state.text.end, self.state.text.end))
        return Scan(tokens, self.diagnostics, is_complete)

    def span(self, start: int | None, end: int | None) -> Span:
        return Span(self.source, start or 0, end or 0)

    def token(self, kind: str, value: str, start: int, end: int) -> Token:
        line = self.state.line_ctr.line
        return Token(kind, value, start_pos=start, end_pos=end, line=line, end_line=line)

    def replace(self, start: int) -> None:
        """Report what stands at `start` and put something harmless in its place."""
        text, limit = self.state.text.text, self.state.text.end
        match = _MISTAKE.match(text, start, limit)
        assert match is not None
        kind, end = match.lastgroup or "other", match.end()
        shown = start + 1 if kind == "comment" else end
        if kind == "word" and self.tokens and self.tokens[-1].end_pos == start and self.tokens[-1].value.isidentifier():
            start = self.tokens.pop().start_pos or 0
        found = self.mistake(kind, self.span(start, shown))
        said = self.state.line_ctr.line, found.message
        if said != self.said_last:
            self.diagnostics.append(found)
        self.said_last = said
        stand_ins = _STAND_INS | {"word": ("NAME", text[start:end])}
        stand_in = stand_ins.get(kind) or _MEANT.get(match.group())
        if stand_in is not None:
            self.tokens.append(self.token(stand_in[0], stand_in[1], start, end))
        self.state.line_ctr.char_pos = end

    def mistake(self, kind: str, span: Span) -> Diagnostic:
        text = span.text
        if kind == "number":
            return mistakes.malformed_number(span)
        if kind == "string":
            return mistakes.unterminated_string(span, text.lstrip("rR")[0])
        if kind == "word":
            return mistakes.not_ascii_name(span)
        if text in _MEANT:
            return mistakes.foreign_operator(span, _MEANT[text][1])
        if text.isspace():
            return mistakes.odd_blank(span)
        return mistakes.stray_character(span, _HELP.get(text[0], ""))


def scan(lexer: BasicLexer, source: Source, text: str, start: int, end: int) -> Scan:
    """The tokens of `text[start:end]`, with positions in the whole text."""
    return _Scanner(source, text, start, end).run(lexer)
