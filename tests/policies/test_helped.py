"""A denied pod sleeps until an event can help it: no event that does is missed, whatever the rule."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.clusters import Change, Scenario, core_changes, scenarios
from tests.oracle.policies import Policy, policies
from tests.policies.test_forms import ARGUMENTS, shipped_rules
from tests.unit.core.scheduling import FakeDice

from ksp.check.typed import Rule
from ksp.compile.footprint import Footprint, footprint_of
from ksp.compile.program import CompiledRule, Predicate, compile_rule
from ksp.compile.runtime import Denial
from ksp.core.changes import SetNode
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.policy.profile import ActivePredicate, Profile

THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
PHASES = tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate)


def examples(number: int) -> settings:
    return settings(
        max_examples=number * (40 if THOROUGH else 1), suppress_health_check=list(HealthCheck), phases=PHASES
    )


@lru_cache(maxsize=16)
def made(rule: Rule) -> tuple[CompiledRule, Footprint]:
    """A rule is compiled once for all its scenarios."""
    return compile_rule(rule), footprint_of(rule)


class Sleeper:
    """A pod that waits for a rule to change its mind, in a cluster that changes."""

    def __init__(self, rule: Rule, arguments: dict[str, Any], scenario: Scenario, pod: PodInfo) -> None:
        known = {parameter.binding.name for parameter in rule.parameters}
        compiled, self.footprint = made(rule)
        predicate = compiled.instantiate({name: value for name, value in arguments.items() if name in known})
        assert isinstance(predicate, Predicate)
        self.rule, self.predicate, self.pod = rule, predicate, pod
        profile = Profile(
            "default-scheduler", (ActivePredicate(rule.name, rule.plugin, predicate, self.footprint),), ()
        )
        self.scheduler = Scheduler([profile], FakeDice())
        self.now = 0.0
        for each in scenario.nodes:
            self.scheduler.on(SetNode(convert(Node, each)), self.now)
        placed = [Change("pod", each["metadata"]["uid"], place, each) for each, place in scenario.pods]
        for change in (*placed, *scenario.objects):
            self.tell(change)
        self.queued = self.scheduler.queue.add(pod, self.now)

    def tell(self, change: Change) -> None:
        for told in core_changes(change, self.scheduler.state):
            self.scheduler.on(told, self.now)

    def denied(self) -> set[str]:
        """The nodes that the rule denies."""
        bound = self.predicate.bind(self.pod, self.scheduler.tables)
        nodes = self.scheduler.state.nodes.values()
        if bound.outcome is not None:
            return {node.name for node in nodes} if isinstance(bound.outcome, Denial) else set()
        check = bound.check
        return set() if check is None else {node.name for node in nodes if isinstance(check(node), Denial)}

    def admitted(self) -> set[str]:
        bound = self.predicate.bind(self.pod, self.scheduler.tables)
        if bound.outcome is not None:
            return set()
        check = bound.check
        return {name for name, node in self.scheduler.state.nodes.items() if check is None or check(node) is None}

    def falls_asleep(self) -> None:
        self.now += 20.0  # more than any backoff, less than the patience
        if self.queued.place is not Place.UNSCHEDULABLE:
            assert self.scheduler.queue.pop(self.now) is self.queued
            assert self.scheduler.queue.fail(self.queued, self.now, frozenset({self.rule.name})) is Place.UNSCHEDULABLE

    def goes_through(self, changes: Iterable[Change]) -> None:
        """Whenever a node that denied the pod takes it, the pod wakes."""
        for change in changes:
            self.falls_asleep()
            denied = self.denied()
            self.tell(change)
            helped = denied & self.admitted()
            awake = self.queued.place is not Place.UNSCHEDULABLE
            assert awake or not helped, f"{change} helps on {helped}; known are {sorted(self.footprint.events)}"


def predicates() -> list[Rule]:
    return [rule for rule in shipped_rules() if rule.kind == "predicate"]


@pytest.mark.parametrize("rule", predicates(), ids=lambda rule: rule.name)
def test_shipped_rules_wake_whom_an_event_helps(rule: Rule) -> None:
    @examples(25)
    @given(scenarios(12), st.booleans())
    def holds(scenario: Scenario, given_arguments: bool) -> None:
        for pod in scenario.waiting():
            Sleeper(rule, ARGUMENTS if given_arguments else {}, scenario, pod).goes_through(scenario.changes)

    holds()


@examples(150)
@given(policies(), scenarios(12))
def test_random_rules_wake_whom_an_event_helps(policy: Policy, scenario: Scenario) -> None:
    for rule in policy.rules():
        if rule.kind == "predicate":
            Sleeper(rule, policy.arguments, scenario, scenario.waiting()[0]).goes_through(scenario.changes)


# Each was missed once, or could well be.
SMALL = [
    'view w = count n in cluster.nodes where n.podCount < 2 deny "x" when w > 1',
    'view w = count n in cluster.nodes where size(n.hostPorts) == 0 deny "x" when w > 1',
    'view w = count p in cluster.pods where p.node.podCount < 3 deny "x" when w > 1',
    'view w = sum 0 - 1 for p in cluster.pods deny "x" when w > 0 - 3',
    'view w = count p in cluster.pods by p.node.name deny "x" when w.values().exists(v, v < 2)',
    'view w = count p in cluster.pods by p.name deny "x" when w.keys()[0] > "p0"',
    'view w = count p in cluster.pods by p.node.name deny "x" when w.exists(k, v, v < 2)',
    'view f = first p in cluster.pods deny "x" when "disk" in f.node.labels',
    'view f = first n in cluster.nodes deny "x" when "disk" in f.labels || f.podCount > 1',
    'deny "x" when "disk" in node.metadata.labels',
    'deny "x" when node.status.allocatable.cpu > 2cpu',
    'deny "x" when size(node.spec.taints) > 0 || size(node.images) > 1',
    'deny "x" when node.requested.exists(k, v, v > 0)',
    'let free = node.allocatable.cpu - node.requested.cpu deny "x" when free < 3cpu',
    'let crowd = node.podCount + 1 deny "x" when crowd < 3',
    'stop when node.podCount > 1 deny "x" when node.podCount < 3',
    'deny "x" when !("s0" in cluster.services["default"])',
]


@pytest.mark.parametrize("body", SMALL)
def test_small_rules_wake_whom_an_event_helps(body: str) -> None:
    (rule,) = Policy(f"predicate P {{ {body} }}").rules()

    @examples(40)
    @given(scenarios(12))
    def holds(scenario: Scenario) -> None:
        for pod in scenario.waiting():
            Sleeper(rule, {}, scenario, pod).goes_through(scenario.changes)

    holds()
