from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.unit.syntax.trees import bare, declarations, nodes, statements

from ksp.source.reading import read_source
from ksp.source.text import Source
from ksp.syntax import tree
from ksp.syntax.parser import parse

A, B, C = (("Name", letter) for letter in "abc")
INT = ("TypeName", "int", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('import "lib/nodes.ksp"', ("Import", "lib/nodes.ksp")),
        ("const x = a", ("Const", "x", None, A, "")),
        ("const x: int = a", ("Const", "x", INT, A, "")),
        ("const x: list<int>= a", ("Const", "x", ("TypeName", "list", (INT,)), A, "")),
        (
            "const x: map<string, list<int>> = a",
            ("Const", "x", ("TypeName", "map", (("TypeName", "string", ()), ("TypeName", "list", (INT,)))), A, ""),
        ),
        ("fn f(): int = a", ("Function", "f", (), INT, (), A, "")),
        (
            "fn f(x: int, y: int,): int { let z = a return b }",
            (
                "Function",
                "f",
                (("FnParameter", "x", INT), ("FnParameter", "y", INT)),
                INT,
                (("Let", "z", None, A, ""),),
                B,
                "",
            ),
        ),
        ("predicate P { }", ("Rule", "predicate", "P", "", (), "")),
        ("priority P implements Q { score a }", ("Rule", "priority", "P", "Q", (("Score", A, ""),), "")),
        ("provider P { }", ("Provider", "P", "", (), "")),
        (
            "provider P extends Q { predicates { R, S(x: a), } priorities { -T, U: 2, V(x: a): 3 } }",
            (
                "Provider",
                "P",
                "Q",
                (
                    (
                        "Section",
                        "predicate",
                        (("Use", "R", False, (), None), ("Use", "S", False, (("Argument", "x", A),), None)),
                    ),
                    (
                        "Section",
                        "priority",
                        (
                            ("Use", "T", True, (), None),
                            ("Use", "U", False, (), 2),
                            ("Use", "V", False, (("Argument", "x", A),), 3),
                        ),
                    ),
                ),
                "",
            ),
        ),
        (
            'profile "p" uses Q { x = a R.y = b score = c }',
            ("Profile", "p", "Q", (("Setting", "", "x", A), ("Setting", "R", "y", B), ("Setting", "", "score", C)), ""),
        ),
        (
            """test "t" {
                node n { }
                pod p on n from "f.yaml"
                expect R denies p on n with "x"
                expect S scores p on n 9
                expect T places p on n
            }""",
            (
                "Test",
                "t",
                (
                    ("TestObject", "node", "n", "", ("MapLiteral", ()), None),
                    ("TestObject", "pod", "p", "n", None, ("StringLiteral", ("f.yaml",))),
                ),
                (
                    ("Expect", "R", "denies", "p", "n", ("StringLiteral", ("x",)), None),
                    ("Expect", "S", "scores", "p", "n", None, ("IntLiteral", 9)),
                    ("Expect", "T", "places", "p", "n", None, None),
                ),
                "",
            ),
        ),
    ],
)
def test_declarations(text: str, expected: tuple[object, ...]) -> None:
    (declaration,) = declarations(text)
    assert bare(declaration) == expected
    assert declaration.span.text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("param x: int", ("Param", "x", INT, None, "")),
        ("param x: int = a", ("Param", "x", INT, A, "")),
        ("let x = a", ("Let", "x", None, A, "")),
        ("let x: int = a", ("Let", "x", INT, A, "")),
        ("let first = a", ("Let", "first", None, A, "")),
        ("deny 'r' when a", ("Deny", False, (("StringLiteral", ("r",)),), A, "")),
        (
            "deny unresolvable 'r', r's' when a",
            ("Deny", True, (("StringLiteral", ("r",)), ("StringLiteral", ("s",))), A, ""),
        ),
        ("fail 'm' when a", ("Fail", ("StringLiteral", ("m",)), A, "")),
        ("stop when a", ("Stop", A, "")),
        ("for x in a { stop when b }", ("For", ("x",), A, (("Stop", B, ""),), "")),
        ("for x, y in a { }", ("For", ("x", "y"), A, (), "")),
        ("collect { stop when a }", ("Block", "collect", (("Stop", A, ""),), "")),
        ("prefilter { }", ("Block", "prefilter", (), "")),
        ("score a", ("Score", A, "")),
        ("normalize", ("Normalize", False, None, "")),
        ("normalize reversed", ("Normalize", True, None, "")),
        ("normalize { score a }", ("Normalize", False, (("Score", A, ""),), "")),
        ("view v = count x in a", ("View", "v", "count", None, (("Bind", "x", A),), None, (), "")),
        (
            "view v = sum a for x in b, y in c where a by b, c",
            ("View", "v", "sum", A, (("Bind", "x", B), ("Bind", "y", C)), A, (B, C), ""),
        ),
        ("view v = first x in a where b", ("View", "v", "first", None, (("Bind", "x", A),), B, (), "")),
    ],
)
def test_statements(text: str, expected: tuple[object, ...]) -> None:
    (statement,) = statements(text)
    assert bare(statement) == expected
    assert statement.span.text == text


def test_spans_of_names_are_the_names() -> None:
    text = """
        predicate P implements Q { view v = count p in a for k, w in b { collect { let x = k } } normalize }
        provider R extends S { priorities { P(x: a): 7 } }
        profile "p" uses R { P.x = 1 }
        test "t" { pod p on n { } expect P admits p on n }
    """
    for node in nodes(parse(Source("test", text)).file):
        for field, value in (
            ("name_span", "name"),
            ("implements_span", "implements"),
            ("keyword_span", "keyword"),
            ("provider_span", "provider"),
            ("subject_span", "subject"),
            ("extends_span", "extends"),
            ("kind_span", "kind"),
            ("on_span", "on"),
            ("pod_span", "pod"),
            ("node_span", "node"),
            ("weight_span", "weight"),
        ):
            span = getattr(node, field, None)
            if span is not None and not isinstance(node, tree.Normalize):
                assert span.text.strip('"') == str(getattr(node, value))


# ---- comments


def test_doc_comments_directly_above_are_kept() -> None:
    text = """
/// not this

/// What the rule
///   is for.
// a note
/// First.
///
/// Last.
predicate P {
  /// Why.
  let x = a   /// not this either
  let y = b
  //// nor this
  stop when x
}
"""
    (rule,) = declarations(text)
    assert isinstance(rule, tree.Rule)
    assert rule.doc == "First.\n\nLast."
    assert [statement.doc for statement in rule.body] == ["Why.", "", ""]


def test_doc_comments_keep_their_indentation_and_end_at_the_top_of_the_text() -> None:
    (const,) = declarations("///  two blanks\r\n  ///no blank\r\n  const x = a")
    assert isinstance(const, tree.Const)
    assert const.doc == " two blanks\nno blank"


def test_line_ends_mean_nothing_between_statements() -> None:
    assert bare(statements("let x = a let y = b stop when x")) == bare(
        statements("let x = a\nlet y = b\r\n\nstop when x")
    )


def test_an_empty_text_has_no_declarations() -> None:
    for text in ("", "\n", "// nothing", "  \t\r\n/// nothing\n"):
        assert declarations(text) == ()


# ---- real policies


def _policies(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.ksp"))


@pytest.mark.parametrize("path", _policies(REPOSITORY / "policies"), ids=lambda path: path.name)
def test_shipped_policies_parse(path: Path) -> None:
    source = read_source(path)
    assert isinstance(source, Source)
    assert parse(source).diagnostics == ()


def test_recorded_policies_parse(shared: Path) -> None:
    paths = _policies(shared / "design" / "policies")
    results = [parse(Source(path.name, path.read_text(encoding="utf-8"))) for path in paths]
    assert len(results) >= 18
    assert [result.diagnostics for result in results if result.diagnostics] == []
    kinds = {type(node).__name__ for result in results for node in nodes(result.file)}
    assert {"Rule", "View", "Fail", "For", "Provider", "Profile", "Test", "QuantityLiteral"} <= kinds
