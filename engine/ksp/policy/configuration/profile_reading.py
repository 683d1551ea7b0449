"""The profiles of a configuration: merged with the version's defaults, and checked as far as that needs no policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ksp.check.providers import HEAVIEST
from ksp.policy.configuration.argument_checks import argument_problems
from ksp.policy.configuration.arguments import (
    UNREAD_OF_CONSTRAINTS,
    argument_shapes,
    decoded_arguments,
    default_arguments,
    with_defaults,
)
from ksp.policy.configuration.checks import percentage_problems
from ksp.policy.configuration.configuration import DEFAULT_SCHEDULER, ConfiguredProfile, Plugin
from ksp.policy.configuration.default_plugins import IN_TREE, WITHOUT_RULE, default_plugins, removed_in
from ksp.policy.configuration.merging import ALL, expanded, merged, twice
from ksp.policy.configuration.point_checks import point_problems, point_warnings
from ksp.policy.configuration.versions import MULTI_POINT, Version, points_of
from ksp.policy.field_errors import Problem, Steps, duplicate, invalid, path_of, required

Value = Mapping[str, Any]
Said = Mapping[str, tuple[Steps, frozenset[str]]]
AT: Steps = ("profiles",)
MAX_PROFILES: Final = 100


def default_profile(version: Version, provider: str = "") -> ConfiguredProfile:
    """What kube-scheduler has if the configuration names no profile."""
    return _profile(version, {"schedulerName": DEFAULT_SCHEDULER}, provider, (), [], [])


def read_profiles(
    version: Version, given: Sequence[Value], provider: str, problems: list[Problem], warnings: list[Problem]
) -> tuple[ConfiguredProfile, ...]:
    """The profiles. What is wrong with them is added to the problems."""
    if len(given) > MAX_PROFILES:
        problems.append(Problem(AT, f"Too many: {len(given)}: must have at most {MAX_PROFILES} items"))
        given = given[:MAX_PROFILES]
    if len(given) == 1:
        given = [{"schedulerName": DEFAULT_SCHEDULER, **given[0]}]
    made = [_profile(version, each, provider, (*AT, i), problems, warnings) for i, each in enumerate(given)]
    problems += _name_problems(made)
    full = [expanded(profile, version, takes_part) for profile in made]
    for profile in full[1:]:
        if profile.points.get("queueSort") != full[0].points.get("queueSort"):
            names = [plugin.name for plugin in profile.points.get("queueSort", ())]
            problems.append(
                invalid((*profile.steps, "plugins", "queueSort"), names, "must be the same for all profiles")
            )
    return tuple(made)


def takes_part(name: str, point: str) -> bool:
    """Whether one of kube-scheduler's plugins takes part at a point."""
    return point in IN_TREE.get(name, ())


def _name_problems(profiles: Sequence[ConfiguredProfile]) -> Iterator[Problem]:
    first: dict[str, Steps] = {}
    for profile in profiles:
        at = (*profile.steps, "schedulerName")
        if not profile.scheduler_name:
            yield required(at)
        elif profile.scheduler_name in first:
            yield duplicate(at, path_of(first[profile.scheduler_name]))
        first.setdefault(profile.scheduler_name, at)


def _profile(
    version: Version, given: Value, provider: str, at: Steps, problems: list[Problem], warnings: list[Problem]
) -> ConfiguredProfile:
    defaults = default_plugins(version, provider)
    plugins = given.get("plugins", {})
    points, disabled = merged(version, defaults, plugins, (*at, "plugins"))
    many = points.get(MULTI_POINT, ())
    profile = ConfiguredProfile(
        scheduler_name=given.get("schedulerName", ""),
        points={point: enabled for point, enabled in points.items() if point != MULTI_POINT},
        multi_point=many,
        disabled={point: names for point, names in disabled.items() if point != MULTI_POINT} if many else {},
        percentage=given.get("percentageOfNodesToScore"),
        has_plugins="plugins" in given or "pluginConfig" in given,
        steps=at,
    )
    full = expanded(profile, version, takes_part)
    usual = expanded(_bare(defaults), version, takes_part)
    problems += percentage_problems(given, at)
    problems += _named(version, points)
    problems += twice(MULTI_POINT, many, (*at, "plugins"))
    for point, enabled in profile.points.items():
        problems += twice(point, enabled, (*at, "plugins"))
    problems += point_problems(full)
    warnings += point_warnings(version, full, usual)
    warnings += _idle(version, plugins, defaults, usual, (*at, "plugins"))
    names = {plugin.name for plugins in points.values() for plugin in plugins}
    reader = _Arguments(version, (*at, "pluginConfig"), problems, warnings)
    arguments, said = reader.read(given.get("pluginConfig", ()), names)
    return replace(profile, arguments=arguments, said=said)


def _bare(defaults: Mapping[str, tuple[Plugin, ...]]) -> ConfiguredProfile:
    points = {point: plugins for point, plugins in defaults.items() if point != MULTI_POINT}
    return ConfiguredProfile(DEFAULT_SCHEDULER, points, defaults.get(MULTI_POINT, ()))


def _named(version: Version, points: Mapping[str, tuple[Plugin, ...]]) -> Iterator[Problem]:
    """What is wrong with the names and weights of the plugins that the file enables."""
    for point, plugins in points.items():
        for plugin in plugins:
            if not plugin.steps:
                continue
            since = removed_in(version, plugin.name)
            if not plugin.name:
                yield required((*plugin.steps, "name"))
            elif since is not None:
                yield invalid(plugin.steps, plugin.name, _was_invalid(version, since))
            if point in {"score", MULTI_POINT} and not 0 <= plugin.weight <= HEAVIEST:
                yield invalid((*plugin.steps, "weight"), plugin.weight, f"must be from 1 to {HEAVIEST}, or 0 for 1")


def _was_invalid(version: Version, since: Version) -> str:
    config = f'KubeSchedulerConfiguration is version "{version.api_version}"'
    return f'was invalid in version "{since.api_version}" ({config})'


def _idle(
    version: Version, plugins: Value, defaults: Mapping[str, tuple[Plugin, ...]], usual: ConfiguredProfile, at: Steps
) -> Iterator[Problem]:
    """Names that are switched off where they are not on."""
    for point in (MULTI_POINT, *points_of(version)):
        usually = defaults.get(point, ()) if point == MULTI_POINT else usual.points.get(point, ())
        own = [each.get("name", "") for each in plugins.get(MULTI_POINT, {}).get("enabled") or ()]
        names = {ALL, *(plugin.name for plugin in usually), *own}
        for i, each in enumerate(plugins.get(point, {}).get("disabled") or ()):
            if each.get("name", "") not in names:
                yield Problem(
                    (*at, point, "disabled", i), f'has no effect: "{each.get("name", "")}" is not on by default'
                )


# ---- arguments


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Reads the `pluginConfig` of a profile, which is at `at`."""

    version: Version
    at: Steps
    problems: list[Problem]
    warnings: list[Problem]

    def read(self, entries: Sequence[Value], enabled: set[str]) -> tuple[dict[str, dict[str, Any]], Said]:
        """The arguments by plugin, complete, of those that are enabled or named; and where the file has which."""
        arguments = default_arguments(self.version, enabled)
        said: dict[str, tuple[Steps, frozenset[str]]] = {}
        for i, entry in enumerate(entries):
            here, name = (*self.at, i), entry.get("name", "")
            since = removed_in(self.version, name)
            if not name:
                self.problems.append(required((*here, "name")))
            elif since is not None:
                self.problems.append(invalid(here, name, _was_invalid(self.version, since)))
            elif name in said:
                self.problems.append(duplicate(here, name))
            else:
                made = self._entry(name, entry.get("args"), (*here, "args"))
                said[name] = (*here, "args"), frozenset(made)
                arguments[name] = with_defaults(self.version, name, made)
        for name in arguments:
            if name in argument_shapes(self.version):
                where = said[name][0] if name in said else self.at
                self.problems.extend(argument_problems(self.version, name, arguments[name], where))
        return arguments, said

    def _entry(self, name: str, value: object, at: Steps) -> dict[str, Any]:
        made = decoded_arguments(self.version, name, value, at, self.problems) or {}
        if name in WITHOUT_RULE:
            self.warnings.append(Problem(at, f'no rule implements "{name}": {WITHOUT_RULE[name]}'))
        if name == "PodTopologySpread":
            self.warnings.extend(
                Problem((*at, "defaultConstraints", i, field), "is not read by the shipped rules")
                for i, constraint in enumerate(made.get("defaultConstraints", ()))
                for field in UNREAD_OF_CONSTRAINTS
                if field in constraint
            )
        return made
