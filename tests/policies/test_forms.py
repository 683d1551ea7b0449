"""Compiled rules against the oracle: the shipped ones and random ones, on random clusters that change.

All forms of a rule, see `tests.oracle.agreement`. `KSP_HYPOTHESIS=thorough` looks longer.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.agreement import agree
from tests.oracle.clusters import HOSTNAME, ZONE, Scenario, scenarios
from tests.oracle.columnar import columnar_policies
from tests.oracle.policies import Policy, policies

from ksp.check.program import Checker
from ksp.check.typed import Rule
from ksp.compile.program import compile_rule
from ksp.model.arguments import (
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from ksp.model.decode import convert
from ksp.model.pod import NodeAffinity, TopologySpreadConstraint
from ksp.source.origin import shipped

THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
TIMES = 40 if THOROUGH else 1


# To make a failing example small takes minutes: it is left to the thorough run.
PHASES = tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate)


def examples(number: int) -> settings:
    return settings(max_examples=number * TIMES, suppress_health_check=list(HealthCheck), phases=PHASES)


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """Every rule of the shipped policies."""
    library = shipped()
    checker = Checker(library)
    modules = [checker.check(path) for path in library.files()]
    assert not checker.report.failed
    return tuple(rule for module in modules if module is not None for rule in module.own_rules())


SHAPE = tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in ((0, 10), (40, 7), (100, 0)))
RESOURCES = tuple(ResourceSpec(name=n, weight=w) for n, w in (("cpu", 2), ("example.com/gpu", 3), ("memory", 1)))
PREFERS = {"weight": 3, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}}
REQUIRES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
ARGUMENTS: dict[str, Any] = {
    "scoringStrategy": ScoringStrategy(
        type="RequestedToCapacityRatio",
        resources=RESOURCES,
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=SHAPE),
    ),
    "addedAffinity": convert(
        NodeAffinity,
        {
            "requiredDuringSchedulingIgnoredDuringExecution": REQUIRES,
            "preferredDuringSchedulingIgnoredDuringExecution": [PREFERS],
        },
    ),
    "defaultingType": "System",
    "ignorePreferredTermsOfExistingPods": True,
    "ignoredResourceGroups": ("example.com",),
    "presentLabels": ("disk",),
    "absentLabels": ("app",),
    "presentLabelsPreference": ("disk", ZONE),
    "absentLabelsPreference": ("app",),
    "affinityLabels": ("disk", ZONE),
    "antiAffinityLabelsPreference": (ZONE, "disk"),
    "hardPodAffinityWeight": 5,
    "maxVolumes": 1,
    "shape": SHAPE,
    "resources": RESOURCES,
    "defaultConstraints": tuple(
        TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable=action)
        for key, action in ((ZONE, "ScheduleAnyway"), (HOSTNAME, "ScheduleAnyway"), (ZONE, "DoNotSchedule"))
    ),
}


# What ARGUMENTS do not try: other ways of the same rules.
OTHER_ARGUMENTS: dict[str, tuple[dict[str, Any], ...]] = {
    "NodeResourcesFitPriority": ({"scoringStrategy": ScoringStrategy(type="MostAllocated", resources=RESOURCES)},),
    "EvenPodsSpreadPriority": ({"defaultConstraints": ARGUMENTS["defaultConstraints"]},),
    "EvenPodsSpread": ({"defaultConstraints": ARGUMENTS["defaultConstraints"]},),
}


@pytest.mark.parametrize("rule", shipped_rules(), ids=lambda rule: rule.name)
def test_shipped_rules_say_what_the_oracle_says(rule: Rule) -> None:
    ways = ({}, ARGUMENTS, *OTHER_ARGUMENTS.get(rule.name, ()))

    @examples(12)
    @given(scenarios(), st.sampled_from(ways))
    def holds(scenario: Scenario, arguments: dict[str, Any]) -> None:
        agree([rule], arguments, scenario)

    holds()


@examples(250)
@given(policies(), scenarios(), st.booleans())
def test_random_rules_say_what_the_oracle_says(policy: Policy, scenario: Scenario, given_arguments: bool) -> None:
    arguments = policy.arguments if given_arguments else {}
    agree(policy.rules(), arguments, scenario)


@examples(120)
@given(columnar_policies(), scenarios(2), st.booleans())
def test_random_rules_for_columns_say_what_the_oracle_says(
    policy: Policy, scenario: Scenario, given_arguments: bool
) -> None:
    agree(policy.rules(), policy.arguments if given_arguments else {}, scenario)


# Each was wrong once, or could well be.
SMALL = [
    'predicate P { view w = count r in cluster.pods where r.hostPorts.exists(x, y, x < 5) deny "no" when w > 0 }',
    'predicate P { view w = sum r.node.podCount for r in cluster.pods deny "${w}" when true }',
    'predicate P { view w = sum n.podCount for n in cluster.nodes deny "${w}" when true }',
    'predicate P { view w = count n in cluster.nodes where size(n.hostPorts) > 0 deny "${w}" when true }',
    'predicate P { view w = count n in cluster.nodes where n.requested.cpu >1cpu by n.name deny "n" when size(w) > 1 }',
    'predicate P { view w = first n in cluster.nodes where n.podCount > 1 deny "${w.name}" when true }',
    'predicate P { view w = first p in cluster.pods where p.node.podCount > 1 deny "${w.node.name}" when true }',
    'predicate P { view w = first p in cluster.pods where p.node.labels["app"] == "web" deny "no" when w.name < "p2" }',
    'predicate P { view w = sum 9223372036854775807 for n in cluster.nodes deny "${w}" when true }',
    'predicate P { view w = sum 9223372036854775807 for n in cluster.nodes by 1 deny "${w[1]}" when true }',
    "priority P { view w = sum 9223372036854775807 for n in feasible score 1 normalize { score w } }",
    "priority P { view w = sum 9223372036854775807 for n in feasible by true score 1 normalize { score w[true] } }",
    'priority P { view w = sum 1.5 for n in feasible where n.name == "x" score 1 normalize { score size("${w}") } }',
    "priority P { score 3 normalize { score feasible[7].score + node.score } }",
    "priority P { view f = first n in cluster.nodes score 3 normalize { score f.score } }",
    "priority P { score node.podCount * 9223372036854775807 normalize reversed }",
    "priority P { score node.podCount - 1 normalize }",
    'predicate P { prefilter { stop when pod.terminating } deny "no" when node.podCount > 0 }',
    """predicate P {
      deny "no" when (pod.terminating ? pod.requiredAffinity[0].selector : selector({"a": "b"})).isEmpty()
    }""",
    """predicate P {
      view w = count p in cluster.pods
          where selector(cluster.services["default"]["s0"].spec.selector).matches(p.labels) by p.node.name
      deny "${w[node.name]}" when true
    }""",
    """predicate P {
      let found = cluster.services["default"]["s0"].spec.selector
      view w = count p in cluster.pods where selector(found).matches(p.labels) && found.keys() == p.labels.keys()
      deny "${w}" when true
    }""",
    """predicate P {
      view w = count n in cluster.nodes, x in [1, 2] by x
      prefilter { for k in w { deny "${k}" when w[k] > 1 } }
    }""",
    """predicate P {
      collect {
        deny unresolvable "a", "b" when node.podCount > 0
        for k, v in node.labels { stop when k == "disk" deny "${k}=${v}" when true }
        fail "c" when node.podCount > 1
      }
      deny "d" when true
    }""",
    'priority P { fail "all" when pod.spec.containers.exists(c, c.image != "") score node.podCount normalize }',
    'predicate P { fail "all" when pod.spec.priority >= 0 deny "no" when node.podCount > 0 }',
    """priority P {
      for t in node.spec.taints { fail "${t.key}" when t.effect == "" }
      view s = count s in cluster.pods where selector(cluster.services["default"]["s0"].spec.selector).matches(s.labels)
      score s
    }""",
]


@pytest.mark.parametrize("text", SMALL)
def test_small_rules_say_what_the_oracle_says(text: str) -> None:
    rules = Policy(text).rules()

    @examples(45)
    @given(scenarios())
    def holds(scenario: Scenario) -> None:
        agree(rules, {}, scenario)

    holds()


# Numbers of nodes (small, 0, huge, negative) with numbers at the ends of their range. What comes of them is summed up,
# since the text of a reason is made by the scalar form in any case.
NUMBERS = [
    "div(n + x, y, 5)",
    "(n + x) * y - x",
    "(y != 0 ? (n + x) / y : 3)",
    "(y != 0 ? (n + x) % y : 3)",
    "(n != 0 ? y / n : 3)",
    "(n != 0 ? x % n : 3)",
    "(min(n + x, y) - max(y, n + x))",
    "abs(n + x)",
    "(-(n + x))",
    "int(3.0 * div(double(n + x), double(y), -2.5))",
    "int(1e15 * ln(double(n + x)))",
    "int(double(n + x) * 1e300)",
    "round(double(n + x) / 2.0)",
    "round(double(n + x) * 0.1 * double(y))",
    "(min(double(n + x) * 1e300 * 1e300 * 0.0, double(y)) < 2.0 ? 1 : 0)",
    "(max(double(y), double(n + x) * 1e300 * 1e300 * 0.0) < 2.0 ? 1 : 0)",
    "(min(double(y), double(n + x) * 1e300 * 1e300 * 0.0) < 2.0 ? 1 : 0)",
    "(max(double(n + x) * 1e300 * 1e300 * 0.0, double(y)) < 2.0 ? 1 : 0)",
    "int(min(double(n + x), double(y)))",
    "int(max(double(n + x), double(y)))",
    "int(double(n + x) * 1e300 * 1e300 * 0.0)",
]
XS, YS = "[0, -7, 5, 9223372036854775807]", "[1, -1, 0, 7, -3, -9223372036854775808]"


@pytest.mark.parametrize("expression", NUMBERS)
@pytest.mark.parametrize("number", ["node.podCount", "node.allocatable.pods"])
def test_numbers_are_what_the_oracle_says(number: str, expression: str) -> None:
    text = f"""priority P {{
      let n = {number}
      score {XS}.map(x, {YS}.map(y, {expression} * (x * 5 + y * 3 + 1)).sum()).sum()
    }}"""
    (rule,) = Policy(text).rules()

    @examples(4)
    @given(scenarios(2))
    def holds(scenario: Scenario) -> None:
        agree([rule], {}, scenario)

    assert not compile_rule(rule).scalar_because
    holds()
