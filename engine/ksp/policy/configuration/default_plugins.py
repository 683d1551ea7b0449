"""The plugins of kube-scheduler: where each takes part, which are on by default, and which a version took away.

Sources: pkg/scheduler/algorithmprovider of 1.19 (v1beta1), default_plugins.go of v1beta2 (1.22), v1beta3 (1.23) and v1
(1.25 to 1.33), and the lists of removed plugins in the validation of 1.22 to 1.25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ksp.policy.configuration.configuration import Plugin
from ksp.policy.configuration.versions import MULTI_POINT, Version

Points = Mapping[str, tuple[Plugin, ...]]

CLUSTER_AUTOSCALER: Final = "ClusterAutoscalerProvider"
PROVIDERS: Final = ("DefaultProvider", CLUSTER_AUTOSCALER)

_ALL: Final = ("preFilter", "filter", "preScore", "score")
# Where kube-scheduler's own plugins take part. Where they filter and score is what rules do; the rest ksp does itself.
IN_TREE: Final[Mapping[str, tuple[str, ...]]] = {
    "AzureDiskLimits": ("filter",),
    "CinderLimits": ("filter",),
    "DefaultBinder": ("bind",),
    "DefaultPreemption": ("postFilter",),
    "EBSLimits": ("filter",),
    "GCEPDLimits": ("filter",),
    "ImageLocality": ("score",),
    "InterPodAffinity": _ALL,
    "NodeAffinity": _ALL,
    "NodeLabel": ("filter", "score"),
    "NodeName": ("filter",),
    "NodePorts": ("preFilter", "filter"),
    "NodePreferAvoidPods": ("score",),
    "NodeResourceLimits": ("preScore", "score"),
    "NodeResourcesBalancedAllocation": ("preScore", "score"),
    "NodeResourcesFit": _ALL,
    "NodeResourcesLeastAllocated": ("score",),
    "NodeResourcesMostAllocated": ("score",),
    "NodeUnschedulable": ("filter",),
    "NodeVolumeLimits": ("preFilter", "filter"),
    "PodTopologySpread": _ALL,
    "PrioritySort": ("queueSort",),
    "RequestedToCapacityRatio": ("score",),
    "SchedulingGates": ("preEnqueue",),
    "SelectorSpread": ("preScore", "score"),
    "ServiceAffinity": ("preFilter", "filter", "score"),
    "TaintToleration": _ALL,
    "VolumeBinding": ("preFilter", "filter", "reserve", "preBind"),
    "VolumeRestrictions": ("preFilter", "filter"),
    "VolumeZone": ("preFilter", "filter"),
}

# Plugins of later releases that ksp has no rule for, and no code. A configuration may name them: it is warned of.
WITHOUT_RULE: Final[Mapping[str, str]] = {
    "DynamicResources": "pods with resource claims are held by --unread-fields",
    "GangScheduling": "pods are scheduled one by one",
    "NodeDeclaredFeatures": "features that nodes declare are not read",
}

_REMOVED: Final[Mapping[Version, tuple[str, ...]]] = {
    Version.V1BETA2: (
        "NodeLabel", "ServiceAffinity", "NodePreferAvoidPods", "NodeResourcesLeastAllocated",
        "NodeResourcesMostAllocated", "RequestedToCapacityRatio",
    ),
    Version.V1: ("SelectorSpread",),
}  # fmt: skip


def removed_in(version: Version, name: str) -> Version | None:
    """The version, that one or an earlier one, in which the plugin cannot be named any more."""
    return next((since for since, names in _REMOVED.items() if name in names and version.is_from(since)), None)


def default_plugins(version: Version, provider: str = "") -> Points:
    """The plugins that a profile has if it says nothing, by extension point. `provider` is for v1beta1."""
    if version is Version.V1BETA1:
        return _V1BETA1 | {"score": _scores(provider)}
    if version is Version.V1BETA2:
        return _V1BETA2
    gates = _plugins("SchedulingGates") if version is Version.V1 else ()
    return {MULTI_POINT: gates + _MODERN}


def _plugins(*names: str, **weights: int) -> tuple[Plugin, ...]:
    return (*map(Plugin, names), *(Plugin(name, weight) for name, weight in weights.items()))


def _scores(provider: str) -> tuple[Plugin, ...]:
    amount = "NodeResourcesMostAllocated" if provider == CLUSTER_AUTOSCALER else "NodeResourcesLeastAllocated"
    return (
        *_plugins(NodeResourcesBalancedAllocation=1, ImageLocality=1, InterPodAffinity=1),
        Plugin(amount, 1),
        *_plugins(NodeAffinity=1, NodePreferAvoidPods=10000, PodTopologySpread=2, TaintToleration=1, SelectorSpread=1),
    )


_LIMITS: Final = ("EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits")
_SAME: Final[dict[str, tuple[Plugin, ...]]] = {
    "queueSort": _plugins("PrioritySort"),
    "postFilter": _plugins("DefaultPreemption"),
    "reserve": _plugins("VolumeBinding"),
    "preBind": _plugins("VolumeBinding"),
    "bind": _plugins("DefaultBinder"),
}
_V1BETA1: Final[dict[str, tuple[Plugin, ...]]] = _SAME | {
    "preFilter": _plugins("NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding"),
    "filter": _plugins(
        "NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "VolumeRestrictions",
        "TaintToleration", *_LIMITS, "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    ),
    "preScore": _plugins("InterPodAffinity", "PodTopologySpread", "TaintToleration", "SelectorSpread"),
}  # fmt: skip
_V1BETA2: Final[dict[str, tuple[Plugin, ...]]] = _SAME | {
    "preFilter": _plugins(
        "NodeResourcesFit", "NodePorts", "VolumeRestrictions", "PodTopologySpread", "InterPodAffinity", "VolumeBinding",
        "NodeAffinity",
    ),
    "filter": _plugins(
        "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "VolumeRestrictions", *_LIMITS, "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    ),
    "preScore": _plugins("InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"),
    "score": _plugins(
        NodeResourcesBalancedAllocation=1, ImageLocality=1, InterPodAffinity=1, NodeResourcesFit=1, NodeAffinity=1,
        PodTopologySpread=2, TaintToleration=1,
    ),
}  # fmt: skip
# For v1beta3 and v1: all in multiPoint.
_MODERN: Final = (
    *_plugins("PrioritySort", "NodeUnschedulable", "NodeName", TaintToleration=3, NodeAffinity=2),
    *_plugins("NodePorts", NodeResourcesFit=1),
    *_plugins("VolumeRestrictions", *_LIMITS, "VolumeBinding", "VolumeZone", PodTopologySpread=2, InterPodAffinity=2),
    *_plugins("DefaultPreemption", NodeResourcesBalancedAllocation=1, ImageLocality=1),
    *_plugins("DefaultBinder"),
)
