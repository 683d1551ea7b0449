"""Carries out what the core asks for, and tells it what came of that; users and operators are told as well.

Bindings and evictions are tasks in the background (`ksp.runtime.binds`, `ksp.runtime.evictions`), of which this is the
keeper; reports and events wait until they are sent. Of all that nothing is waited for here.

A fault of ksp in one attempt is logged and counted; the pod gives back what it was assumed to have, and is tried again
after its backoff, 1 to 10 s; so that the others go on, and nothing turns in a circle.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol, assert_never

from ksp.core.bindings import prebind_error
from ksp.core.cache import CachePhase
from ksp.core.changes import (
    SCHEDULER_ERROR,
    Bind,
    BindVolumes,
    ClearNomination,
    Effect,
    Evict,
    PodVolumes,
    Report,
    Warn,
)
from ksp.core.queue import Place, QueuedPod
from ksp.core.scheduler import Scheduler, Step
from ksp.kube.printable import printable
from ksp.kube.timers import Timers
from ksp.kube.write.conditions import MESSAGE_LIMIT
from ksp.kube.write.writes import Bound, NotBound, VolumeOrClaim, VolumesWritten
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender
from ksp.runtime.binds import BindingExtenders, Binds, BindWriter, Outcome
from ksp.runtime.evictions import Evictions, EvictionWriter
from ksp.runtime.faults import Faults, told
from ksp.runtime.log import DECISIONS, Seldom, entry
from ksp.runtime.observer import Binding, Observer
from ksp.runtime.reports import ConditionWriter, Reports

_log = logging.getLogger(__name__)

NAMED: Final = 10
"""How many victims an entry of the log names."""


class Writer(BindWriter, ConditionWriter, EvictionWriter, Protocol):
    """What the loop writes to the API server."""


class Recorder(Protocol):
    """Takes events, and does not wait for them to be sent."""

    def scheduled(self, pod: PodInfo, node: str) -> None: ...

    def failed_scheduling(self, pod: PodInfo, message: str) -> None: ...

    def warned(self, pod: PodInfo, reason: str, message: str) -> None: ...

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None: ...


class Effects:
    """Effects and their outcomes. `wake` is called when the core has been told something new."""

    def __init__(
        self, scheduler: Scheduler, writer: Writer, recorder: Recorder, observer: Observer, faults: Faults, *,
        timers: Timers, limit: int, wake: Callable[[], None], extenders: BindingExtenders | None = None,
    ) -> None:  # fmt: skip
        self.scheduler = scheduler
        self.binds = Binds(writer, timers, limit, self, extenders)
        self.evictions = Evictions(writer, timers, self)
        self.reports = Reports(writer, self._waiting, faults.caught)
        self._recorder = recorder
        self._observer = observer
        self._faults = faults
        self._unreached = Seldom(_log, timers.now)
        self._timers = timers
        self._wake = wake

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

    # ---- effects

    def carry_out(self, effect: Effect) -> None:
        """Begin it."""
        match effect:
            case Bind(pod=pod, node=node, extender=extender):
                self._bind(pod, node, None, extender)
            case BindVolumes(pod=pod, node=node, volumes=volumes):
                self._bind(pod, node, volumes, None)
            case Report():
                self._report(effect)
            case Warn():
                self._warn(effect)
            case Evict():
                self._evict(effect)
            case ClearNomination(pod=pod):
                _say(DECISIONS, "is nominated to no node any more", pod)
                self.reports.put(effect)
            case _:
                assert_never(effect)

    def _bind(self, pod: PodInfo, node: str, volumes: PodVolumes | None, extender: Extender | None) -> None:
        """Binds the pod, or first its volumes; unless it has gone away meanwhile, or has lost its place."""
        now = self._timers.now()
        if not self._is_assumed(pod, node):
            return
        if pod.uid in self.binds:  # it was gone and is back, while its first binding is not settled yet
            self.scheduler.bind_failed(pod.uid, now)
            return
        queued = self.scheduler.queue.get(pod.uid)
        attempt, first, began = (1, now, now) if queued is None else (queued.attempts, queued.first_added, queued.began)
        self.binds.start(Binding(pod, node, attempt, first, began, now, volumes, extender))

    def _is_assumed(self, pod: PodInfo, node: str) -> bool:
        cache = self.scheduler.cache
        return cache.phase(pod.uid) is CachePhase.ASSUMED and cache.node_name_of(pod.uid) == node

    def _report(self, report: Report) -> None:
        """What extenders say, or rules of thousands of nodes, is kept no longer than it will be shown."""
        if len(report.message) > MESSAGE_LIMIT:
            report = replace(report, message=printable(report.message, MESSAGE_LIMIT))
        _say(DECISIONS, "no node for the pod", report.pod, reason=report.reason, message=report.message)
        self._recorder.failed_scheduling(report.pod, report.message)
        self.reports.put(report)

    def _evict(self, evict: Evict) -> None:
        victims = _names(evict.victims)
        against = {"against_budgets": _names(evict.victims[: evict.violations])} if evict.violations else {}
        _say(
            logging.INFO,
            "preempts pods of lower priority",
            evict.preemptor,
            node=evict.node,
            victims=victims,
            **against,
        )
        self.evictions.start(evict)

    def _warn(self, warn: Warn) -> None:
        about = {"fields": ",".join(warn.fields)} if warn.fields else {}
        _say(logging.WARNING, "the pod's user is warned", warn.pod, reason=warn.reason, **about, message=warn.message)
        self._recorder.warned(warn.pod, warn.reason, warn.message)

    def _waiting(self, report: Report | ClearNomination) -> PodInfo | None:
        """The pod, if it waits. Of one that is being bound nothing may be written that its binding makes untrue. One
        for which no profile decides any more waits for nobody here, and is nominated to no node."""
        queued = self.scheduler.queue.get(report.pod.uid)
        if queued is not None:
            return None if queued.place is Place.IN_FLIGHT else queued.info
        left = isinstance(report, ClearNomination) and report.pod.scheduler_name not in self.scheduler.cycles
        return report.pod if left else None

    # ---- faults

    def failed(self, error: Exception, step: Step | None) -> bool:
        """A fault while deciding, or while carrying out what follows from the step: the pods that were left in flight
        come back, and none waits for evictions that nobody has begun. False if no pod can be held responsible."""
        if step is not None and step.preempted is not None and step.pod.uid not in self.evictions:
            self._evictions_ended(step.pod, step.preempted.node, done=False)
        lost = [queued for queued in self.scheduler.queue if queued.place is Place.IN_FLIGHT]
        lost = [queued for queued in lost if not self._is_on_its_way(queued.uid)]
        for queued in lost:
            self._faults.caught("deciding", error, queued.info)
            self._take_back(queued, told(error))
        if not lost:
            self._faults.caught("deciding", error, None if step is None else step.pod)
        return bool(lost) or step is not None

    def _is_on_its_way(self, uid: str) -> bool:
        """Whether something will come that goes on with the pod in flight: answers of extenders, the end of a binding,
        its volumes, or, if it is bound, the watch that shows it."""
        asked = self.scheduler.asked
        if asked is not None and asked.pod.uid == uid:
            return True
        bound = self.scheduler.cache.phase(uid) is CachePhase.BOUND
        return bound or uid in self.binds or self.scheduler.bindings.is_waiting(uid)

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
        self._wake()

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
        self._wake()

    def needs(self, evict: Evict) -> bool:
        return self.scheduler.queue.nominations.node_of(evict.preemptor.uid) == evict.node

    def is_in_the_way(self, evict: Evict, victim: PodInfo) -> bool:
        there = self.scheduler.cache.get(victim.uid)
        return (
            there is not None
            and not there.terminating
            and self.scheduler.cache.node_name_of(victim.uid) == evict.node
        )  # fmt: skip

    def evicted(self, evict: Evict, victim: PodInfo) -> None:
        _say(DECISIONS, "preempted", victim, by=_name(evict.preemptor), node=evict.node)
        self._recorder.preempted(victim, evict.preemptor, evict.node)

    def evictions_ended(self, evict: Evict, *, done: bool) -> None:
        self._evictions_ended(evict.preemptor, evict.node, done=done)

    def _evictions_ended(self, preemptor: PodInfo, node: str, *, done: bool) -> None:
        try:
            self.scheduler.evictions_ended(preemptor.uid, node, self._timers.now(), done=done)
        except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
            self._faults.caught("taking in the end of evictions", error, preemptor)
        self._wake()

    def not_evicted(self, evict: Evict, victim: PodInfo, why: str | Exception) -> None:
        name = _name(victim)
        if isinstance(why, Exception):
            self._faults.caught("evicting", why, victim)
            why = told(why)
        was_needed = self.needs(evict)
        self.evictions_ended(evict, done=False)
        _say(logging.WARNING, "cannot preempt", evict.preemptor, victim=name, node=evict.node, error=why)
        if was_needed:
            note = f"cannot preempt pod {victim.uid} on node {evict.node}: {_unquoted(why)}"
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
                self._not_bound(binding, told(outcome), now)

    def _not_bound(self, binding: Binding, message: str, now: float) -> None:
        """The pod is still there, and waits for its next attempt."""
        self._observer.not_bound(binding, message, now)
        _say(logging.WARNING, "cannot bind", binding.pod, node=binding.node, error=message)
        note = f"Binding rejected: {message}" if binding.volumes is None else prebind_error(binding.pod, message)
        self._recorder.failed_scheduling(binding.pod, note)
        self.reports.put(Report(binding.pod, SCHEDULER_ERROR, note))


def _unquoted(why: str) -> str:
    """What went wrong with another pod, without that pod's name, which servers repeat: the status, or its kind."""
    status = re.match(r"\d{3}( \w+)*", why)
    return status[0] if status else why if why.startswith("internal error") else "see the scheduler's log"


def _name(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.name}"


def _names(pods: Sequence[PodInfo]) -> str:
    """Those of the first few, and how many more there are."""
    more = len(pods) - NAMED
    return ",".join(map(_name, pods[:NAMED])) + (f",+{more} more" if more > 0 else "")


def _say(level: int, message: str, pod: PodInfo, /, **about: object) -> None:
    if _log.isEnabledFor(level):
        _log.log(level, entry(message, pod=_name(pod), **about))
