"""A cluster in virtual time: drives the scheduler's core without waiting for anything.

Pods arrive and leave at given times; a binding succeeds at once, and the watch shows it at once. When the scheduler has
nothing to do, time jumps to the next arrival or departure, or to when a pod has backed off, whichever is first.

Two things of a real cluster would go on for ever, and are told apart from what can still change something:

- Unschedulable pods are tried again every 60 s, as a net for lost events. No event is lost here, so they wait for
  one that may help, however long that takes. When all else is done, the net is drawn once: 60 s later all pods
  that wait are tried again. The simulation ends with the first such round that places none.
- A pod whose attempts end in an error is tried again after each backoff. Here that counts for nothing while nothing
  has changed since its last attempt.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from msgspec.structs import replace

from ksp.compile.runtime import Denial
from ksp.core.changes import Bind, DeletePod, Report, SetPod, Warn
from ksp.core.cycle import Decision
from ksp.core.scheduler import FINISHED, Scheduler, Step
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.policy.profile import Profile
from ksp.ports import Dice, Stopwatch
from ksp.sim.openb import Arrival
from ksp.sim.outcome import Allocation, Fate, NodeUse, Outcome, PodRecord, totals
from ksp.sim.stopwatch import StoppedStopwatch
from ksp.sim.workload import Workload

LAST_ROUND: Final = 60.0
"""Seconds after which unschedulable pods lose patience in a real cluster."""

# What happens first of two things at the same time: room is made before it is asked for.
_LEAVES, _ARRIVES = 0, 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pod was tried at `time`, or left alone; `record` says what came of it, and changes with later attempts."""

    time: float
    record: PodRecord


class VirtualCluster:
    """Schedules a workload. Go through `attempts`, then ask for the `outcome`."""

    def __init__(
        self, profiles: Sequence[Profile], workload: Workload, dice: Dice, *, departures: bool = False,
        stopwatch: Stopwatch | None = None,
    ) -> None:  # fmt: skip
        self.now = 0.0
        self.scheduler = Scheduler(profiles, dice)
        self.scheduler.queue.patience = math.inf
        self._stopwatch = stopwatch or StoppedStopwatch()
        self._records: dict[str, PodRecord] = {}
        self._placed: dict[str, PodInfo] = {}
        self._decisions = 0
        self._seconds = 0.0
        # Changes that a decision may depend on, and how many there were when all pods were tried last.
        self._changes = 0
        self._changes_at_round = -1
        # Pods whose last attempt ended in an error, and nothing has changed since.
        self._erred: set[str] = set()
        for change in workload.cluster:
            self.scheduler.on(change, self.now)
        self._running = len(self.scheduler.cache)
        self._use = Counter(totals(NodeUse.of(node).requested for node in self.scheduler.state.node_list()))
        self._peak = Counter(self._use)
        self._events = list(_events(workload.arrivals, departures=departures))
        heapq.heapify(self._events)

    def attempts(self) -> Iterator[Attempt]:
        """Runs to the end, and gives each attempt as it is made."""
        while True:
            yield from self._deliver()
            before = self._stopwatch.read()
            step = self.scheduler.step(self.now)
            if step is not None:
                self._decisions += 1
                self._seconds += self._stopwatch.read() - before
                yield self._carry_out(step)
            elif not self._wait():
                return

    def finish(self) -> Outcome:
        """Runs to the end."""
        for _ in self.attempts():
            pass
        return self.outcome()

    def outcome(self) -> Outcome:
        """How things are now."""
        nodes = tuple(map(NodeUse.of, self.scheduler.state.node_list()))
        requested = totals(node.requested for node in nodes)
        allocatable = totals(node.allocatable for node in nodes)
        allocation = {
            name: Allocation(requested.get(name, 0), allocatable.get(name, 0), self._peak[name])
            for name in totals((allocatable, self._peak))
            if allocatable.get(name, 0) or self._peak[name]
        }
        return Outcome(
            tuple(self._records.values()), nodes, allocation, self._running, self.now, self._decisions, self._seconds
        )

    # ---- time

    def _deliver(self) -> Iterator[Attempt]:
        """What happens by now."""
        while self._events and self._events[0][0] <= self.now:
            time, what, _, arrival = heapq.heappop(self._events)
            if what == _LEAVES:
                self._leave(arrival, time)
            else:
                yield from self._arrive(arrival, time)

    def _wait(self) -> bool:
        """Goes on to when something happens; False if nothing will."""
        if self.scheduler.queue.sleepers.owing:
            return True
        times = [self._events[0][0]] if self._events else []
        due = self.scheduler.next_deadline(self.now)
        if due is not None and due < math.inf and not self._only_errors_are_due():
            times.append(due)
        if times:
            self.now = max(self.now, min(times))
            return True
        return self._last_round()

    def _only_errors_are_due(self) -> bool:
        """All pods that back off ended in an error, and nothing has changed since."""
        return self.scheduler.queue.pending()["backoff"] == len(self._erred)

    def _last_round(self) -> bool:
        """A minute later all pods that wait are tried again, unless nothing has changed since the last such round."""
        queue = self.scheduler.queue
        if not len(queue) or self._changes_at_round == self._changes:
            return False
        self._changes_at_round = self._changes
        self.now += LAST_ROUND
        queue.move_all(self.now)
        return True

    def _changed(self) -> None:
        self._changes += 1
        self._erred.clear()

    # ---- pods

    def _arrive(self, arrival: Arrival, time: float) -> Iterator[Attempt]:
        pod = PodInfo.of(arrival.pod)
        record = self._records[pod.uid] = PodRecord(pod.uid, pod.namespace, pod.name, time)
        self.scheduler.on(SetPod(arrival.pod), self.now)
        if pod.uid not in self.scheduler.queue:
            record.fate, record.message = Fate.LEFT_ALONE, _why_left_alone(pod)
            yield Attempt(self.now, record)

    def _leave(self, arrival: Arrival, time: float) -> None:
        """A pod leaves when its time has come, whether it has found a place or still waits."""
        uid = PodInfo.of(arrival.pod).uid
        self._records[uid].left = time
        self.scheduler.on(DeletePod(uid), self.now)
        placed = self._placed.pop(uid, None)
        if placed is not None:
            self._use.subtract({**placed.requests, "pods": 1})
        self._changed()

    def _carry_out(self, step: Step) -> Attempt:
        record = self._records[step.pod.uid]
        record.attempts, record.decided = step.attempt, self.now
        for effect in step.effects:
            match effect:
                case Bind(pod=pod, node=node):
                    self._bind(pod, node)
                    record.fate, record.node, record.message, record.reasons = Fate.PLACED, node, "", {}
                case Report(message=message):
                    record.message = message
                    record.reasons = reasons_of(step.decision, len(self.scheduler.state.node_list()))
                    if step.decision.failed:
                        self._erred.add(step.pod.uid)
                case Warn():  # what is ignored does not change what becomes of the pod
                    pass
                case _:
                    assert_never(effect)
        return Attempt(self.now, record)

    def _bind(self, pod: PodInfo, node: str) -> None:
        """The API takes the binding, and the watch shows the pod with its node."""
        self.scheduler.bind_succeeded(pod.uid, self.now)
        bound = Pod(metadata=pod.metadata, spec=replace(pod.spec, node_name=node), status=pod.status)
        self.scheduler.on(SetPod(bound), self.now)
        self._placed[pod.uid] = pod
        self._use.update({**pod.requests, "pods": 1})
        for name in (*pod.requests, "pods"):
            self._peak[name] = max(self._peak[name], self._use[name])
        self._changed()


_Event = tuple[float, int, int, Arrival]


def _events(arrivals: Sequence[Arrival], *, departures: bool) -> Iterator[_Event]:
    """What happens when; at the same time departures first, then in order of arrival. A pod that would leave as it
    arrives leaves right after."""
    for i, arrival in enumerate(arrivals):
        yield arrival.arrives, _ARRIVES, i, arrival
        if departures and arrival.leaves is not None:
            yield max(arrival.leaves, math.nextafter(arrival.arrives, math.inf)), _LEAVES, i, arrival


def reasons_of(decision: Decision, nodes: int) -> Counter[str]:
    """How many nodes each reason was given for."""
    filtered = decision.filtered
    if decision.failed:
        return Counter()
    if filtered.before is not None and isinstance(filtered.before.answer, Denial):
        return Counter(dict.fromkeys(filtered.before.answer.reasons, nodes))
    answers = (refused.answer for refused in filtered.refused.values())
    return Counter(reason for answer in answers if isinstance(answer, Denial) for reason in answer.reasons)


def _why_left_alone(pod: PodInfo) -> str:
    if pod.status.phase in FINISHED:
        return "it has ended"
    if pod.terminating:
        return "it is being deleted"
    if pod.spec.scheduling_gates:
        return "its scheduling gates hold it back: " + ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"the policy has no profile for its scheduler, {pod.scheduler_name}"
