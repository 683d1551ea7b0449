"""Says in the cluster what the scheduler did: the events that `kubectl describe` shows.

`event` never waits and never raises for what the server does: what it is told is counted, and written by `run` in the
background. Of an event that repeats the server gets the count now and then (`ksp.kube.events.correlator`); nothing that
happens in the cluster makes the queue longer than `QUEUE`, or more than `IN_FLIGHT` requests at a time.

Its `Client` is another one than that of bindings, as in kube-scheduler: events must not use up their rate limit.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from ksp.kube.errors import KubeError
from ksp.kube.events.apis import Serves, best_api
from ksp.kube.events.correlator import Correlator
from ksp.kube.events.objects import EventType, ObjectReference, occurrence, reference_to
from ksp.kube.events.sender import EventNames, EventSender, Failed, Verb, Written
from ksp.kube.events.series import Series
from ksp.kube.http.client import Client
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import SystemWallClock, WallClock
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.ports import Dice

QUEUE: Final = 1000
IN_FLIGHT: Final = 8
SWEEP: Final = 10.0


class EventObserver(Protocol):
    """Hears of events, for the metrics and the log. Each method returns at once and raises nothing."""

    def event_written(self, verb: Verb) -> None:
        """The server took a request."""
        ...

    def event_dropped(self, reason: str, count: int) -> None:
        """So many occurrences will never be seen in the cluster.

        `reason`: spam, evicted, queue_full, rejected, unreachable, shutdown.
        """
        ...

    def event_failed(self, message: str) -> None:
        """Why an event was rejected, or could not be sent: a sentence."""
        ...


class Unobserved:
    """Tells nobody."""

    def event_written(self, verb: Verb) -> None: ...

    def event_dropped(self, reason: str, count: int) -> None: ...

    def event_failed(self, message: str) -> None: ...


class EventRecorder:
    """Records events of one scheduler. `source` is who speaks unless `event` says otherwise, `host` is where it runs.

    `discovery` says for each new event where it is to be written. When the server does not know that version any more,
    discovery is refreshed within `SWEEP` seconds, and what happens from then on is written where the server says.
    `dice` throw the last digits of events' names.
    """

    def __init__(
        self,
        client: Client,
        discovery: Serves,
        timers: Timers,
        dice: Dice,
        *,
        source: str,
        host: str,
        clock: WallClock | None = None,
        observer: EventObserver | None = None,
    ) -> None:
        self._discovery = discovery
        self._timers = timers
        self._source = source
        self._clock = clock or SystemWallClock()
        self._observer = observer or Unobserved()
        self._correlator = Correlator(self._observer.event_dropped)
        self._sender = EventSender(client, timers, EventNames(dice), host)
        self._queue: asyncio.Queue[Series] = asyncio.Queue(QUEUE)
        self._outdated = False
        self._closing = False
        self._stop = asyncio.Event()
        self._stopped = asyncio.Event()  # nobody writes: before `run` and after it
        self._stopped.set()

    # ---- what happened

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """The pod is bound."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self.event(pod, "Normal", "Scheduled", "Binding", note, pod.scheduler_name)

    def failed_scheduling(self, pod: PodInfo, message: str) -> None:
        """The pod has no node, and why."""
        self.event(pod, "Warning", "FailedScheduling", "Scheduling", message, pod.scheduler_name)

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None:
        """The victim is deleted, so that the other pod finds room on the node. Who may read the victim may have no
        right to read the other one: it is told by its uid, as by newer versions of kube-scheduler."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        source, related = preemptor.scheduler_name, ObjectReference(kind="Pod", api_version="v1", uid=preemptor.uid)
        self.event(victim, "Normal", "Preempted", "Preempting", note, source, related)

    def event(
        self,
        regarding: ObjectReference | Pod | PodInfo | Node,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        source: str = "",
        related: ObjectReference | None = None,
    ) -> None:
        """Something happened to an object, and perhaps because of another. Returns at once."""
        if self._closing:
            self._observer.event_dropped("shutdown", 1)
            return
        said = occurrence(
            reference_to(regarding), source or self._source, type, reason, action, note, self._clock.wall(), related
        )
        series = self._correlator.observe(said, best_api(self._discovery), self._timers.now())
        if series is not None:
            self._enqueue(series)

    # ---- writing it

    async def run(self) -> None:
        """Write events until cancelled, or until `close` has written what it can."""
        self._stopped.clear()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._write_forever()) for _ in range(IN_FLIGHT)]
                tasks.append(group.create_task(self._sweep_forever()))
                await self._stop.wait()
                for task in tasks:
                    task.cancel()
        finally:
            self._stopped.set()

    async def close(self, within: float) -> None:
        """Take no more events, write what there is for at most `within` seconds, drop the rest; then `run` returns.

        What is told by then is written only while `run` runs: it must not be cancelled before.
        """
        self._closing = True
        if not self._stopped.is_set():
            self._sweep()
            await self._drained(within)
        self._stop.set()
        await self._stopped.wait()
        self._correlator.abandon("shutdown")

    async def _drained(self, within: float) -> None:
        """Until the queue is empty, `within` seconds have passed, or nobody writes any more."""
        waits = [
            asyncio.create_task(self._queue.join()),
            asyncio.create_task(self._timers.sleep(within)),
            asyncio.create_task(self._stopped.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _write_forever(self) -> None:
        while True:
            series = await self._queue.get()
            try:
                self._record(series, await self._sender.send(series))
            finally:
                self._queue.task_done()

    async def _sweep_forever(self) -> None:
        while True:
            await self._timers.sleep(SWEEP)
            self._sweep()
            if self._outdated:
                await self._look_again()

    async def _look_again(self) -> None:
        """What discovery says is not true any more: an API that it names is not there."""
        try:
            await self._discovery.refresh()
        except KubeError as error:
            self._observer.event_failed(f"cannot find out in which version events are served: {error}")
        else:
            self._outdated = False

    def _record(self, series: Series, outcome: Written | Failed) -> None:
        match outcome:
            case Written(count, verb):
                self._correlator.wrote(series, count, self._timers.now())
                self._observer.event_written(verb)
            case Failed(reason, message, unserved):
                self._outdated = self._outdated or unserved
                self._observer.event_failed(message)
                self._correlator.failed(series, reason)
        if self._closing:
            self._sweep()

    def _sweep(self) -> None:
        for series in self._correlator.sweep(self._timers.now(), closing=self._closing):
            self._enqueue(series)

    def _enqueue(self, series: Series) -> None:
        try:
            self._queue.put_nowait(series)
        except asyncio.QueueFull:
            self._correlator.failed(series, "queue_full")
