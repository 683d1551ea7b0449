"""The queue and a cluster of which nothing is known but how many pods of each kind have room.

Pods come and go, room comes with an event and goes without one, pods are tried when they are due. Then nobody sleeps
for whom there is room, unless one like it is on the way to take it, and not later than the sleeper would be; and no
event wakes a pod for which there is none.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.state.objects import pod

from ksp.core.queue import Place, QueuedPod, SchedulingQueue
from ksp.model.info import PodInfo

KINDS = ("a", "b", "c")
RULES = ("Fit", "Ports")
ASKS = 2
FOREVER = 1e9

kinds = st.sampled_from(KINDS)
rooms = st.sampled_from([0, 1, 2, 5, None])
denied = st.frozensets(st.sampled_from(RULES), min_size=1)


def kind_of(info: PodInfo) -> str:
    return info.labels["kind"]


class SleepersMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue = SchedulingQueue(patience=FOREVER)
        self.queue.sleepers.denied_by = self.denied_by
        self.queue.sleepers.kind_of = kind_of
        self.queue.sleepers.asks = ASKS
        self.room: dict[str, int | None] = dict.fromkeys(KINDS, 0)
        self.questions = 0
        # The rules that deny pods of a kind for which there is no room.
        self.against: dict[str, frozenset[str]] = dict.fromkeys(KINDS, frozenset(RULES))
        self.serial = 0

    def denied_by(self, info: PodInfo) -> frozenset[str] | None:
        """None where it is not known."""
        self.questions += 1
        room = self.room[kind_of(info)]
        return None if room is None else frozenset() if room else self.against[kind_of(info)]

    def asleep(self) -> dict[str, QueuedPod]:
        return {queued.uid: queued for queued in self.queue if queued.place is Place.UNSCHEDULABLE}

    # ---- what happens

    @rule(kind=kinds, many=st.integers(1, 3))
    def pods_come(self, kind: str, many: int) -> None:
        for _ in range(many):
            self.serial += 1
            self.queue.add(pod(f"p{self.serial}", labels={"kind": kind}), self.now)

    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        uids = [queued.uid for queued in self.queue]
        if uids:
            self.queue.delete(data.draw(st.sampled_from(uids)))

    @rule(kind=kinds, room=rooms)
    def room_comes(self, kind: str, room: int | None) -> None:
        """With an event that may help those whom the rules of the moment deny, and no more than that."""
        self.room[kind] = room
        self.move(self.against[kind])

    @rule(kind=kinds, rules=denied)
    def other_rules_deny(self, kind: str, rules: frozenset[str]) -> None:
        """What helps against those of before does not help."""
        if self.room[kind] == 0:
            before, self.against[kind] = self.against[kind], rules
            self.move(before)

    @rule(kind=kinds, rules=denied)
    def room_goes(self, kind: str, rules: frozenset[str]) -> None:
        if self.room[kind] != 0:
            self.room[kind], self.against[kind] = 0, rules

    @rule(rules=denied)
    def something_happens(self, rules: frozenset[str]) -> None:
        self.move(rules)

    @rule(data=st.data(), kind=kinds)
    def pod_gets_another_status(self, data: st.DataObject, kind: str) -> None:
        """By which rules tell it from others."""
        asleep = self.asleep()
        if asleep:
            uid = data.draw(st.sampled_from(sorted(asleep)))
            self.queue.update(pod(uid, labels={"kind": kind}), changed=False)

    def move(self, rules: frozenset[str]) -> None:
        before = self.asleep()
        self.queue.move(lambda denied_by: bool(denied_by & rules), self.now)
        self.no_one_woke_in_vain(before)

    def no_one_woke_in_vain(self, before: dict[str, QueuedPod]) -> None:
        for uid in before.keys() - self.asleep().keys():
            assert self.room[kind_of(before[uid].info)] != 0

    # ---- attempts

    @rule(luck=st.booleans())
    def one_is_tried(self, luck: bool) -> None:
        self.tried(luck=luck)

    def tried(self, *, luck: bool) -> bool:
        before, asked = self.asleep(), self.questions
        due = self.queue.next_deadline(self.now) == self.now
        queued = self.queue.pop(self.now)
        self.no_one_woke_in_vain(before)
        assert self.questions - asked <= ASKS
        if queued is None:
            return self.queue.sleepers.owing
        assert due
        kind = kind_of(queued.info)
        room = self.room[kind]
        if room or (room is None and luck):
            self.queue.delete(queued.uid)
            if room is not None:
                self.room[kind] = room - 1
        else:
            self.queue.fail(queued, self.now, self.against[kind])
        return True

    @rule(seconds=st.sampled_from([0.0, 0.5, 11.0]))
    def all_that_are_due_are_tried(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(2 * len(self.queue) + 1):
            if not self.tried(luck=False):
                return
        raise AssertionError("it never ends")

    # ---- what holds always

    @invariant()
    def nobody_sleeps_for_whom_there_is_room(self) -> None:
        if self.queue.sleepers.owing:
            assert self.queue.next_deadline(self.now) == self.now
            return
        asleep = self.asleep()
        for queued in asleep.values():
            if self.room[kind_of(queued.info)]:
                assert any(
                    kind_of(other.info) == kind_of(queued.info) and self.due(other) <= self.due(queued)
                    for other in self.queue
                    if other.uid not in asleep
                ), queued

    def due(self, queued: QueuedPod) -> float:
        """When the pod is tried if it is awake."""
        return max(self.now, queued.added + self.queue.backoff.duration(queued.attempts))

    @invariant()
    def sizes_are_right(self) -> None:
        assert self.queue.pending()["unschedulable"] == len(self.asleep())


SleepersMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=50)
TestSleepers = SleepersMachine.TestCase
