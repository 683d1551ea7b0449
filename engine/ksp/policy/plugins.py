"""A profile from the names of plugins: what a legacy Policy and a KubeSchedulerConfiguration come to.

A plugin's name means the rule that `implements` it in the loaded policy: a predicate where it filters, a priority where
it scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ksp.check.program import Module
from ksp.check.report import did_you_mean
from ksp.check.typed import Provider, Rule, RuleUse
from ksp.policy.profile import Candidates, PluginArguments, Profile, ProfileBuilder
from ksp.source.text import Span


@dataclass(frozen=True, slots=True)
class PluginSet:
    """Which plugins a profile has: those that filter, in order, and those that score, with their weights; and their
    arguments by plugin. A `percentage` of None is what the policy or a flag says, else 100."""

    filters: tuple[str, ...]
    scores: tuple[tuple[str, int], ...]
    arguments: PluginArguments = field(default_factory=dict)
    percentage: int | None = None
    preempts: bool = True
    checks_all: bool = False
    candidates: Candidates | None = None


class UnknownPluginError(ValueError):
    """Plugins that no rule implements: `missing` has a text for each."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__("; ".join(missing))
        self.missing = missing


def profile_of(
    plugins: PluginSet, module: Module, builder: ProfileBuilder, scheduler_name: str, percentage: int = 100
) -> Profile:
    """The profile that these plugins are, in the rules of that module and its imports. `percentage` is for a set that
    has none. Raises UnknownPluginError, naming all, and ArgumentError."""
    rules = rules_in_order(module)
    filters, scores = rules_by_plugin(rules, "predicate"), rules_by_plugin(rules, "priority")
    missing = [_missing(name, filters, "filters") for name in plugins.filters if name not in filters]
    missing += [_missing(name, scores, "scores") for name, _ in plugins.scores if name not in scores]
    if missing:
        raise UnknownPluginError(tuple(missing))
    at = Span(module.source, 0, 0)
    provider = Provider(
        scheduler_name, at,
        tuple(RuleUse(filters[name], (), 1, at) for name in plugins.filters),
        tuple(RuleUse(scores[name], (), weight, at) for name, weight in plugins.scores), "",
    )  # fmt: skip
    return builder.build(
        provider, scheduler_name=scheduler_name, plugins=plugins.arguments,
        percentage=percentage if plugins.percentage is None else plugins.percentage,
        preempts=plugins.preempts, checks_all=plugins.checks_all, candidates=plugins.candidates,
    )  # fmt: skip


def rules_in_order(module: Module) -> list[Rule]:
    """The rules that the module sees: its own, then those of each import in the order of the text, a file before what
    it imports. So a user's file wins over the library that it imports."""
    seen_in_order = module.rules().values()
    seen = set(seen_in_order)
    found: dict[Rule, None] = {}
    pending, read = [module], set()
    while pending:
        file = pending.pop()
        if file.key not in read:
            read.add(file.key)
            found.update(dict.fromkeys(rule for rule in file.own_rules() if file is module or rule in seen))
            pending.extend(reversed(file.imports.values()))
    found.update(dict.fromkeys(seen_in_order))
    return list(found)


def rules_by_plugin(rules: Iterable[Rule], kind: str) -> Mapping[str, Rule]:
    """The rules of a kind by the plugins that they implement. Of several that implement one, the first."""
    found: dict[str, Rule] = {}
    for rule in rules:
        if rule.kind == kind:
            found.setdefault(rule.plugin, rule)
    return found


def _missing(name: str, known: Mapping[str, Any], does: str) -> str:
    meant = did_you_mean(name, known)
    return f"no rule of the policy implements `{name}` where it {does}{': ' + meant if meant else ''}"
