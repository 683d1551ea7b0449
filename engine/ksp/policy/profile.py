"""A profile: the rules that decide for the pods of one scheduler name, compiled, in order, with arguments and
weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ksp.check import typed
from ksp.check.bind_timeout import BIND_TIMEOUT, VOLUME_BINDING
from ksp.compile.footprint import Footprint, footprint_of
from ksp.compile.program import (
    CompiledRule,
    Predicate,
    Priority,
    compile_rule,
    constant_value,
    parameter_values,
)
from ksp.policy.values import value_of

PluginArguments = Mapping[str, Mapping[str, Any]]

DEFAULT_BIND_TIMEOUT: Final = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class ActivePredicate:
    """A predicate of a profile. `plugin` is the name that metrics and errors know it by, `arguments` are the run-time
    values of all its parameters."""

    name: str
    plugin: str
    predicate: Predicate
    footprint: Footprint
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActivePriority:
    """A priority of a profile, and how much it weighs."""

    name: str
    plugin: str
    priority: Priority
    weight: int
    footprint: Footprint
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidates:
    """How many candidate nodes a search for victims is content with: `percentage` of the nodes, `absolute` at least
    (DefaultPreemption's minCandidateNodesPercentage and minCandidateNodesAbsolute)."""

    percentage: int = 10
    absolute: int = 100

    def of(self, nodes: int) -> int:
        """The number of candidates, of so many nodes that might become one."""
        return min(nodes, max(nodes * self.percentage // 100, self.absolute))


@dataclass(frozen=True, slots=True)
class Profile:
    """What decides for the pods that name this scheduler. `percentage` of nodes to score: 100 is all, 0 adaptive.

    Only one that `preempts` has pods of lower priority evicted; it looks at all nodes for them unless `candidates` says
    how many are enough. One that `checks_all` predicates of a node names all that deny it, not the first only (a
    Policy's alwaysCheckAllPredicates)."""

    scheduler_name: str
    predicates: tuple[ActivePredicate, ...]
    priorities: tuple[ActivePriority, ...]
    percentage: int = 100
    preempts: bool = True
    checks_all: bool = False
    candidates: Candidates | None = None

    @property
    def bind_timeout(self) -> float | None:
        """How many seconds a pod that has a node waits for its claims to be bound: what the predicate that implements
        VolumeBinding says, as its argument. None if there is no such predicate: then claims are not bound for pods."""
        for active in self.predicates:
            if active.plugin == VOLUME_BINDING:
                given = active.arguments.get(BIND_TIMEOUT)
                return max(0.0, float(given)) if isinstance(given, int | float) else DEFAULT_BIND_TIMEOUT
        return None

    @property
    def bind_timeout_error(self) -> str:
        """Why `bind_timeout` is not what the argument says; "" if it is. kube-scheduler does not start then."""
        for active in self.predicates:
            if active.plugin == VOLUME_BINDING:
                given = active.arguments.get(BIND_TIMEOUT, DEFAULT_BIND_TIMEOUT)
                if not isinstance(given, int | float) or given < 0:
                    return f"{active.name}.{BIND_TIMEOUT} must be a number of seconds, not negative, and is {given!r}"
        return ""


class ProfileBuilder:
    """Makes profiles; a rule that several use is compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[typed.Rule, tuple[CompiledRule, Footprint]] = {}

    def build(
        self, provider: typed.Provider, *, scheduler_name: str = "default-scheduler", percentage: int = 100,
        arguments: Sequence[tuple[str, str, typed.Expr]] = (), plugins: PluginArguments | None = None,
        preempts: bool = True, checks_all: bool = False, candidates: Candidates | None = None,
    ) -> Profile:  # fmt: skip
        """The profile of a provider. A parameter's value is what `arguments` (rule, parameter, expression) says, or the
        provider, or `plugins` (by plugin name), or its default. Raises ArgumentError for a plugin argument of a wrong
        type."""
        own = {(rule, name): value for rule, name, value in arguments}
        plugins = plugins or {}
        predicates = []
        for use in provider.predicates:
            rule, footprint = self._rule(use.rule)
            values = parameter_values(use.rule, _arguments(use, own, plugins))
            made = rule.instantiate(values)
            assert isinstance(made, Predicate)
            predicates.append(ActivePredicate(use.rule.name, use.rule.plugin, made, footprint, values))
        priorities = []
        for use in provider.priorities:
            rule, footprint = self._rule(use.rule)
            values = parameter_values(use.rule, _arguments(use, own, plugins))
            made = rule.instantiate(values)
            assert isinstance(made, Priority)
            priorities.append(ActivePriority(use.rule.name, use.rule.plugin, made, use.weight, footprint, values))
        rules = tuple(predicates), tuple(priorities)
        return Profile(
            scheduler_name, *rules, percentage, preempts=preempts, checks_all=checks_all, candidates=candidates
        )

    def of(self, profile: typed.Profile, plugins: PluginArguments | None = None) -> Profile:
        """The profile of a `profile` declaration."""
        percentage = 100 if profile.percentage is None else profile.percentage
        return self.build(
            profile.provider,
            scheduler_name=profile.name,
            percentage=percentage,
            arguments=profile.arguments,
            plugins=plugins,
            preempts=profile.preempts,
            checks_all=profile.checks_all,
        )

    def _rule(self, rule: typed.Rule) -> tuple[CompiledRule, Footprint]:
        if rule not in self._compiled:
            self._compiled[rule] = compile_rule(rule), footprint_of(rule)
        return self._compiled[rule]


def _arguments(
    use: typed.RuleUse, own: Mapping[tuple[str, str], typed.Expr], plugins: PluginArguments
) -> dict[str, object]:
    values: dict[str, object] = {}
    types = {p.binding.name: p.binding.type for p in use.rule.parameters}
    for name, given in plugins.get(use.rule.plugin, {}).items():
        if name in types and given is not None:
            values[name] = value_of(types[name], given, f"{use.rule.plugin}.{name}")
    for name, expr in use.arguments:
        values[name] = constant_value(expr)
    for (rule, name), expr in own.items():
        if rule == use.rule.name:
            values[name] = constant_value(expr)
    return values
