"""What arguments of plugins must be, in kube-scheduler's words (validation_pluginargs.go). They are complete here: the
defaults are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ksp.model.int64 import MAX, MIN
from ksp.policy.configuration.versions import Version
from ksp.policy.field_errors import Problem, Steps, duplicate, forbidden, invalid, not_supported, required
from ksp.policy.resource_names import qualified_name_problems

RATIO: Final = "RequestedToCapacityRatio"
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", RATIO)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,30}")

Arguments = Mapping[str, Any]


def argument_problems(version: Version, plugin: str, args: Arguments, at: Steps) -> Iterator[Problem]:
    """What is wrong with the arguments of one of kube-scheduler's plugins."""
    match plugin:
        case "DefaultPreemption":
            yield from _preemption(args, at)
        case "InterPodAffinity":
            yield from _range(args["hardPodAffinityWeight"], 0, 100, (*at, "hardPodAffinityWeight"))
        case "NodeAffinity":
            yield from _affinity(args.get("addedAffinity", {}), (*at, "addedAffinity"))
        case "NodeLabel":
            yield from _labels(args, at)
        case "NodeResourcesBalancedAllocation":
            yield from _balanced(args["resources"] if version is not Version.V1BETA1 else (), (*at, "resources"))
        case "NodeResourcesFit":
            yield from _fit(args, at)
        case "NodeResourcesLeastAllocated" | "NodeResourcesMostAllocated":
            yield from _resources(args["resources"], (*at, "resources"))
        case "PodTopologySpread":
            yield from _spread(args, at)
        case "RequestedToCapacityRatio":
            yield from _shape(args.get("shape", ()), (*at, "shape"))
            yield from _resources(args["resources"], (*at, "resources"), most=MAX)
        case "VolumeBinding":
            yield from _volumes(args, at)


def _range(value: int, least: int, most: int, at: Steps) -> Iterator[Problem]:
    if not least <= value <= most:
        yield invalid(at, value, f"not in valid range [{least}, {most}]")


def _preemption(args: Arguments, at: Steps) -> Iterator[Problem]:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    yield from _range(args[percentage], 0, 100, (*at, percentage))
    if args[absolute] < 0:
        yield invalid((*at, absolute), args[absolute], "not in valid range [0, inf)")
    if args[percentage] == args[absolute] == 0:
        yield invalid((*at, percentage), 0, f"cannot be zero at the same time as {absolute}")
        yield invalid((*at, absolute), 0, f"cannot be zero at the same time as {percentage}")


def _labels(args: Arguments, at: Steps) -> Iterator[Problem]:
    for present, absent in (("presentLabels", "absentLabels"), ("presentLabelsPreference", "absentLabelsPreference")):
        both = [label for label in args.get(present, ()) if label in args.get(absent, ())]
        if both:
            detail = f'detecting at least one label (e.g., "{both[0]}") that exist in both {present} and {absent}'
            yield invalid((*at, present), args[present], detail)


# ---- resources


def _fit(args: Arguments, at: Steps) -> Iterator[Problem]:
    for i, name in enumerate(args.get("ignoredResources", ())):
        yield from qualified_name_problems(name, (*at, "ignoredResources", i))
    for i, group in enumerate(args.get("ignoredResourceGroups", ())):
        where = (*at, "ignoredResourceGroups", i)
        if "/" in group:
            yield invalid(where, group, "resource group name can't contain '/'")
        yield from qualified_name_problems(group, where)
    if "scoringStrategy" in args:
        yield from _strategy(args["scoringStrategy"], (*at, "scoringStrategy"))


def _strategy(strategy: Arguments, at: Steps) -> Iterator[Problem]:
    kind, ratio = strategy["type"], strategy.get("requestedToCapacityRatio")
    if kind not in _STRATEGIES:
        yield not_supported((*at, "type"), kind, _STRATEGIES)
    yield from _resources(strategy["resources"], (*at, "resources"))
    where = (*at, "requestedToCapacityRatio")
    if kind == RATIO and ratio is None:
        yield required(where, f"must be specified when type is {RATIO}")
    elif kind == RATIO and ratio is not None:
        yield from _shape(ratio.get("shape", ()), (*where, "shape"))
    elif ratio is not None:
        yield forbidden(where, f"must be nil when type is not {RATIO}")


def _resources(resources: Sequence[Arguments], at: Steps, most: int = 100) -> Iterator[Problem]:
    for i, resource in enumerate(resources):
        if not 0 < resource["weight"] <= most:
            detail = f"resource weight of {resource['name']} not in valid range (0, {'inf' if most == MAX else most}]"
            yield invalid((*at, i, "weight"), resource["weight"], detail)


def _balanced(resources: Sequence[Arguments], at: Steps) -> Iterator[Problem]:
    seen = set()
    for i, resource in enumerate(resources):
        if resource["name"] in seen:
            yield duplicate((*at, i, "name"), resource["name"])
        seen.add(resource["name"])
        if resource["weight"] != 1:
            yield invalid((*at, i, "weight"), resource["weight"], "must be 1")


def _shape(points: Sequence[Arguments], at: Steps) -> Iterator[Problem]:
    if not points:
        yield required(at, "at least one point must be specified")
    utilizations = [point.get("utilization", 0) for point in points]
    for i in range(1, len(points)):
        if utilizations[i - 1] >= utilizations[i]:
            yield invalid((*at, i, "utilization"), utilizations[i], "values must be sorted in increasing order")
            break
    for i, point in enumerate(points):
        yield from _range(utilizations[i], 0, 100, (*at, i, "utilization"))
        yield from _range(point.get("score", 0), 0, 10, (*at, i, "score"))


def _volumes(args: Arguments, at: Steps) -> Iterator[Problem]:
    seconds = args["bindTimeoutSeconds"]
    if seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid((*at, "bindTimeoutSeconds"), seconds, detail)


# ---- spreading


def _spread(args: Arguments, at: Steps) -> Iterator[Problem]:
    kind, constraints = args["defaultingType"], args.get("defaultConstraints", ())
    if kind not in {"System", "List"}:
        yield not_supported((*at, "defaultingType"), kind, ("System", "List"))
    elif kind == "System" and constraints:
        yield invalid((*at, "defaultingType"), kind, "when .defaultConstraints are not empty")
    seen = set()
    for i, each in enumerate(constraints):
        where = (*at, "defaultConstraints", i)
        yield from _constraint(each, where)
        same = each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")
        if same in seen:
            yield duplicate(where, f"{{{same[0]}, {same[1]}}}")
        seen.add(same)


def _constraint(each: Arguments, at: Steps) -> Iterator[Problem]:
    skew, key, action = each.get("maxSkew", 0), each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")
    if skew <= 0:
        yield invalid((*at, "maxSkew"), skew, "not in valid range (0, inf)")
    if not key:
        yield required((*at, "topologyKey"), "can not be empty")
    else:
        yield from qualified_name_problems(key, (*at, "topologyKey"))
    if not action:
        yield required((*at, "whenUnsatisfiable"), "can not be empty")
    elif action not in _ACTIONS:
        yield not_supported((*at, "whenUnsatisfiable"), action, _ACTIONS)
    if "labelSelector" in each:
        yield forbidden((*at, "labelSelector"), "constraint must not define a selector, as they deduced for each pod")


# ---- affinity to nodes


def _affinity(affinity: Arguments, at: Steps) -> Iterator[Problem]:
    required_of = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    where = (*at, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for i, term in enumerate(required_of.get("nodeSelectorTerms", ())):
        yield from _term(term, (*where, i))
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    for i, each in enumerate(preferred):
        place = (*at, "preferredDuringSchedulingIgnoredDuringExecution", i)
        yield from _term(each.get("preference", {}), (*place, "preference"))


def _term(term: Arguments, at: Steps) -> Iterator[Problem]:
    for i, each in enumerate(term.get("matchExpressions", ())):
        yield from _requirement(each, (*at, "matchExpressions", i))
    for i, each in enumerate(term.get("matchFields", ())):
        yield from _field_requirement(each, (*at, "matchFields", i))


def _requirement(each: Arguments, at: Steps) -> Iterator[Problem]:
    key, operator, values = each.get("key", ""), each.get("operator", ""), each.get("values", [])
    yield from qualified_name_problems(key, (*at, "key"))
    if operator not in _OPERATORS:
        yield not_supported((*at, "operator"), operator, _OPERATORS)
    elif operator in {"In", "NotIn"} and not values:
        yield invalid((*at, "values"), values, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in {"Exists", "DoesNotExist"} and values:
        yield invalid((*at, "values"), values, "values set must be empty for exists and does not exist")
    elif operator in {"Gt", "Lt"} and len(values) != 1:
        yield invalid((*at, "values"), values, "for 'Gt', 'Lt' operators, exactly one value is required")
    elif operator in {"Gt", "Lt"} and not _is_integer(values[0]):
        yield invalid((*at, "values", 0), values[0], "for 'Gt', 'Lt' operators, the value must be an integer")


def _is_integer(text: str | None) -> bool:
    return text is not None and _INTEGER.fullmatch(text) is not None and MIN <= int(text) <= MAX


def _field_requirement(each: Arguments, at: Steps) -> Iterator[Problem]:
    key, operator, values = each.get("key", ""), each.get("operator", ""), each.get("values", [])
    if key != "metadata.name":
        yield not_supported((*at, "key"), key, ("metadata.name",))
    if operator not in {"In", "NotIn"}:
        yield not_supported((*at, "operator"), operator, ("In", "NotIn"))
    elif len(values) != 1:
        yield invalid((*at, "values"), values, "must have one element")
