"""The names that a legacy Policy may use, and the plugins of kube-scheduler 1.19 that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Points = Mapping[str, tuple[str, ...]]
"""Plugins by extension point, in their order."""


def _filters(*plugins: str, before: tuple[str, ...] = ()) -> Points:
    """Plugins that filter; those of `before` also look at the pod first (preFilter)."""
    return {"filter": plugins, **({"preFilter": before} if before else {})}


def _prepared(plugin: str) -> Points:
    return _filters(plugin, before=(plugin,))


PREDICATES: Final[Mapping[str, Points]] = {
    "CheckNodeUnschedulable": _filters("NodeUnschedulable"),
    "GeneralPredicates": _filters(
        "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", before=("NodeResourcesFit", "NodePorts")
    ),
    "HostName": _filters("NodeName"),
    "PodFitsHostPorts": _prepared("NodePorts"),
    "MatchNodeSelector": _filters("NodeAffinity"),
    "PodFitsResources": _prepared("NodeResourcesFit"),
    "NoDiskConflict": _filters("VolumeRestrictions"),
    "PodToleratesNodeTaints": _filters("TaintToleration"),
    "CheckNodeLabelPresence": _filters("NodeLabel"),
    "CheckServiceAffinity": _prepared("ServiceAffinity"),
    "MaxEBSVolumeCount": _filters("EBSLimits"),
    "MaxGCEPDVolumeCount": _filters("GCEPDLimits"),
    "MaxCSIVolumeCountPred": _filters("NodeVolumeLimits"),
    "MaxAzureDiskVolumeCount": _filters("AzureDiskLimits"),
    "MaxCinderVolumeCount": _filters("CinderLimits"),
    "CheckVolumeBinding": {
        **_prepared("VolumeBinding"),
        "reserve": ("VolumeBinding",),
        "preBind": ("VolumeBinding",),
    },
    "NoVolumeZoneConflict": _filters("VolumeZone"),
    "EvenPodsSpread": _prepared("PodTopologySpread"),
    "MatchInterPodAffinity": _prepared("InterPodAffinity"),
}
"""In the order in which they are asked, whatever the order in the Policy."""

GENERAL: Final = "GeneralPredicates"
PREDICATE_ALIASES: Final[Mapping[str, str]] = {"PodFitsPorts": "PodFitsHostPorts"}
MANDATORY: Final = frozenset({"CheckNodeUnschedulable", "PodToleratesNodeTaints"})
DEFAULT_PREDICATES: Final = frozenset(
    {
        "CheckNodeUnschedulable", "CheckVolumeBinding", "EvenPodsSpread", "GeneralPredicates", "MatchInterPodAffinity",
        "MaxAzureDiskVolumeCount", "MaxCSIVolumeCountPred", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount",
        "NoDiskConflict", "NoVolumeZoneConflict", "PodToleratesNodeTaints",
    }
)  # fmt: skip
SERVICE_AFFINITY_PREDICATE: Final = "CheckServiceAffinity"
LABELS_PREDICATE: Final = "CheckNodeLabelPresence"

SERVICE_AFFINITY: Final = "ServiceAffinity"
NODE_LABEL: Final = "NodeLabel"
CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
INTER_POD_AFFINITY: Final = "InterPodAffinity"
RESOURCES_FIT: Final = "NodeResourcesFit"

PRIORITIES: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": INTER_POD_AFFINITY,
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "NodeAffinityPriority": "NodeAffinity",
    NODE_LABEL: NODE_LABEL,
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    CAPACITY_RATIO: CAPACITY_RATIO,
    "SelectorSpreadPriority": "SelectorSpread",
    SERVICE_AFFINITY: SERVICE_AFFINITY,
    "TaintTolerationPriority": "TaintToleration",
}
"""The plugin that scores, by the name of the priority. The three whose names are those of plugins are what priorities
with arguments become."""

PRE_SCORE: Final = frozenset({"InterPodAffinity", "PodTopologySpread", "SelectorSpread", "TaintToleration"})
"""Plugins that look at the pod before they score."""
PRIORITY_ALIASES: Final[Mapping[str, str]] = {"ServiceSpreadingPriority": "SelectorSpreadPriority"}
EQUAL_PRIORITY: Final = "EqualPriority"
"""Accepted, and left out."""
DEFAULT_PRIORITIES: Final[Mapping[str, int]] = {
    "BalancedResourceAllocation": 1,
    "EvenPodsSpreadPriority": 2,
    "ImageLocalityPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "NodeAffinityPriority": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "SelectorSpreadPriority": 1,
    "TaintTolerationPriority": 1,
}

HISTORICAL: Final[Mapping[str, str]] = {
    "CheckNodeCondition": "1.16",
    "CheckNodeMemoryPressure": "1.16",
    "CheckNodeDiskPressure": "1.16",
    "CheckNodePIDPressure": "1.16",
    "ResourceLimitsPriority": "1.18",
}
"""Names of rules in the shipped `historical.ksp`, and the last release of kube-scheduler that had them."""
