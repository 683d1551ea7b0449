"""The churn machine notices what it is for: each bug is put in, and the machine fails, or a story of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.state.churn_driver import FOR_EVER, Driver
from tests.state.churn_settling import settle
from tests.state.test_churn_machine import ChurnMachine

from ksp.core.assume_cache import AssumeCache
from ksp.core.bindings import Bindings, Ended
from ksp.core.changes import ClearNomination
from ksp.core.errors import InternalError
from ksp.core.evictions import Evictions
from ksp.core.outcomes import Outcomes
from ksp.core.preemption import Preemption, attempt, eligibility
from ksp.core.queue import SchedulingQueue
from ksp.core.scheduler import Scheduler
from ksp.core.state import ClusterState
from ksp.core.volume_binder import Promise
from ksp.core.wake import ROOM
from ksp.core.with_nominated import WithNominated
from ksp.model.info import PodInfo

Patch = pytest.MonkeyPatch


def what_was_assumed_of_volumes_stays_when_binding_fails(patch: Patch) -> None:
    patch.setattr(AssumeCache, "release", lambda *_: frozenset())


def volumes_that_are_promised_look_free(patch: Patch) -> None:
    patch.setattr(Promise, "over", lambda _, volume: volume)


def nominated_pods_keep_a_node_that_is_gone(patch: Patch) -> None:
    patch.setattr(Outcomes, "lose_node", lambda *_: None)


def nobody_is_told_that_a_nomination_ended(patch: Patch) -> None:
    effects = Scheduler.effects
    patch.setattr(
        Scheduler, "effects", lambda self: tuple(e for e in effects(self) if not isinstance(e, ClearNomination))
    )  # fmt: skip


def a_pod_that_goes_wakes_nobody(patch: Patch) -> None:
    move = Outcomes.move
    patch.setattr(Outcomes, "move", lambda self, events, now: move(self, events - ROOM, now))


def a_pod_that_could_preempt_is_not_woken(patch: Patch) -> None:
    patch.setattr(Preemption, "would_help", lambda *_: False)


def a_pod_whose_binding_failed_is_lost(patch: Patch) -> None:
    patch.setattr(SchedulingQueue, "retry", lambda _, queued, __: queued.place)


def a_second_preemption_does_not_wait_for_the_first(patch: Patch) -> None:
    patch.setattr(Evictions, "victims", ())


def victims_that_went_are_waited_for(patch: Patch) -> None:
    patch.setattr(Evictions, "shown", lambda *_: None)


def room_for_nominated_pods_is_given_to_others(patch: Patch) -> None:
    patch.setattr(WithNominated, "verdicts", lambda *_: {})


def a_victim_that_is_put_back_counts_twice(patch: Patch) -> None:
    put_back = ClusterState.put_back

    def twice(self: ClusterState, pod: PodInfo, node: str, order: Mapping[str, int]) -> None:
        put_back(self, pod, node, order)
        self.nodes[node]._count(pod, 1)

    patch.setattr(ClusterState, "put_back", twice)


def pods_that_must_not_preempt_do(patch: Patch) -> None:
    for module in (attempt, eligibility):
        patch.setattr(module, "may_preempt", lambda _: True)


def claims_that_are_bound_are_not_noticed(patch: Patch) -> None:
    patch.setattr(Bindings, "claim_changed", lambda *_: Ended())


def nobody_knows_when_waiting_for_claims_ends(patch: Patch) -> None:
    patch.setattr(Bindings, "next_deadline", lambda _: None)


def what_was_bound_and_lost_is_never_found_out(patch: Patch) -> None:
    patch.setattr(Outcomes, "relisted", lambda *_: None)


def pods_without_a_profile_stay(patch: Patch) -> None:
    patch.setattr(Outcomes, "leave", lambda *_: None)


def pods_sleep_on_under_another_policy(patch: Patch) -> None:
    patch.setattr(SchedulingQueue, "move_all", lambda *_: 0)


SEEDED: list[Callable[[Patch], None]] = [
    what_was_assumed_of_volumes_stays_when_binding_fails,
    volumes_that_are_promised_look_free,
    nominated_pods_keep_a_node_that_is_gone,
    nobody_is_told_that_a_nomination_ended,
    a_pod_that_goes_wakes_nobody,
    a_pod_whose_binding_failed_is_lost,
    room_for_nominated_pods_is_given_to_others,
    a_victim_that_is_put_back_counts_twice,
    a_second_preemption_does_not_wait_for_the_first,
    victims_that_went_are_waited_for,
    pods_that_must_not_preempt_do,
    claims_that_are_bound_are_not_noticed,
    nobody_knows_when_waiting_for_claims_ends,
    what_was_bound_and_lost_is_never_found_out,
    pods_without_a_profile_stay,
    pods_sleep_on_under_another_policy,
]


def a_pod_leaves_that_could_not_be_evicted() -> Driver:
    """One of lower priority stays, which can."""
    driver = Driver(None, FOR_EVER)
    driver.world.put_node("n0", 0)
    driver.show("nodes")
    for name, rank in (("high", 2), ("low", 0)):
        driver.world.make_pod(name, 1, rank, "n0")
    driver.world.make_pod("waits", 2, 2)
    driver.show("pods")
    driver.step_until_nothing_is_due()
    high = driver.world.named("high")
    assert high is not None
    driver.world.drop_pod(high.metadata.uid)
    settle(driver)
    return driver


def test_a_pod_is_woken_that_could_preempt() -> None:
    driver = a_pod_leaves_that_could_not_be_evicted()
    assert [(pod.metadata.name, pod.spec.node_name) for pod in driver.world.pods.values()] == [("waits", "n0")]


def test_a_story_fails_with_the_bug_in(monkeypatch: Patch) -> None:
    a_pod_that_could_preempt_is_not_woken(monkeypatch)
    with pytest.raises(AssertionError, match="could have others evicted"):
        a_pod_leaves_that_could_not_be_evicted()


@pytest.mark.parametrize("bug", SEEDED, ids=lambda bug: bug.__name__)
def test_the_machine_fails_with_the_bug_in(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    often: Any = settings(max_examples=500, stateful_step_count=50, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, InternalError)):
        run_state_machine_as_test(ChurnMachine, settings=often)
