"""What becomes of pods to which something happens between their decision and the watch's word that they are bound; of
nodes that go and come back; of pods that others bind; of gates."""

from __future__ import annotations

import pytest
from tests.unit.core.scheduling import node, pod, scheduler, stepped

from ksp.core.cache import CachePhase
from ksp.core.changes import Bind, DeleteNode, DeletePod, SetNode, SetPod
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler

LATER = 5.0  # after the first backoff, before the end of patience
FULL = {"cpu": "4"}


def under_way(*others: str) -> Scheduler:
    """P is being bound to `n`, which it fills; others of its size sleep."""
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    for name in ("p", *others):
        subject.on(SetPod(pod(name, requests=FULL)), 0.0)
    assert stepped(subject).effects == (Bind(subject.queue.get("p").info, "n"),)  # type: ignore[union-attr]
    for _ in others:
        assert not stepped(subject).decision.node
    return subject


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


# ---- deleted


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_pod_deleted_while_it_is_bound_leaves_its_room_to_others(outcome: str) -> None:
    subject = under_way("q")
    subject.on(DeletePod("p"), LATER)
    assert stepped(subject, LATER).pod.name == "q"
    if outcome == "succeeded":
        subject.bind_succeeded("p", LATER)
    else:
        subject.bind_failed("p", LATER)
    assert subject.cache.phase("p") is CachePhase.ABSENT
    assert place_of(subject, "p") is Place.ABSENT
    assert subject.step(LATER) is None


def test_a_pod_deleted_while_it_sleeps_is_forgotten() -> None:
    subject = under_way("q")
    subject.on(DeletePod("q"), LATER)
    subject.bind_failed("p", LATER)
    assert [place_of(subject, uid) for uid in "pq"] == [Place.BACKOFF, Place.ABSENT]
    assert stepped(subject, 2 * LATER).pod.name == "p"


def test_a_pod_that_is_to_be_deleted_while_it_is_bound_keeps_its_room_until_it_is_gone() -> None:
    subject = under_way("q")
    going = pod("p", requests=FULL, metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"})
    subject.on(SetPod(going), LATER)
    assert subject.cache.phase("p") is CachePhase.ASSUMED
    assert subject.step(LATER) is None
    subject.bind_failed("p", LATER)
    assert place_of(subject, "p") is Place.ABSENT
    assert stepped(subject, LATER).pod.name == "q"


def test_a_pod_made_anew_under_its_name_while_it_is_bound_is_another() -> None:
    subject = under_way()
    subject.on(SetPod(pod("p", requests=FULL, metadata={"uid": "second"})), LATER)
    step = stepped(subject, LATER)
    assert (step.pod.uid, step.decision.node) == ("second", "n")
    subject.bind_failed("p", LATER)
    assert subject.cache.phase("second") is CachePhase.ASSUMED


# ---- changed


def test_a_change_in_flight_counts_at_once_and_saves_the_backoff() -> None:
    """What failed is not what the pod is now."""
    subject = under_way()
    subject.on(SetPod(pod("p", requests={"cpu": "1"})), 0.1)
    assert subject.state.nodes["n"].requested["cpu"] == 1000
    subject.bind_failed("p", 0.2)
    assert place_of(subject, "p") is Place.ACTIVE
    assert stepped(subject, 0.2).pod.requests["cpu"] == 1000


def test_a_status_in_flight_is_no_change() -> None:
    subject = under_way()
    subject.on(SetPod(pod("p", requests=FULL, phase="Pending")), 0.1)
    subject.bind_failed("p", 0.2)
    assert place_of(subject, "p") is Place.BACKOFF


def test_a_pod_that_sleeps_and_is_changed_is_tried_at_once() -> None:
    subject = under_way("q")
    subject.on(SetPod(pod("q", requests=FULL, labels={"a": "b"})), 0.1)
    assert stepped(subject, 0.1).pod.name == "q"


# ---- bound by others


def test_a_pod_bound_by_others_where_it_was_to_be_stays_there() -> None:
    subject = under_way("q")
    subject.on(SetPod(pod("p", on="n", requests=FULL)), LATER)
    subject.bind_failed("p", LATER)  # a conflict
    assert subject.cache.phase("p") is CachePhase.ADDED
    assert place_of(subject, "p") is Place.ABSENT
    assert subject.step(LATER) is None


def test_a_pod_bound_by_others_elsewhere_leaves_its_room() -> None:
    subject = under_way("q")
    subject.on(SetNode(node("m", cpu="1")), LATER)
    subject.on(SetPod(pod("p", on="m", requests=FULL)), LATER)
    assert stepped(subject, LATER).decision.node == "n"
    subject.bind_failed("p", LATER)
    assert subject.cache.node_name_of("p") == "m"


def test_a_pod_that_sleeps_and_is_bound_by_others_waits_no_more() -> None:
    subject = under_way("q")
    subject.on(SetPod(pod("q", on="elsewhere", requests=FULL)), LATER)
    assert place_of(subject, "q") is Place.ABSENT
    assert subject.pending()["unschedulable"] == 0


# ---- nodes that go and come back


def test_a_node_that_goes_while_a_pod_is_bound_to_it_has_the_pod_when_it_comes_back() -> None:
    subject = under_way("q")
    subject.on(DeleteNode("n"), LATER)
    assert not subject.state.pods
    subject.on(SetNode(node("n")), 2 * LATER)
    assert [p.name for p in subject.state.nodes["n"].pods.values()] == ["p"]
    while subject.step(2 * LATER) is not None:  # q, who is told of another node
        assert place_of(subject, "q") is Place.UNSCHEDULABLE
    subject.bind_failed("p", 3 * LATER)
    assert not subject.state.pods
    step = stepped(subject, 3 * LATER)
    assert (step.pod.name, step.decision.node) == ("q", "n")


def test_a_node_that_comes_back_larger_takes_who_waits() -> None:
    subject = under_way("q")
    subject.bind_succeeded("p", 0.0)
    subject.on(SetPod(pod("p", on="n", requests=FULL)), 0.0)
    subject.on(DeleteNode("n"), LATER)
    subject.on(SetNode(node("n", cpu="8")), LATER)
    assert stepped(subject, LATER).decision.node == "n"


# ---- gates


def test_a_pod_waits_for_its_gates_and_is_tried_when_the_last_goes() -> None:
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}])), 0.0)
    assert subject.step(0.0) is None
    assert subject.pending()["gated"] == 1
    subject.on(SetPod(pod("p", schedulingGates=[{"name": "b"}])), 1.0)
    assert subject.step(1.0) is None
    subject.on(SetPod(pod("p")), 2.0)
    assert stepped(subject, 2.0).decision.node == "n"
    assert subject.pending()["gated"] == 0


def test_a_gated_pod_that_goes_is_not_counted_any_more() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p", schedulingGates=[{"name": "a"}])), 0.0)
    subject.on(DeletePod("p"), 1.0)
    assert subject.pending()["gated"] == 0


# ---- pods that a list of all pods does not show bound


def test_a_bound_pod_that_a_later_list_shows_without_a_node_is_tried_again() -> None:
    subject = under_way("q")
    subject.bind_succeeded("p", 1.0)
    subject.relisted(1.0, LATER)  # asked for when it was bound: it may not know that
    assert subject.cache.phase("p") is CachePhase.BOUND
    subject.relisted(2.0, LATER)
    assert subject.cache.phase("p") is CachePhase.ABSENT
    assert place_of(subject, "p") is Place.BACKOFF
    assert place_of(subject, "q") is Place.ACTIVE
    assert stepped(subject, LATER).decision.node == "n"  # q
    assert stepped(subject, 2 * LATER).pod.name == "p"


def test_pods_that_are_being_bound_are_left_alone_by_a_list() -> None:
    subject = under_way()
    subject.relisted(100.0, LATER)
    assert subject.cache.phase("p") is CachePhase.ASSUMED
    subject.bind_succeeded("p", LATER)
    subject.on(SetPod(pod("p", on="n", requests=FULL)), LATER)
    subject.relisted(100.0, 101.0)
    assert subject.cache.phase("p") is CachePhase.ADDED


def test_a_pod_that_ran_and_is_shown_without_a_node_waits_again() -> None:
    """The server was restored from a backup of before its binding."""
    subject = under_way("q")
    subject.bind_succeeded("p", 1.0)
    subject.on(SetPod(pod("p", on="n", requests=FULL)), 1.0)
    assert place_of(subject, "p") is Place.ABSENT
    subject.on(SetPod(pod("p", requests=FULL)), LATER)
    assert subject.cache.phase("p") is CachePhase.ABSENT
    assert sorted((stepped(subject, LATER).decision.node, stepped(subject, LATER).decision.node)) == ["", "n"]
