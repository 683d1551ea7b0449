"""The queue against a list that is searched from end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.state.objects import pod

from ksp.core.nominations import MOST_ASKED
from ksp.core.queue import Place, QueuedPod, SchedulingQueue
from ksp.model.info import PodInfo

UIDS = [f"u{i}" for i in range(8)]
NODES = ["n1", "n2"]
RULES = ["Fit", "Taints", "Ports"]
BACKOFF = [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]

uids = st.sampled_from(UIDS)
rule_names = st.frozensets(st.sampled_from(RULES))
nominated = st.sampled_from(["", *NODES])
priorities = st.integers(0, 2)


@dataclass
class Waiting:
    info: PodInfo
    added: float
    place: Place
    entered: int
    attempts: int = 0
    cycle: int = 0
    denied_by: frozenset[str] = frozenset()
    changed: bool = False
    asked: list[str] = field(default_factory=list)

    def said(self) -> str:
        return [self.info.status.nominated_node_name, *self.asked][-1]

    def ask(self, node: str) -> None:
        if node != self.said():
            self.asked = [*self.asked, node][-MOST_ASKED:]

    def backoff_end(self) -> float:
        return self.added + BACKOFF[min(self.attempts, len(BACKOFF)) - 1]


class Naive:
    """The same rules as the queue's, without any structure that could go wrong."""

    def __init__(self) -> None:
        self.pods: dict[str, Waiting] = {}
        self.claims: list[tuple[str, str]] = []
        self.gated: set[str] = set()
        self.cycle = 0
        self.moved = -1
        self.entries = 0

    def at(self, place: Place) -> list[Waiting]:
        return sorted((w for w in self.pods.values() if w.place is place), key=lambda w: w.entered)

    def put(self, waiting: Waiting, place: Place) -> None:
        if waiting.place is not place:
            self.entries += 1
            waiting.entered = self.entries
        waiting.place = place

    def claim(self, uid: str, node: str) -> None:
        if (uid, node) not in self.claims:
            self.unclaim(uid)
            self.claims.append((uid, node))

    def unclaim(self, uid: str) -> None:
        self.claims = [c for c in self.claims if c[0] != uid]

    def claim_of_status(self, waiting: Waiting) -> None:
        node = waiting.said()
        if node and all(uid != waiting.info.uid for uid, _ in self.claims):
            self.claim(waiting.info.uid, node)

    def add(self, info: PodInfo, now: float) -> None:
        self.entries += 1
        self.gated.discard(info.uid)
        self.pods[info.uid] = Waiting(info, now, Place.ACTIVE, self.entries)
        self.claim_of_status(self.pods[info.uid])

    def awake(self, waiting: Waiting, now: float) -> None:
        self.put(waiting, Place.BACKOFF if waiting.backoff_end() > now else Place.ACTIVE)

    def pop(self, now: float) -> Waiting | None:
        for waiting in sorted(self.at(Place.BACKOFF), key=lambda w: w.backoff_end()):
            if waiting.backoff_end() <= now:
                self.put(waiting, Place.ACTIVE)
        for waiting in self.at(Place.UNSCHEDULABLE):
            if waiting.added + 60 <= now:
                self.awake(waiting, now)
        ready = sorted(self.at(Place.ACTIVE), key=lambda w: (-w.info.priority, w.added))
        if not ready:
            return None
        self.cycle += 1
        ready[0].cycle = self.cycle
        ready[0].attempts += 1
        self.put(ready[0], Place.IN_FLIGHT)
        return ready[0]

    def come_back(self, waiting: Waiting, now: float, place: Place, denied_by: frozenset[str]) -> None:
        waiting.added = now
        waiting.denied_by = denied_by
        self.put(waiting, Place.ACTIVE if waiting.changed else place)
        waiting.changed = False
        self.claim_of_status(waiting)

    def update(self, info: PodInfo, *, changed: bool) -> None:
        waiting = self.pods[info.uid]
        old, waiting.info = waiting.info, info
        claim = info.status.nominated_node_name
        if claim != old.status.nominated_node_name:
            self.status_names(waiting, claim)
        if waiting.place is Place.IN_FLIGHT:
            waiting.changed |= changed
        elif waiting.place is Place.ACTIVE and info.priority != old.priority:
            self.entries += 1
            waiting.entered = self.entries
        elif changed:
            self.put(waiting, Place.ACTIVE)

    def status_names(self, waiting: Waiting, node: str) -> None:
        if node in waiting.asked:
            waiting.asked = waiting.asked[waiting.asked.index(node) + 1 :]
            return
        waiting.asked = []
        if node:
            self.claim(waiting.info.uid, node)
        else:
            self.unclaim(waiting.info.uid)

    def move(self, may_help: Callable[[frozenset[str]], bool], now: float) -> int:
        self.moved = self.cycle
        awake = [w for w in self.at(Place.UNSCHEDULABLE) if may_help(w.denied_by)]
        for waiting in awake:
            self.awake(waiting, now)
        return len(awake)

    def next_deadline(self, now: float) -> float | None:
        if self.at(Place.ACTIVE):
            return now
        due = [w.backoff_end() for w in self.at(Place.BACKOFF)]
        due += [w.added + 60 for w in self.at(Place.UNSCHEDULABLE)]
        return max(now, min(due)) if due else None


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.queue = SchedulingQueue()
        self.naive = Naive()
        self.in_flight: dict[str, tuple[QueuedPod, Waiting]] = {}

    @initialize(some=st.lists(st.tuples(uids, priorities), max_size=len(UIDS)))
    def begin(self, some: list[tuple[str, int]]) -> None:
        for uid, priority in some:
            self.add_or_update(uid, priority, "")

    # ---- time

    @rule(seconds=st.sampled_from([0.0, 0.25, 1.0, 3.0, 12.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def time_jumps_to_the_deadline(self) -> None:
        deadline = self.queue.next_deadline(self.now)
        if deadline is not None:
            self.now = deadline
            self.pop()
            assert self.in_flight, "nothing was ready at the deadline"

    # ---- pods

    @rule(uid=uids, priority=priorities, node=nominated)
    def add_or_update(self, uid: str, priority: int, node: str) -> None:
        info = pod(uid, priority=priority, nominated=node)
        if uid in self.queue:
            self.queue.update(info, changed=True)
            self.naive.update(info, changed=True)
        else:
            self.queue.add(info, self.now)
            self.naive.add(info, self.now)

    @rule(uid=uids, node=nominated)
    def status_changes(self, uid: str, node: str) -> None:
        known = self.queue.get(uid)
        if known is not None:
            info = pod(uid, priority=known.info.priority, nominated=node)
            self.queue.update(info, changed=False)
            self.naive.update(info, changed=False)

    @rule()
    def pop(self) -> None:
        queued, waiting = self.queue.pop(self.now), self.naive.pop(self.now)
        assert (queued is None) == (waiting is None)
        if queued is not None and waiting is not None:
            assert queued.info is waiting.info
            assert queued.attempts == waiting.attempts
            self.in_flight[queued.uid] = (queued, waiting)

    @rule()
    def pop_all(self) -> None:
        for _ in range(self.queue.pending()["active"]):
            self.pop()

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), denied_by=rule_names)
    def fail(self, data: st.DataObject, denied_by: frozenset[str]) -> None:
        uid = data.draw(st.sampled_from(sorted(self.in_flight)))
        queued, waiting = self.in_flight.pop(uid)
        place = self.queue.fail(queued, self.now, denied_by)
        if self.naive.pods.get(uid) is waiting:
            moved = self.naive.moved >= waiting.cycle
            self.naive.come_back(waiting, self.now, Place.BACKOFF if moved else Place.UNSCHEDULABLE, denied_by)
        else:
            assert place is Place.ABSENT

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.in_flight)))
        queued, waiting = self.in_flight.pop(uid)
        place = self.queue.retry(queued, self.now)
        if self.naive.pods.get(uid) is waiting:
            self.naive.come_back(waiting, self.now, Place.BACKOFF, frozenset())
        else:
            assert place is Place.ABSENT

    @rule(uid=uids)
    def delete(self, uid: str) -> None:
        assert (self.queue.delete(uid) is None) == (self.naive.pods.pop(uid, None) is None)
        self.naive.gated.discard(uid)
        self.naive.unclaim(uid)

    @rule(uid=uids)
    def gate(self, uid: str) -> None:
        """A pod comes with gates, or, as no API server allows, gets some."""
        self.queue.gate(pod(uid))
        self.naive.pods.pop(uid, None)
        self.naive.unclaim(uid)
        self.naive.gated.add(uid)

    # ---- events and claims

    @rule(fixed=rule_names)
    def move(self, fixed: frozenset[str]) -> None:
        moved = self.queue.move(lambda denied_by: bool(denied_by & fixed), self.now)
        assert moved == self.naive.move(lambda denied_by: bool(denied_by & fixed), self.now)

    @rule()
    def move_all(self) -> None:
        assert self.queue.move_all(self.now) == self.naive.move(lambda _: True, self.now)

    @rule(uid=uids, node=st.sampled_from(NODES))
    def nominate(self, uid: str, node: str) -> None:
        known = self.queue.get(uid)
        if known is not None:
            self.queue.nominate(known.info, node)
            self.naive.pods[uid].ask(node)
            self.naive.claim(uid, node)

    @rule(uid=uids)
    def withdraw_nomination(self, uid: str) -> None:
        known = self.queue.get(uid)
        if known is not None:
            self.queue.withdraw_nomination(known.info)
            self.naive.pods[uid].ask("")
            self.naive.unclaim(uid)

    @rule(uid=uids)
    def clear_nomination(self, uid: str) -> None:
        self.queue.clear_nomination(uid)
        self.naive.unclaim(uid)

    @rule(uid=uids)
    def activate(self, uid: str) -> None:
        self.queue.activate(uid, self.now)
        known = self.naive.pods.get(uid)
        if known is not None and known.place is Place.UNSCHEDULABLE:
            self.naive.awake(known, self.now)

    # ---- both say the same

    @invariant()
    def every_pod_is_where_it_should_be(self) -> None:
        expected = [(w.info.uid, w.place, w.added, w.attempts, w.denied_by) for w in self.naive.pods.values()]
        assert [(q.uid, q.place, q.added, q.attempts, q.unschedulable_by) for q in self.queue] == expected
        assert all(queued.info is self.naive.pods[queued.uid].info for queued in self.queue)

    @invariant()
    def sizes_and_deadline_agree(self) -> None:
        places = {"active": Place.ACTIVE, "backoff": Place.BACKOFF, "unschedulable": Place.UNSCHEDULABLE}
        sizes = {name: len(self.naive.at(place)) for name, place in places.items()}
        assert self.queue.pending() == {**sizes, "gated": len(self.naive.gated)}
        assert self.queue.next_deadline(self.now) == self.naive.next_deadline(self.now)

    @invariant()
    def names_lead_to_those_who_wait(self) -> None:
        for uid in UIDS:
            other = pod("another", name=uid)
            assert self.queue.namesake(other) == (uid if uid in self.naive.pods or uid in self.naive.gated else None)

    @invariant()
    def claims_agree(self) -> None:
        for node in NODES:
            nominated_pods = self.queue.nominated_on(node)
            assert [p.uid for p in nominated_pods] == [uid for uid, claimed in self.naive.claims if claimed == node]
            assert all(p is self.naive.pods[p.uid].info for p in nominated_pods)


QueueMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=50)
TestQueue = QueueMachine.TestCase
