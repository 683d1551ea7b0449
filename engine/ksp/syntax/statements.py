"""Tokens and parts to statements, and to what they are made of: a method for each rule of the grammar."""

from __future__ import annotations

from typing import Any

from lark import Token

from ksp.source.text import Span
from ksp.syntax import limits, mistakes, tree, words
from ksp.syntax.expressions import TOO_HIGH, ExpressionBuilder, nodes
from ksp.syntax.machine import Items


def doc_above(text: str, start: int) -> str:
    """The `///` lines directly above the line on which a declaration or statement begins, if it is first on it."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip():
        return ""
    lines: list[str] = []
    while line > 0:
        above = text.rfind("\n", 0, line - 1) + 1
        comment = text[above : line - 1].strip()
        if not comment.startswith("///") or comment.startswith("////"):
            break
        lines.append(comment[3:].removeprefix(" "))
        line = above
    return "\n".join(reversed(lines))


class StatementBuilder(ExpressionBuilder):
    """The statements and expressions of one source."""

    def doc(self, first: Token) -> str:
        return doc_above(self.source.text, first.start_pos or 0)

    def bound(self, name: Token, what: str) -> str:
        """A name that is given here, which must not be a keyword."""
        if name.value in words.RESERVED:
            self.report(mistakes.keyword_as_name(self.span(name), what))
            self.refused.add(name.value)
        return str(name)

    # ---- names for values

    def const(
        self,
        keyword: Token,
        name: Token,
        _colon: Token | None,
        kind: tree.TypeName | None,
        _equals: Token,
        value: tree.Expr,
    ) -> tree.Const:
        span = self.span(keyword, value)
        return tree.Const(span, self.bound(name, "a const"), self.span(name), kind, value, self.doc(keyword))

    def param(
        self,
        keyword: Token,
        name: Token,
        _colon: Token,
        kind: tree.TypeName,
        _equals: Token | None,
        default: tree.Expr | None,
    ) -> tree.Param:
        span = self.span(keyword, default or kind)
        return tree.Param(span, self.bound(name, "a param"), self.span(name), kind, default, self.doc(keyword))

    def let(
        self,
        keyword: Token,
        name: Token,
        _colon: Token | None,
        kind: tree.TypeName | None,
        _equals: Token,
        value: tree.Expr,
    ) -> tree.Let:
        span = self.span(keyword, value)
        return tree.Let(span, self.bound(name, "a let"), self.span(name), kind, value, self.doc(keyword))

    def function(
        self,
        keyword: Token,
        name: Token,
        _open: Token,
        parameters: Items | None,
        _close: Token,
        _colon: Token,
        result: tree.TypeName,
        body: tuple[tuple[tree.Let, ...], tree.Expr, Span],
    ) -> tree.Function:
        lets, value, end = body
        return tree.Function(
            Span(self.source, keyword.start_pos or 0, end.end),
            self.bound(name, "a function"),
            self.span(name),
            tuple(nodes(parameters)),
            result,
            lets,
            value,
            self.doc(keyword),
        )

    def parameter(self, name: Token, _colon: Token, kind: tree.TypeName) -> tree.FnParameter:
        return tree.FnParameter(self.span(name, kind), self.bound(name, "a parameter"), kind)

    def body_expr(self, _equals: Token, value: tree.Expr) -> tuple[tuple[tree.Let, ...], tree.Expr, Span]:
        return (), value, value.span

    def body_block(
        self, _open: Token, lets: Items, _return: Token, value: tree.Expr, close: Token
    ) -> tuple[tuple[tree.Let, ...], tree.Expr, Span]:
        return tuple(lets), value, self.span(close)

    # ---- types

    def plain_type(self, name: Token) -> tree.TypeName:
        return tree.TypeName(self.span(name), str(name), ())

    def generic_type(self, name: Token, _open: Token, arguments: Items, close: Token) -> tree.TypeName:
        node = tree.TypeName(self.span(name, close), str(name), tuple(nodes(arguments)))
        parts = [self.heights.pop(id(part), 0) for part in node.arguments]
        height = 1 + max(parts) if min(parts) >= 0 else TOO_HIGH
        if height > limits.MAX_TYPE_DEPTH:
            self.report(mistakes.nested_too_deeply(node.span, "types", limits.MAX_TYPE_DEPTH))
            height = TOO_HIGH
        self.heights[id(node)] = height
        return node

    # ---- views

    def view(
        self,
        keyword: Token,
        name: Token,
        _equals: Token,
        form: tuple[Token, tree.Expr | None, tuple[tree.Bind, ...]],
        _where: Token | None,
        where: tree.Expr | None,
        _by: Token | None,
        by: Items | None,
    ) -> tree.View:
        word, amount, binds = form
        keys = tuple(nodes(by))
        last = keys[-1] if keys else where or binds[-1]
        return tree.View(
            self.span(keyword, last),
            self.bound(name, "a view"),
            self.span(name),
            str(word),
            amount,
            binds,
            where,
            keys,
            self.doc(keyword),
        )

    def counted(self, word: Token, binds: Items) -> tuple[Token, None, tuple[tree.Bind, ...]]:
        return word, None, tuple(nodes(binds))

    firsts = counted

    def summed(
        self, word: Token, amount: tree.Expr, _for: Token, binds: Items
    ) -> tuple[Token, tree.Expr, tuple[tree.Bind, ...]]:
        return word, amount, tuple(nodes(binds))

    def bind(self, name: Token, _in: Token, relation: tree.Expr) -> tree.Bind:
        return tree.Bind(self.span(name, relation), self.bound(name, "a variable"), self.span(name), relation)

    # ---- what a rule says

    def deny(
        self, keyword: Token, unresolvable: Token | None, reasons: Items, _when: Token, condition: tree.Expr
    ) -> tree.Deny:
        span = self.span(keyword, condition)
        listed = tuple(nodes(reasons))
        for reason in listed:
            self._says_something(keyword, reason)
        return tree.Deny(span, unresolvable is not None, listed, condition, self.doc(keyword))

    def fail(self, keyword: Token, message: tree.StringLiteral, _when: Token, condition: tree.Expr) -> tree.Fail:
        self._says_something(keyword, message)
        return tree.Fail(self.span(keyword, condition), message, condition, self.doc(keyword))

    def _says_something(self, keyword: Token, text: tree.StringLiteral) -> None:
        if not any(part.strip() if isinstance(part, str) else True for part in text.parts):
            self.report(mistakes.empty_text(text.span, keyword.value))

    def stop(self, keyword: Token, _when: Token, condition: tree.Expr) -> tree.Stop:
        return tree.Stop(self.span(keyword, condition), condition, self.doc(keyword))

    def score(self, keyword: Token, value: tree.Expr) -> tree.Score:
        return tree.Score(self.span(keyword, value), value, self.doc(keyword))

    # ---- blocks

    def block(self, opening: Token, statements: Items, close: Token) -> tuple[Token, tuple[tree.Statement, ...], Token]:
        return opening, tuple(statements), close

    def for_(
        self,
        keyword: Token,
        name: Token,
        _comma: Token | None,
        second: Token | None,
        _in: Token,
        range_: tree.Expr,
        block: tuple[Any, ...],
    ) -> tree.For:
        _opening, body, close = block
        names = [name] if second is None else [name, second]
        return tree.For(
            self.span(keyword, close),
            tuple(self.bound(each, "a variable") for each in names),
            tuple(self.span(each) for each in names),
            range_,
            body,
            self.doc(keyword),
        )

    def stage(self, keyword: Token, block: tuple[Any, ...]) -> tree.Block:
        _opening, body, close = block
        return tree.Block(self.span(keyword, close), str(keyword), self.span(keyword), body, self.doc(keyword))

    def normalize(self, keyword: Token) -> tree.Normalize:
        return tree.Normalize(self.span(keyword), self.span(keyword), False, None, self.doc(keyword))

    def normalize_reversed(self, keyword: Token, word: Token) -> tree.Normalize:
        return tree.Normalize(self.span(keyword, word), self.span(keyword), True, None, self.doc(keyword))

    def normalize_block(self, keyword: Token, block: tuple[Any, ...]) -> tree.Normalize:
        _opening, body, close = block
        return tree.Normalize(self.span(keyword, close), self.span(keyword), False, body, self.doc(keyword))
