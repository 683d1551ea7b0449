"""Compiled rules against the oracle: the shipped ones and random ones, on random clusters that change."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksp.check.program import Checker
from ksp.check.typed import Rule
from ksp.model.arguments import ResourceSpec, UtilizationShapePoint
from ksp.model.pod import TopologySpreadConstraint
from ksp.source.origin import shipped
from tests.oracle.agreement import Agreement, agree
from tests.oracle.clusters import HOSTNAME, ZONE, Scenario, scenarios
from tests.oracle.policies import Policy, policies

THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
TIMES = 40 if THOROUGH else 1


def examples(number: int) -> settings:
    return settings(max_examples=number * TIMES, suppress_health_check=list(HealthCheck))


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """Every rule of the shipped policies."""
    library = shipped()
    checker = Checker(library)
    modules = [checker.check(path) for path in library.files()]
    assert not checker.report.failed
    return tuple(rule for module in modules if module is not None for rule in module.own_rules())


ARGUMENTS: dict[str, Any] = {
    "ignoredResourceGroups": ("example.com",),
    "presentLabels": ("disk",),
    "absentLabels": ("app",),
    "presentLabelsPreference": ("disk", ZONE),
    "absentLabelsPreference": ("app",),
    "affinityLabels": ("disk", ZONE),
    "antiAffinityLabelsPreference": (ZONE, "disk"),
    "hardPodAffinityWeight": 5,
    "maxVolumes": 1,
    "shape": tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in ((0, 10), (40, 7), (100, 0))),
    "resources": (ResourceSpec(name="cpu", weight=2), ResourceSpec(name="example.com/gpu", weight=3)),
    "defaultConstraints": tuple(
        TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable=action)
        for key, action in ((ZONE, "ScheduleAnyway"), (HOSTNAME, "ScheduleAnyway"), (ZONE, "DoNotSchedule"))
    ),
}


@pytest.mark.parametrize("rule", shipped_rules(), ids=lambda rule: rule.name)
def test_shipped_rules_say_what_the_oracle_says(rule: Rule) -> None:
    @examples(12)
    @given(scenarios(), st.booleans())
    def holds(scenario: Scenario, given_arguments: bool) -> None:
        arguments = ARGUMENTS if given_arguments else {}
        agree([rule], arguments, scenario.state(), scenario.waiting(), scenario.changes)

    holds()


@examples(250)
@given(policies(), scenarios(), st.booleans())
def test_random_rules_say_what_the_oracle_says(policy: Policy, scenario: Scenario, given_arguments: bool) -> None:
    arguments = policy.arguments if given_arguments else {}
    agree(policy.rules(), arguments, scenario.state(), scenario.waiting(), scenario.changes)


__all__ = ["Agreement"]
