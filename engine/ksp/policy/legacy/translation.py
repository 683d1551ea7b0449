"""A legacy Policy as plugins: what kube-scheduler 1.19 makes of it at each of its extension points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ksp.policy.extender import Extender
from ksp.policy.extender_fields import extender_of, in_order
from ksp.policy.legacy.mistakes import Mistake, mistake
from ksp.policy.legacy.model import LegacyPolicy
from ksp.policy.legacy.names import (
    CAPACITY_RATIO,
    INTER_POD_AFFINITY,
    NODE_LABEL,
    PRE_SCORE,
    PREDICATES,
    PRIORITIES,
    RESOURCES_FIT,
    SERVICE_AFFINITY,
)
from ksp.policy.legacy.naming import Label, Named, named
from ksp.policy.legacy.plugin_mistakes import plugin_mistakes
from ksp.policy.legacy.validation import extender_warnings, validation_mistakes
from ksp.policy.plugins import PluginSet

Arguments = dict[str, dict[str, Any]]
HEAVIEST: Final = 2**31 - 1

# What kube-scheduler runs besides, whatever the Policy says.
_ALWAYS: Final = {"queueSort": "PrioritySort", "bind": "DefaultBinder"}


@dataclass(frozen=True, slots=True)
class Configured:
    """What a Policy comes to. `points` has the plugins at each extension point, in order, with their weights where they
    score, else 0; `plugin_config` their arguments as kube-scheduler has them, with null for a list that nothing was put
    in; `plugins` the same as a profile is made of it. `warnings` tell of what has no effect."""

    plugins: PluginSet
    extenders: tuple[Extender, ...] = ()
    points: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    plugin_config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: tuple[Mistake, ...] = ()


def translated(policy: LegacyPolicy, scheduler_name: str) -> tuple[Configured, tuple[Mistake, ...]]:
    """What a Policy comes to, and all that kube-scheduler would not start of, in the order in which it looks."""
    names = named(policy)
    points = _points(names)
    config = _plugin_config(names, policy)
    scores = points.get("score", ())
    mistakes = (
        *validation_mistakes(policy),
        *names.mistakes,
        *_overflowing(names, scores),
        *plugin_mistakes(names, scheduler_name),
    )
    plugins = PluginSet(
        tuple(plugin for plugin, _ in points.get("filter", ())),
        scores,
        {plugin: {k: v for k, v in given.items() if v is not None} for plugin, given in config.items()},
        preempts=False,
        checks_all=policy.checks_all,
    )
    warnings = (
        *policy.ignored, *names.warnings, *_without_effect(policy, names), *extender_warnings(policy.extenders),
    )  # fmt: skip
    extenders = in_order(map(extender_of, policy.extenders))
    return Configured(plugins, extenders, points, config, warnings), mistakes


def _points(names: Named) -> Mapping[str, tuple[tuple[str, int], ...]]:
    points: dict[str, list[tuple[str, int]]] = {point: [(plugin, 0)] for point, plugin in _ALWAYS.items()}
    for name, plugins in PREDICATES.items():
        if name in names.predicates:
            for point, listed in plugins.items():
                points.setdefault(point, []).extend((plugin, 0) for plugin in listed)
    for name, (weight, _) in sorted(names.priorities.items()):
        plugin = PRIORITIES[name]
        points.setdefault("score", []).append((plugin, weight * _labels(names, name)))
        if plugin in PRE_SCORE:
            points.setdefault("preScore", []).append((plugin, 0))
    return {point: tuple(plugins) for point, plugins in points.items()}


def _labels(names: Named, priority: str) -> int:
    """By how much the weight of a priority is multiplied: one that several entries make has the weight of all."""
    labels = names.labels
    if priority == NODE_LABEL:
        return len(labels.preferred) + len(labels.avoided)
    return len(labels.anti_affinity) if priority == SERVICE_AFFINITY else 1


def _overflowing(names: Named, scores: Iterable[tuple[str, int]]) -> Iterable[Mistake]:
    by_plugin = {PRIORITIES[name]: steps for name, (_, steps) in names.priorities.items()}
    for plugin, weight in scores:
        if weight > HEAVIEST:
            said = f"the weight of {plugin} is {weight}, and kube-scheduler 1.19 keeps 32 bits of it"
            yield mistake(said, (*by_plugin[plugin], "weight"), f"it must be at most {HEAVIEST}")


def _plugin_config(names: Named, policy: LegacyPolicy) -> Arguments:
    config: Arguments = {}
    labels = names.labels
    if SERVICE_AFFINITY in names.configured:
        config[SERVICE_AFFINITY] = {
            "affinityLabels": _given(labels.affinity),
            "antiAffinityLabelsPreference": _given(labels.anti_affinity),
        }
    if NODE_LABEL in names.configured:
        config[NODE_LABEL] = {
            "presentLabels": _given(labels.present),
            "absentLabels": _given(labels.absent),
            "presentLabelsPreference": _given(labels.preferred),
            "absentLabelsPreference": _given(labels.avoided),
        }
    if names.ratio is not None:
        ratio, _ = names.ratio
        config[CAPACITY_RATIO] = {
            "shape": [{"utilization": utilization, "score": score} for utilization, score in ratio.shape],
            "resources": [{"name": name, "weight": weight} for name, weight in ratio.resources],
        }
    if policy.hard_weight and _scores_affinity(names):
        config[INTER_POD_AFFINITY] = {"hardPodAffinityWeight": policy.hard_weight}
    managed = [each for extender in policy.extenders for each in extender.get("managedResources", ())]
    ignored = [each.get("name", "") for each in managed if each.get("ignoredByScheduler")]
    if ignored:
        config[RESOURCES_FIT] = {"ignoredResources": ignored, "ignoredResourceGroups": None}
    return config


def _given(labels: list[Label]) -> list[str] | None:
    return [label for label, _ in labels] or None


def _scores_affinity(names: Named) -> bool:
    return any(PRIORITIES[name] == INTER_POD_AFFINITY for name in names.priorities)


def _without_effect(policy: LegacyPolicy, names: Named) -> Iterable[Mistake]:
    if policy.hard_weight and not _scores_affinity(names):
        name = "hardPodAffinitySymmetricWeight"
        yield mistake(f"{name} has no effect without InterPodAffinityPriority", (name,))
