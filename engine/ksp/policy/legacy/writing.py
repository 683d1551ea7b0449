"""A legacy Policy as a policy in ksp's own language, as a person would write it, and its extenders, for which the
language has no words, as a KubeSchedulerConfiguration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ksp.check.providers import CHECK_ALL, HEAVIEST, PREEMPTION
from ksp.check.typed import Rule
from ksp.policy.extender import Extender
from ksp.policy.extender_fields import written as fields_of
from ksp.policy.legacy.mistakes import Mistake, mistake
from ksp.policy.legacy.names import PRIORITIES
from ksp.policy.legacy.naming import Named
from ksp.policy.plugins import PluginSet, rules_by_plugin

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
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


# ---- literals


def literal(value: Any) -> str:
    """A bool, a number, a string, or a list or object of those."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return f'"{"".join(map(_character, value))}"'
        case Mapping():
            return "{" + ", ".join(f"{key}: {literal(inner)}" for key, inner in value.items()) + "}"
        case Sequence():
            return f"[{', '.join(map(literal, value))}]"
    raise TypeError(f"no literal for {type(value).__name__}")


def _character(character: str) -> str:
    if character in '\\"$':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# ---- extenders


def extender_file(extenders: Iterable[Extender], source: str) -> str:
    """The YAML text; `source` names the Policy."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "extenders": [_said(fields_of(each)) for each in extenders],
    }
    head = f"# The extenders of the Policy in {_in_a_comment(source)}. Written by `ksp convert`.\n"
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something, in whatever they hold too."""
    made = {name: _said_in(value) for name, value in fields.items()}
    return {name: value for name, value in made.items() if value not in ("", 0, False, None, [])}


def _said_in(value: Any) -> Any:
    match value:
        case Mapping():
            return _said(value)
        case list():
            return [_said_in(each) for each in value]
    return value
