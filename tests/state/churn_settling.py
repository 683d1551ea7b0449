"""The end of a story: whatever is open comes to a good end, and then nobody may wait in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.state.churn_checks import Anew
from tests.state.churn_driver import Driver
from tests.state.churn_world import STREAMS

from ksp.core.extenders import EXTENDER
from ksp.core.preemption import NotEligible
from ksp.core.queue import Place, QueuedPod

ROUNDS: Final = 100
"""Of effects, outcomes and decisions, after which a cluster in which nothing happens by itself must be at rest."""
SOON: Final = 20.0
"""Seconds in which every backoff ends."""


def settle(driver: Driver) -> None:
    """Everything succeeds and is shown, until nothing is left to be done."""
    driver.extenders.always_kind = True
    driver.answer_all()
    driver.now += 1.0
    driver.world.list_pods(driver.now)  # what was bound and lost comes to light
    _come_to_rest(driver)
    if any(EXTENDER in queued.unschedulable_by for queued in driver.scheduler.queue):
        driver.world.drop("services", "s")
        driver.world.make("services", "s", 0)  # whatever happens, pods that an extender refused are tried again
        _come_to_rest(driver)
    _nobody_waits_in_vain(driver)


def _come_to_rest(driver: Driver) -> None:
    for _ in range(ROUNDS):
        worked = [do(driver) for do in (_show, _controllers, _outcomes, _evictions, _statuses, _decisions)]
        driver.check()
        if not any(worked) and not _time(driver):
            return
    raise AssertionError("it does not come to rest")


def _show(driver: Driver) -> bool:
    shown = any(driver.world.streams.values())
    for stream in STREAMS:
        driver.show(stream)
    return shown


def _controllers(driver: Driver) -> bool:
    acted = False
    for _ in range(ROUNDS):
        action: Callable[[], None] | None = next(driver.world.actions(), None)
        if action is None:
            return acted
        action()
        acted = True
    raise AssertionError("controllers do not come to rest")


def _outcomes(driver: Driver) -> bool:
    open_ones = bool(driver.binds or driver.writes)
    for uid, writing in list(driver.writes.items()):
        if driver.write(writing):
            driver.written(uid)
        else:
            driver.not_bound(uid)
    for uid, binding in list(driver.binds.items()):
        if binding.done or driver.world.bind(uid, binding.effect.node):
            driver.bound(uid)
        else:
            driver.not_bound(uid)
    return open_ones


def _evictions(driver: Driver) -> bool:
    """Who terminates goes, be it a victim or not."""
    leaving = [uid for uid, pod in driver.world.pods.items() if pod.metadata.deletion_timestamp is not None]
    ending = list(driver.evicts)
    for uid in [*leaving, *(uid for eviction in ending for uid in eviction.left)]:
        driver.world.drop_pod(uid)
    for eviction in ending:
        driver.evicted(eviction, done=True)
    return bool(leaving or ending)


def _statuses(driver: Driver) -> bool:
    writing, driver.nominations = driver.nominations, {}
    for uid, place in writing.items():
        driver.world.nominate(uid, place)
    return bool(writing)


def _decisions(driver: Driver) -> bool:
    """Attempts that end in the same error again and again are no work."""
    happened = driver.happened
    driver.step_until_nothing_is_due()
    return driver.happened != happened


def _time(driver: Driver) -> bool:
    """Time goes on to the next thing that is due soon, if that can change anything."""
    waiting = [queued for queued in driver.scheduler.queue if queued.place is Place.BACKOFF]
    fresh = [queued for queued in waiting if driver.tried.get(queued.uid) != driver.happened]
    due = driver.scheduler.next_deadline(driver.now)
    if due is None or due > driver.now + SOON or not (fresh or driver.scheduler.cache.assumed_count):
        return False
    driver.now = max(driver.now, due)
    driver.step_until_nothing_is_due()
    return True


def _nobody_waits_in_vain(driver: Driver) -> None:
    assert not driver.model.given
    anew = Anew(driver.model, driver.reloads.policy.profiles, driver.scheduler)
    for queued in driver.scheduler.queue:
        decision = anew.decide(anew.pod(queued.uid))
        assert not decision.node, f"{queued} could be on {decision.node}"
        if queued.place is not Place.UNSCHEDULABLE:
            assert decision.failed, f"{queued} is at rest though it is awake"
        elif not decision.failed:
            _nobody_can_go_for_it(queued, anew.victims(anew.pod(queued.uid), decision))


def _nobody_can_go_for_it(queued: QueuedPod, victims: dict[str, list[str]] | NotEligible) -> None:
    if isinstance(victims, NotEligible):
        assert queued.info.spec.preemption_policy == "Never", f"{queued} waits for nobody"
    else:
        assert not victims, f"{queued} could have others evicted: {victims}"
