"""Providers and profiles: which rules, with which arguments and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ksp.check import bind_timeout, mistakes
from ksp.check.expressions import Expressions
from ksp.check.report import Report
from ksp.check.scope import Scope
from ksp.check.stages import stage_of
from ksp.check.typed import Constant, Expr, Profile, Provider, Rule, RuleUse, Stage
from ksp.check.types import BOOL, INT, Type, Unknown, fits
from ksp.source.text import Span
from ksp.syntax import tree
from ksp.syntax.recovery import ANY

if TYPE_CHECKING:
    from ksp.check.program import Module

# The settings of a profile, beside arguments of its rules.
PERCENTAGE: Final = "percentageOfNodesToScore"
PREEMPTION: Final = "preemption"
CHECK_ALL: Final = "alwaysCheckAllPredicates"
SETTINGS: Final[dict[str, Type]] = {PERCENTAGE: INT, PREEMPTION: BOOL, CHECK_ALL: BOOL}

HEAVIEST = 1_000_000  # 100 * weight * number of priorities stays far inside 64 bits


Uses = dict[str, RuleUse]  # by the name of the rule, in order


class Providers:
    """The providers and profiles of one file."""

    def __init__(self, report: Report, expressions: Expressions, scope: Scope, module: Module) -> None:
        self.report = report
        self.expressions = expressions
        self.scope = scope
        self.module = module
        self.rules = module.rules()
        self.imported = module.providers()
        self.made: dict[str, Provider] = {}
        self.circular: set[str] = set()

    def all(self, nodes: Sequence[tree.Provider]) -> Iterator[Provider]:
        """Each after those that it is made of; one that is made of itself is reported once, and lacks that part."""
        by_name = {node.name: node for node in reversed(nodes)}
        for node in nodes:
            if by_name[node.name] is not node:  # declared twice, which is reported where it is declared
                yield self._provider(node)
                continue
            path: dict[str, Iterator[tuple[str, Span]]] = {}
            if node.name not in self.made:
                path[node.name] = _needs(node)
            while path:
                name = next(reversed(path))
                needed = next(path[name], None)
                if needed is None:
                    del path[name]
                    self.made[name] = self._provider(by_name[name])
                    yield self.made[name]
                elif needed[0] in path:
                    self.circular.add(needed[0])
                    mistakes.provider_cycle(self.report, needed[1], needed[0])
                elif needed[0] in by_name and needed[0] not in self.made:
                    path[needed[0]] = _needs(by_name[needed[0]])

    def _find(self, name: str) -> Provider | None:
        return self.made.get(name) or self.imported.get(name)

    def _provider(self, node: tree.Provider) -> Provider:
        uses: dict[str, Uses] = {"predicate": {}, "priority": {}}
        base = self._find(node.extends) if node.extends else None
        if base is not None:
            uses = {"predicate": _by_name(base.predicates), "priority": _by_name(base.priorities)}
        elif node.extends:
            self._unknown("provider", node.extends, node.extends_span or node.span)
        for section in node.sections:
            for use in section.uses:
                self._use(use, section.kind, uses[section.kind])
        predicates, priorities = tuple(uses["predicate"].values()), tuple(uses["priority"].values())
        named = {use.name for section in node.sections for use in section.uses if not use.removed} - set(self.rules)
        parts = [base, *(self._find(name) for name in sorted(named))]
        listed = tuple(part for part in parts if part is not None)
        return Provider(node.name, node.name_span, predicates, priorities, node.doc, listed)

    def _unknown(self, kind: str, name: str, span: Span) -> None:
        if name in self.module.broken or ANY in self.module.broken or name in self.circular:
            return
        if name in self.rules:
            is_a = f"a {self.rules[name].kind}"
        else:
            is_a = "a provider" if self._find(name) is not None else ""
        known = (
            [*self.made, *self.imported] if kind == "provider" else [n for n, r in self.rules.items() if r.kind == kind]
        )
        mistakes.unknown_rule(self.report, span, kind, name, known, is_a)

    def _use(self, node: tree.Use, kind: str, uses: Uses) -> None:
        provider = self._find(node.name) if node.name not in self.rules else None
        if node.removed:
            self._remove(node, kind, provider, uses)
        elif provider is not None:
            self._put_in(node, kind, provider, uses)
        else:
            made = self._rule_use(node, kind)
            if made is not None:
                self._add(made, uses)

    def _remove(self, node: tree.Use, kind: str, provider: Provider | None, uses: Uses) -> None:
        names = {node.name} if provider is None else {use.rule.name for use in _section(provider, kind)}
        if names.isdisjoint(uses):
            if node.name not in self.module.broken and ANY not in self.module.broken:
                mistakes.nothing_to_remove(self.report, node.name_span, node.name, uses)
            return
        for name in names:
            uses.pop(name, None)

    def _put_in(self, node: tree.Use, kind: str, provider: Provider, uses: Uses) -> None:
        if node.arguments or node.weight is not None:
            mistakes.provider_with_arguments(self.report, node.span, node.name)
        for use in _section(provider, kind):
            if not self._add(RuleUse(use.rule, use.arguments, use.weight, node.name_span), uses):
                return

    def _add(self, made: RuleUse, uses: Uses) -> bool:
        first = uses.setdefault(made.rule.name, made)
        if first is not made:
            mistakes.rule_twice(self.report, made.span, made.rule.name, first.span)
        return first is made

    def _rule_use(self, node: tree.Use, kind: str) -> RuleUse | None:
        rule = self.rules.get(node.name)
        if rule is None or rule.kind != kind:
            self._unknown(kind, node.name, node.name_span)
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
        bind_timeout.check_argument(self.report, rule, name, value)
        return value

    # ---- profiles

    def profiles(self, nodes: Sequence[tree.Profile]) -> Iterator[Profile]:
        for node in nodes:
            provider = self._find(node.provider)
            if not node.name:
                mistakes.bad_setting(
                    self.report, node.name_span, "a profile is named as pods name their scheduler", "empty"
                )
            if provider is None:
                self._unknown("provider", node.provider, node.provider_span)
                continue
            yield self._profile(node, provider)

    def _profile(self, node: tree.Profile, provider: Provider) -> Profile:
        arguments: dict[tuple[str, str], Expr] = {}
        settings: dict[str, int | bool] = {}
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
                self._setting(setting, settings)
        listed = tuple((rule, name, value) for (rule, name), value in arguments.items())
        percentage = settings.get(PERCENTAGE)
        preempts, checks_all = bool(settings.get(PREEMPTION, True)), bool(settings.get(CHECK_ALL, False))
        return Profile(node.name, node.name_span, provider, listed, percentage, preempts, checks_all, node.doc)

    def _rule_setting(self, node: tree.Setting, provider: Provider) -> Expr | None:
        uses = {use.rule.name: use.rule for use in (*provider.predicates, *provider.priorities)}
        if node.rule not in uses:
            span = Span(node.span.source, node.span.start, node.span.start + len(node.rule))
            if node.rule not in self.module.broken and ANY not in self.module.broken:
                mistakes.rule_not_used(self.report, span, node.rule, uses)
            return None
        return self._argument(uses[node.rule], node.name, node.name_span, node.value)

    def _setting(self, node: tree.Setting, settings: dict[str, int | bool]) -> None:
        """Puts in what a setting of the profile itself says."""
        kind = SETTINGS.get(node.name)
        if kind is None:
            reason = f"a profile has no setting `{node.name}`"
            known = ", ".join(f"`{name}`" for name in SETTINGS)
            mistakes.bad_setting(self.report, node.name_span, reason, f"it has {known} and `RULE.param`")
            return
        value = self.expressions.expr(node.value, self.scope, kind)
        if isinstance(value.type, Unknown):
            return
        if isinstance(value, Constant) and fits(value.type, kind) and (kind == BOOL or 0 <= int(value.value) <= 100):
            settings[node.name] = bool(value.value) if kind == BOOL else int(value.value)
            return
        wanted = "true or false" if kind == BOOL else "a number from 0 to 100"
        mistakes.bad_setting(self.report, node.value.span, f"`{node.name}` is {wanted}", "not that")


def _section(provider: Provider, kind: str) -> tuple[RuleUse, ...]:
    return provider.predicates if kind == "predicate" else provider.priorities


def _by_name(uses: Iterable[RuleUse]) -> Uses:
    return {use.rule.name: use for use in uses}


def _needs(node: tree.Provider) -> Iterator[tuple[str, Span]]:
    if node.extends:
        yield node.extends, node.extends_span or node.span
    for section in node.sections:
        for use in section.uses:
            yield use.name, use.name_span
