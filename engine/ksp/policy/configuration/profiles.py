"""The profiles that a configuration comes to in a policy: a plugin's name means the rule that implements it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ksp.check.program import Module
from ksp.check.report import did_you_mean
from ksp.check.typed import Rule
from ksp.policy.configuration.arguments import WITHOUT_EFFECT
from ksp.policy.configuration.configuration import (
    RULES,
    Configuration,
    ConfigurationError,
    ConfiguredProfile,
    Plugin,
)
from ksp.policy.configuration.default_plugins import IN_TREE, WITHOUT_RULE
from ksp.policy.configuration.merging import expanded, plugin_type
from ksp.policy.configuration.point_checks import PREEMPTION, STEPS
from ksp.policy.configuration.profile_reading import takes_part
from ksp.policy.field_errors import Problem, Steps, invalid
from ksp.policy.plugins import PluginSet, profile_of, rules_by_plugin, rules_in_order
from ksp.policy.profile import Candidates, Profile, ProfileBuilder
from ksp.policy.shapes import unknown_field
from ksp.policy.values import ArgumentError, value_of

FIT: Final = "NodeResourcesFit"
IGNORED: Final = "ignoredResources"


@dataclass(frozen=True, slots=True)
class Profiles:
    """What schedules, in the order of the file; the plugins that each profile was made from; what the user is warned
    of; and the configuration with `multiPoint` spread out, which is what `write_configuration` takes."""

    profiles: tuple[Profile, ...]
    plugins: tuple[PluginSet, ...]
    warnings: tuple[str, ...]
    effective: Configuration


def profiles_of(
    configuration: Configuration, module: Module, builder: ProfileBuilder, percentage: int | None = None
) -> Profiles:
    """The profiles in the rules of that module and its imports; the default one if the configuration names none.
    `percentage` of nodes to score is for those that say nothing, 100 if it is None. Raises ConfigurationError with all
    that is wrong."""
    rules = _Rules(module)
    ignored = sorted({name for extender in configuration.extenders for name in extender.ignored_resources})
    full = [expanded(each, configuration.version, rules.take_part) for each in configuration.all_profiles()]
    resolved = [_Resolution(configuration, rules, profile) for profile in full]
    sets = [each.plugin_set(ignored) for each in resolved]
    problems = [problem for each in resolved for problem in each.problems]
    made, usual = [], 100 if percentage is None else percentage
    for profile, plugins in zip(full, sets, strict=True) if not problems else ():
        try:
            made.append(profile_of(plugins, module, builder, profile.scheduler_name, usual))
        except ArgumentError as error:
            problems.append(Problem((*profile.steps, "pluginConfig"), str(error)))
    if problems:
        raise ConfigurationError(configuration.places.told(problems))
    warnings = configuration.places.told([warning for each in resolved for warning in each.warnings])
    said = configuration.percentage
    effective = replace(configuration, profiles=tuple(full), percentage=usual if said is None else said)
    return Profiles(tuple(made), tuple(sets), warnings, effective)


class _Rules:
    """The rules of a policy by plugin."""

    def __init__(self, module: Module) -> None:
        rules = rules_in_order(module)
        self.at: Mapping[str, Mapping[str, Rule]] = {
            "filter": rules_by_plugin(rules, "predicate"),
            "score": rules_by_plugin(rules, "priority"),
        }

    def take_part(self, name: str, point: str) -> bool:
        """Whether a plugin takes part at a point: as its rules do, or as kube-scheduler's plugin of that name does."""
        return takes_part(name, point) or name in self.at.get(point, {})

    def of(self, name: str) -> list[Rule]:
        return [rules[name] for rules in self.at.values() if name in rules]

    def meant(self, name: str, points: Sequence[str]) -> str:
        """What helps whoever named a plugin that is not there."""
        if name in IN_TREE:
            return f'; the shipped rule is in "{RULES}"' if any(point in IN_TREE[name] for point in points) else ""
        found = did_you_mean(name, [known for point in points for known in self.at[point]])
        return f"; {found}" if found else ""


@dataclass(slots=True)
class _Resolution:
    """One profile, its names held against the rules."""

    configuration: Configuration
    rules: _Rules
    profile: ConfiguredProfile
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def plugin_set(self, ignored: Sequence[str]) -> PluginSet:
        """The plugins of the profile. What does not fit is added to the problems."""
        profile = self.profile
        filters, scores = self._known("filter"), self._known("score")
        for before, point in STEPS.items():
            for plugin in profile.points.get(before, ()):
                self._check_step(plugin, before, point)
        self._check_multi_point()
        for plugin_name, (at, names) in profile.said.items():
            self._check_arguments(plugin_name, at, names)
        arguments: dict[str, Mapping[str, Any]] = {**profile.arguments}
        limits = arguments.pop(PREEMPTION, None)
        if ignored:
            fit = arguments.get(FIT, {})
            arguments[FIT] = {**fit, IGNORED: [*fit.get(IGNORED, ()), *ignored]}
        percentage = profile.percentage if profile.percentage is not None else self.configuration.percentage
        return PluginSet(
            filters=tuple(plugin.name for plugin in filters),
            scores=tuple((plugin.name, plugin.weight or 1) for plugin in scores),
            arguments=arguments,
            percentage=percentage,
            preempts=any(plugin.name == PREEMPTION for plugin in profile.points.get("postFilter", ())),
            candidates=_candidates(limits),
        )

    def _known(self, point: str) -> list[Plugin]:
        """The plugins at a point that there are rules for."""
        found = []
        for plugin in self.profile.points.get(point, ()):
            if plugin.name in self.rules.at[point]:
                found.append(plugin)
            elif plugin.name in WITHOUT_RULE:
                text = f'no rule implements "{plugin.name}": {WITHOUT_RULE[plugin.name]}'
                self.warnings.append(Problem(self._steps(plugin, point), text))
            else:
                self.problems.append(self._missing(plugin, point))
        return found

    def _missing(self, plugin: Plugin, point: str) -> Problem:
        where = "filters" if point == "filter" else "scores"
        kind, name = plugin_type(point), plugin.name
        if point not in IN_TREE.get(name, (point,)):
            text = f'plugin "{name}" does not extend {kind} plugin'
        else:
            text = f'{kind} "{name}" does not exist: no rule of the policy implements it where it {where}'
        return invalid(self._steps(plugin, point), name, text + self.rules.meant(name, [point]))

    def _check_step(self, plugin: Plugin, before: str, point: str) -> None:
        name, at = plugin.name, self._steps(plugin, before)
        own = name not in IN_TREE and name in self.rules.at[point]
        if not own and not takes_part(name, before) and name not in WITHOUT_RULE:
            verdict = f"does not extend {plugin_type(before)} plugin" if name in IN_TREE else "does not exist"
            self.problems.append(invalid(at, name, f'plugin "{name}" {verdict}{self.rules.meant(name, [point])}'))
        elif name not in IN_TREE and all(other.name != name for other in self.profile.points.get(point, ())):
            self.warnings.append(Problem(at, f"has no effect: it is off at {point}"))

    def _check_multi_point(self) -> None:
        """Names that take part nowhere. multiPoint is gone from the profile; the configuration has it."""
        source = next(
            each for each in self.configuration.all_profiles() if each.scheduler_name == self.profile.scheduler_name
        )
        for plugin in source.multi_point:
            name = plugin.name
            if name in IN_TREE or self.rules.of(name):
                continue
            if name in WITHOUT_RULE:
                text = f'no rule implements "{name}": {WITHOUT_RULE[name]}'
                self.warnings.append(Problem(self._steps(plugin, "multiPoint"), text))
            else:
                text = f'plugin "{name}" does not exist: no rule of the policy implements it'
                meant = self.rules.meant(name, ["filter", "score"])
                self.problems.append(invalid(self._steps(plugin, "multiPoint"), name, text + meant))

    def _check_arguments(self, name: str, at: Steps, names: frozenset[str]) -> None:
        rules = self.rules.of(name)
        parameters = {p.binding.name: p.binding.type for rule in rules for p in rule.parameters}
        if name == PREEMPTION or name in WITHOUT_RULE:
            return
        if not rules and name in IN_TREE:
            self.warnings.append(
                Problem(at, f'no rule of the policy implements "{name}": its arguments have no effect')
            )
            return
        if not rules:
            text = f"no rule of the policy implements it{self.rules.meant(name, ['filter', 'score'])}"
            self.problems.append(invalid((*at[:-1], "name"), name, text))
            return
        for argument in sorted(names):
            if (name, argument) in WITHOUT_EFFECT:
                text = f"has no effect: {WITHOUT_EFFECT[name, argument]}"
                self.warnings.append(Problem((*at, argument), text))
            elif argument not in parameters:
                self.problems.append(unknown_field((*at, argument), argument, parameters))
            else:
                self.problems += _wrong(parameters[argument], self.profile.arguments[name][argument], (*at, argument))

    def _steps(self, plugin: Plugin, point: str) -> Steps:
        """Where the file names the plugin; of a default one, where it could."""
        return plugin.steps or (*self.profile.steps, "plugins", point)


def _wrong(type_: Any, value: Any, at: Steps) -> Iterator[Problem]:
    try:
        value_of(type_, value, "")
    except ArgumentError as error:
        yield Problem(at, str(error).lstrip(": "))


def _candidates(given: Mapping[str, Any] | None) -> Candidates | None:
    if given is None:
        return None
    return Candidates(given["minCandidateNodesPercentage"], given["minCandidateNodesAbsolute"])
