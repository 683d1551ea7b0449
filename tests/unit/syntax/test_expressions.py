from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.syntax.trees import bare, expression, nodes

from ksp.source.text import Source
from ksp.syntax import tree
from ksp.syntax.parser import parse_expression


def name(text: str) -> tuple[str, str]:
    return ("Name", text)


A, B, C, D = (name(letter) for letter in "abcd")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", ("Binary", "+", A, ("Binary", "*", B, C))),
        ("a - b - c", ("Binary", "-", ("Binary", "-", A, B), C)),
        ("(a - b) * c", ("Binary", "*", ("Binary", "-", A, B), C)),
        ("-a.b", ("Unary", "-", ("Field", A, "b"))),
        ("!!a", ("Unary", "!", ("Unary", "!", A))),
        ("a < b == c", ("Binary", "==", ("Binary", "<", A, B), C)),
        ("a in b && !c", ("Logic", "&&", (("Binary", "in", A, B), ("Unary", "!", C)))),
        ("a && b && c || d", ("Logic", "||", (("Logic", "&&", (A, B, C)), D))),
        ("a && (b && c)", ("Logic", "&&", (A, ("Logic", "&&", (B, C))))),
        ("a ? b : c ? d : a", ("Ternary", A, B, ("Ternary", C, D, A))),
        ("a || b ? c : d", ("Ternary", ("Logic", "||", (A, B)), C, D)),
        ("a.b(c, d,)[a]", ("Index", ("Method", A, "b", (C, D)), A)),
        ("a()", ("Call", "a", ())),
        ("[]", ("ListLiteral", ())),
        ("[a, b,]", ("ListLiteral", (A, B))),
        ("{}", ("MapLiteral", ())),
        ("{a: b, 'c': d}", ("MapLiteral", (("MapEntry", A, B), ("MapEntry", ("StringLiteral", ("c",)), D)))),
        ("a % b", ("Binary", "%", A, B)),
        ("5 % b", ("Binary", "%", ("IntLiteral", 5), B)),
        ("5%b", ("Binary", "%", ("IntLiteral", 5), B)),
        ("a > b ? 1 : 2", ("Ternary", ("Binary", ">", A, B), ("IntLiteral", 1), ("IntLiteral", 2))),
        ("true", ("BoolLiteral", True)),
    ],
)
def test_operators_bind_as_in_cel(text: str, expected: tuple[object, ...]) -> None:
    assert bare(expression(text)) == expected


@pytest.mark.parametrize(
    "word", ["score", "count", "first", "deny", "in", "when", "test", "import", "true", "from", "predicates", "let"]
)
def test_every_keyword_is_a_field_a_method_and_a_key(word: str) -> None:
    assert bare(expression(f"a.{word}")) == ("Field", A, word)
    assert bare(expression(f"a.{word}(b)")) == ("Method", A, word, (B,))
    key = ("BoolLiteral", True) if word == "true" else name(word)
    if word != "in":
        assert bare(expression(f"{{{word}: b}}")) == ("MapLiteral", (("MapEntry", key, B),))


@pytest.mark.parametrize("word", ["count", "sum", "first", "on", "from", "reversed", "unresolvable", "admits"])
def test_words_of_one_place_are_names_everywhere_else(word: str) -> None:
    assert bare(expression(f"{word} + {word}(a)")) == ("Binary", "+", name(word), ("Call", word, (A,)))


def test_a_macro_variable_is_an_ordinary_name() -> None:
    assert bare(expression("a.all(b, b == c)")) == ("Method", A, "all", (B, ("Binary", "==", B, C)))


# ---- literals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42", ("IntLiteral", 42)),
        ("007", ("IntLiteral", 7)),
        ("0x1F", ("IntLiteral", 31)),
        ("9223372036854775808", ("IntLiteral", 2**63)),
        ("1.5", ("DoubleLiteral", 1.5)),
        (".5", ("DoubleLiteral", 0.5)),
        ("1e3", ("DoubleLiteral", 1000.0)),
        ("2.5E-1", ("DoubleLiteral", 0.25)),
        ("32Mi", ("QuantityLiteral", "32", "Mi")),
        ("500m", ("QuantityLiteral", "500", "m")),
        ("1.5Gi", ("QuantityLiteral", "1.5", "Gi")),
        ("4cpu", ("QuantityLiteral", "4", "cpu")),
        ("2G", ("QuantityLiteral", "2", "G")),
        ("5k", ("QuantityLiteral", "5", "k")),
    ],
)
def test_numbers(text: str, expected: tuple[object, ...]) -> None:
    assert bare(expression(text)) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1u", "KSP0112"),
        ("0x", "KSP0112"),
        ("0x1G", "KSP0112"),
        ("1.5Gib", "KSP0112"),
        ("1_000", "KSP0112"),
        ("1.2.3", "KSP0112"),
        ("1e", "KSP0112"),
        ("30s", "KSP0113"),
        ("5min", "KSP0113"),
        ("80%", "KSP0113"),
        ("9223372036854775809", "KSP0114"),
        ("9" * 100_000, "KSP0114"),
        ("9" * 100 + "Gi", "KSP0114"),
        ("1e999", "KSP0114"),
    ],
)
def test_numbers_that_are_none(text: str, code: str) -> None:
    node, diagnostics = parse_expression(Source("test", text))
    assert node is None
    assert [each.code for each in diagnostics] == [code]
    assert diagnostics[0].span.text == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\n\t\r\a\b\f\v"', "\n\t\r\a\b\f\v"),
        (r"'\\ \" \' \` \? \$'", "\\ \" ' ` ? $"),
        (r'"\x41\X42\u00e9\U0001F600\101"', "AB\u00e9\U0001f600A"),
        (r'r"\d+${a}"', r"\d+${a}"),
        (r"R'\'", "\\"),
        ('"it\'s $5 {a}"', "it's $5 {a}"),
        ('""', ""),
        ('"日本"', "日本"),
        (r'"\${a}"', "${a}"),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert bare(expression(text)) == ("StringLiteral", (value,))


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        (r'"a\q"', "KSP0109", r"\q"),
        (r'"\x4"', "KSP0109", r"\x"),
        (r'"\ud800"', "KSP0109", r"\ud800"),
        (r'"\U00110000"', "KSP0109", r"\U00110000"),
        (r'"\400"', "KSP0109", r"\4"),
        ('"a', "KSP0108", '"a'),
        ("'a\nb", "KSP0108", "'a"),
        ('"${}"', "KSP0110", "${}"),
        ('"${a"', "KSP0110", "${a"),
        ('"${a["b"]}"', "KSP0110", "${a["),
        ('"${ {a: b} }"', "KSP0110", "${ "),
    ],
)
def test_strings_that_are_none(text: str, code: str, at: str) -> None:
    _node, diagnostics = parse_expression(Source("test", text))
    assert [(each.code, each.span.text) for each in diagnostics][:1] == [(code, at)]


def test_interpolations_are_parsed_with_their_places_in_the_same_source() -> None:
    text = "a + 'x${ b.c }y${d}${ f(\"z\") }'"
    node = expression(text)
    assert isinstance(node, tree.Binary)
    assert bare(node.right) == (
        "StringLiteral",
        ("x", ("Field", B, "c"), "y", D, ("Call", "f", (("StringLiteral", ("z",)),))),
    )
    assert isinstance(node.right, tree.StringLiteral)
    assert [part.span.text for part in node.right.parts if not isinstance(part, str)] == ["b.c", "d", 'f("z")']


def test_a_mistake_in_an_interpolation_is_found_where_it_is() -> None:
    text = '"sum ${a + } and ${b c}"'
    _node, diagnostics = parse_expression(Source("test", text))
    assert [text.index(each.span.text or "+ }") for each in diagnostics] == [9, 21]


def test_null_has_an_explanation_of_its_own() -> None:
    _node, (diagnostic,) = parse_expression(Source("test", "a == null"))
    assert diagnostic.code == "KSP0119"
    assert "`has(x.field)`" in diagnostic.help


# ---- spans

_LEAVES = st.sampled_from(["a", "b1", "42", "1.5", "500m", "'x'", '"${a}!"', 'r"\\d"', "true", "[]", "{}"])


def _inner(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"])
    return st.one_of(
        st.tuples(parts, operator, parts).map(" ".join),
        st.tuples(parts, parts, parts).map(lambda p: f"({p[0]}) ? ({p[1]}) : {p[2]}"),
        parts.map(lambda p: f"( {p} )"),
        parts.map(lambda p: f"!({p})"),
        parts.map(lambda p: f"-({p})"),
        parts.map(lambda p: f"({p}).score"),
        st.tuples(parts, parts).map(lambda p: f"({p[0]}).map(x, {p[1]})"),
        st.tuples(parts, parts).map(lambda p: f"({p[0]})[ {p[1]} ]"),
        st.lists(parts, max_size=3).map(lambda p: f"[{', '.join(p)}]"),
        st.lists(parts, max_size=3).map(lambda p: f"f({' , '.join(p)})"),
        st.lists(st.tuples(parts, parts), max_size=2).map(lambda p: "{" + ", ".join(f"{k}: {v}" for k, v in p) + "}"),
    )


@given(st.recursive(_LEAVES, _inner, max_leaves=12))
def test_the_text_of_every_node_is_the_node_again(text: str) -> None:
    source = Source("test", text)
    whole, diagnostics = parse_expression(source)
    assert whole is not None, diagnostics
    assert whole.span.text == text.strip()
    for node in nodes(whole):
        if not isinstance(node, tree.MapEntry):
            assert bare(expression(node.span.text)) == bare(node)
