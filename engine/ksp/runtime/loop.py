"""Drives the core: changes go in, the next pod is decided, effects are carried out, their outcomes go in.

It decides for as long as `SLICE`, then gives way to what the network brought: to as much of it as is there, for no
longer than it decided. It never polls: with nothing to decide it sleeps until a change, the end of a binding, or the
time at which the core says that a pod becomes due.

While `limit` bindings are on their way it decides for nobody (see `ksp.runtime.binds`).

A fault of the core in one attempt is logged and counted; the pod gives back what it was assumed to have, and is tried
again after its backoff, 1 to 10 s; so that the others go on, and nothing turns in a circle. If no pod can be held
responsible, the loop pauses for `PAUSE`.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import Final, Protocol, assert_never

from ksp.core.bindings import prebind_error
from ksp.core.cache import CachePhase
from ksp.core.changes import (
    SCHEDULER_ERROR,
    Bind,
    BindVolumes,
    Change,
    ClearNomination,
    Effect,
    Evict,
    PodVolumes,
    Report,
    Warn,
)
from ksp.core.queue import Place, QueuedPod
from ksp.core.scheduler import Scheduler, Step
from ksp.kube.timers import Timers
from ksp.kube.write.writes import Bound, NotBound, VolumeOrClaim, VolumesWritten
from ksp.model.info import PodInfo
from ksp.ports import Stopwatch
from ksp.runtime.binds import Binds, BindWriter, Outcome
from ksp.runtime.evictions import Evictions, EvictionWriter
from ksp.runtime.faults import Faults
from ksp.runtime.log import DECISIONS, Seldom, entry
from ksp.runtime.observer import Binding, Observer
from ksp.runtime.reports import ConditionWriter, Reports

_log = logging.getLogger(__name__)

SLICE: Final = 0.005
IDLE: Final = 0.0001
"""A turn of the event loop that takes no longer had nothing to do."""
PAUSE: Final = 1.0


class Writer(BindWriter, ConditionWriter, EvictionWriter, Protocol):
    """What the loop writes to the API server."""


class Recorder(Protocol):
    """Takes events, and does not wait for them to be sent."""

    def scheduled(self, pod: PodInfo, node: str) -> None: ...

    def failed_scheduling(self, pod: PodInfo, message: str) -> None: ...

    def warned(self, pod: PodInfo, reason: str, message: str) -> None: ...

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None: ...


class SchedulingLoop:
    """Schedules until it is stopped."""

    def __init__(
        self, scheduler: Scheduler, writer: Writer, recorder: Recorder, observer: Observer, *, timers: Timers,
        stopwatch: Stopwatch, limit: int,
    ) -> None:  # fmt: skip
        self.scheduler = scheduler
        self.binds = Binds(writer, timers, limit, self)
        self.evictions = Evictions(writer, timers, self)
        self.reports = Reports(writer, self._waiting)
        self._recorder = recorder
        self._observer = observer
        self._faults = Faults(observer)
        self._unreached = Seldom(_log, timers.now)
        self._timers = timers
        self._stopwatch = stopwatch
        self._work = asyncio.Event()
        self._stopping = False
        self._paused_until = -inf

    # ---- what the outside calls

    def deliver(self, change: Change) -> None:
        """Takes a change in, as informers tell of it. It wakes the loop."""
        try:
            self.scheduler.on(change, self._timers.now())
        except Exception as error:  # noqa: BLE001 - a fault with one object must not end the watch of the others
            self._faults.caught(f"taking in {type(change).__name__}", error)
        self._work.set()

    def relisted(self, began: float) -> None:
        """A list of all pods has been told, which was asked for at that time."""
        try:
            self.scheduler.relisted(began, self._timers.now())
        except Exception as error:  # noqa: BLE001 - as for a change
            self._faults.caught("taking in a list of all pods", error)
        self._work.set()

    async def run(self) -> None:
        """Decides until stopped; reports are sent meanwhile."""
        reports = asyncio.create_task(self.reports.run())
        try:
            while not self._stopping:
                began = self._stopwatch.read()
                if self._decide(began + SLICE):
                    await self._give_way(self._stopwatch.read() - began)
                else:
                    await self._wait()
        finally:
            reports.cancel()
            await asyncio.gather(reports, return_exceptions=True)

    def stop(self) -> None:
        """No decision from here on."""
        self._stopping = True
        self._work.set()

    async def drain(self, seconds: float) -> int:
        """Waits for the bindings and evictions on their way, for no longer than that; how many were given up."""
        bindings, evictions = await asyncio.gather(self.binds.drain(seconds), self.evictions.drain(seconds))
        for binding in bindings:
            why = "gave up waiting for a binding; it may have happened"
            _say(logging.WARNING, why, binding.pod, node=binding.node)
        for evict in evictions:
            why = "gave up evicting pods for another; some may be deleted"
            _say(logging.WARNING, why, evict.preemptor, node=evict.node, victims=len(evict.victims))
        return len(bindings) + len(evictions)

    # ---- turns

    def _decide(self, end: float) -> bool:
        """Decides until then; False if there is nothing to decide any more, or may be nothing decided."""
        self._work.clear()
        self._act_on_the_rest()
        while not self._held_until(self._timers.now()):
            decided = self._decide_one()
            self._act_on_the_rest()
            if not decided:
                return False
            if self._stopwatch.read() >= end:
                return True
        return False

    def _held_until(self, now: float) -> float | None:
        """Until when nothing may be decided: inf while there are too many bindings, None if something may be."""
        if self.binds.full:
            return inf
        return self._paused_until if now < self._paused_until else None

    async def _give_way(self, seconds: float) -> None:
        """Lets the event loop turn until it has nothing to do, for about that long at most."""
        before = self._stopwatch.read()
        end = before + seconds
        while True:
            await asyncio.sleep(0)
            now = self._stopwatch.read()
            if now - before < IDLE or now >= end:
                return
            before = now

    async def _wait(self) -> None:
        """Sleeps until there may be something to decide."""
        now = self._timers.now()
        due = self._held_until(now) or self.scheduler.next_deadline(now)
        if due is None or due == inf:
            await self._work.wait()
            return
        alarm = asyncio.create_task(self._ring(due - now))
        try:
            await self._work.wait()
        finally:
            alarm.cancel()
            await asyncio.gather(alarm, return_exceptions=True)

    async def _ring(self, seconds: float) -> None:
        await self._timers.sleep(seconds)
        self._work.set()

    # ---- one pod

    def _decide_one(self) -> bool:
        """Decides for the next pod that is due; False if none is."""
        began, before = self._timers.now(), self._stopwatch.read()
        step = None
        try:
            step = self.scheduler.step(began)
            if step is not None:
                self._carry_out(step, self._stopwatch.read() - before)
        except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
            self._failed(error, step)
            return True
        return step is not None

    def _carry_out(self, step: Step, seconds: float) -> None:
        self._observer.decided(step, seconds)
        for effect in step.effects:
            self._act(effect)

    def _act_on_the_rest(self) -> None:
        """Carries out what follows from changes, outcomes and time."""
        for effect in self.scheduler.effects():
            try:
                if isinstance(effect, Report):  # of waiting for volumes, which no binding stands for any more
                    self._observer.wait_failed(effect.pod, effect.message)
                self._act(effect)
            except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
                self._failed(error, None)

    def _act(self, effect: Effect) -> None:
        match effect:
            case Bind(pod=pod, node=node):
                self._bind(pod, node, None)
            case BindVolumes(pod=pod, node=node, volumes=volumes):
                self._bind(pod, node, volumes)
            case Report():
                self._report(effect)
            case Warn():
                self._warn(effect)
            case Evict():
                self._evict(effect)
            case ClearNomination(pod=pod):
                _say(DECISIONS, "waits for no node any more", pod)
                self.reports.put(effect)
            case _:
                assert_never(effect)

    def _bind(self, pod: PodInfo, node: str, volumes: PodVolumes | None) -> None:
        """Binds the pod, or first its volumes; unless it has gone away meanwhile, or has lost its place."""
        now = self._timers.now()
        if not self._is_assumed(pod, node):
            return
        if pod.uid in self.binds:  # it was gone and is back, while its first binding is not settled yet
            self.scheduler.bind_failed(pod.uid, now)
            return
        queued = self.scheduler.queue.get(pod.uid)
        attempt, first, began = (1, now, now) if queued is None else (queued.attempts, queued.first_added, queued.began)
        self.binds.start(Binding(pod, node, attempt, first, began, now, volumes))

    def _is_assumed(self, pod: PodInfo, node: str) -> bool:
        cache = self.scheduler.cache
        return cache.phase(pod.uid) is CachePhase.ASSUMED and cache.node_name_of(pod.uid) == node

    def _report(self, report: Report) -> None:
        _say(DECISIONS, "no node for the pod", report.pod, reason=report.reason, message=report.message)
        self._recorder.failed_scheduling(report.pod, report.message)
        self.reports.put(report)

    def _evict(self, evict: Evict) -> None:
        victims = ",".join(f"{victim.namespace}/{victim.name}" for victim in evict.victims)
        _say(logging.INFO, "others have to go for the pod", evict.preemptor, node=evict.node, victims=victims)
        self.evictions.start(evict)

    def _warn(self, warn: Warn) -> None:
        fields = ",".join(warn.fields)
        _say(logging.WARNING, "the policy does not read fields of the pod", warn.pod, fields=fields)
        self._recorder.warned(warn.pod, warn.reason, warn.message)

    def _waiting(self, uid: str) -> PodInfo | None:
        """The pod, if it waits. Of one that is being bound nothing may be written that its binding makes untrue."""
        queued = self.scheduler.queue.get(uid)
        return None if queued is None or queued.place is Place.IN_FLIGHT else queued.info

    def _failed(self, error: Exception, step: Step | None) -> None:
        """An attempt ended in a fault: the pods that were left in flight come back, and none waits for evictions that
        nobody has begun."""
        if step is not None and step.preempted is not None and step.pod.uid not in self.evictions:
            self.scheduler.evictions_ended(step.pod.uid, self._timers.now(), done=False)
        lost = [queued for queued in self.scheduler.queue if queued.place is Place.IN_FLIGHT]
        lost = [queued for queued in lost if not self._is_on_its_way(queued.uid)]
        for queued in lost:
            self._faults.caught("deciding", error, queued.info)
            self._take_back(queued, f"internal error: {error}")
        if not lost:
            self._faults.caught("deciding", error, None if step is None else step.pod)
            if step is None:
                self._paused_until = self._timers.now() + PAUSE

    def _is_on_its_way(self, uid: str) -> bool:
        """Whether something will come that goes on with the pod in flight: the end of a binding, or its volumes."""
        return uid in self.binds or self.scheduler.bindings.is_waiting(uid)

    def _take_back(self, queued: QueuedPod, message: str) -> None:
        try:
            self.scheduler.bind_failed(queued.uid, self._timers.now())
            self._recorder.failed_scheduling(queued.info, message)
        except Exception as error:  # noqa: BLE001 - the pod may stay in flight until it is changed; the others go on
            self._faults.caught("taking back a pod", error, queued.info)

    # ---- outcomes

    def still_wanted(self, binding: Binding) -> bool:
        """The pod is assumed on the node, which exists."""
        return self._is_assumed(binding.pod, binding.node) and binding.node in self.scheduler.state.nodes

    def unreached(self, message: str) -> None:
        self._unreached.say("", "cannot bind: no connection", waiting=len(self.binds), error=message)

    def wrote(self, chosen: VolumeOrClaim, stored: VolumeOrClaim) -> None:
        self.scheduler.wrote(chosen, stored, self._timers.now())
        self._work.set()

    def bind_ended(self, binding: Binding, outcome: Outcome) -> None:
        now = self._timers.now()
        try:
            match outcome:
                case Bound():
                    self.scheduler.bind_succeeded(binding.pod.uid, now)
                case VolumesWritten():
                    self.scheduler.volumes_written(binding.pod.uid, now)
                case _:
                    self.scheduler.bind_failed(binding.pod.uid, now)
            self._tell(binding, outcome, now)
        except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
            self._faults.caught("taking in the end of a binding", error, binding.pod)
        self._work.set()

    def needs(self, evict: Evict) -> bool:
        return self.scheduler.queue.nominations.node_of(evict.preemptor.uid) == evict.node

    def evicted(self, evict: Evict, victim: PodInfo) -> None:
        preemptor = f"{evict.preemptor.namespace}/{evict.preemptor.name}"
        _say(DECISIONS, "preempted", victim, by=preemptor, node=evict.node)
        self._recorder.preempted(victim, evict.preemptor, evict.node)

    def evictions_ended(self, evict: Evict, *, done: bool) -> None:
        try:
            self.scheduler.evictions_ended(evict.preemptor.uid, self._timers.now(), done=done)
        except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
            self._faults.caught("taking in the end of evictions", error, evict.preemptor)
        self._work.set()

    def not_evicted(self, evict: Evict, victim: PodInfo, why: str | Exception) -> None:
        name = f"{victim.namespace}/{victim.name}"
        if isinstance(why, Exception):
            self._faults.caught("evicting", why, victim)
            why = f"internal error: {why}"
        self.evictions_ended(evict, done=False)
        _say(logging.WARNING, "cannot preempt", evict.preemptor, victim=name, node=evict.node, error=why)
        if evict.preemptor.uid in self.scheduler.queue:
            note = f"cannot preempt {name} on node {evict.node}: {why}"
            self._recorder.failed_scheduling(evict.preemptor, note)

    def _tell(self, binding: Binding, outcome: Outcome, now: float) -> None:
        pod = binding.pod
        match outcome:
            case Bound():
                self._observer.bound(binding, now)
                _say(DECISIONS, "bound", pod, node=binding.node)
                self._recorder.scheduled(pod, binding.node)
            case VolumesWritten():
                _say(DECISIONS, "waits for its volumes", pod, node=binding.node)
            case NotBound(message=message, gone=gone) if gone or pod.uid not in self.scheduler.queue:
                self._observer.not_bound(binding, message, now)
                _say(logging.INFO, "not bound, and waits no more", pod, node=binding.node, reason=message)
            case NotBound(message=message, elsewhere=True):
                self._observer.not_bound(binding, message, now)
                _say(logging.WARNING, "another scheduler has bound the pod", pod, error=message)
            case NotBound(message=message):
                self._not_bound(binding, message, now)
            case _:
                self._faults.caught("binding", outcome, pod)
                self._not_bound(binding, f"internal error: {outcome}", now)

    def _not_bound(self, binding: Binding, message: str, now: float) -> None:
        """The pod is still there, and waits for its next attempt."""
        self._observer.not_bound(binding, message, now)
        _say(logging.WARNING, "cannot bind", binding.pod, node=binding.node, error=message)
        note = f"Binding rejected: {message}" if binding.volumes is None else prebind_error(binding.pod, message)
        self._recorder.failed_scheduling(binding.pod, note)
        self.reports.put(Report(binding.pod, SCHEDULER_ERROR, note))


def _say(level: int, message: str, pod: PodInfo, /, **about: object) -> None:
    if _log.isEnabledFor(level):
        _log.log(level, entry(message, pod=f"{pod.namespace}/{pod.name}", **about))
