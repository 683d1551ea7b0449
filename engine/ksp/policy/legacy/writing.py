"""A legacy Policy as a policy in ksp's own language, as a person would write it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ksp.check.providers import CHECK_ALL, HEAVIEST, PREEMPTION
from ksp.check.typed import Rule
from ksp.policy.legacy.literals import literal
from ksp.policy.legacy.mistakes import Mistake, mistake
from ksp.policy.legacy.names import PRIORITIES
from ksp.policy.legacy.naming import Named
from ksp.policy.plugins import PluginSet, rules_by_plugin

PROVIDER: Final = "FromPolicy"
COLUMNS: Final = 100


@dataclass(frozen=True, slots=True)
class Setting:
    """An argument of a rule, as a profile sets it."""

    rule: str
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.rule}.{self.name} = {literal(self.value)}"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a written policy is made of: rules in order, priorities with weights, settings."""

    predicates: tuple[Rule, ...]
    priorities: tuple[tuple[Rule, int], ...]
    settings: tuple[Setting, ...]


def parts_of(plugins: PluginSet, rules: Sequence[Rule]) -> Parts:
    """The rules that implement the plugins, and settings for all of their arguments that a rule takes."""
    filters, scores = rules_by_plugin(rules, "predicate"), rules_by_plugin(rules, "priority")
    predicates = tuple(filters[plugin] for plugin in plugins.filters)
    priorities = tuple((scores[plugin], weight) for plugin, weight in plugins.scores)
    used = (*predicates, *(rule for rule, _ in priorities))
    settings = tuple(
        Setting(rule.name, parameter.binding.name, given[parameter.binding.name])
        for rule in used
        for given in (plugins.arguments.get(rule.plugin, {}),)
        for parameter in rule.parameters
        if parameter.binding.name in given
    )
    return Parts(predicates, priorities, settings)


def unsayable(names: Named, plugins: PluginSet) -> Iterator[Mistake]:
    """What kube-scheduler takes, and the language does not."""
    places = {PRIORITIES[name]: steps for name, (_, steps) in names.priorities.items()}
    for plugin, weight in plugins.scores:
        if weight > HEAVIEST:
            said = f"a weight of {weight} cannot be said in a policy of ksp, where it is at most {HEAVIEST}"
            yield mistake(said, (*places[plugin], "weight"), "divide all weights by the same number")


def written(parts: Parts, plugins: PluginSet, scheduler_name: str, source: str) -> str:
    """The text of the policy; `source` names the Policy."""
    used = (*parts.predicates, *(rule for rule, _ in parts.priorities))
    imports = sorted({rule.span.source.name for rule in used})
    lines = [
        f"// What the Policy in {_in_a_comment(source)} says.",
        "// Written by `ksp convert`, which has made sure that both decide the same.",
        *(f"import {literal(name)}" for name in imports),
        "",
        "/// The predicates in the order in which they are asked, the priorities with their weights.",
        f"provider {PROVIDER} {{",
        *_section("predicates", [rule.name for rule in parts.predicates]),
        *_section("priorities", [f"{rule.name}: {weight}" for rule, weight in parts.priorities]),
        "}",
        "",
        f"profile {literal(scheduler_name)} uses {PROVIDER} {{",
        *(f"  {line}" for line in _settings(parts, plugins)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _section(name: str, uses: Sequence[str]) -> Iterable[str]:
    return (f"  {name} {{", *(f"    {line}" for line in _lines(uses)), "  }") if uses else ()


def _lines(uses: Sequence[str]) -> Iterator[str]:
    """Uses side by side, as many as a line takes."""
    line = ""
    for i, use in enumerate(uses):
        item = use + ("," if i < len(uses) - 1 else "")
        if line and len(line) + 1 + len(item) > COLUMNS:
            yield line
            line = ""
        line = f"{line} {item}" if line else item
    yield line


def _settings(parts: Parts, plugins: PluginSet) -> Iterator[str]:
    yield f"{PREEMPTION} = {literal(plugins.preempts)}"
    if plugins.checks_all:
        yield f"{CHECK_ALL} = true"
    yield from map(str, parts.settings)


def _in_a_comment(name: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in name)
