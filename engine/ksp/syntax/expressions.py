"""Tokens and parts to expressions: a method for each rule of the grammar, called as soon as the rule is complete.

Heights of expressions and types are kept beside the nodes while their parents are not built, so that a tree that is too
high is noticed before it is a tree. What is wrong is reported and something harmless returned: the parser drops every
declaration in which something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from lark import Token

from ksp.source.diagnostic import Diagnostic
from ksp.source.text import Source, Span
from ksp.syntax import limits, literals, mistakes, tree
from ksp.syntax.machine import Items

_Node = TypeVar("_Node", bound=tree.Expr)
TOO_HIGH = -(10**9)
"""The height of what is already reported as too high."""


def nodes(items: Items | None) -> Iterable[Any]:
    """The nodes among the children of a list, without commas."""
    return (item for item in items or () if not isinstance(item, Token))


class ExpressionBuilder:
    """The expressions of one source. `expression` parses the text of an interpolation, between two offsets."""

    def __init__(self, source: Source, expression: Callable[[int, int], tree.Expr | None]) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self.broken_at: set[int] = set()  # the places of all mistakes
        self.refused: set[str] = set()  # keywords that were given as names
        self._parse_expression = expression
        self.heights: dict[int, int] = {}

    # ---- what the methods have in common

    def report(self, diagnostic: Diagnostic) -> None:
        """Note a mistake. Nobody reads more than some of them, but its place is kept."""
        self.broken_at.add(diagnostic.span.start)
        if len(self.diagnostics) < limits.MAX_ERRORS:
            self.diagnostics.append(diagnostic)

    def span(self, first: Any, last: Any = None) -> Span:
        """From the start of one token or node to the end of another."""
        last = first if last is None else last
        start = first.start_pos if isinstance(first, Token) else first.span.start
        end = last.end_pos if isinstance(last, Token) else last.span.end
        return Span(self.source, start or 0, end or 0)

    def measured(self, node: _Node, below: Iterable[tree.Expr | tree.MapEntry], left: tree.Expr | None = None) -> _Node:
        """The node with its height noted. `left` is a part that adds only one: the left side of an operator."""
        heights = self.heights
        parts = [heights.pop(id(part), 0) + limits.NESTING_COST for part in below]
        if left is not None:
            parts.append(heights.pop(id(left), 0) + 1)
        height = max(parts, default=0)
        if min(parts, default=0) < 0:
            height = TOO_HIGH
        elif height > limits.MAX_COST:
            self.report(mistakes.expression_too_deep(node.span))
            height = TOO_HIGH
        heights[id(node)] = height
        return node

    def plain(self, token: Token, what: str) -> str:
        """The text of a string that cannot hold expressions."""
        node = self.string(token)
        self.heights.pop(id(node), 0)
        parts = node.parts
        if any(not isinstance(part, str) for part in parts):
            self.report(mistakes.plain_string_needed(self.span(token), what))
        return "".join(part for part in parts if isinstance(part, str))

    # ---- expressions

    def expression(self, value: tree.Expr) -> tree.Expr:
        return value

    def ternary(
        self, condition: tree.Expr, _mark: Token, then: tree.Expr, _colon: Token, otherwise: tree.Expr
    ) -> tree.Ternary:
        node = tree.Ternary(self.span(condition, otherwise), condition, then, otherwise)
        return self.measured(node, (condition, then, otherwise))

    def logic(self, first: tree.Expr, rest: Items) -> tree.Logic:
        items = (first, *nodes(rest))
        return self.measured(tree.Logic(self.span(first, items[-1]), str(rest[0]), items), items)

    def binary(self, left: tree.Expr, operator: Token, right: tree.Expr) -> tree.Binary:
        return self.measured(tree.Binary(self.span(left, right), str(operator), left, right), (right,), left)

    def unary(self, operator: Token, value: tree.Expr) -> tree.Unary:
        return self.measured(tree.Unary(self.span(operator, value), str(operator), value), (value,))

    def field(self, value: tree.Expr, _dot: Token, name: Token) -> tree.Field:
        return self.measured(tree.Field(self.span(value, name), value, str(name), self.span(name)), (value,))

    def method(
        self, value: tree.Expr, _dot: Token, name: Token, _open: Token, arguments: Items | None, close: Token
    ) -> tree.Method:
        given = tuple(nodes(arguments))
        node = tree.Method(self.span(value, close), value, str(name), self.span(name), given)
        return self.measured(node, (value, *given))

    def index(self, value: tree.Expr, _open: Token, key: tree.Expr, close: Token) -> tree.Index:
        return self.measured(tree.Index(self.span(value, close), value, key), (value, key))

    def name(self, token: Token) -> tree.Name:
        if token.value == "null":
            self.report(mistakes.no_null(self.span(token)))
        return tree.Name(self.span(token), str(token))

    def call(self, name: Token, _open: Token, arguments: Items | None, close: Token) -> tree.Call:
        given = tuple(nodes(arguments))
        return self.measured(tree.Call(self.span(name, close), str(name), self.span(name), given), given)

    def group(self, opening: Token, value: tree.Expr, close: Token) -> tree.Expr:
        """Brackets make no node, but belong to the text of the one that they hold."""
        node = replace(value, span=self.span(opening, close))
        self.heights[id(node)] = self.heights.pop(id(value), 0)
        return node

    def list_literal(self, opening: Token, items: Items | None, close: Token) -> tree.ListLiteral:
        given = tuple(nodes(items))
        return self.measured(tree.ListLiteral(self.span(opening, close), given), given)

    def map_literal(self, opening: Token, entries: Items | None, close: Token) -> tree.MapLiteral:
        given = tuple(nodes(entries))
        return self.measured(tree.MapLiteral(self.span(opening, close), given), given)

    def entry(self, key: tree.Expr, _colon: Token, value: tree.Expr) -> tree.MapEntry:
        node = tree.MapEntry(self.span(key, value), key, value)
        self.heights[id(node)] = max(self.heights.pop(id(key), 0), self.heights.pop(id(value), 0))
        return node

    # ---- literals

    def int_token(self, token: Token) -> int:
        value = literals.int_value(token)
        if value is None:
            self.report(mistakes.number_out_of_range(self.span(token)))
        return value or 0

    def int_literal(self, token: Token) -> tree.IntLiteral:
        return tree.IntLiteral(self.span(token), self.int_token(token))

    def double_literal(self, token: Token) -> tree.DoubleLiteral:
        value = literals.double_value(token)
        if value is None:
            self.report(mistakes.number_out_of_range(self.span(token)))
        return tree.DoubleLiteral(self.span(token), value or 0.0)

    def quantity_literal(self, token: Token) -> tree.QuantityLiteral:
        parts = literals.quantity_parts(token)
        if parts is None:
            self.report(mistakes.number_out_of_range(self.span(token)))
        number, suffix = parts or ("0", "m")
        return tree.QuantityLiteral(self.span(token), number, suffix)

    def bool_literal(self, token: Token) -> tree.BoolLiteral:
        return tree.BoolLiteral(self.span(token), token.type == "TRUE")

    def raw_string(self, token: Token) -> tree.StringLiteral:
        return tree.StringLiteral(self.span(token), (literals.raw_text(token),))

    def string(self, token: Token) -> tree.StringLiteral:
        parts: list[Any] = []
        texts: list[str] = []
        for piece in literals.string_pieces(token):
            if piece.kind == "text":
                texts.append(piece.value)
                continue
            part = self.inserted(piece, token)
            if part is not None:
                parts.extend(["".join(texts), part] if texts else [part])
                texts = []
        if texts or not parts:
            parts.append("".join(texts))
        node = tree.StringLiteral(self.span(token), tuple(parts))
        return self.measured(node, [part for part in parts if not isinstance(part, str)])

    def inserted(self, piece: literals.Piece, token: Token) -> tree.Expr | None:
        """The expression of an interpolation; None if there is none, or the piece is a mistake."""
        offset = token.start_pos or 0
        start, end = offset + piece.start, offset + piece.end
        span = Span(self.source, start, end)
        if piece.kind == "expression" and span.text[2:-1].strip():
            return self._parse_expression(start + 2, end - 1)
        if piece.kind == "expression":
            self.report(mistakes.empty_interpolation(span))
        elif piece.kind == "escape":
            self.report(mistakes.unknown_escape(span))
        elif piece.kind == "brace":
            self.report(mistakes.brace_in_interpolation(span))
        else:
            self.report(mistakes.unclosed_interpolation(span, token.value[0]))
        return None
