"""A cluster in virtual time: drives the scheduler's core without waiting for anything.

Pods arrive and leave at given times; a binding succeeds at once, and the watch shows it at once. When the scheduler has
nothing to do, time jumps to the next arrival or departure, or to when a pod has backed off, whichever is first.

A pod that has to go for another is shown as being deleted at once, and is gone after its grace period, all of it; so
is a pod that was being deleted at the start. It is not made anew, though its controller would: so there are never more
evictions than pods, and pods do not evict each other for ever. Claims are bound, and volumes made, at once
(`ksp.sim.volume_controller`); disruption budgets are counted as pods come and go (`ksp.sim.disruptions`).

Two things of a real cluster would go on for ever, and are told apart from what can still change something:

- Unschedulable pods are tried again every 60 s, as a net for lost events. No event is lost here, so they wait for
  one that may help, however long that takes. When all else is done, the net is drawn once: 60 s later all pods
  that wait are tried again. The simulation ends with the first such round that places none.
- A pod whose attempts end in an error is tried again after each backoff, and so is one that preempts and finds that
  nobody has to go. Here that counts for nothing while nothing has changed since its last attempt.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, assert_never

from msgspec.structs import replace

from ksp.compile.runtime import Denial
from ksp.core.changes import (
    Bind,
    BindVolumes,
    Change,
    ClearNomination,
    DeletePod,
    Effect,
    Evict,
    Report,
    SetObject,
    SetPod,
    Warn,
)
from ksp.core.cycle import Decision
from ksp.core.event_handlers import FINISHED
from ksp.core.questions import Ask
from ksp.core.scheduler import Scheduler, Step
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.policy.profile import Profile
from ksp.ports import Dice, Stopwatch
from ksp.sim.disruptions import DisruptionController
from ksp.sim.openb import Arrival
from ksp.sim.outcome import Allocation, Eviction, Fate, NodeUse, Outcome, PodRecord, totals
from ksp.sim.stopwatch import StoppedStopwatch
from ksp.sim.virtual_dates import VirtualDates
from ksp.sim.volume_controller import VolumeController
from ksp.sim.workload import Workload

LAST_ROUND: Final = 60.0
"""Seconds after which unschedulable pods lose patience in a real cluster."""

USUAL_GRACE: Final = 30
"""Seconds that a pod has to end if it does not say how long it needs."""

# What happens first of two things at the same time: room is made before it is asked for.
_ENDS, _LEAVES, _ARRIVES = 0, 1, 2


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
        self._placed: dict[str, Pod] = {}
        self._evictions: dict[str, Eviction] = {}
        self._decisions = 0
        self._seconds = 0.0
        # Changes that a decision may depend on, and how many there were when all pods were tried last.
        self._changes = 0
        self._changes_at_round = -1
        # Pods whose last attempt ended in an error or changed nothing, and nothing has changed since.
        self._erred: set[str] = set()
        self._events = list(_events(workload.arrivals, departures=departures))
        heapq.heapify(self._events)
        self._numbers = count()
        self._show(workload.cluster)
        self._begin(workload.cluster)
        self._running = len(self.scheduler.cache)
        self._use = Counter(totals(NodeUse.of(node).requested for node in self.scheduler.state.node_list()))
        self._peak = Counter(self._use)

    def _begin(self, cluster: Sequence[Change]) -> None:
        """What other parts of the cluster do beside the pods that run from the start."""
        pods = [change.pod for change in cluster if isinstance(change, SetPod)]
        running = {uid_of(pod): pod for pod in pods if pod.spec.node_name and pod.status.phase not in FINISHED}
        values = [change.value for change in cluster if isinstance(change, SetObject)]
        budgets = [value for value in values if isinstance(value, PodDisruptionBudget)]
        self._placed.update(running)
        self._disruptions = DisruptionController(budgets, running)
        self._dates = VirtualDates(pod.status.start_time for pod in running.values() if pod.status.start_time)
        self._volumes = VolumeController(cluster)
        self._show(self._volumes.start())
        for uid, pod in running.items():
            if pod.metadata.deletion_timestamp is not None:
                self._ends(uid, pod)

    def attempts(self) -> Iterator[Attempt]:
        """Runs to the end, and gives each attempt as it is made."""
        while True:
            yield from self._deliver()
            before = self._stopwatch.read()
            step = self.scheduler.step(self.now)
            assert not isinstance(step, Ask)  # there are no extenders
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
            tuple(self._records.values()), nodes, allocation, self._running, self.now, self._decisions, self._seconds,
            tuple(self._evictions.values()),
        )  # fmt: skip

    # ---- time

    def _deliver(self) -> Iterator[Attempt]:
        """What happens by now."""
        while self._events and self._events[0][0] <= self.now:
            time, what, _, event = heapq.heappop(self._events)
            if isinstance(event, str):
                self._end(event)
            elif what == _LEAVES:
                self._leave(event, time)
            else:
                yield from self._arrive(event, time)
            self._follow_up()

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

    def _show(self, changes: Iterable[Change]) -> None:
        """The watch shows these."""
        for change in changes:
            self.scheduler.on(change, self.now)

    # ---- pods come and go

    def _arrive(self, arrival: Arrival, time: float) -> Iterator[Attempt]:
        pod = PodInfo.of(arrival.pod)
        record = self._records[pod.uid] = PodRecord(pod.uid, pod.namespace, pod.name, time)
        self._show(self._volumes.pod_came(arrival.pod))
        self._show([SetPod(arrival.pod)])
        self._show(self._disruptions.came(pod.uid, arrival.pod))
        if pod.uid not in self.scheduler.queue:
            record.fate, record.message = Fate.LEFT_ALONE, _why_left_alone(pod)
            yield Attempt(self.now, record)

    def _leave(self, arrival: Arrival, time: float) -> None:
        """A pod leaves when its time has come, whether it has found a place or still waits. If it was evicted, it has
        left before, or is about to."""
        uid = uid_of(arrival.pod)
        if self._records[uid].fate is not Fate.EVICTED:
            self._records[uid].left = time
            self._remove(arrival.pod)
            self._show(self._disruptions.left(uid))

    def _ends(self, uid: str, pod: Pod) -> float:
        """A pod has to go; when its grace period will be over."""
        grace = pod.spec.termination_grace_period_seconds
        ends = self.now + (USUAL_GRACE if grace is None else max(0, grace))
        heapq.heappush(self._events, (ends, _ENDS, next(self._numbers), uid))
        return ends

    def _end(self, uid: str) -> None:
        """The grace period of a pod is over. It may have been told to go twice."""
        pod = self._placed.get(uid)
        if pod is not None:
            self._remove(pod)

    def _remove(self, pod: Pod) -> None:
        uid = uid_of(pod)
        self._placed.pop(uid, None)
        visible = self.scheduler.state.pods.get(uid)
        if visible is not None:
            self._use.subtract({**visible.requests, "pods": 1})
        self._show([DeletePod(uid), *self._volumes.pod_left(pod)])
        self._changed()

    # ---- what the scheduler asks for

    def _carry_out(self, step: Step) -> Attempt:
        record = self._records[step.pod.uid]
        record.attempts, record.decided = step.attempt, self.now
        if not step.decision.node:
            record.reasons = reasons_of(step.decision, len(self.scheduler.state.node_list()))
        if step.decision.failed or (step.preempted is not None and not step.preempted.victims):
            self._erred.add(step.pod.uid)
        self._do(step.effects)
        self._follow_up()
        return Attempt(self.now, record)

    def _follow_up(self) -> None:
        """Does what the scheduler asks for because of what it was told."""
        while effects := self.scheduler.effects():
            self._do(effects)

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Bind(pod=pod, node=node):
                    self._bind(pod, node)
                case BindVolumes(pod=pod, node=node, volumes=volumes):
                    self.scheduler.volumes_written(pod.uid, self.now)
                    self._show(self._volumes.bound(node, volumes))
                case Evict():
                    self._evict(effect)
                case Report(pod=pod, message=message):
                    self._records[pod.uid].message = message
                case ClearNomination() | Warn():
                    pass  # the core knows the one, and the other does not change what becomes of the pod
                case _:
                    assert_never(effect)

    def _bind(self, pod: PodInfo, node: str) -> None:
        """The API takes the binding, and the watch shows the pod with its node."""
        self.scheduler.bind_succeeded(pod.uid, self.now)
        status = replace(pod.status, start_time=self._dates.text(self.now))
        bound = Pod(metadata=pod.metadata, spec=replace(pod.spec, node_name=node), status=status)
        self._show([SetPod(bound)])
        self._show(self._disruptions.placed(pod.uid))
        record = self._records[pod.uid]
        record.fate, record.node, record.message, record.reasons = Fate.PLACED, node, "", {}
        self._placed[pod.uid] = bound
        self._use.update({**pod.requests, "pods": 1})
        for name in (*pod.requests, "pods"):
            self._peak[name] = max(self._peak[name], self._use[name])
        self._changed()

    def _evict(self, effect: Evict) -> None:
        """The API takes the deletions. Who is on the way out already, for another, is not told again."""
        for place, victim in enumerate(effect.victims):
            pod = self._placed.get(victim.uid)
            if pod is not None and victim.uid not in self._evictions:
                self._tell_to_go(victim.uid, pod, effect, against_budget=place < effect.violations)
                self._changed()
        self.scheduler.evictions_ended(effect.preemptor.uid, effect.node, self.now, done=True)

    def _tell_to_go(self, uid: str, pod: Pod, effect: Evict, *, against_budget: bool) -> None:
        by = f"{effect.preemptor.namespace}/{effect.preemptor.name}"
        record = self._records.get(uid)
        self._evictions[uid] = Eviction(_full_name(pod), effect.node, by, self.now, record is None, against_budget)
        if record is not None:
            record.fate, record.node, record.evicted_by = Fate.EVICTED, "", by
        ends = self._ends(uid, pod)
        metadata = replace(pod.metadata, deletion_timestamp=self._dates.text(ends))
        self._show([SetPod(replace(pod, metadata=metadata)), *self._disruptions.evicted(uid)])


_Event = tuple[float, int, int, Arrival | str]
"""When, what, its number among these, and who: a pod that arrives or leaves, or the uid of an evicted one."""


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


def uid_of(pod: Pod) -> str:
    """As PodInfo has it."""
    return pod.metadata.uid or _full_name(pod)


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _why_left_alone(pod: PodInfo) -> str:
    if pod.status.phase in FINISHED:
        return "it has ended"
    if pod.terminating:
        return "it is being deleted"
    if pod.spec.scheduling_gates:
        return "its scheduling gates hold it back: " + ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"the policy has no profile for its scheduler, {pod.scheduler_name}"
