"""Arguments of kube-scheduler's plugins: their fields and defaults in each version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ksp.policy.configuration.versions import Version
from ksp.policy.field_errors import Problem, Steps
from ksp.policy.shapes import (
    ANYTHING,
    BOOL,
    DURATION,
    INT32,
    INT64,
    STRING,
    STRINGS,
    ListOf,
    Object,
    Shape,
    decoded,
    kind_of,
)

_RESOURCES: Final = ListOf(Object({"name": STRING, "weight": INT64}))
_SHAPE: Final = ListOf(Object({"utilization": INT32, "score": INT32}))
_REQUIREMENTS: Final = ListOf(Object({"key": STRING, "operator": STRING, "values": STRINGS}))
_TERM: Final = Object({"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS})
_AFFINITY: Final = Object(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Object({"nodeSelectorTerms": ListOf(_TERM)}),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(Object({"weight": INT32, "preference": _TERM})),
    },
    whole=True,
)
_CONSTRAINTS: Final = ListOf(
    Object(
        {
            "maxSkew": INT32, "topologyKey": STRING, "whenUnsatisfiable": STRING, "labelSelector": ANYTHING,
            "minDomains": INT32, "nodeAffinityPolicy": STRING, "nodeTaintsPolicy": STRING, "matchLabelKeys": STRINGS,
        },
        whole=True,
    )
)  # fmt: skip
UNREAD_OF_CONSTRAINTS: Final = ("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys")

_SINCE_V1BETA1: Final[dict[str, dict[str, Shape]]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32},
    "InterPodAffinity": {"hardPodAffinityWeight": INT32},
    "NodeAffinity": {"addedAffinity": _AFFINITY},
    "NodeResourcesFit": {"ignoredResources": STRINGS, "ignoredResourceGroups": STRINGS},
    "PodTopologySpread": {"defaultConstraints": _CONSTRAINTS, "defaultingType": STRING},
    "VolumeBinding": {"bindTimeoutSeconds": INT64},
}
_ONLY_V1BETA1: Final[dict[str, dict[str, Shape]]] = {
    "NodeLabel": dict.fromkeys(
        ("presentLabels", "absentLabels", "presentLabelsPreference", "absentLabelsPreference"), STRINGS
    ),
    "NodeResourcesLeastAllocated": {"resources": _RESOURCES},
    "NodeResourcesMostAllocated": {"resources": _RESOURCES},
    "RequestedToCapacityRatio": {"shape": _SHAPE, "resources": _RESOURCES},
    "ServiceAffinity": {"affinityLabels": STRINGS, "antiAffinityLabelsPreference": STRINGS},
}
_SINCE_V1BETA2: Final[dict[str, dict[str, Shape]]] = {
    "NodeResourcesBalancedAllocation": {"resources": _RESOURCES},
    "NodeResourcesFit": {
        "scoringStrategy": Object({
            "type": STRING, "resources": _RESOURCES, "requestedToCapacityRatio": Object({"shape": _SHAPE}),
        }),
    },
    "VolumeBinding": {"shape": _SHAPE},
}  # fmt: skip
_ONLY_V1: Final[dict[str, dict[str, Shape]]] = {
    "DynamicResources": {"filterTimeout": DURATION, "bindingTimeout": DURATION},
    "InterPodAffinity": {"ignorePreferredTermsOfExistingPods": BOOL},
}

# Arguments that no rule has as a parameter, and what is done instead.
WITHOUT_EFFECT: Final[Mapping[tuple[str, str], str]] = {
    ("VolumeBinding", "shape"): "nodes are not scored by the capacity of volumes",
    ("DynamicResources", "filterTimeout"): "there is no such plugin here",
    ("DynamicResources", "bindingTimeout"): "there is no such plugin here",
}


def argument_shapes(version: Version) -> Mapping[str, Object]:
    """The fields of arguments by plugin, for plugins that have arguments. apiVersion and kind go without saying."""
    layers = [_SINCE_V1BETA1, _ONLY_V1BETA1 if version is Version.V1BETA1 else _SINCE_V1BETA2]
    if version is Version.V1:
        layers.append(_ONLY_V1)
    names = sorted({name for layer in layers for name in layer})
    return {name: Object(dict(item for layer in layers for item in layer.get(name, {}).items())) for name in names}


def decoded_arguments(
    version: Version, plugin: str, value: Any, at: Steps, problems: list[Problem]
) -> dict[str, Any] | None:
    """The arguments of a plugin, without apiVersion and kind; those of a plugin that kube-scheduler does not have as
    they are. None if they are no object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.append(Problem(at, f"strict decoding error: json: cannot unmarshal {kind_of(value)} into an object"))
        return None
    fields = {name: inner for name, inner in value.items() if name not in {"apiVersion", "kind"}}
    shape = argument_shapes(version).get(plugin)
    if shape is None:
        return {name: inner for name, inner in fields.items() if inner is not None}
    wanted = f"{version.api_version}, Kind={plugin}Args"
    given = f"{value.get('apiVersion') or version.api_version}, Kind={value.get('kind') or plugin + 'Args'}"
    if given != wanted:
        problems.append(Problem(at, f"args for plugin {plugin} were not of type {wanted}, got {given}"))
    made: dict[str, Any] = decoded(shape, fields, at, problems)
    return made


def with_defaults(version: Version, plugin: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a plugin as kube-scheduler completes them."""
    modern = version is not Version.V1BETA1
    match plugin:
        case "DefaultPreemption":
            return {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100, **given}
        case "InterPodAffinity":
            return {"hardPodAffinityWeight": 1, **given}
        case "VolumeBinding":
            return {"bindTimeoutSeconds": 600, **given}
        case "PodTopologySpread":
            kind = given.get("defaultingType") or ("System" if modern else "List")
            return {**given, "defaultingType": kind}
        case "NodeResourcesFit" if modern:
            strategy = given.get("scoringStrategy", {"type": "LeastAllocated"})
            return {**given, "scoringStrategy": {"type": "", **strategy} | _resources(strategy)}
        case "NodeResourcesBalancedAllocation" if modern:
            return {**given, **_resources(given)}
        case "NodeResourcesLeastAllocated" | "NodeResourcesMostAllocated":
            return {**given, **_resources(given, weight=0)}
        case "RequestedToCapacityRatio":
            return {**given, **_resources(given)}
    return dict(given)


def _resources(given: Mapping[str, Any], weight: int = 1) -> dict[str, Any]:
    """cpu and memory if there are none. `weight` is for a resource that has none, or 0."""
    resources = given.get("resources") or [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    return {"resources": [{"name": "", **each, "weight": each.get("weight", 0) or weight} for each in resources]}


def default_arguments(version: Version, plugins: Collection[str]) -> dict[str, dict[str, Any]]:
    """The arguments of those of the plugins that have any, if nothing is said of them. In v1beta1 DefaultPreemption has
    none: kube-scheduler 1.19 looks at all nodes."""
    names = [
        name
        for name in argument_shapes(version)
        if name in plugins and (version is not Version.V1BETA1 or name != "DefaultPreemption")
    ]
    return {name: with_defaults(version, name, {}) for name in names}
