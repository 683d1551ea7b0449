"""A profile that asks all rules of each node names all that deny it (a Policy's alwaysCheckAllPredicates)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.scheduling import FakeDice, cluster, info, node, pod, profile_of, stepped

from ksp.core.changes import DeletePod, SetNode, SetPod
from ksp.core.cycle import Cycle, Decision
from ksp.core.equivalence.present import Present
from ksp.core.nominations import Nominations
from ksp.core.scheduler import Scheduler
from ksp.core.state import ClusterState
from ksp.policy.profile import Profile

RULES = """
predicate Small { deny "small" when node.allocatable["cpu"] < 8cpu }
predicate Tainted { deny unresolvable "tainted", "away" when node.labels["bad"] == "yes" }
predicate Broken { fail "broken" when node.labels["broken"] == "yes" }
predicate Full { deny "full" when node.podCount > 0 }
"""
BAD, BROKEN = {"bad": "yes"}, {"broken": "yes"}


def rules(*, checks_all: bool = True) -> Profile:
    made = profile_of(RULES, "predicates { Small, Tainted, Broken, Full }")
    return replace(made, checks_all=checks_all)


def decided(state: ClusterState, profile: Profile, nominations: Nominations | None = None) -> Decision:
    """The same with classes and without, in columns and node by node."""
    nominations = nominations or Nominations()
    found: list[Decision] = []
    for classes, columns in ((0, True), (0, False), (10, True)):
        cycle = Cycle(
            profile, Present.of(state), nominations.nodes, FakeDice(), equivalence_classes=classes, columns=columns
        )
        found.append(cycle.decide(info("p")))
    first = found[0]
    for other in found[1:]:
        assert (other.node, other.message, other.failed, other.denied_by) == (
            first.node, first.message, first.failed, first.denied_by,
        )  # fmt: skip
        assert other.filtered.refused == first.filtered.refused
    return first


def test_all_reasons_count_and_all_rules_are_named() -> None:
    state = cluster(node("a", cpu="4"), node("b", cpu="4", labels=BAD), node("c", cpu="8", labels=BAD))
    decision = decided(state, rules())
    assert decision.message == "0/3 nodes are available: 2 away, 2 small, 2 tainted."
    assert decision.denied_by == {"Small", "Tainted"}


def test_the_first_rule_stands_for_the_node_and_the_others_are_behind_it() -> None:
    refused = decided(cluster(node("b", cpu="4", labels=BAD)), rules()).filtered.refused["b"]
    assert (refused.rule, [other.rule for other in refused.others]) == ("Small", ["Tainted"])
    assert refused.is_final  # though the first rule says that pods may help


def test_without_it_the_first_rule_alone_is_told_of() -> None:
    decision = decided(cluster(node("b", cpu="4", labels=BAD)), rules(checks_all=False))
    assert decision.message == "0/1 nodes are available: 1 small."
    assert decision.denied_by == {"Small"}
    assert not decision.filtered.refused["b"].is_final


def test_a_failure_hides_denials_before_and_after_it() -> None:
    decision = decided(cluster(node("b", cpu="4", labels={**BAD, **BROKEN})), rules())
    assert decision.failed
    assert decision.message == 'running "Broken" filter plugin for pod "p": broken'


def test_a_failure_behind_a_denial_is_not_seen_where_the_first_rule_is_enough() -> None:
    assert not decided(cluster(node("b", cpu="4", labels=BROKEN)), rules(checks_all=False)).failed


def test_all_rules_are_asked_of_a_node_with_nominated_pods_too() -> None:
    nominations = Nominations()
    nominations.put(info("other"), "a")
    decision = decided(cluster(node("a", cpu="4")), rules(), nominations)
    assert decision.message == "0/1 nodes are available: 1 full, 1 small."
    assert decision.denied_by == {"Small", "Full"}


@pytest.mark.parametrize("checks_all", [True, False])
def test_no_class_keeps_what_was_said_before_a_change(checks_all: bool) -> None:
    """A node changes after the class is made: one slot is put together, not all."""
    state = cluster(*(node(f"n{i}", cpu="4", labels=BAD) for i in range(80)))
    cycle = Cycle(rules(checks_all=checks_all), Present.of(state), dict, FakeDice())
    cycle.decide(info("p"))
    state.set_node(node("n7", cpu="8", labels=BAD))
    wanted = "80 away, 80 tainted, 79 small" if checks_all else "79 small, 1 away, 1 tainted"
    items = ", ".join(sorted(wanted.split(", ")))
    assert cycle.decide(info("p")).message == f"0/80 nodes are available: {items}."
    state.set_node(node("n7", cpu="8"))
    assert cycle.decide(info("p")).node == "n7"


def test_an_event_that_helps_a_rule_behind_the_first_wakes_the_pod() -> None:
    """Both have to be helped; whichever event comes last must not find a pod that sleeps by the other rule alone."""
    subject = Scheduler([rules()], FakeDice(), equivalence_classes=0)
    subject.on(SetNode(node("n", cpu="4")), 0.0)
    subject.on(SetPod(pod("there", on="n")), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    step = stepped(subject)
    assert step.decision.message == "0/1 nodes are available: 1 full, 1 small."
    subject.on(DeletePod("there"), 5.0)  # nothing for Small, which was the first
    again = stepped(subject, 5.0)
    assert again.decision.message == "0/1 nodes are available: 1 small."
