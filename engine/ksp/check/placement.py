"""Which statement may stand where, and where one that is misplaced belongs."""

from __future__ import annotations

from ksp.source.text import Span
from ksp.syntax import tree

WORDS: dict[type, str] = {
    tree.Const: "`const`", tree.Param: "`param`", tree.Function: "`fn`", tree.Let: "`let`", tree.View: "`view`",
    tree.Deny: "`deny`", tree.Fail: "`fail`", tree.Stop: "`stop`", tree.For: "`for`", tree.Score: "`score`",
    tree.Normalize: "`normalize`",
}  # fmt: skip
DECLARING = frozenset({tree.Const, tree.Let, tree.Function})
ALLOWED: dict[str, frozenset[type | str]] = {
    "a predicate": DECLARING
    | {tree.Param, tree.View, tree.Deny, tree.Fail, tree.Stop, tree.For, "collect", "prefilter"},
    "`prefilter`": DECLARING | {tree.Deny, tree.Fail, tree.Stop, tree.For, "collect"},
    "`collect`": DECLARING | {tree.Deny, tree.Fail, tree.Stop, tree.For},
    "`for`": DECLARING | {tree.Deny, tree.Fail, tree.Stop, tree.For},
    "a priority": DECLARING | {tree.Param, tree.View, tree.Fail, tree.For, tree.Score, tree.Normalize, "prescore"},
    "a priority's `for`": DECLARING | {tree.Fail, tree.For},
    "`prescore`": DECLARING | {tree.Fail, tree.For},
    "`normalize`": DECLARING | {tree.View, tree.Score},
}


def where_instead(node: tree.Statement, where: str) -> str:
    """Where a misplaced statement belongs."""
    match node:
        case tree.View() if where == "`for`":
            return "declare the view above, with one more `x in LIST` and one more key"
        case tree.View() | tree.Param():
            return "declare it at the top of the rule"
        case tree.Deny() | tree.Stop() if "priority" in where or where == "`prescore`":
            return "a priority only scores; say in a `predicate` which nodes are denied"
        case tree.Deny() | tree.Stop() | tree.Fail() if where == "`normalize`":
            return "`normalize` has `let`, `view` and `score` only"
        case tree.Score() | tree.Normalize() if where in ("a predicate", "`collect`", "`prefilter`"):
            return "a predicate only denies; give scores in a `priority`"
        case tree.Block(keyword="collect"):
            return "`collect` stands in a predicate or its `prefilter`, not in another block"
        case tree.Block(keyword="prefilter" | "prescore" as keyword):
            kind = "predicate" if keyword == "prefilter" else "priority"
            return f"`{keyword}` stands at the top of a {kind}"
    return ""


def word(node: tree.Statement) -> str:
    return f"`{node.keyword}`" if isinstance(node, tree.Block) else WORDS[type(node)]


def head(node: tree.Statement) -> Span:
    """The keyword: what a diagnostic about the statement points at."""
    if isinstance(node, tree.Block | tree.Normalize):
        return node.keyword_span
    word = WORDS[type(node)].strip("`")
    start = node.span.start
    return Span(node.span.source, start, start + len(word))
