"""A denied pod sleeps until an event can help it: no event that does is missed, whatever the rule."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.oracle.clusters import Change, Scenario, core_changes, scenarios
from tests.oracle.policies import Policy, policies
from tests.policies.test_forms import ARGUMENTS, shipped_rules
from tests.unit.core.scheduling import FakeDice

from ksp.check.typed import Rule
from ksp.compile.footprint import footprint_of
from ksp.compile.program import Predicate, compile_rule
from ksp.core.changes import SetNode, SetPod
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.profile import ActivePredicate, Profile

THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
PHASES = tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate)
LATER = 5.0  # after the first backoff, before the end of patience


def examples(number: int) -> settings:
    return settings(
        max_examples=number * (40 if THOROUGH else 1), suppress_health_check=list(HealthCheck), phases=PHASES
    )


def scheduler(rule: Rule, arguments: dict[str, Any]) -> Scheduler:
    """One that asks this rule only."""
    known = {parameter.binding.name for parameter in rule.parameters}
    made = compile_rule(rule).instantiate({name: value for name, value in arguments.items() if name in known})
    assert isinstance(made, Predicate)
    active = ActivePredicate(rule.name, rule.plugin, made, footprint_of(rule))
    return Scheduler([Profile("default-scheduler", (active,), ())], FakeDice())


def filled(subject: Scheduler, scenario: Scenario) -> None:
    for each in scenario.nodes:
        subject.on(SetNode(convert(Node, each)), 0.0)
    placed = [Change("pod", pod["metadata"]["uid"], place, pod) for pod, place in scenario.pods]
    for change in (*placed, *scenario.objects):
        for told in core_changes(change, subject.state):
            subject.on(told, 0.0)


def sleeps_no_longer_than_it_must(rule: Rule, arguments: dict[str, Any], scenario: Scenario) -> None:
    """As long as the pod is not woken, no node takes it."""
    subject = scheduler(rule, arguments)
    filled(subject, scenario)
    subject.on(SetPod(convert(Pod, scenario.incoming[0])), 0.0)
    subject.step(0.0)
    uid = scenario.incoming[0]["metadata"]["uid"]
    waiting = subject.queue.get(uid)
    for change in scenario.changes:
        if waiting is None or waiting.place is not Place.UNSCHEDULABLE:
            return
        for told in core_changes(change, subject.state):
            subject.on(told, LATER)
        if waiting.place is Place.UNSCHEDULABLE:
            now = subject.cycles["default-scheduler"].decide(waiting.info)
            assert not now.node, f"{change} helps, and {rule.name} does not know: {sorted(footprint_of(rule).events)}"


def predicates() -> list[Rule]:
    return [rule for rule in shipped_rules() if rule.kind == "predicate"]


@pytest.mark.parametrize("rule", predicates(), ids=lambda rule: rule.name)
def test_shipped_rules_wake_whom_an_event_helps(rule: Rule) -> None:
    @examples(25)
    @given(scenarios(8))
    def holds(scenario: Scenario) -> None:
        sleeps_no_longer_than_it_must(rule, ARGUMENTS, scenario)

    holds()


@examples(200)
@given(policies(), scenarios(8))
def test_random_rules_wake_whom_an_event_helps(policy: Policy, scenario: Scenario) -> None:
    for rule in policy.rules():
        if rule.kind == "predicate":
            sleeps_no_longer_than_it_must(rule, policy.arguments, scenario)
