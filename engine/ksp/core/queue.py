"""Which pod is to be tried next, and when the others are tried again.

Each pod that waits for a node is in one place:

                    add
      ABSENT ----------------> ACTIVE <------------------+--------------------+
         ^                       |                       |                    |
         | delete            pop |        expire, change |       wake, change |
         |                       v                       |                    |
         +------------------ IN_FLIGHT                BACKOFF <-------- UNSCHEDULABLE
                              |     |                    ^      wake          ^
                              |     +--------------------+                    |
                              |   retry; fail after a move request            |
                              +-----------------------------------------------+
                                  fail

`delete` leads from everywhere to ABSENT. `expire` is the end of a backoff. `wake` is a move request that may help
the pod, the end of its patience, or that it is activated, since it has lost the node that it waited for; it leads to
BACKOFF while the pod has to back off, else to ACTIVE. `change` is an update of more than the pod's status and versions;
any other update leaves it where it is. (In kube-scheduler 1.19 any update ends a backoff, its own note of the failed
attempt among them.) A pod that was changed in flight goes to ACTIVE when it comes back, since what failed is not what
it is now.

- ACTIVE: the highest priority first, then the earliest `added`, then in the order in which they entered.
- BACKOFF: 1, 2, 4, 8, 10, 10 ... seconds after `added`, by the number of attempts; an attempt counts when it is
  popped.
- UNSCHEDULABLE: until an event may help, but no longer than `patience` (60 s) after `added`: a net for lost
  events.
- IN_FLIGHT: popped, being decided or bound. It ends when the pod is deleted from the queue, because it is bound or
  gone, or comes back by `fail` or `retry`.

Pods that gates hold back are only counted: they are in no place.

A move request comes with a cluster event, which may help the pods that certain rules denied. Pods that are alike are
asked about together, and of them wakes who may find a node (`ksp.core.sleepers`). If there are more kinds of pods than
may be asked about at once, the rest is when the next pod is popped; until then `next_deadline` is now.

An event may be just what a pod in flight needs, whose failure is not known yet: nobody asks about it. So each pop
starts a cycle, a move request marks the current one, and a pod that fails goes to BACKOFF if its own cycle or a later
one is marked; whether the event can help it is not looked at. A pod that fails without such a mark was judged in the
state that the last event left: its failure answers for all that are like it. The end of patience is no event, and marks
nothing.

There is no timer. What is due by `now` moves when the queue is popped; `next_deadline` says when that is.
(kube-scheduler looks every second for pods that have backed off, and every 30 s for those that lost patience, so
there they wait up to that much longer.) Times are those of the caller's clock, and never go back. Identity is the
uid: a pod that comes under the name of another is another pod, and `namesake` tells which.

Every operation is O(log n), but a move request looks once at each set of rules that denied pods, of which there are
few, asks a bounded number of questions, and then moves the pods that it wakes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from ksp.core.backoff import Backoff
from ksp.core.errors import IllegalMoveError
from ksp.core.lazy_heap import LazyHeap
from ksp.core.nominations import Nominations
from ksp.core.queue_moves import AWAKE, TRANSITIONS, Place, QueueEvent
from ksp.core.sleepers import UNKNOWN_CAUSE, Sleepers
from ksp.model.info import PodInfo

__all__ = ["OUT_OF_PATIENCE", "TRANSITIONS", "Place", "QueueEvent", "QueuedPod", "SchedulingQueue"]

# Why pods come to a place, in the words of kube-scheduler's metric queue_incoming_pods_total; who wakes them says why.
_CAUSES: Final = {
    QueueEvent.ADD: "PodAdd", QueueEvent.EXPIRE: "BackoffComplete", QueueEvent.FAIL: "ScheduleAttemptFailure",
    QueueEvent.RETRY: "ScheduleAttemptFailure", QueueEvent.UPDATE: "PodUpdate",
}  # fmt: skip
OUT_OF_PATIENCE: Final = "UnschedulableTimeout"
ACTIVATED: Final = "ForceActivate"
_QUEUES: Final = frozenset({Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE})


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod that waits for a node, and what is known of its attempts. Only the queue changes it.

    `added` is when it came or last came back, `first_added` when it came: seconds of the caller's clock.
    `unschedulable_by` are the names of the rules that denied it last. `cycle` is the one in which it was popped last,
    at `began`.
    """

    info: PodInfo
    added: float
    first_added: float
    attempts: int = 0
    unschedulable_by: frozenset[str] = frozenset()
    place: Place = Place.ABSENT
    cycle: int = 0
    began: float = 0.0
    changed_in_flight: bool = field(default=False, repr=False)

    @property
    def uid(self) -> str:
        return self.info.uid


class SchedulingQueue:
    """The pods that wait for a node, and those nominated to one.

    `incoming` counts how often pods came to a place, by its name (as in `pending`) and by cause.
    """

    def __init__(self, backoff: Backoff | None = None, patience: float = 60.0) -> None:
        if patience <= 0:
            raise ValueError(f"unschedulable pods must have some patience, not {patience}")
        self.backoff = backoff or Backoff()
        self.patience = patience
        self.nominations = Nominations()
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.sleepers: Sleepers[QueuedPod] = Sleepers(self._backoff_end, self.nominations.node_of)
        self._pods: dict[str, QueuedPod] = {}
        self._uid_of: dict[tuple[str, str], str] = {}
        self._gated: dict[str, PodInfo] = {}
        self._active: LazyHeap[QueuedPod] = LazyHeap()
        self._backoff: LazyHeap[QueuedPod] = LazyHeap()
        # In the order of `added`, since pods enter with the present time: the first loses patience first.
        self._unschedulable: OrderedDict[str, QueuedPod] = OrderedDict()
        self._cycle = 0
        self._moved_in_cycle = -1

    # ---- questions

    def get(self, uid: str) -> QueuedPod | None:
        return self._pods.get(uid)

    def namesake(self, info: PodInfo) -> str | None:
        """The uid of another pod here of the same name, which must be gone by now."""
        uid = self._uid_of.get((info.namespace, info.name))
        return None if uid == info.uid else uid

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        """How many pods there are, those in flight included."""
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """The pods in the order in which they first came."""
        return iter(self._pods.values())

    def gated(self) -> list[PodInfo]:
        """The pods that gates hold back."""
        return list(self._gated.values())

    def pending(self) -> dict[str, int]:
        """How many pods wait in each place or for their gates, under the names of kube-scheduler's metric; those in
        flight do not wait."""
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable),
            "gated": len(self._gated),
        }

    def next_deadline(self, now: float) -> float | None:
        """The earliest time, from now on, at which `pop` gives a pod unless something else happens; None for never."""
        if self._active or self.sleepers.owing:
            return now
        due = []
        if (first := self._backoff.first()) is not None:
            due.append(first[0][0])
        if self._unschedulable:
            due.append(self._patience_end(next(iter(self._unschedulable.values()))))
        return max(now, min(due)) if due else None

    # ---- the way of a pod

    def add(self, info: PodInfo, now: float) -> QueuedPod:
        """A pod without a node came, or its last gate went."""
        present = self._pods.get(info.uid)
        if present is not None:
            raise _illegal(info.uid, present.place, QueueEvent.ADD)
        self._gated.pop(info.uid, None)
        queued = self._pods[info.uid] = QueuedPod(info, added=now, first_added=now)
        self._uid_of[info.namespace, info.name] = info.uid
        self._move(queued, QueueEvent.ADD, Place.ACTIVE)
        self.nominations.put_if_claimed(info)
        return queued

    def gate(self, info: PodInfo) -> None:
        """The pod has gates: it does not wait for a node, but is counted."""
        self.delete(info.uid)
        self._gated[info.uid] = info
        self._uid_of[info.namespace, info.name] = info.uid

    def pop(self, now: float) -> QueuedPod | None:
        """The pod to try now, in flight from here on. Starts a cycle. None if none is ready, or not before others were
        asked about: then `next_deadline` is now."""
        self._flush(now)
        self._ask(now)
        first = self._active.first()
        if first is None:
            return None
        queued = first[1]
        self._cycle += 1
        queued.cycle = self._cycle
        queued.attempts += 1
        queued.began = now
        self._move(queued, QueueEvent.POP, Place.IN_FLIGHT)
        return queued

    def fail(self, queued: QueuedPod, now: float, unschedulable_by: frozenset[str]) -> Place:
        """No node fits the pod, say these rules: it waits for an event that may help. Where it is now.

        A pod that was deleted in flight stays away.
        """
        moved = self._moved_in_cycle >= queued.cycle
        place = Place.BACKOFF if moved else Place.UNSCHEDULABLE
        return self._come_back(queued, now, QueueEvent.FAIL, place, unschedulable_by)

    def retry(self, queued: QueuedPod, now: float) -> Place:
        """The attempt failed for a reason other than the cluster's state: repeat it with backoff. Else as `fail`."""
        return self._come_back(queued, now, QueueEvent.RETRY, Place.BACKOFF, frozenset())

    def update(self, info: PodInfo, *, changed: bool) -> Place:
        """The pod is now this; `changed` if more than its status and versions differ. Where it is now."""
        queued = self._pods.get(info.uid)
        if queued is None:
            raise _illegal(info.uid, Place.ABSENT, QueueEvent.UPDATE)
        old, queued.info = queued.info, info
        self._forget_name(old)
        self._uid_of[info.namespace, info.name] = info.uid
        self.nominations.update(old, info)
        if queued.place is Place.IN_FLIGHT:
            queued.changed_in_flight |= changed
        elif queued.place is Place.ACTIVE and info.priority != old.priority:
            self._enter(queued)
        elif queued.place is Place.UNSCHEDULABLE:
            self.sleepers.changed(queued)
        after = Place.ACTIVE if changed and queued.place is not Place.IN_FLIGHT else queued.place
        self._move(queued, QueueEvent.UPDATE, after)
        return queued.place

    def delete(self, uid: str) -> QueuedPod | None:
        """The pod waits no more: it is gone, bound, or not ours. Its nomination ends. What it was, if it was here."""
        self.nominations.forget(uid)
        gated = self._gated.pop(uid, None)
        if gated is not None:
            self._forget_name(gated)
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._forget_name(queued.info)
            self._move(queued, QueueEvent.DELETE, Place.ABSENT)
        return queued

    def _forget_name(self, info: PodInfo) -> None:
        if self._uid_of.get((info.namespace, info.name)) == info.uid:
            del self._uid_of[info.namespace, info.name]

    # ---- move requests

    def move(self, may_help: Callable[[frozenset[str]], bool], now: float, cause: str = UNKNOWN_CAUSE) -> int:
        """Something happened in the cluster that may help the unschedulable pods which certain rules denied: wake
        those that may find a node now, in the order in which they failed; how many there were."""
        self._moved_in_cycle = self._cycle
        self.sleepers.help(may_help, cause)
        return self._let_out(now)

    def _ask(self, now: float) -> None:
        """Ask about pods for which there were too many questions before."""
        self.sleepers.renew()
        self._let_out(now)

    def _let_out(self, now: float) -> int:
        if not self.sleepers.owing:
            return 0
        awake: list[tuple[QueuedPod, str]] = []
        try:
            awake.extend(self.sleepers.woken(now))
        finally:  # who was found before a question raised an error is no longer asked about
            for queued, cause in sorted(awake, key=lambda pair: pair[0].cycle):
                self._wake(queued, now, cause)
        return len(awake)

    def move_all(self, now: float, cause: str = UNKNOWN_CAUSE) -> int:
        """Wake all unschedulable pods, whether anything may help them or not, and ask nobody: how many there were."""
        self._moved_in_cycle = self._cycle
        asleep = sorted(self._unschedulable.values(), key=lambda queued: queued.cycle)
        for queued in asleep:
            self._wake(queued, now, cause)
        return len(asleep)

    def activate(self, uid: str, now: float) -> None:
        """Try the pod again, once it has backed off, whatever keeps it from all nodes. One that does not sleep has its
        turn already."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is Place.UNSCHEDULABLE:
            self._wake(queued, now, ACTIVATED)

    # ---- nominated pods

    def nominate(self, info: PodInfo, node_name: str) -> None:
        """Others are being evicted from the node for the pod's sake; its status is to say so."""
        self.nominations.nominate(info, node_name)
        self._nomination_changed(info.uid)

    def withdraw_nomination(self, info: PodInfo) -> None:
        """The pod claims no node any more; its status is to say so."""
        self.nominations.withdraw(info)
        self._nomination_changed(info.uid)

    def clear_nomination(self, uid: str) -> None:
        """The pod claims no node while it has a place. What its status says it claims again when it comes back."""
        self.nominations.remove(uid)
        self._nomination_changed(uid)

    def _nomination_changed(self, uid: str) -> None:
        queued = self._pods.get(uid)
        if queued is not None and queued.place is Place.UNSCHEDULABLE:
            self.sleepers.changed(queued)

    def nominated_on(self, node_name: str) -> list[PodInfo]:
        """The pods nominated to a node, in the order in which they were."""
        return self.nominations.on(node_name)

    # ---- moves

    def _flush(self, now: float) -> None:
        """Move what is due: pods that have backed off, pods that have lost patience."""
        while (first := self._backoff.first()) is not None and first[0][0] <= now:
            self._move(first[1], QueueEvent.EXPIRE, Place.ACTIVE)
        for queued in self._out_of_patience(now):
            self._wake(queued, now, OUT_OF_PATIENCE)

    def _out_of_patience(self, now: float) -> list[QueuedPod]:
        waiting = self._unschedulable.values()
        return list(takewhile(lambda queued: self._patience_end(queued) <= now, waiting))

    def _wake(self, queued: QueuedPod, now: float, cause: str) -> None:
        backing_off = self._backoff_end(queued) > now
        self._move(queued, QueueEvent.WAKE, Place.BACKOFF if backing_off else Place.ACTIVE, cause)

    def _come_back(
        self, queued: QueuedPod, now: float, event: QueueEvent, place: Place, unschedulable_by: frozenset[str]
    ) -> Place:
        if queued.place is Place.ABSENT:
            return Place.ABSENT
        if queued.changed_in_flight:
            place = Place.ACTIVE
        self._check(queued, event, place)
        queued.added = now
        queued.unschedulable_by = unschedulable_by
        queued.changed_in_flight = False
        self.nominations.put_if_claimed(queued.info)
        self._move(queued, event, place)
        return place

    @staticmethod
    def _check(queued: QueuedPod, event: QueueEvent, place: Place) -> None:
        if place not in TRANSITIONS.get((queued.place, event), ()):
            raise _illegal(queued.uid, queued.place, event)

    def _move(self, queued: QueuedPod, event: QueueEvent, place: Place, cause: str = "") -> None:
        """Take the pod from where it is to the place, if the table allows that. Who stays keeps the turn."""
        self._check(queued, event, place)
        if place is queued.place:
            return
        self._leave(queued)
        if place not in AWAKE:
            self.sleepers.tried(queued.uid)
        queued.place = place
        self._enter(queued)
        if place in _QUEUES:
            self.incoming[place.value, cause or _CAUSES[event]] += 1

    def _leave(self, queued: QueuedPod) -> None:
        match queued.place:
            case Place.ACTIVE:
                self._active.discard(queued.uid)
            case Place.BACKOFF:
                self._backoff.discard(queued.uid)
            case Place.UNSCHEDULABLE:
                del self._unschedulable[queued.uid]
                self.sleepers.discard(queued.uid)
            case Place.ABSENT | Place.IN_FLIGHT:
                pass

    def _enter(self, queued: QueuedPod) -> None:
        match queued.place:
            case Place.ACTIVE:
                self._active.put(queued.uid, queued, (-queued.info.priority, queued.added))
            case Place.BACKOFF:
                self._backoff.put(queued.uid, queued, (self._backoff_end(queued),))
            case Place.UNSCHEDULABLE:
                self._unschedulable[queued.uid] = queued
                self.sleepers.add(queued)
            case Place.ABSENT | Place.IN_FLIGHT:
                pass

    def _backoff_end(self, queued: QueuedPod) -> float:
        return queued.added + self.backoff.duration(queued.attempts)

    def _patience_end(self, queued: QueuedPod) -> float:
        return queued.added + self.patience


def _illegal(uid: str, place: Place, event: QueueEvent) -> IllegalMoveError:
    return IllegalMoveError("queue", f"pod {uid}", place.value, event.value)
