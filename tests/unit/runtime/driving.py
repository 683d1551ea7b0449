"""What tests of the loop share: a writer and a recorder in memory, and a loop that runs in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.unit.core.scheduling import FakeDice, default_profile
from tests.unit.kube.timers import VirtualTimers

from ksp.core.changes import PodVolumes
from ksp.core.scheduler import Scheduler, Step
from ksp.kube.write.writes import Bound, Evicted, Failed, Gone, NotBound, Patched, VolumesWritten, Wrote
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.policy.extender import Extender
from ksp.ports import Dice
from ksp.runtime.loop import Extenders, SchedulingLoop
from ksp.runtime.observer import Binding, Observer, Observers

WITHIN = 5.0
"""Real seconds that anything in these tests may take."""


class Stopwatch:
    """Goes on by a fixed time with each look, so that a slice ends after a known number of decisions."""

    def __init__(self, step: float = 0.0) -> None:
        self.step = step
        self.time = 0.0

    def read(self) -> float:
        self.time += self.step
        return self.time


@dataclass
class Writer:
    """Remembers what it was asked for. A binding ends at once with `outcome`, or, while `held`, when the test says; a
    condition when `may_write` is set, as it is at first. An eviction ends as `evictions` says of the victim's name,
    else well, or, while `held`, when the test says. `patched` is what comes of conditions and nominations. Volumes are
    written with the outcome `written`, or, while `held`, when the test says: `writing` are those under way, and of what
    is written by then the test tells `wrote`."""

    outcome: Bound | NotBound | Exception = field(default_factory=Bound)
    written: VolumesWritten | NotBound | Exception = field(default_factory=VolumesWritten)
    held: bool = False
    patched: Patched = Patched.SENT
    binds: list[tuple[str, str]] = field(default_factory=list)
    volumes: list[tuple[str, str, PodVolumes]] = field(default_factory=list)
    wrote: Wrote = field(default=lambda *_: None)
    writing: dict[str, asyncio.Future[VolumesWritten | NotBound]] = field(default_factory=dict)
    evicted: list[tuple[str, str]] = field(default_factory=list)
    evictions: dict[str, Evicted | Gone | Failed | Exception] = field(default_factory=dict)
    nominations: list[tuple[str, str | None]] = field(default_factory=list)
    conditions: list[tuple[str, str, str]] = field(default_factory=list)
    open: dict[str, asyncio.Future[Bound | NotBound]] = field(default_factory=dict)
    going: dict[str, asyncio.Future[Evicted | Gone | Failed]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    may_write: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_write.set()

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound:
        self.binds.append((pod.name, node))
        self.changed.set()
        if self.held:
            self.open[pod.name] = asyncio.get_running_loop().create_future()
            try:
                return await self.open[pod.name]
            finally:
                del self.open[pod.name]
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def bind_volumes(
        self, pod: PodInfo, node: str, static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
        dynamic: Sequence[PersistentVolumeClaim], wrote: Wrote,
    ) -> VolumesWritten | NotBound:  # fmt: skip
        self.wrote = wrote
        self.volumes.append((pod.name, node, PodVolumes(tuple(static), tuple(dynamic))))
        self.changed.set()
        if self.held:
            self.writing[pod.name] = asyncio.get_running_loop().create_future()
            try:
                return await self.writing[pod.name]
            finally:
                del self.writing[pod.name]
        if isinstance(self.written, Exception):
            raise self.written
        return self.written

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed:
        self.evicted.append((victim.name, preemptor.name))
        self.changed.set()
        if self.held:
            self.going[victim.name] = asyncio.get_running_loop().create_future()
            try:
                return await self.going[victim.name]
            finally:
                del self.going[victim.name]
        outcome = self.evictions.get(victim.name, Evicted())
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched:
        self.conditions.append((pod.name, reason, message))
        self.nominations.append((pod.name, nominated_node))
        self.changed.set()
        await self.may_write.wait()
        return self.patched

    async def clear_nomination(self, pod: PodInfo) -> Patched:
        self.nominations.append((pod.name, ""))
        self.changed.set()
        await self.may_write.wait()
        return self.patched

    async def until(self, holds: Callable[[Writer], bool]) -> None:
        async with asyncio.timeout(WITHIN):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()


@dataclass
class Recorder:
    """Remembers events as (pod, reason, note)."""

    events: list[tuple[str, str, str]] = field(default_factory=list)

    def scheduled(self, pod: PodInfo, node: str) -> None:
        self.events.append((pod.name, "Scheduled", node))

    def failed_scheduling(self, pod: PodInfo, message: str) -> None:
        self.events.append((pod.name, "FailedScheduling", message))

    def warned(self, pod: PodInfo, reason: str, message: str) -> None:
        self.events.append((pod.name, reason, message))

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None:
        self.events.append((victim.name, "Preempted", f"{preemptor.name} on {node}"))


@dataclass
class Seen:
    """An observer that remembers."""

    decisions: list[tuple[str, str]] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def decided(self, step: Step, seconds: float) -> None:
        self.decisions.append((step.pod.name, step.decision.node))

    def bound(self, binding: Binding, now: float) -> None:
        self.bindings.append(binding)

    def not_bound(self, binding: Binding, message: str, now: float) -> None:
        self.failures.append((binding.pod.name, message))

    def wait_failed(self, pod: PodInfo, message: str) -> None:
        self.failures.append((pod.name, message))

    def fault(self, where: str, pod: PodInfo | None) -> None:
        self.faults.append((where, pod.name if pod is not None else ""))


class World:
    """A loop and all that it meets."""

    def __init__(
        self, limit: int = 100, dice: Dice | None = None, stopwatch: Stopwatch | None = None,
        timers: VirtualTimers | None = None, observers: Sequence[Observer] = (), extenders: Extenders | None = None,
        configured: Sequence[Extender] = (),
    ) -> None:  # fmt: skip
        """`extenders` are asked in the place of those that are `configured`."""
        self.timers = timers or VirtualTimers()
        self.writer = Writer()
        self.recorder = Recorder()
        self.seen = Seen()
        self.scheduler = Scheduler([default_profile()], dice or FakeDice(), extenders=configured)
        self.loop = SchedulingLoop(
            self.scheduler,
            self.writer,
            self.recorder,
            Observers((self.seen, *observers)),
            timers=self.timers,
            stopwatch=stopwatch or Stopwatch(),
            limit=limit,
            extenders=extenders,
        )


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    """The loop runs; it is stopped at the end, and what went wrong in it is raised."""
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(world.loop.run())
        yield world
        world.loop.stop()
        await world.loop.drain(0)
