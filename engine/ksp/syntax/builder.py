"""Tokens and parts to declarations: a method for each rule of the grammar."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lark import Token

from ksp.source.text import Span
from ksp.syntax import limits, mistakes, tree
from ksp.syntax.expressions import nodes
from ksp.syntax.machine import Items
from ksp.syntax.statements import StatementBuilder


class Builder(StatementBuilder):
    """All nodes of one source."""

    # ---- declarations

    def start(self, declarations: Items | None = None) -> tree.File:
        span = Span(self.source, 0, len(self.source.text))
        return tree.File(span, tuple(declarations or ()))

    def import_(self, keyword: Token, path: Token) -> tree.Import:
        return tree.Import(self.span(keyword, path), self.plain(path, "the path of an `import`"), self.span(path))

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

    def check_blocks(self, body: Iterable[tree.Statement], depth: int) -> None:
        """Report blocks that are too deep. The brackets of a text are limited, so this recursion is too."""
        for statement in body:
            inner = statement.body if isinstance(statement, tree.For | tree.Block | tree.Normalize) else None
            if inner is not None and depth > limits.MAX_BLOCKS:
                self.report(mistakes.nested_too_deeply(statement.span, "blocks", limits.MAX_BLOCKS))
            elif inner:
                self.check_blocks(inner, depth + 1)

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
