"""Follows a scheduler that works on a real API server, and tells what came of it as of a simulation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from time import monotonic
from typing import Protocol

from ksp.core.changes import Bind, BindVolumes, Evict, Report
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.model.info import PodInfo
from ksp.runtime.observer import Binding
from ksp.sim.cluster import reasons_of
from ksp.sim.outcome import Allocation, Fate, NodeUse, Outcome, PodRecord, totals


class Audience(Protocol):
    """Who is told how it goes on."""

    def expect(self, pods: int) -> None:
        """So many pods will be tried."""
        ...

    def tell(self, time: float, record: PodRecord) -> None:
        """An attempt was made, so many seconds after the start."""
        ...


class Follower:
    """An observer of the loop. What it saw it tells the audience when it is asked to, outside of the loop: whether that
    can be written is no concern of the scheduler."""

    def __init__(self, audience: Audience, nodes: Callable[[], int], clock: Callable[[], float] = monotonic) -> None:
        """`nodes` is asked for the number of nodes that the scheduler knows."""
        self.records: dict[str, PodRecord] = {}
        self.last_placed = 0.0
        self.decisions = 0
        self.seconds = 0.0
        self._audience = audience
        self._news: deque[tuple[float, PodRecord]] = deque()
        self._nodes = nodes
        self._clock = clock
        self._began = clock()

    def now(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    # ---- what the loop tells

    def decided(self, step: Step, seconds: float) -> None:
        self.decisions += 1
        self.seconds += seconds
        record = self._record(step.pod)
        record.attempts, record.decided = step.attempt, self.now()
        for effect in step.effects:
            match effect:
                case Bind(node=node) | BindVolumes(node=node):
                    record.fate, record.node, record.message, record.reasons = Fate.PLACED, node, "", {}
                    self.last_placed = record.decided
                case Report(message=message):
                    record.message, record.reasons = message, reasons_of(step.decision, self._nodes())
                case Evict(preemptor=preemptor, victims=victims):
                    self._evicted(preemptor, victims)
                case _:
                    pass
        self._news.append((record.decided, replace(record)))

    def _evicted(self, preemptor: PodInfo, victims: Iterable[PodInfo]) -> None:
        for victim in victims:
            record = self.records.get(victim.uid)
            if record is not None:
                record.fate, record.node = Fate.EVICTED, ""
                record.evicted_by = f"{preemptor.namespace}/{preemptor.name}"

    def bound(self, binding: Binding, now: float) -> None:
        pass

    def not_bound(self, binding: Binding, message: str, now: float) -> None:
        self.wait_failed(binding.pod, message)

    def wait_failed(self, pod: PodInfo, message: str) -> None:
        record = self._record(pod)
        if record.fate is not Fate.EVICTED:  # who has to go before it is bound fails to be bound
            record.fate, record.node, record.message = Fate.WAITING, "", message

    def fault(self, where: str, pod: PodInfo | None) -> None:
        pass

    def _record(self, pod: PodInfo) -> PodRecord:
        arrived = self.now()
        return self.records.setdefault(pod.uid, PodRecord(pod.uid, pod.namespace, pod.name, arrived))

    # ---- what the audience is told

    def tell(self) -> None:
        """Tells of the attempts since the last time."""
        while self._news:
            self._audience.tell(*self._news.popleft())

    # ---- what came of it

    def is_settled(self, scheduler: Scheduler, uids: Iterable[str]) -> bool:
        """Nothing more will happen by itself: all these pods were tried, none is assumed any more, and none of those
        that back off has still to hear of a pod that was placed after its last attempt."""
        if scheduler.pending()["active"] or scheduler.cache.assumed_count:
            return False
        if scheduler.evictions.victims:
            return False
        if not all(uid in self.records for uid in uids):
            return False
        return not any(queued.place is Place.BACKOFF and self._is_behind(queued.uid) for queued in scheduler.queue)

    def _is_behind(self, uid: str) -> bool:
        """Pods were placed since the pod was tried, so that its next attempt can end otherwise."""
        record = self.records.get(uid)
        return record is None or (record.decided or 0.0) <= self.last_placed

    def outcome(self, scheduler: Scheduler, ours: Container[str]) -> Outcome:
        """How things are now. `ours` are the uids of the pods that were made; what else runs was there before."""
        nodes = tuple(map(NodeUse.of, scheduler.state.node_list()))
        requested = totals(node.requested for node in nodes)
        allocatable = totals(node.allocatable for node in nodes)
        allocation = {
            name: Allocation(requested.get(name, 0), there, requested.get(name, 0))
            for name, there in allocatable.items()
            if there or requested.get(name, 0)
        }
        records = tuple(record for uid, record in self.records.items() if uid in ours)
        placed = sum(record.uid in scheduler.cache for record in records)
        running = len(scheduler.cache) - placed
        return Outcome(records, nodes, allocation, running, self.now(), self.decisions, self.seconds)
