"""What a profile says of plugins, merged with what is on by default, and spread over the extension points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ksp.policy.configuration.configuration import ConfiguredProfile, Plugin
from ksp.policy.configuration.versions import MULTI_POINT, Version, points_of
from ksp.policy.field_errors import Problem, Steps

ALL = "*"
PluginNames = Mapping[str, tuple[Plugin, ...]]


def merged(
    version: Version, defaults: PluginNames, said: Mapping[str, Any], at: Steps
) -> tuple[PluginNames, Mapping[str, frozenset[str]]]:
    """The plugins that are on at each point, `multiPoint` among them, and the names that are off, from the decoded
    `plugins` of a profile at `at`. A weight is kept where it means something."""
    points: dict[str, tuple[Plugin, ...]] = {}
    disabled: dict[str, frozenset[str]] = {}
    for point in (MULTI_POINT, *points_of(version)):
        given, weighs = said.get(point) or {}, point in {"score", MULTI_POINT}
        off = frozenset(str(plugin.get("name", "")) for plugin in given.get("disabled") or ())
        enabled = [
            Plugin(plugin.get("name", ""), plugin.get("weight", 0) if weighs else 0, (*at, point, "enabled", i))
            for i, plugin in enumerate(given.get("enabled") or ())
        ]
        found = merged_set(defaults.get(point, ()), enabled, off, in_place=version is not Version.V1BETA1)
        if found:
            points[point] = tuple(found)
        if off:
            disabled[point] = off
    return points, disabled


def merged_set(
    defaults: Sequence[Plugin], enabled: Sequence[Plugin], disabled: frozenset[str], *, in_place: bool
) -> list[Plugin]:
    """The default plugins that are not off, then those of the profile. Since v1beta2 one that is on by default is
    replaced where it stands (`in_place`); before, it is there twice, which is an error later."""
    again = {plugin.name: i for i, plugin in enumerate(enabled)} if in_place else {}
    found, used = [], set()
    for plugin in defaults if ALL not in disabled else ():
        if plugin.name in disabled:
            continue
        index = again.get(plugin.name)
        if index is None:
            found.append(plugin)
        else:
            used.add(index)
            found.append(enabled[index])
    return found + [plugin for i, plugin in enumerate(enabled) if i not in used]


def expanded(profile: ConfiguredProfile, version: Version, takes_part: Callable[[str, str], bool]) -> ConfiguredProfile:
    """The profile with the plugins of `multiPoint` at each point where they take part (plugin, point). At a point,
    first those that it names too, in its order; then those of multiPoint; then what else it names. A weight that the
    point says wins."""
    if not profile.multi_point:
        return profile
    points = dict(profile.points)
    for point in points_of(version):
        here = profile.points.get(point, ())
        found = _at_point(point, here, profile, takes_part)
        if found:
            points[point] = found if point == "score" else tuple(replace(plugin, weight=0) for plugin in found)
    return replace(profile, points=points, multi_point=(), disabled={})


def _at_point(
    point: str, here: tuple[Plugin, ...], profile: ConfiguredProfile, takes_part: Callable[[str, str], bool]
) -> tuple[Plugin, ...]:
    off = profile.disabled.get(point, frozenset())
    if ALL in off:
        return here
    many = [plugin for plugin in profile.multi_point if plugin.name not in off and takes_part(plugin.name, point)]
    names, here_names = {plugin.name for plugin in many}, {plugin.name for plugin in here}
    both = [plugin for plugin in here if plugin.name in names]
    rest = [plugin for plugin in here if plugin.name not in names]
    return (*both, *(plugin for plugin in many if plugin.name not in here_names), *rest)


def twice(point: str, plugins: Sequence[Plugin], at: Steps) -> Iterator[Problem]:
    """Plugins that stand twice at a point, where the profile's plugins are at `at`."""
    seen: set[str] = set()
    for plugin in plugins:
        if plugin.name in seen:
            yield Problem(plugin.steps or (*at, point), already_registered(plugin.name, point))
        seen.add(plugin.name)


def already_registered(name: str, point: str) -> str:
    return f'plugin "{name}" already registered as "{plugin_type(point)}"'


def plugin_type(point: str) -> str:
    """The name of the interface of kube-scheduler that stands for a point: `FilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"
