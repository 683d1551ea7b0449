from __future__ import annotations

import pytest
from tests.unit.syntax.trees import mistakes

from ksp.source.diagnostic import Diagnostic
from ksp.source.text import Source
from ksp.syntax.parser import parse


def in_rule(text: str) -> Diagnostic:
    """The only diagnostic of a rule with this statement on its second line."""
    (diagnostic,) = parse(Source("test", f"predicate P {{\n{text}\n}}")).diagnostics
    assert diagnostic.span.source.place(diagnostic.span.start)[0] == 2
    return diagnostic


@pytest.mark.parametrize(
    ("text", "code", "at", "said"),
    [
        ("deny 'x' when a = b", "KSP0118", "=", "`=` does not compare"),
        ("deny 'x' when a === b", "KSP0119", "===", "there is no operator `===`"),
        ("deny 'x' when a and b", "KSP0119", "and", "there is no operator `and`"),
        ("let x = f(a or b)", "KSP0119", "or", "there is no operator `or`"),
        ("deny 'x' when not b", "KSP0119", "not", "there is no operator `not`"),
        ("deny 'x' when a & b", "KSP0119", "&", "there is no operator `&`"),
        ("deny 'x' when a | b", "KSP0119", "|", "there is no operator `|`"),
        ("if a { stop when b }", "KSP0119", "if", "there is no `if` in ksp"),
        ("deny 'x' if a", "KSP0119", "if", "there is no `if` in ksp"),
        ("let x = if a { b }", "KSP0119", "if", "there is no `if` in ksp"),
        ("allow when b", "KSP0119", "allow", "there is no `allow` in ksp"),
        ("deny 'x' when a == null", "KSP0119", "null", "there is no `null` in ksp"),
        ("deny 'x'", "KSP0120", "", "a `deny` needs a condition, found `}`"),
        ("deny 'x' a", "KSP0120", "a", "a `deny` needs a condition, found `a`"),
        ("stop a", "KSP0120", "a", "a `stop` needs a condition, found `a`"),
        ("fail 'x', 'y' when a", "KSP0120", ",", "a `fail` needs a condition, found `,`"),
        ("deny when a", "KSP0121", "when", "a `deny` needs a reason, found `when`"),
        ("deny unresolvable when a", "KSP0121", "when", "a `deny` needs a reason, found `when`"),
        ("fail when a", "KSP0121", "when", "a `fail` needs a message, found `when`"),
        ("deny text when a", "KSP0121", "text", "the reason of a `deny` must be a string literal"),
        ("deny 'x' + a when b", "KSP0121", "+", "the reason of a `deny` must be a string literal"),
        ("let score = a", "KSP0122", "score", "`score` is a keyword and cannot name a let"),
        ("view deny = count x in a", "KSP0122", "deny", "`deny` is a keyword and cannot name a view"),
        ("for let in a { }", "KSP0122", "let", "`let` is a keyword and cannot name a variable"),
        ("view v = count test in a", "KSP0122", "test", "`test` is a keyword and cannot name a variable"),
        ("fn f(when: int): int = a", "KSP0122", "when", "`when` is a keyword and cannot name a parameter"),
        ("let null = a", "KSP0122", "null", "`null` is a keyword and cannot name a let"),
        ("room = a", "KSP0125", "room", "`room` starts no statement"),
        ("dney 'x' when a", "KSP0125", "dney", "`dney` starts no statement"),
        ("let x = ", "KSP0115", "", "expected an expression after `=`, found `}`"),
        ("let x = a +", "KSP0115", "", "expected an expression after `+`, found `}`"),
        ("let x = a.", "KSP0115", "", "expected a field name after `.`, found `}`"),
        ("let = a", "KSP0115", "=", "expected a name after `let`, found `=`"),
        ("let x a", "KSP0115", "a", "expected `=` or `:`, found `a`"),
        ("let x: = a", "KSP0115", "=", "expected a type, found `=`"),
        ("let x = a b", "KSP0115", "b", "`b` cannot follow an expression"),
        ("let x = f(a b)", "KSP0115", "b", "expected `,` or `)`, found `b`"),
        ("let x = a ? b", "KSP0115", "", "expected `:`, found `}`"),
        (
            "let x = a.all(score, score)",
            "KSP0115",
            "score",
            "expected an expression after `(`, found the keyword `score`",
        ),
        ("view v = count x of a", "KSP0115", "of", "expected `in`, found `of`"),
        ("let x = (a + b", "KSP0116", "", "expected `)`, found `}`"),
        ("let x = [a + b)", "KSP0116", ")", "expected `]`, found `)`"),
        ("let x = a)", "KSP0116", ")", "expected `}`, found `)`"),
        ("let x = a;", "KSP0107", ";", "`;` means nothing here"),
        ("let x = größe", "KSP0107", "größe", "the name `größe` has characters other than ASCII"),
        ("let x = a\u00a0+ b", "KSP0107", "\u00a0", "U+00A0 is no blank of ksp"),
        ("let x = `a`", "KSP0107", "`", "`'` means nothing here"),
        ("# x deny {", "KSP0107", "#", "`#` means nothing here"),
        ("deny 'x when a", "KSP0108", "'x when a", "the string does not end on its line"),
        ("stop when a > 80%", "KSP0113", "80%", "`80%`: there are no percent literals"),
        ("stop when a > 30s", "KSP0113", "30s", "`30s` looks like a duration"),
        ('deny "a ${b[\'c\']} ${d["e"]}" when f', "KSP0110", "${d[", "`${` without its `}` in the same string"),
    ],
)
def test_a_mistake_in_a_statement(text: str, code: str, at: str, said: str) -> None:
    diagnostic = in_rule(text)
    assert (diagnostic.code, diagnostic.span.text, diagnostic.message) == (code, at, said)


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("rule P { stop when a }", "KSP0124", "rule"),
        ("predicat P { stop when a }", "KSP0124", "predicat"),
        ("deny 'x' when a", "KSP0124", "deny"),
        ("predicate P { } }", "KSP0117", "}"),
        ("const x = )", "KSP0117", ")"),
        ("predicate { }", "KSP0115", "{"),
        ("predicate when { }", "KSP0122", "when"),
        ("provider P { predicate { Q } }", "KSP0115", "predicate"),
        ("provider P { priorities { Q: high } }", "KSP0115", "high"),
        ("provider P { priorities { Q: 99999999999999999999 } }", "KSP0114", "99999999999999999999"),
        ("import lib", "KSP0115", "lib"),
        ('import "${a}"', "KSP0111", '"${a}"'),
        ('test "${a}" { }', "KSP0111", '"${a}"'),
        ("profile p uses Q { }", "KSP0115", "p"),
        ('test "t" { expect P refuses p on n }', "KSP0115", "refuses"),
        ("fn f(a: int) = a", "KSP0115", "="),
        ("fn f(): int { let a = 1 }", "KSP0115", "}"),
        ("const x: " + "list<" * 10 + "int" + ">" * 10 + " = a", "KSP0123", "list<" * 9 + "int" + ">" * 9),
        ("predicate P {" + "for x in a {" * 8 + "}" * 9, "KSP0123", "for x in a {}"),
    ],
)
def test_a_mistake_in_a_declaration(text: str, code: str, at: str) -> None:
    assert mistakes(text) == [(code, 1, at)]


def test_what_is_near_is_suggested() -> None:
    assert in_rule("dney 'x' when a").label == "did you mean `deny`?"
    assert parse(Source("test", "predicat P { }")).diagnostics[0].label == "did you mean `predicate`?"
    assert parse(Source("test", "provider P { prioritys { } }")).diagnostics[0].label == "did you mean `priorities`?"


def test_the_whole_form_is_shown() -> None:
    assert in_rule("let = a").help == "the form is `let NAME = EXPR`"


def test_a_missing_brace_points_at_the_one_that_is_open() -> None:
    text = "predicate P {\n  stop when a\n\npredicate Q {\n  stop when b\n}\n"
    result = parse(Source("test", text))
    (diagnostic,) = result.diagnostics
    assert diagnostic.message == "expected `}`, found `predicate`"
    assert diagnostic.span.source.place(diagnostic.span.start) == (2, 14)
    (note,) = diagnostic.notes
    assert note.span is not None
    assert (note.text, note.span.start) == ("the `{` opened here is not closed", 12)
    assert [type(each).__name__ for each in result.file.declarations] == ["Rule"]


def test_a_missing_brace_at_the_end() -> None:
    (diagnostic,) = parse(Source("test", "predicate P {\n  stop when a\n")).diagnostics
    assert diagnostic.message == "expected `}`, found the end of the text"


# ---- characters


@pytest.mark.parametrize(
    "char", ["\0", "\x07", "\x7f", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\r", "\ud800"]
)
@pytest.mark.parametrize("text", ["const x = '{}a'", "const x = a // {}b", "const x = {}a", "const x = a{}"])
def test_invisible_characters_are_refused_everywhere(char: str, text: str) -> None:
    assert mistakes(text.replace("{}", char)) == [("KSP0105", 1, char)]


def test_a_byte_order_mark_at_the_start_is_only_a_warning() -> None:
    result = parse(Source("test", "\ufeffconst x = a"))
    assert [(each.code, each.severity.value) for each in result.diagnostics] == [("KSP0106", "warning")]
    assert result.ok
    assert len(result.file.declarations) == 1


@pytest.mark.parametrize(
    "text",
    [
        "root:x:0:0:root:/root:/bin/bash\n",
        "test:$6$abc:19000:0:99999:7:::\n",
        "\0\1\2",
        "-----BEGIN",
        "{}",
        "kind: Policy",
    ],
)
def test_a_text_that_is_no_policy_is_not_quoted(text: str) -> None:
    (diagnostic,) = parse(Source("shadow", text)).diagnostics
    assert diagnostic.code == "KSP0104"
    assert diagnostic.span.source.text == ""
    assert diagnostic.span.source.name == "shadow"


def test_a_text_that_is_too_large_is_not_read() -> None:
    (diagnostic,) = parse(Source("test", "// é" + "é" * 131_072)).diagnostics
    assert diagnostic.code == "KSP0102"
