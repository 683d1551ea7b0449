"""Providers and profiles: which rules, with which arguments and weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ksp.check import mistakes
from ksp.check.expressions import Expressions
from ksp.check.report import Report
from ksp.check.scope import Scope
from ksp.check.stages import stage_of
from ksp.check.typed import Constant, Expr, Profile, Provider, Rule, RuleUse, Stage
from ksp.check.types import INT
from ksp.source.text import Span
from ksp.syntax import tree

if TYPE_CHECKING:
    from ksp.check.program import Module

HEAVIEST = 1_000_000  # 100 * weight * number of priorities stays far inside 64 bits


class Providers:
    """The providers and profiles of one file."""

    def __init__(self, report: Report, expressions: Expressions, scope: Scope, module: Module) -> None:
        self.report = report
        self.expressions = expressions
        self.scope = scope
        self.module = module
        self.made: dict[str, Provider] = {}

    def all(self, nodes: Sequence[tree.Provider]) -> Iterator[Provider]:
        """Each after those that it is made of; one that is made of itself is reported and left out."""
        by_name = {node.name: node for node in reversed(nodes)}
        done: set[int] = set()
        for node in nodes:
            yield from self._one(node, by_name, [], done)

    def _one(
        self, node: tree.Provider, by_name: dict[str, tree.Provider], path: list[str], done: set[int]
    ) -> Iterator[Provider]:
        if id(node) in done:
            return
        done.add(id(node))
        for name, span in _needs(node):
            if name in [*path, node.name]:
                mistakes.provider_cycle(self.report, span, name)
            elif name in by_name:
                yield from self._one(by_name[name], by_name, [*path, node.name], done)
        provider = self._provider(node)
        self.made.setdefault(node.name, provider)
        yield provider

    def _find(self, name: str) -> Provider | None:
        return self.made.get(name) or self.module.providers().get(name)

    def _provider(self, node: tree.Provider) -> Provider:
        uses: dict[str, list[RuleUse]] = {"predicate": [], "priority": []}
        if node.extends:
            base = self._find(node.extends)
            if base is None:
                self._unknown("provider", node.extends, node.extends_span or node.span, [*self.made, *self.module.providers()])
            else:
                uses = {"predicate": list(base.predicates), "priority": list(base.priorities)}
        for section in node.sections:
            for use in section.uses:
                self._use(use, section.kind, uses[section.kind])
        return Provider(node.name, node.name_span, tuple(uses["predicate"]), tuple(uses["priority"]), node.doc)

    def _unknown(self, kind: str, name: str, span: Span, known: Sequence[str], is_a: str = "") -> None:
        if name not in self.module.broken and "*" not in self.module.broken:
            mistakes.unknown_rule(self.report, span, kind, name, known, is_a)

    def _use(self, node: tree.Use, kind: str, uses: list[RuleUse]) -> None:
        provider = self._find(node.name)
        if node.removed:
            self._remove(node, kind, provider, uses)
        elif provider is not None and node.name not in self.module.rules():
            self._put_in(node, kind, provider, uses)
        else:
            made = self._rule_use(node, kind)
            if made is not None:
                self._add(made, uses)

    def _remove(self, node: tree.Use, kind: str, provider: Provider | None, uses: list[RuleUse]) -> None:
        names = {node.name}
        if provider is not None:
            names = {u.rule.name for u in (provider.predicates if kind == "predicate" else provider.priorities)}
        if not any(use.rule.name in names for use in uses):
            mistakes.nothing_to_remove(self.report, node.name_span, node.name, [use.rule.name for use in uses])
        uses[:] = [use for use in uses if use.rule.name not in names]

    def _put_in(self, node: tree.Use, kind: str, provider: Provider, uses: list[RuleUse]) -> None:
        if node.arguments or node.weight is not None:
            mistakes.bad_weight(self.report, node.span, f"or argument cannot be given to the provider `{node.name}`")
        for use in provider.predicates if kind == "predicate" else provider.priorities:
            self._add(RuleUse(use.rule, use.arguments, use.weight, node.name_span), uses)

    def _add(self, made: RuleUse, uses: list[RuleUse]) -> None:
        first = next((use for use in uses if use.rule is made.rule), None)
        if first is not None:
            mistakes.rule_twice(self.report, made.span, made.rule.name, first.span)
            return
        uses.append(made)

    def _rule_use(self, node: tree.Use, kind: str) -> RuleUse | None:
        rules = self.module.rules()
        rule = rules.get(node.name)
        if rule is None or rule.kind != kind:
            known = [name for name, r in rules.items() if r.kind == kind]
            self._unknown(kind, node.name, node.name_span, known, f"a {rule.kind}" if rule else "")
            return None
        weight = 1 if node.weight is None else node.weight
        if kind == "predicate" and node.weight is not None:
            mistakes.bad_weight(self.report, node.weight_span or node.span, "is for priorities; a predicate has none")
        elif not 1 <= weight <= HEAVIEST:
            mistakes.bad_weight(self.report, node.weight_span or node.span, f"must be from 1 to {HEAVIEST}")
        return RuleUse(rule, tuple(self._arguments(rule, node.arguments)), weight, node.name_span)

    def _arguments(self, rule: Rule, nodes: Sequence[tree.Argument]) -> Iterator[tuple[str, Expr]]:
        seen: set[str] = set()
        for node in nodes:
            value = self._argument(rule, node.name, node.name_span, node.value)
            if node.name in seen:
                mistakes.entry_twice(self.report, node.name_span, node.name)
            elif value is not None:
                seen.add(node.name)
                yield node.name, value

    def _argument(self, rule: Rule, name: str, span: Span, node: tree.Expr) -> Expr | None:
        parameters = {p.binding.name: p.binding.type for p in rule.parameters}
        if name not in parameters:
            mistakes.unknown_parameter(self.report, span, rule.name, name, parameters)
            return None
        value = self.expressions.wanted(node, self.scope, parameters[name], f"`{name}`")
        if stage_of(value) > Stage.CONSTANT:
            mistakes.not_constant(self.report, node.span, "an argument")
        return value

    # ---- profiles

    def profiles(self, nodes: Sequence[tree.Profile]) -> Iterator[Profile]:
        for node in nodes:
            provider = self._find(node.provider)
            if provider is None:
                self._unknown("provider", node.provider, node.provider_span, [*self.made, *self.module.providers()])
                continue
            yield self._profile(node, provider)

    def _profile(self, node: tree.Profile, provider: Provider) -> Profile:
        arguments: dict[tuple[str, str], Expr] = {}
        percentage: int | None = None
        seen: set[tuple[str, str]] = set()
        for setting in node.settings:
            if (setting.rule, setting.name) in seen:
                mistakes.entry_twice(self.report, setting.name_span, setting.name)
            seen.add((setting.rule, setting.name))
            if setting.rule:
                value = self._rule_setting(setting, provider)
                if value is not None:
                    arguments[setting.rule, setting.name] = value
            else:
                percentage = self._setting(setting)
        listed = tuple((rule, name, value) for (rule, name), value in arguments.items())
        return Profile(node.name, node.name_span, provider, listed, percentage, node.doc)

    def _rule_setting(self, node: tree.Setting, provider: Provider) -> Expr | None:
        uses = {use.rule.name: use.rule for use in (*provider.predicates, *provider.priorities)}
        if node.rule not in uses:
            span = Span(node.span.source, node.span.start, node.span.start + len(node.rule))
            self._unknown("rule", node.rule, span, list(uses), "not in the provider" if node.rule in self.module.rules() else "")
            return None
        return self._argument(uses[node.rule], node.name, node.name_span, node.value)

    def _setting(self, node: tree.Setting) -> int | None:
        if node.name != "percentageOfNodesToScore":
            reason = f"a profile has no setting `{node.name}`"
            mistakes.bad_setting(self.report, node.name_span, reason, "it has `percentageOfNodesToScore` and `RULE.param`")
            return None
        value = self.expressions.wanted(node.value, self.scope, INT, "`percentageOfNodesToScore`")
        if not isinstance(value, Constant) or not isinstance(value.value, int) or not 0 <= value.value <= 100:
            mistakes.bad_setting(self.report, node.value.span, "`percentageOfNodesToScore` is a number from 0 to 100", "not that")
            return None
        return value.value


def _needs(node: tree.Provider) -> Iterator[tuple[str, Span]]:
    if node.extends:
        yield node.extends, node.extends_span or node.span
    for section in node.sections:
        for use in section.uses:
            yield use.name, use.name_span
