"""Tokens and parts to declarations and statements: a method for each rule of the grammar."""

from __future__ import annotations

from collections.abc import Iterable
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


class Builder(ExpressionBuilder):
    """All nodes of one source."""

    # ---- what the methods have in common

    def doc(self, first: Token) -> str:
        return doc_above(self.source.text, first.start_pos or 0)

    def bound(self, name: Token, what: str) -> str:
        """A name that is given here, which must not be a keyword."""
        if name.value in words.RESERVED:
            self.report(mistakes.keyword_as_name(self.span(name), what))
        return str(name)

    # ---- declarations

    def start(self, declarations: Items | None = None) -> tree.File:
        span = Span(self.source, 0, len(self.source.text))
        return tree.File(span, tuple(declarations or ()))

    def import_(self, keyword: Token, path: Token) -> tree.Import:
        return tree.Import(self.span(keyword, path), self.plain(path, "the path of an `import`"), self.span(path))

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

    def rule(
        self, kind: Token, name: Token, implements: Token | None, plugin: Token | None, block: tuple[Any, ...]
    ) -> tree.Rule:
        _opening, body, close = block
        self.check_blocks(body, 2)
        return tree.Rule(
            self.span(kind, close),
            str(kind),
            self.bound(name, f"a {kind}"),
            self.span(name),
            str(plugin) if plugin is not None else "",
            self.span(plugin) if plugin is not None else None,
            body,
            self.doc(kind),
        )

    def block(self, opening: Token, statements: Items, close: Token) -> tuple[Token, tuple[tree.Statement, ...], Token]:
        return opening, tuple(statements), close

    def check_blocks(self, body: Iterable[tree.Statement], depth: int) -> None:
        """Report blocks that are too deep. The brackets of a text are limited, so this recursion is too."""
        for statement in body:
            inner = statement.body if isinstance(statement, tree.For | tree.Block | tree.Normalize) else None
            if inner is not None and depth > limits.MAX_BLOCKS:
                self.report(mistakes.nested_too_deeply(statement.span, "blocks", limits.MAX_BLOCKS))
            elif inner:
                self.check_blocks(inner, depth + 1)

    # ---- statements

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

    def summed(
        self, word: Token, amount: tree.Expr, _for: Token, binds: Items
    ) -> tuple[Token, tree.Expr, tuple[tree.Bind, ...]]:
        return word, amount, tuple(nodes(binds))

    firsts = counted

    def bind(self, name: Token, _in: Token, relation: tree.Expr) -> tree.Bind:
        return tree.Bind(self.span(name, relation), self.bound(name, "a variable"), self.span(name), relation)

    def deny(
        self, keyword: Token, unresolvable: Token | None, reasons: Items, _when: Token, condition: tree.Expr
    ) -> tree.Deny:
        span = self.span(keyword, condition)
        return tree.Deny(span, unresolvable is not None, tuple(nodes(reasons)), condition, self.doc(keyword))

    def fail(self, keyword: Token, message: tree.StringLiteral, _when: Token, condition: tree.Expr) -> tree.Fail:
        return tree.Fail(self.span(keyword, condition), message, condition, self.doc(keyword))

    def stop(self, keyword: Token, _when: Token, condition: tree.Expr) -> tree.Stop:
        return tree.Stop(self.span(keyword, condition), condition, self.doc(keyword))

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

    def score(self, keyword: Token, value: tree.Expr) -> tree.Score:
        return tree.Score(self.span(keyword, value), value, self.doc(keyword))

    def normalize(self, keyword: Token) -> tree.Normalize:
        return tree.Normalize(self.span(keyword), self.span(keyword), False, None, self.doc(keyword))

    def normalize_reversed(self, keyword: Token, word: Token) -> tree.Normalize:
        return tree.Normalize(self.span(keyword, word), self.span(keyword), True, None, self.doc(keyword))

    def normalize_block(self, keyword: Token, block: tuple[Any, ...]) -> tree.Normalize:
        _opening, body, close = block
        return tree.Normalize(self.span(keyword, close), self.span(keyword), False, body, self.doc(keyword))

    # ---- sets of rules

    def provider(
        self,
        keyword: Token,
        name: Token,
        _extends: Token | None,
        other: Token | None,
        _open: Token,
        sections: Items,
        close: Token,
    ) -> tree.Provider:
        return tree.Provider(
            self.span(keyword, close),
            self.bound(name, "a provider"),
            self.span(name),
            str(other) if other is not None else "",
            self.span(other) if other is not None else None,
            tuple(sections),
            self.doc(keyword),
        )

    def section(self, keyword: Token, _open: Token, uses: Items | None, close: Token) -> tree.Section:
        kind = "predicate" if keyword.type == "PREDICATES" else "priority"
        return tree.Section(self.span(keyword, close), kind, tuple(nodes(uses)))

    def use(
        self,
        name: Token,
        _open: Token | None,
        arguments: Items | None,
        close: Token | None,
        _colon: Token | None,
        weight: Token | None,
    ) -> tree.Use:
        value = self.int_token(weight) if weight is not None else None
        return tree.Use(
            self.span(name, weight if weight is not None else close if close is not None else name),
            str(name),
            self.span(name),
            False,
            tuple(nodes(arguments)),
            value,
            self.span(weight) if weight is not None else None,
        )

    def removed_use(self, minus: Token, name: Token) -> tree.Use:
        return tree.Use(self.span(minus, name), str(name), self.span(name), True, (), None, None)

    def argument(self, name: Token, _colon: Token, value: tree.Expr) -> tree.Argument:
        return tree.Argument(self.span(name, value), str(name), self.span(name), value)

    def profile(
        self, keyword: Token, name: Token, _uses: Token, provider: Token, _open: Token, settings: Items, close: Token
    ) -> tree.Profile:
        return tree.Profile(
            self.span(keyword, close),
            self.plain(name, "the name of a profile"),
            self.span(name),
            str(provider),
            self.span(provider),
            tuple(settings),
            self.doc(keyword),
        )

    def setting(self, name: Token, _equals: Token, value: tree.Expr) -> tree.Setting:
        return tree.Setting(self.span(name, value), "", str(name), self.span(name), value)

    def rule_setting(self, rule: Token, _dot: Token, name: Token, _equals: Token, value: tree.Expr) -> tree.Setting:
        return tree.Setting(self.span(rule, value), str(rule), str(name), self.span(name), value)

    # ---- tests

    def test(self, keyword: Token, name: Token, _open: Token, parts: Items, close: Token) -> tree.Test:
        return tree.Test(
            self.span(keyword, close),
            self.plain(name, "the name of a test"),
            self.span(name),
            tuple(part for part in parts if isinstance(part, tree.TestObject)),
            tuple(part for part in parts if isinstance(part, tree.Expect)),
            self.doc(keyword),
        )

    def object_literal(
        self, kind: Token, name: Token, _on: Token | None, on: Token | None, literal: tree.MapLiteral
    ) -> tree.TestObject:
        return self.test_object(kind, name, on, literal, None)

    def object_file(
        self, kind: Token, name: Token, _on: Token | None, on: Token | None, _from: Token, path: tree.StringLiteral
    ) -> tree.TestObject:
        return self.test_object(kind, name, on, None, path)

    def test_object(
        self,
        kind: Token,
        name: Token,
        on: Token | None,
        literal: tree.MapLiteral | None,
        path: tree.StringLiteral | None,
    ) -> tree.TestObject:
        return tree.TestObject(
            self.span(kind, literal or path),
            str(kind),
            self.span(kind),
            str(name),
            self.span(name),
            str(on) if on is not None else "",
            self.span(on) if on is not None else None,
            literal,
            path,
        )

    def expect_plain(
        self, keyword: Token, subject: Token, verdict: Token, pod: Token, _on: Token, node: Token
    ) -> tree.Expect:
        return self.expectation(keyword, subject, verdict, pod, node, None, None)

    def expect_denies(
        self,
        keyword: Token,
        subject: Token,
        verdict: Token,
        pod: Token,
        _on: Token,
        node: Token,
        _with: Token,
        reason: tree.StringLiteral,
    ) -> tree.Expect:
        return self.expectation(keyword, subject, verdict, pod, node, reason, None)

    def expect_scores(
        self, keyword: Token, subject: Token, verdict: Token, pod: Token, _on: Token, node: Token, score: tree.Expr
    ) -> tree.Expect:
        return self.expectation(keyword, subject, verdict, pod, node, None, score)

    def expectation(
        self,
        keyword: Token,
        subject: Token,
        verdict: Token,
        pod: Token,
        node: Token,
        reason: tree.StringLiteral | None,
        score: tree.Expr | None,
    ) -> tree.Expect:
        return tree.Expect(
            self.span(keyword, reason or score or node),
            str(subject),
            self.span(subject),
            str(verdict),
            str(pod),
            self.span(pod),
            str(node),
            self.span(node),
            reason,
            score,
        )
