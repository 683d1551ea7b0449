"""Who may have others evicted now."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.preemption.worlds import World, running, urgent
from tests.unit.core.scheduling import FakeDice

from ksp.core.nominations import Nominations
from ksp.core.preemption import NOT_ELIGIBLE, Preempted, Preemption

LEAVING: dict[str, Any] = {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}

TAINTS = [{"key": "k", "effect": "NoSchedule"}]


def full(**first: Any) -> World:
    """Two full nodes; a pod on the first is as told."""
    return World({"n": [running("low", cpu="2", **first), running("other", cpu="2")], "m": [running("m", cpu="4")]})


def test_a_pod_that_never_preempts() -> None:
    world = full()
    assert world.attempt(urgent(preemptionPolicy="Never")) is NOT_ELIGIBLE
    assert isinstance(world.attempt(urgent(preemptionPolicy="PreemptLowerPriority")), Preempted)


def test_a_nominated_pod_waits_for_pods_that_leave_its_node() -> None:
    world, pod = full(**LEAVING), urgent()
    world.nominations.put(pod, "n")
    assert world.attempt(pod) is NOT_ELIGIBLE


def test_the_status_of_a_pod_names_its_node_where_no_nomination_is_known() -> None:
    world = full(**LEAVING)
    assert world.attempt(urgent(nominated="n")) is NOT_ELIGIBLE
    assert isinstance(world.attempt(urgent(nominated="m")), Preempted)


def test_a_nomination_that_is_known_is_newer_than_the_status() -> None:
    world, pod = full(**LEAVING), urgent(nominated="n")
    world.nominations.put(pod, "m")
    assert isinstance(world.attempt(pod), Preempted)


def test_a_nomination_that_was_withdrawn_does_not_count_though_the_status_has_it_still() -> None:
    world, pod = full(**LEAVING), urgent(nominated="n")
    world.nominations.put_if_claimed(pod)
    assert world.attempt(pod) is NOT_ELIGIBLE
    world.nominations.withdraw(pod)
    assert isinstance(world.attempt(pod), Preempted)


@pytest.mark.parametrize("why", ["nobody leaves", "another node", "the same priority", "the node is gone"])
def test_a_nominated_pod_that_waits_for_nobody_may_preempt(why: str) -> None:
    world = full(**({} if why == "nobody leaves" else LEAVING | {"priority": 10 if why == "the same priority" else 0}))
    pod = urgent()
    world.nominations.put(pod, {"another node": "m", "the node is gone": "gone"}.get(why, "n"))
    assert isinstance(world.attempt(pod), Preempted)


def test_victims_whose_deletion_was_not_seen_yet_are_waited_for() -> None:
    world, pod = full(), urgent()
    world.nominations.put(pod, "n")
    assert world.attempt(pod, {"low"}) is NOT_ELIGIBLE
    assert isinstance(world.attempt(pod, {"m", "gone"}), Preempted)


def test_a_pod_whose_node_is_out_of_the_question_waits_no_more() -> None:
    world = World({"n": [running("low", **LEAVING)], "m": [running("m", cpu="4")]}, n={"taints": TAINTS})
    pod = urgent()
    world.nominations.put(pod, "n")
    assert world.victims(pod) == ("m", ["m"])


def test_who_leaves_is_a_victim_all_the_same() -> None:
    world = World({"n": [running("low", cpu="4", **LEAVING)]})
    assert world.victims(urgent()) == ("n", ["low"])


# ---- is an attempt worth its while


def test_an_attempt_would_help_where_victims_would() -> None:
    world = full()
    assert world.preemption.would_help(urgent())
    assert not world.preemption.would_help(urgent(cpu="5"))
    assert not world.preemption.would_help(urgent(nodeSelector={"disk": "ssd"}))
    assert not world.preemption.would_help(urgent(preemptionPolicy="Never"))


def test_while_nobody_has_a_lower_priority_nothing_is_asked() -> None:
    """Tables that do not know views: any question of a rule would end in an error."""
    world = full()
    preemption = Preemption(world.profile, world.present, Nominations(), FakeDice())
    preemption.tables = None  # type: ignore[assignment]
    assert not preemption.would_help(urgent(priority=0))
    with pytest.raises(AttributeError):
        preemption.would_help(urgent(priority=1))


def test_an_attempt_would_not_help_while_the_pod_waits() -> None:
    world, pod = full(), urgent()
    world.nominations.put(pod, "n")
    assert world.preemption.would_help(pod)
    assert not world.preemption.would_help(pod, {"low"})
    tainted = World({"n": [running("low")], "m": [running("m", cpu="4")]}, n={"taints": TAINTS})
    tainted.nominations.put(pod, "n")
    assert tainted.preemption.would_help(pod, {"low"})
