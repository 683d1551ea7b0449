"""Texts of any content: no exception, and an end in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.syntax.trees import nodes

from ksp.source.render import render_github, render_json, render_text
from ksp.source.text import Source, Span
from ksp.syntax import limits
from ksp.syntax.parser import ParseResult, parse, parse_expression
from ksp.syntax.words import KEYWORDS

pytestmark = pytest.mark.usefixtures("own_heap")

HEAD = "const a = "
HOSTILE = {
    "opening": HEAD + "(" * 20_000,
    "balanced": HEAD + "(" * 20_000 + "1" + ")" * 20_000,
    "mixed brackets": HEAD + "[({" * 15_000,
    "not": HEAD + "!" * 20_000 + "a",
    "minus": HEAD + "-" * 20_000 + "1",
    "fields": HEAD + "a" + ".b" * 20_000,
    "indexes": HEAD + "a" + "[b]" * 15_000,
    "sum": HEAD + "+".join("a" * 20_000),
    "choices": HEAD + "a?a:" * 12_000 + "a",
    "tokens": HEAD + "+".join("a" * 50_001),
    "types": "const a: " + "list<" * 20_000,
    "closed types": "const a: " + "list<" * 12_000 + "int" + ">" * 12_000 + "=1",
    "blocks": "predicate A {" + "for x in y {" * 8_000,
    "line": "// " + "x" * 262_000,
    "string": HEAD + '"' + "x" * 262_000,
    "escapes": HEAD + '"' + "\\" * 262_000,
    "dollars": HEAD + '"' + "${" * 100_000 + '"',
    "values in one string": HEAD + '"' + "${a}" * 50_000 + '"',
    "strings with values": HEAD + "+".join(['"${a}"'] * 12_000),
    "open strings": "const a = '\n" * 20_000,
    "wrong": "const a = )\n" * 12_000,
    "ends": HEAD + "\n" + "} " * 49_000,
    "half statements": "predicate A {" + "let \n" * 49_000,
    "wrong maps": "predicate A {\n" + "let x = {a: 1 b}\n" * 5_000,
    "open maps": "predicate A {\n let x = {\n" * 7_000,
    "characters": HEAD + "& " * 100_000,
    "quotes": HEAD + "` " * 100_000,
    "letters": HEAD + "é1" * 60_000,
    "blanks": "\n" * 262_000,
    "zeros": "const a = 1\n" + "\0" * 250_000,
    "digits": HEAD + "9" * 250_000,
    "comments": "/// x\n" * 40_000 + "predicate A {}",
    "statements on one line": "predicate A {" + " stop when a" * 14_000 + "}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_end_soon(text: str) -> None:
    assert any(_ends_soon(text) for _ in range(3))  # a busy computer may be slow for once


def _ends_soon(text: str) -> bool:
    started = time.thread_time()
    result = parse(Source("test", text))
    seconds = time.thread_time() - started
    assert len(result.diagnostics) <= 3 * limits.MAX_ERRORS
    render_text(result.diagnostics, color=False)
    return seconds < 2


@pytest.mark.parametrize(
    "text", ["!" * 30 + "a", "a" + ".b" * 60, "+".join("a" * 200), "&&".join("a" * 5_000), "(" * 60 + "a" + ")" * 60]
)
def test_what_people_write_is_within_the_limits(text: str) -> None:
    node, diagnostics = parse_expression(Source("test", text))
    assert diagnostics == ()
    assert node is not None


@pytest.mark.parametrize(
    "text", ["!" * 80 + "a", "a" + ".b" * 80, "+".join("a" * 250), "[" * 65 + "]" * 65, "a?b:" * 80 + "c"]
)
def test_what_is_deeper_is_reported_once(text: str) -> None:
    node, diagnostics = parse_expression(Source("test", text))
    assert node is None
    assert [each.code for each in diagnostics] == ["KSP0123"]


def test_no_tree_is_deeper_than_recursion_can_go() -> None:
    deepest = "[" * 22 + "!".join("(a" + "+a" * 3 for _ in range(40)) + ")" * 40 + "]" * 22
    for text in ("!" * 66 + "a", "+".join("a" * 200), deepest):
        node, _diagnostics = parse_expression(Source("test", text))
        assert node is None or len(list(nodes(node))) > 60


def test_too_many_declarations() -> None:
    result = parse(Source("test", "".join(f"const a{i} = {i}\n" for i in range(limits.MAX_DECLARATIONS + 5))))
    assert [each.code for each in result.diagnostics] == ["KSP0126"]
    assert len(result.file.declarations) == limits.MAX_DECLARATIONS


def check(result: ParseResult) -> None:
    """What holds of every result."""
    size = len(result.file.span.source.text)
    assert not (result.ok and result.broken)
    for each in result.diagnostics:
        assert 0 <= each.span.start <= each.span.end <= size
        assert "\n" not in each.message
        assert not each.message.endswith(".")
    for node in nodes(result.file):
        assert isinstance(node.span, Span)
        assert 0 <= node.span.start <= node.span.end <= size
    render_text(result.diagnostics, color=True)
    render_json(result.diagnostics)
    render_github(result.diagnostics)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    check(parse(Source("test", text)))
    check(parse(Source("test", HEAD + text)))


WORDS = [
    *sorted(KEYWORDS),
    "a",
    "b",
    "1",
    "2Gi",
    "1.5",
    "'s'",
    '"${a}"',
    '"${',
    "r'x'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
]
SIGNS = [
    "=",
    "==",
    ">=",
    "+",
    "-",
    "!",
    "&&",
    "||",
    "?",
    ":",
    ",",
    ".",
    "%",
    "&",
    ";",
    "é",
    "'",
    "\n",
    "\n",
    "// x\n",
    "/// d\n",
]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(WORDS + SIGNS), max_size=60),
    st.sampled_from(["", HEAD, "predicate P {\n", "fn f(): int {"]),
)
def test_any_tokens(tokens: list[str], head: str) -> None:
    check(parse(Source("test", head + " ".join(tokens))))


PIECES = [
    "let x = a\n",
    "deny 'r' when a\n",
    "for x in y {\n",
    "collect {\n",
    "}\n",
    "fn f(): int {\n",
    "return a\n",
    "stop when\n",
    "view v = sum a for p in q by b\n",
    "predicate Q {\n",
    "priority R { score a }\n",
    "const c = {a: b}\n",
    "provider S { priorities { R: 1 } }\n",
    "foo {\n",
    "let y = {a: (b\n",
    "test 't' { pod p { } expect R admits p on n }\n",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_any_lines(pieces: list[str]) -> None:
    result = parse(Source("test", "predicate P {\n" + "".join(pieces)))
    check(result)
    assert len(result.diagnostics) <= len(pieces) + 1
