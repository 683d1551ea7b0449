"""Plain values to a LegacyPolicy. All that is wrong is noted; the rest is read as if it were not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ksp.policy.durations import DurationError, seconds_of
from ksp.policy.extender_fields import FIELDS, MANAGED, TLS
from ksp.policy.field_errors import pointer
from ksp.policy.legacy.mistakes import Mistake, mistake
from ksp.policy.legacy.model import (
    CapacityRatio,
    LabelPreference,
    LabelsPresence,
    LegacyPolicy,
    Predicate,
    PredicateArgument,
    Priority,
    PriorityArgument,
    ServiceAffinity,
    ServiceAntiAffinity,
)
from ksp.policy.shapes import BOOL, INT32, INT64, STRING, STRINGS, ListOf, Object, Scalar, WrongType
from ksp.policy.shapes import decoded as held_against

KIND: Final = "Policy"
CONFIGURATION: Final = "KubeSchedulerConfiguration"
VERSIONS: Final = ("v1", "kubescheduler.config.k8s.io/v1")
NANOSECONDS: Final = 10**9

Value = Mapping[str, Any]


def _nanoseconds(value: object) -> float:
    """A Go duration, which is a number in the JSON of a Policy; in seconds."""
    try:
        return cast("int", INT64.read(value)) / NANOSECONDS
    except WrongType:
        if not isinstance(value, str):
            raise
    raise ValueError(f"must be a whole number of nanoseconds, not a string{_meant(value)}")


def _meant(text: str) -> str:
    try:
        return f"; did you mean {round(seconds_of(text) * NANOSECONDS)}?"
    except DurationError:
        return ""


# ---- fields

_PREDICATE: Final = Object({
    "name": STRING,
    "argument": Object({
        "serviceAffinity": Object({"labels": STRINGS}),
        "labelsPresence": Object({"labels": STRINGS, "presence": BOOL}),
    }),
})  # fmt: skip
_PRIORITY: Final = Object({
    "name": STRING,
    "weight": INT64,
    "argument": Object({
        "serviceAntiAffinity": Object({"label": STRING}),
        "labelPreference": Object({"label": STRING, "presence": BOOL}),
        "requestedToCapacityRatioArguments": Object({
            "shape": ListOf(Object({"utilization": INT32, "score": INT32})),
            "resources": ListOf(Object({"name": STRING, "weight": INT64})),
        }),
    }),
})  # fmt: skip
# kube-scheduler reads extenders with another decoder than the rest.
_HTTPS: Final = "enableHttps"
_EXTENDER: Final = Object(
    {
        **{name: field for name, field in FIELDS.items() if name != "enableHTTPS"},
        _HTTPS: BOOL,
        "httpTimeout": Scalar("int64", _nanoseconds, 0.0),
        "tlsConfig": replace(TLS, lenient=True),
        "managedResources": ListOf(replace(MANAGED, lenient=True)),
    },
    lenient=True,
)
POLICY: Final = Object({
    "kind": STRING, "apiVersion": STRING, "predicates": ListOf(_PREDICATE), "priorities": ListOf(_PRIORITY),
    "extenders": ListOf(_EXTENDER), "hardPodAffinitySymmetricWeight": INT32, "alwaysCheckAllPredicates": BOOL,
})  # fmt: skip


# ---- values


def decoded(value: Any, name: str) -> tuple[LegacyPolicy, tuple[Mistake, ...]]:
    """The Policy in a value, as far as it can be read, and what is wrong with the rest."""
    if not isinstance(value, dict):
        return LegacyPolicy(name), (Mistake("must be an object, of kind Policy", ""),)
    wrong, is_policy = _kind_mistakes(value)
    if not is_policy:
        return LegacyPolicy(name), wrong
    problems: list[Any] = []
    document: Value = held_against(POLICY, value, (), problems)
    told = [(each.is_ignored, Mistake(each.text, pointer(each.steps))) for each in problems]
    policy = LegacyPolicy(
        name,
        tuple(map(_predicate, document["predicates"])) if "predicates" in document else None,
        tuple(map(_priority, document["priorities"])) if "priorities" in document else None,
        tuple(map(_extender, document.get("extenders", ()))),
        document.get("hardPodAffinitySymmetricWeight", 0),
        document.get("alwaysCheckAllPredicates", False),
        tuple(each for is_ignored, each in told if is_ignored),
    )
    return policy, (*wrong, *(each for is_ignored, each in told if not is_ignored))


def _kind_mistakes(value: Value) -> tuple[tuple[Mistake, ...], bool]:
    """What is wrong with the kind, and whether it can be a Policy: of another kind's fields nothing is said."""
    kind, version = value.get("kind"), value.get("apiVersion")
    if kind and version and not (kind == KIND and version in VERSIONS):
        hint = "give it with --config" if kind == CONFIGURATION else "a Policy is of kind `Policy`, apiVersion `v1`"
        said = f'no kind "{kind}" is registered for version "{version}"'
        return (mistake(said, ("kind" if kind != KIND else "apiVersion",), hint),), False
    missing = []
    if not kind:
        missing.append(mistake("Object 'Kind' is missing", ("kind",), "it is `Policy`"))
    if not version:
        missing.append(mistake("Object 'apiVersion' is missing", ("apiVersion",), "it is `v1`"))
    return tuple(missing), True


def _predicate(given: Value) -> Predicate:
    arguments: list[PredicateArgument] = []
    argument: Value = given.get("argument", {})
    if "serviceAffinity" in argument:
        arguments.append(ServiceAffinity(tuple(argument["serviceAffinity"].get("labels", ()))))
    if "labelsPresence" in argument:
        said = argument["labelsPresence"]
        arguments.append(LabelsPresence(tuple(said.get("labels", ())), said.get("presence", False)))
    return Predicate(given.get("name", ""), tuple(arguments) if "argument" in given else None)


def _priority(given: Value) -> Priority:
    arguments: list[PriorityArgument] = []
    argument: Value = given.get("argument", {})
    if "labelPreference" in argument:
        said = argument["labelPreference"]
        arguments.append(LabelPreference(said.get("label", ""), said.get("presence", False)))
    if "serviceAntiAffinity" in argument:
        arguments.append(ServiceAntiAffinity(argument["serviceAntiAffinity"].get("label", "")))
    if "requestedToCapacityRatioArguments" in argument:
        said = argument["requestedToCapacityRatioArguments"]
        arguments.append(
            CapacityRatio(
                tuple((each.get("utilization", 0), each.get("score", 0)) for each in said.get("shape", ())),
                tuple((each.get("name", ""), each.get("weight", 0)) for each in said.get("resources", ())),
            )
        )
    made = tuple(arguments) if "argument" in given else None
    return Priority(given.get("name", ""), given.get("weight", 0), made)


def _extender(given: Value) -> Value:
    """With the names of ksp.policy.extender_fields."""
    return {"enableHTTPS" if name == _HTTPS else name: value for name, value in given.items()}
