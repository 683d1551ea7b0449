from __future__ import annotations

import json
import re

import pytest

from ksp.source.diagnostic import Diagnostic, Note, Severity
from ksp.source.render import MAX_SHOWN, render_github, render_json, render_text
from ksp.source.text import Source, Span


def error(
    span: Span, message: str = "wrong", label: str = "", help: str = "", notes: tuple[Note, ...] = ()
) -> Diagnostic:
    return Diagnostic("KSP0115", Severity.ERROR, message, span, label, notes, help)


def at(text: str, part: str, name: str = "a.ksp") -> Span:
    """The place of `part` in `text`."""
    start = text.index(part)
    return Span(Source(name, text), start, start + len(part))


def test_as_the_language_page_shows_it() -> None:
    text = "\n" * 13 + '      taint.efect == "NoSchedule"\n'
    span = at(text, "efect", "policies/default.ksp")
    diagnostic = Diagnostic(
        "KSP0201", Severity.ERROR, "a Taint has no field `efect`", span, label="did you mean `effect`?"
    )
    assert render_text([diagnostic], color=False) == (
        "error[KSP0201]: a Taint has no field `efect`\n"
        "  --> policies/default.ksp:14:13\n"
        "   |\n"
        '14 |       taint.efect == "NoSchedule"\n'
        "   |             ^^^^^ did you mean `effect`?\n"
    )


def test_notes_and_help() -> None:
    text = "predicate P {\n  stop when a\n"
    source = Source("a.ksp", text)
    diagnostic = Diagnostic(
        "KSP0116",
        Severity.WARNING,
        "expected `}`",
        Span(source, 27, 27),
        notes=(Note(Span(source, 12, 13), "opened here"), Note(None, "by the way")),
        help="close it",
    )
    assert render_text([diagnostic], color=False) == (
        "warning[KSP0116]: expected `}`\n"
        " --> a.ksp:2:14\n"
        "  |\n"
        "2 |   stop when a\n"
        "  |              ^\n"
        "  = note: opened here\n"
        " --> a.ksp:1:13\n"
        "  |\n"
        "1 | predicate P {\n"
        "  |             ^\n"
        "  = note: by the way\n"
        "  = help: close it\n"
    )


@pytest.mark.parametrize(
    ("line", "part", "shown", "carets"),
    [
        ("\tlet x = \ty", "y", "    let x =     y", "                ^"),
        ("let x = '日本' + y", "y", "let x = '日本' + y", "                 ^"),
        ("let x = '日本'", "日本", "let x = '日本'", "         ^^^^"),
        ("e\u0301 + y", "y", "e\u0301 + y", "    ^"),
        ("a \x1b[31m b", "b", "a ␛[31m b", "        ^"),
        ("a \u202e b", "b", "a <U+202E> b", "           ^"),
        ("a \0", "\0", "a ␀", "  ^"),
    ],
)
def test_carets_stand_below_what_they_mean(line: str, part: str, shown: str, carets: str) -> None:
    lines = render_text([error(at(line, part))], color=False).splitlines()
    assert lines[3:] == [f"1 | {shown}", f"  | {carets}"]


def test_long_lines_are_cut_round_the_caret() -> None:
    text = "let x = '" + "a" * 500 + "' + here + '" + "b" * 500 + "'"
    quoted, carets = render_text([error(at(text, "here"))], color=False).splitlines()[3:]
    assert len(quoted) < 140
    assert quoted[carets.index("^") : carets.rindex("^") + 1] == "here"
    assert quoted[4] == quoted[-1] == "…"


@pytest.mark.parametrize("width", [40, 57, 80, 119])
@pytest.mark.parametrize(
    "line",
    [
        "let here = 1",
        "let x = '" + "a" * 60 + "' + here + '" + "b" * 60 + "'",
        "\t\tlet x = '" + "日" * 60 + "' + here + '" + "b" * 60 + "'",
        "x" * 40 + " here " + "x" * 300,
        "here" + "\u202e" * 100,
    ],
)
def test_a_terminal_gets_no_longer_lines(line: str, width: int) -> None:
    notes = (Note(at(line, "here"), "it was declared in another place before, " * 2),)
    long = error(at(line, "here"), "something is wrong " * 4, "did you mean this? " * 3, "write it so " * 9, notes)
    for color in (False, True):
        text = re.sub(r"\x1b\[[0-9;]*m", "", render_text([long], color, width))
        lines = text.splitlines()
        assert all(columns(each) <= width for each in lines)
        assert " ".join(text.split()).count("write it so") == 9
        carets = next(i for i, each in enumerate(lines) if "^" in each)
        shown = "".join(char * (1 + (char == "日")) for char in lines[carets - 1])
        assert shown[lines[carets].index("^") : lines[carets].rindex("^") + 1] == "here"


def columns(text: str) -> int:
    return len(text) + text.count("日")


def test_a_span_longer_than_a_terminal_is_cut() -> None:
    text = "let x = " + "a" * 200 + " + b"
    lines = render_text([error(at(text, text[8:]), label="too long")], False, 60).splitlines()
    assert lines[3:] == [
        "1 | let x = " + "a" * 46 + "…",
        "  |         " + "^" * 46,
        "  |         too long",
    ]


def test_a_terminal_narrower_than_any_gets_forty_columns() -> None:
    diagnostic = error(at("let x = 1", "x"), "one two three " * 8)
    assert render_text([diagnostic], False, 3) == render_text([diagnostic], False, 40)


def test_a_span_of_many_lines_shows_the_first_and_the_last() -> None:
    text = "let x = f(\n  1,\n  2,\n  3\n)"
    lines = render_text([error(at(text, text[8:]), label="all this")], color=False).splitlines()
    assert lines[1:] == [
        " --> a.ksp:1:9",
        "  |",
        "1 | let x = f(",
        "  |         ^^",
        "  :",
        "5 | )",
        "  | ^ all this",
    ]


def test_colors_change_nothing_but_colors() -> None:
    diagnostic = error(at("let x = y", "y"), label="here", help="do", notes=(Note(at("a b", "b"), "see"),))
    colored = render_text([diagnostic], color=True)
    assert "\x1b[1;31m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_text([diagnostic], color=False)


def test_messages_cannot_steer_the_terminal() -> None:
    diagnostic = error(at("a", "a", "a\x1b[2J.ksp"), "bad \x1b]0;title\x07", "\x1b", "\u202e")
    assert not set("\x1b\x07\u202e") & set(render_text([diagnostic], color=False))


def test_a_source_without_text_is_not_quoted() -> None:
    assert render_text([error(Span(Source("a.ksp", ""), 0, 0))], color=False) == "error[KSP0115]: wrong\n --> a.ksp\n"


def test_sorted_without_repetition_and_capped() -> None:
    source = Source("b.ksp", "x" * 300)
    many = [error(Span(source, i, i + 1)) for i in reversed(range(150))]
    first = error(at("y", "y", "a.ksp"))
    text = render_text([*many, *many, first], color=False)
    assert re.findall(r"--> (.*)", text)[:3] == ["a.ksp:1:1", "b.ksp:1:1", "b.ksp:1:2"]
    assert text.count("-->") == MAX_SHOWN
    assert text.endswith("\n\nand 51 more\n")
    assert render_github([*many, first]).splitlines()[-1] == "::notice::and 51 more"
    assert len(json.loads(render_json([*many, *many, first]))) == 151


def test_nothing_to_say() -> None:
    assert render_text([], color=True) == ""
    assert render_github([]) == ""
    assert json.loads(render_json([])) == []


def test_json() -> None:
    text = "a\nlet x = y z"
    diagnostic = error(at(text, "y z"), "wrong", "here", "do", (Note(at(text, "a"), "see"), Note(None, "so")))
    assert json.loads(render_json([diagnostic])) == [
        {
            "code": "KSP0115",
            "severity": "error",
            "message": "wrong",
            "file": "a.ksp",
            "line": 2,
            "column": 9,
            "endLine": 2,
            "endColumn": 12,
            "label": "here",
            "help": "do",
            "notes": [
                {"message": "see", "file": "a.ksp", "line": 1, "column": 1, "endLine": 1, "endColumn": 2},
                {"message": "so"},
            ],
        }
    ]


def test_github_annotations_are_escaped() -> None:
    diagnostic = error(at("let x = y", "y", "a,b:c%\n.ksp"), "100% of\r\nit", "here")
    assert render_github([diagnostic]) == (
        "::error file=a%2Cb%3Ac%25%0A.ksp,line=1,col=9,endLine=1,endColumn=10,title=KSP0115::100%25 of%0D%0Ait; here\n"
    )


@pytest.mark.parametrize(("severity", "word"), [(Severity.WARNING, "warning"), (Severity.ADVICE, "notice")])
def test_github_levels(severity: Severity, word: str) -> None:
    assert render_github([Diagnostic("KSP0701", severity, "x", at("a", "a"))]).startswith(f"::{word} ")
