"""Who of the unschedulable pods is asked about, and who wakes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.state.objects import pod

from ksp.core.queue import QueuedPod
from ksp.core.sleepers import ASKS, Sleepers
from ksp.model.info import PodInfo

NOW = 100.0  # when all have backed off
FIT, PORTS = frozenset({"Fit"}), frozenset({"Ports"})


class Room:
    """Says of each kind whether there is room, and remembers the questions."""

    def __init__(self, **room: bool | None) -> None:
        self.room = room
        self.rules = FIT | PORTS
        self.asked: list[str] = []

    def denied_by(self, info: PodInfo) -> frozenset[str] | None:
        self.asked.append(info.uid)
        room = self.room[kind_of(info)]
        return None if room is None else frozenset() if room else self.rules


def kind_of(info: PodInfo) -> str:
    return info.labels["kind"]


def sleepers(room: Room | None) -> Sleepers[QueuedPod]:
    subject: Sleepers[QueuedPod] = Sleepers(lambda queued: queued.added)
    subject.kind_of = kind_of
    if room is not None:
        subject.denied_by = room.denied_by
    return subject


def sleeping(uid: str, kind: str = "a", by: frozenset[str] = FIT, added: float = 0.0) -> QueuedPod:
    return QueuedPod(pod(uid, labels={"kind": kind}), added=added, first_added=0.0, unschedulable_by=by)


def filled(room: Room | None, *pods: QueuedPod) -> Sleepers[QueuedPod]:
    subject = sleepers(room)
    for queued in pods:
        subject.add(queued)
    return subject


def helped(subject: Sleepers[QueuedPod], by: frozenset[str] = FIT | PORTS) -> Sequence[str]:
    """The pods that wake for an event, taken out."""
    subject.help(lambda rules: bool(rules & by), "AnEvent")
    return woken(subject)


def woken(subject: Sleepers[QueuedPod]) -> Sequence[str]:
    found = [queued.uid for queued, _ in subject.woken(NOW)]
    for uid in found:
        subject.discard(uid)
    return found


def test_one_is_asked_for_those_like_it_and_one_wakes() -> None:
    room = Room(a=True, b=False)
    subject = filled(room, sleeping("b1", "b"), sleeping("b2", "b"), sleeping("a1"), sleeping("a2"))
    assert helped(subject) == ["a1"]
    assert room.asked == ["b1", "a1"]
    assert (subject.answers, subject.left_waiting) == ({"fits": 1, "waits": 1}, 3)
    assert not subject.owing


def test_the_same_kind_denied_by_other_rules_is_asked_about_apart_and_only_if_those_may_be_helped() -> None:
    room = Room(a=False)
    subject = filled(room, sleeping("fit"), sleeping("ports", by=PORTS))
    helped(subject, by=PORTS)
    assert room.asked == ["ports"]
    helped(subject, by=FIT | PORTS)
    assert room.asked == ["ports", "fit", "ports"]


def test_the_cause_is_the_last_event() -> None:
    subject = filled(Room(a=True), sleeping("a1"))
    subject.help(lambda _: True, "First")
    subject.help(lambda _: True, "Second")
    assert [cause for _, cause in subject.woken(NOW)] == ["Second"]


def test_while_a_pod_is_on_the_way_to_the_room_those_like_it_are_not_asked_about() -> None:
    room = Room(a=True)
    subject = filled(room, sleeping("a1"), sleeping("a2"))
    assert helped(subject) == ["a1"]
    assert helped(subject) == []
    assert room.asked == ["a1"]
    subject.tried("a1")
    assert subject.owing
    assert woken(subject) == ["a2"]


def test_who_would_compete_for_the_room_waits_until_one_has_been_tried() -> None:
    room = Room(a=True, b=True, c=True)
    subject = filled(room, sleeping("a1", added=3.0), sleeping("b1", "b", added=2.0), sleeping("c1", "c", PORTS, 1.0))
    assert helped(subject) == ["c1"]
    assert room.asked == ["c1"]
    assert woken(subject) == []
    subject.tried("c1")
    room.room["b"] = False  # c1 took it
    assert woken(subject) == ["a1"]
    assert room.asked == ["c1", "b1", "a1"]


def test_a_higher_priority_does_not_wait_for_a_lower_one() -> None:
    subject = filled(Room(a=True, b=True), sleeping("a1"))
    assert helped(subject) == ["a1"]
    urgent = sleeping("b1", "b")
    urgent.info = pod("b1", priority=10, labels={"kind": "b"})
    subject.add(urgent)
    assert helped(subject) == ["b1"]


def test_who_has_to_back_off_first_keeps_nobody_waiting() -> None:
    room = Room(a=True, b=True)
    subject = filled(room, sleeping("a1", added=NOW + 1), sleeping("b1", "b", added=NOW + 2))
    assert helped(subject) == ["a1", "b1"]


def test_the_highest_priority_is_asked_about_first() -> None:
    room = Room(a=False, b=False, c=False)
    urgent = sleeping("c1", "c", PORTS, 9.0)
    urgent.info = pod("c1", priority=10, labels={"kind": "c"})
    helped(filled(room, sleeping("a1", added=2.0), sleeping("b1", "b", added=1.0), urgent))
    assert room.asked == ["c1", "b1", "a1"]


def test_who_comes_back_unschedulable_answers_for_those_like_it() -> None:
    room = Room(a=True)
    subject = filled(room, first := sleeping("a1"), sleeping("a2"))
    helped(subject)
    subject.tried("a1")
    subject.add(first)
    assert not subject.owing
    assert woken(subject) == []


def test_if_all_back_off_the_one_wakes_whose_backoff_ends_first() -> None:
    ends = {"late": NOW + 9, "early": NOW + 3, "later": NOW + 9.5}
    assert helped(filled(Room(a=True), *(sleeping(uid, added=end) for uid, end in ends.items()))) == ["early"]


def test_where_nobody_knows_or_nothing_is_known_all_wake() -> None:
    assert helped(filled(Room(a=None), sleeping("a1"), sleeping("a2"))) == ["a1", "a2"]
    assert helped(filled(None, sleeping("a1"), sleeping("a2"))) == ["a1", "a2"]
    room = Room(a=False)
    unknown = filled(room, sleeping("a1", by=frozenset()))
    unknown.help(lambda _: True, "AnEvent")
    assert woken(unknown) == ["a1"]
    assert not room.asked


def test_questions_are_bounded_and_the_rest_is_asked_later_in_turn() -> None:
    kinds = [f"k{i}" for i in range(ASKS + 5)]
    room = Room(**dict.fromkeys(kinds, False))
    subject = filled(room, *(sleeping(kind, kind, FIT if i % 2 else PORTS) for i, kind in enumerate(kinds)))
    helped(subject)
    assert len(room.asked) == ASKS
    assert subject.owing
    helped(subject)
    assert len(room.asked) == ASKS
    subject.renew()
    woken(subject)
    assert set(room.asked) == {*kinds}
    assert len(room.asked) == 2 * ASKS  # those that were asked before the second event stand behind the others
    subject.renew()
    woken(subject)
    assert (len(room.asked), subject.owing) == (2 * len(kinds) - 5, False)


def test_a_pod_of_another_kind_than_before_is_asked_about() -> None:
    room = Room(a=False, b=True)
    subject = filled(room, queued := sleeping("a1"), sleeping("b1", "b"))
    queued.info = pod("a1", labels={"kind": "a"})
    subject.changed(queued)
    assert woken(subject) == []
    queued.info = pod("a1", labels={"kind": "b"})
    subject.changed(queued)
    assert subject.owing
    assert woken(subject) == ["b1"]


def test_a_question_that_fails_is_loud_and_its_group_can_be_helped_again() -> None:
    room = Room()
    subject = filled(room, sleeping("a1"))
    with pytest.raises(KeyError):
        helped(subject)
    room.room["a"] = True
    assert helped(subject) == ["a1"]


def test_who_was_found_before_a_question_failed_is_woken() -> None:
    room = Room(a=True)
    subject = filled(room, sleeping("a1", added=NOW + 1), sleeping("b1", "b", added=NOW + 2))
    subject.help(lambda _: True, "AnEvent")
    awake: list[tuple[QueuedPod, str]] = []
    with pytest.raises(KeyError):
        awake.extend(subject.woken(NOW))
    assert [queued.uid for queued, _ in awake] == ["a1"]


def test_a_group_sleeps_on_for_the_rules_of_the_last_answer() -> None:
    room = Room(a=False)
    subject = filled(room, sleeping("a1", by=FIT))
    room.rules = PORTS
    helped(subject, by=FIT)
    helped(subject, by=FIT)
    assert room.asked == ["a1"]
    helped(subject, by=PORTS)
    assert room.asked == ["a1", "a1"]


def test_nobody_waits_for_ever_for_a_question() -> None:
    """Though those before it are helped again and again."""
    kinds = [f"k{i}" for i in range(3 * ASKS)]
    room = Room(**dict.fromkeys(kinds, False))
    subject = filled(room, *(sleeping(kind, kind, added=float(i)) for i, kind in enumerate(kinds)))
    for _ in range(8):
        subject.renew()
        helped(subject)
    assert set(room.asked) == {*kinds}


def test_who_is_ready_and_failed_first_wakes_however_many_back_off() -> None:
    room = Room(a=True)
    subject = filled(room, *(sleeping(f"late{i}", added=NOW + 1) for i in range(20)), sleeping("b"), sleeping("c"))
    assert helped(subject) == ["b"]
