"""Extension points at which ksp does itself what kube-scheduler has plugins for: what a profile may say of them.

The rules of a policy filter and score. The queue, preemption, binding of pods and claims are the core's; a profile
names kube-scheduler's plugins there, and they are on or off as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ksp.check.report import did_you_mean
from ksp.policy.configuration.configuration import ConfiguredProfile, Plugin
from ksp.policy.configuration.default_plugins import IN_TREE, WITHOUT_RULE
from ksp.policy.configuration.merging import plugin_type
from ksp.policy.configuration.versions import GROUP_POINTS, Version
from ksp.policy.field_errors import Problem, Steps

PREEMPTION: Final = "DefaultPreemption"
VOLUMES: Final = "VolumeBinding"
GATES: Final = "SchedulingGates"

OWN_POINTS: Final = ("preEnqueue", "queueSort", "postFilter", "reserve", "permit", "preBind", "bind", "postBind")
# A rule does at once what plugins do in two steps, the first for all nodes.
STEPS: Final = {"preFilter": "filter", "preScore": "score"}


def point_problems(profile: ConfiguredProfile) -> Iterator[Problem]:
    """What a profile, its multiPoint expanded, has at the core's points and must not, or lacks."""
    for point in OWN_POINTS:
        for plugin in profile.points.get(point, ()):
            yield from _named(plugin, point)
    at = (*profile.steps, "plugins")
    name = profile.scheduler_name
    if not profile.points.get("queueSort"):
        yield Problem((*at, "queueSort"), f'no queue sort plugin for profile with scheduler name "{name}"')
    elif len(profile.points["queueSort"]) > 1:
        yield Problem((*at, "queueSort"), "only one queue sort plugin can be enabled")
    if not profile.points.get("bind"):
        text = f'at least one bind plugin is needed for profile with scheduler name "{name}"'
        yield Problem((*at, "bind"), text)


def _named(plugin: Plugin, point: str) -> Iterator[Problem]:
    if point in IN_TREE.get(plugin.name, ()) or plugin.name in WITHOUT_RULE or not plugin.name:
        return
    kind = plugin_type(point)
    if plugin.name in IN_TREE:
        yield Problem(plugin.steps, f'plugin "{plugin.name}" does not extend {kind} plugin')
        return
    known = [name for name, points in IN_TREE.items() if point in points]
    meant = did_you_mean(plugin.name, known) or (f"there is `{'`, `'.join(known)}`" if known else "there is none")
    yield Problem(plugin.steps, f'{kind} "{plugin.name}" does not exist; {meant}')


def point_warnings(version: Version, profile: ConfiguredProfile, usual: ConfiguredProfile) -> Iterator[Problem]:
    """What works otherwise than in kube-scheduler. `usual` is the default profile; both are expanded."""
    at = (*profile.steps, "plugins")
    for point in OWN_POINTS:
        for plugin in profile.points.get(point, ()):
            if plugin.name in WITHOUT_RULE:
                yield Problem(plugin.steps, f'no rule implements "{plugin.name}": {WITHOUT_RULE[plugin.name]}')
    for point in GROUP_POINTS:
        for plugin in profile.points.get(point, ()):
            yield Problem(plugin.steps, "has no effect: pods are scheduled one by one")
    if _has(usual, "preEnqueue", GATES) and not _has(profile, "preEnqueue", GATES):
        yield Problem((*at, "preEnqueue"), f"{GATES} is off, and pods with scheduling gates are held nevertheless")
    yield from _volumes(profile, at)
    for before, point in STEPS.items():
        yield from _halves(profile, usual, before, point, at)


def _volumes(profile: ConfiguredProfile, at: Steps) -> Iterator[Problem]:
    finds = _has(profile, "filter", VOLUMES)
    for point in ("reserve", "preBind"):
        if finds and not _has(profile, point, VOLUMES):
            yield Problem((*at, point), f"{VOLUMES} is off, and claims are bound nevertheless: it filters")
        elif not finds and _has(profile, point, VOLUMES):
            yield Problem((*at, point), f"{VOLUMES} binds no claims: it does not filter")


def _halves(
    profile: ConfiguredProfile, usual: ConfiguredProfile, before: str, point: str, at: Steps
) -> Iterator[Problem]:
    """Plugins that are on at one of two steps only: at the first, if the file says so, or at the second, if they are
    usually on at both."""
    for plugin in profile.points.get(before, ()):
        if before in plugin.steps and plugin.name in IN_TREE and not _has(profile, point, plugin.name):
            yield Problem(plugin.steps, f'"{plugin.name}" has no effect: it is off at {point}')
    for plugin in usual.points.get(before, ()):
        if _has(profile, point, plugin.name) and not _has(profile, before, plugin.name):
            yield Problem((*at, before), f"{plugin.name} is off, and its rule is asked as a whole: it is on at {point}")


def _has(profile: ConfiguredProfile, point: str, name: str) -> bool:
    return any(plugin.name == name for plugin in profile.points.get(point, ()))
