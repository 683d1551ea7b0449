"""Who is tried next, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.state.objects import pod

from ksp.core.backoff import Backoff
from ksp.core.errors import IllegalMoveError
from ksp.core.queue import TRANSITIONS, Place, QueuedPod, QueueEvent, SchedulingQueue

FIT = frozenset({"PodFitsResources"})
TAINTS = frozenset({"PodToleratesNodeTaints"})


def popped(queue: SchedulingQueue, now: float = 0.0) -> QueuedPod:
    queued = queue.pop(now)
    assert queued is not None
    return queued


def unschedulable(queue: SchedulingQueue, uid: str = "p", now: float = 0.0, *, by: frozenset[str] = FIT) -> QueuedPod:
    queue.add(pod(uid), now)
    queued = popped(queue, now)
    assert queued.uid == uid
    assert queue.fail(queued, now, by) is Place.UNSCHEDULABLE
    return queued


def waiting(queue: SchedulingQueue) -> tuple[int, int, int]:
    sizes = queue.pending()
    return sizes["active"], sizes["backoff"], sizes["unschedulable"]


# ---- order


def test_priority_then_time_then_turn() -> None:
    queue = SchedulingQueue()
    queue.add(pod("late"), 2.0)
    queue.add(pod("early"), 1.0)
    queue.add(pod("early too"), 1.0)
    queue.add(pod("urgent", priority=10), 3.0)
    assert [popped(queue, 3.0).uid for _ in range(4)] == ["urgent", "early", "early too", "late"]
    assert queue.pop(3.0) is None


def test_a_pod_that_comes_back_stands_behind_those_that_waited() -> None:
    queue = SchedulingQueue()
    queue.add(pod("first"), 0.0)
    failed = popped(queue)
    queue.add(pod("second"), 1.0)
    queue.fail(failed, 2.0, FIT)
    queue.move_all(60.0)
    assert [popped(queue, 60.0).uid for _ in range(2)] == ["second", "first"]
    assert (failed.first_added, failed.added) == (0.0, 2.0)


def test_an_active_pod_is_updated_in_its_place() -> None:
    queue = SchedulingQueue()
    for uid in ("a", "b", "c"):
        queue.add(pod(uid), 0.0)
    changed = pod("a", labels={"app": "web"})
    assert queue.update(changed, changed=True) is Place.ACTIVE
    queue.update(pod("c", priority=1), changed=True)
    assert [popped(queue).uid for _ in range(3)] == ["c", "a", "b"]
    assert len(queue) == 3


# ---- backoff


def test_backoff_doubles_up_to_its_maximum() -> None:
    assert [Backoff().duration(n) for n in range(1, 8)] == [1, 2, 4, 8, 10, 10, 10]
    assert [Backoff(3, 7).duration(n) for n in range(1, 5)] == [3, 6, 7, 7]
    assert Backoff(1, 10).duration(10_000) == 10
    with pytest.raises(ValueError, match="0 < initial <= maximum"):
        Backoff(2, 1)


def test_attempts_count_when_popped_and_set_the_backoff() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    now, waits = 0.0, []
    for attempt in range(1, 7):
        queued = popped(queue, now)
        assert queued.attempts == attempt
        assert queue.retry(queued, now) is Place.BACKOFF
        ready = queue.next_deadline(now)
        assert ready is not None
        assert queue.pop(ready - 0.001) is None
        waits.append(ready - now)
        now = ready
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_woken_pod_first_ends_its_backoff() -> None:
    queue = SchedulingQueue()
    queued = unschedulable(queue)
    queue.move_all(0.5)
    assert waiting(queue) == (0, 1, 0)
    assert queue.next_deadline(0.5) == 1.0
    assert popped(queue, 1.0) is queued
    queue.fail(queued, 1.0, FIT)
    queue.move_all(3.0)
    assert waiting(queue) == (1, 0, 0)


def test_a_change_ends_a_backoff() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    queue.retry(popped(queue), 0.0)
    assert queue.update(pod("p"), changed=True) is Place.ACTIVE
    assert popped(queue).attempts == 2


def test_a_new_status_ends_no_backoff() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    queue.retry(popped(queue), 0.0)
    shown = pod("p", nominated="n")
    assert queue.update(shown, changed=False) is Place.BACKOFF
    assert queue.next_deadline(0.0) == 1.0
    assert popped(queue, 1.0).info is shown


# ---- waiting for events


def test_only_pods_that_the_event_may_help_are_moved() -> None:
    queue = SchedulingQueue()
    first, second = unschedulable(queue, "a"), unschedulable(queue, "b", by=TAINTS)
    assert queue.move(lambda rules: rules == TAINTS, 5.0) == 1
    assert (first.place, second.place) == (Place.UNSCHEDULABLE, Place.ACTIVE)
    assert first.unschedulable_by == FIT


def test_pods_wake_in_the_order_in_which_they_failed_whatever_denied_them() -> None:
    queue = SchedulingQueue()
    for name, rules in (("a", FIT), ("b", TAINTS), ("c", FIT), ("d", TAINTS)):
        unschedulable(queue, name, by=rules)
    assert queue.move_all(5.0) == 4
    assert [popped(queue, 5.0).uid for _ in range(4)] == ["a", "b", "c", "d"]


def test_a_move_request_asks_once_for_pods_that_the_same_rules_denied() -> None:
    queue = SchedulingQueue()
    for i in range(20):
        unschedulable(queue, f"p{i}", by=FIT if i % 2 else TAINTS)
    asked: list[frozenset[str]] = []

    def may_help(rules: frozenset[str]) -> bool:
        asked.append(rules)
        return rules == FIT

    assert queue.move(may_help, 5.0) == 10
    assert sorted(asked, key=sorted) == sorted([FIT, TAINTS], key=sorted)
    asked.clear()
    queue.move(may_help, 5.0)
    assert asked == [TAINTS]


def test_a_move_request_during_the_attempt_is_not_lost() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    queued = popped(queue)
    queue.move(lambda _: False, 0.0)
    assert queue.fail(queued, 0.0, FIT) is Place.BACKOFF
    assert popped(queue, 1.0) is queued
    assert queue.fail(queued, 1.0, FIT) is Place.UNSCHEDULABLE


def test_a_move_request_in_a_later_cycle_counts_too() -> None:
    queue = SchedulingQueue()
    queue.add(pod("slow"), 0.0)
    slow = popped(queue)
    queue.add(pod("quick"), 0.0)
    quick = popped(queue)
    queue.move_all(0.0)
    assert queue.fail(slow, 0.0, FIT) is queue.fail(quick, 0.0, FIT) is Place.BACKOFF


def test_patience_ends_after_a_minute() -> None:
    queue = SchedulingQueue()
    queued = unschedulable(queue, now=5.0)
    assert queue.next_deadline(5.0) == 65.0
    assert queue.pop(64.9) is None
    assert popped(queue, 65.0) is queued
    assert queue.fail(queued, 65.0, FIT) is Place.UNSCHEDULABLE, "the end of patience is no move request"


def test_a_pod_is_activated_after_its_backoff() -> None:
    queue = SchedulingQueue()
    unschedulable(queue, "p")
    unschedulable(queue, "q")
    queue.activate("p", 0.5)
    assert waiting(queue) == (0, 1, 1)
    queue.activate("q", 1.0)
    assert waiting(queue) == (1, 1, 0)
    assert [popped(queue, 1.0).uid for _ in range(2)] == ["q", "p"]


def test_only_a_pod_that_sleeps_is_activated() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    queue.activate("p", 0.0)
    in_flight = popped(queue)
    queue.activate("p", 0.0)
    queue.activate("unknown", 0.0)
    assert queue.fail(in_flight, 0.0, FIT) is Place.UNSCHEDULABLE
    assert queue.incoming == {("active", "PodAdd"): 1, ("unschedulable", "ScheduleAttemptFailure"): 1}


def test_a_new_status_leaves_an_unschedulable_pod_in_its_turn() -> None:
    queue = SchedulingQueue()
    first, second = unschedulable(queue, "a", 0.0), unschedulable(queue, "b", 1.0)
    assert queue.update(pod("a"), changed=False) is Place.UNSCHEDULABLE
    assert queue.next_deadline(1.0) == 60.0
    assert popped(queue, 60.0) is first
    assert second.place is Place.UNSCHEDULABLE


def test_a_changed_pod_is_tried_at_once() -> None:
    queue = SchedulingQueue()
    queued = unschedulable(queue)
    changed = pod("p", cpu="1m")
    assert queue.update(changed, changed=True) is Place.ACTIVE
    assert queued.info is changed


@pytest.mark.parametrize("back", [SchedulingQueue.retry, lambda q, pod, now: q.fail(pod, now, FIT)])
def test_a_change_in_flight_is_not_lost(back: Callable[[SchedulingQueue, QueuedPod, float], Place]) -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    queued = popped(queue)
    assert queue.update(pod("p", cpu="1m"), changed=True) is Place.IN_FLIGHT
    assert queue.update(pod("p", cpu="1m"), changed=False) is Place.IN_FLIGHT
    assert back(queue, queued, 0.0) is Place.ACTIVE
    assert back(queue, popped(queue), 0.0) is not Place.ACTIVE


# ---- leaving


def test_a_pod_deleted_in_flight_stays_away() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p"), 0.0)
    stale = popped(queue)
    assert queue.delete("p") is stale
    again = queue.add(pod("p"), 1.0)
    assert queue.fail(stale, 2.0, FIT) is queue.retry(stale, 2.0) is Place.ABSENT
    assert queue.get("p") is again
    assert (again.attempts, again.place) == (0, Place.ACTIVE)


def test_a_deleted_pod_is_nowhere() -> None:
    queue = SchedulingQueue()
    unschedulable(queue, "a")
    queue.add(pod("b"), 0.0)
    queue.retry(popped(queue), 0.0)
    queue.add(pod("c"), 0.0)
    assert waiting(queue) == (1, 1, 1)
    for uid in ("a", "b", "c", "never"):
        queue.delete(uid)
    assert waiting(queue) == (0, 0, 0)
    assert queue.next_deadline(0.0) is None
    assert queue.pop(1e9) is None
    assert len(queue) == 0


def test_the_next_deadline_is_never_in_the_past() -> None:
    queue = SchedulingQueue()
    unschedulable(queue)
    assert queue.next_deadline(100.0) == 100.0
    queue.add(pod("q"), 100.0)
    assert queue.next_deadline(101.0) == 101.0


# ---- nominated pods


def test_a_nomination_follows_the_status() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p", nominated="n"), 0.0)
    assert [info.uid for info in queue.nominated_on("n")] == ["p"]
    queue.update(pod("p", nominated="m"), changed=False)
    assert queue.nominated_on("n") == []
    moved = pod("p", nominated="m")
    queue.update(moved, changed=False)
    assert queue.nominated_on("m") == [moved]
    queue.update(pod("p"), changed=False)
    assert queue.nominated_on("m") == []


def test_a_nomination_outlives_updates_that_do_not_know_it() -> None:
    queue = SchedulingQueue()
    queued = unschedulable(queue)
    queue.nominate(queued.info, "n")
    newer = pod("p", labels={"app": "web"})
    queue.update(newer, changed=True)
    assert queue.nominated_on("n") == [newer]
    assert queue.nominations.node_of("p") == "n"
    queue.delete("p")
    assert queue.nominated_on("n") == []
    assert not queue.nominations.nodes()


def test_a_cleared_nomination_returns_only_with_the_pod() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p", nominated="n"), 0.0)
    queued = popped(queue)
    queue.clear_nomination("p")
    queue.update(pod("p", nominated="n"), changed=False)
    assert queue.nominated_on("n") == []
    queue.retry(queued, 0.0)
    assert queue.nominated_on("n") == [queued.info]


def test_a_newer_nomination_wins_over_the_status_of_a_pod_that_comes_back() -> None:
    queue = SchedulingQueue()
    queue.add(pod("p", nominated="n"), 0.0)
    queued = popped(queue)
    queue.nominate(queued.info, "m")
    queue.fail(queued, 0.0, FIT)
    assert (queue.nominated_on("n"), queue.nominated_on("m")) == ([], [queued.info])


# ---- the table


def put(place: Place) -> tuple[SchedulingQueue, QueuedPod]:
    queue = SchedulingQueue()
    queued = queue.add(pod("p"), 0.0)
    if place is Place.ACTIVE:
        return queue, queued
    queue.pop(0.0)
    match place:
        case Place.BACKOFF:
            queue.retry(queued, 0.0)
        case Place.UNSCHEDULABLE:
            queue.fail(queued, 0.0, FIT)
        case Place.ABSENT:
            queue.delete("p")
    return queue, queued


DO: dict[QueueEvent, Callable[[SchedulingQueue, QueuedPod], object]] = {
    QueueEvent.ADD: lambda queue, _: queue.add(pod("p"), 0.0),
    QueueEvent.FAIL: lambda queue, queued: queue.fail(queued, 0.0, FIT),
    QueueEvent.RETRY: lambda queue, queued: queue.retry(queued, 0.0),
    QueueEvent.UPDATE: lambda queue, _: queue.update(pod("p"), changed=False),
    QueueEvent.DELETE: lambda queue, _: queue.delete("p"),
}


@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("event", DO)
def test_every_move_is_the_table_s(place: Place, event: QueueEvent) -> None:
    queue, queued = put(place)
    allowed = TRANSITIONS.get((place, event), frozenset())
    if not allowed:
        with pytest.raises(IllegalMoveError, match=f"queue: {event.value} of pod p which is {place.value}"):
            DO[event](queue, queued)
        allowed = frozenset({place})
    else:
        DO[event](queue, queued)
    known = queue.get("p")
    assert (known.place if known else Place.ABSENT) in allowed


def test_patience_is_positive() -> None:
    with pytest.raises(ValueError, match="patience"):
        SchedulingQueue(patience=0)


# ---- names, gates, and what is counted


def test_a_name_tells_who_must_be_gone() -> None:
    queue = SchedulingQueue()
    queue.add(pod("1", name="web-0"), 0.0)
    assert queue.namesake(pod("2", name="web-0")) == "1"
    assert queue.namesake(pod("1", name="web-0")) is None
    assert queue.namesake(pod("2", name="web-1")) is None
    assert queue.namesake(pod("2", name="web-0", namespace="other")) is None
    queue.update(pod("1", name="web-1"), changed=True)
    assert queue.namesake(pod("2", name="web-0")) is None
    assert queue.namesake(pod("2", name="web-1")) == "1"
    queue.delete("1")
    assert queue.namesake(pod("2", name="web-1")) is None


def test_gated_pods_are_counted_until_they_come_or_go() -> None:
    queue = SchedulingQueue()
    for uid in ("a", "b"):
        queue.gate(pod(uid))
        queue.gate(pod(uid))
    assert queue.pending()["gated"] == 2
    assert (len(queue), queue.pop(0.0), queue.next_deadline(0.0)) == (0, None, None)
    queue.add(pod("a"), 1.0)
    assert (queue.pending()["gated"], popped(queue, 1.0).uid) == (1, "a")
    queue.delete("b")
    assert queue.pending()["gated"] == 0


def test_incoming_pods_are_counted_by_queue_and_cause() -> None:
    queue = SchedulingQueue()
    unschedulable(queue, "a")
    queue.move(lambda _: True, 0.5, "NodeAdd")
    popped(queue, 1.0)
    queue.add(pod("b"), 1.0)
    queue.retry(popped(queue, 1.0), 1.0)
    queue.update(pod("b"), changed=True)
    unschedulable_again = popped(queue, 1.0)
    queue.fail(unschedulable_again, 1.0, FIT)
    queue.pop(61.0)
    assert queue.incoming == {
        ("active", "PodAdd"): 2,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("active", "PodUpdate"): 1,
        ("active", "UnschedulableTimeout"): 1,
    }
