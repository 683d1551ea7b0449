"""Drives the core: changes go in, the next pod is decided, effects are carried out (`ksp.runtime.effects`).

It decides for as long as `SLICE`, then gives way to what the network brought: to as much of it as is there, for no
longer than it decided. It never polls: with nothing to decide it sleeps until a change, the end of a binding, or the
time at which the core says that a pod becomes due.

While `limit` bindings of our own are on their way, or extenders are asked for a pod, it decides for nobody (see
`ksp.runtime.binds`, `ksp.runtime.questions`). If no pod can be held
responsible for a fault of the core, it pauses for `PAUSE`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol, TypeVar

from ksp.core.changes import Change, Report
from ksp.core.questions import Answer, Ask
from ksp.core.scheduler import Scheduler, Step
from ksp.kube.timers import Timers
from ksp.ports import Stopwatch
from ksp.runtime.binds import BindingExtenders
from ksp.runtime.effects import Effects, Recorder, Writer
from ksp.runtime.faults import Faults, told
from ksp.runtime.observer import Observer

SLICE: Final = 0.005
IDLE: Final = 0.0001
"""A turn of the event loop that takes no longer had nothing to do."""
PAUSE: Final = 1.0

T = TypeVar("T")


class Extenders(BindingExtenders, Protocol):
    """Asks extenders."""

    def follow(self) -> None:
        """Another generation, with other extenders, may decide from now on."""
        ...

    async def answers(self, ask: Ask) -> Sequence[Answer]:
        """One for each question, in order; it is an answer, too, that there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Answering:
    """Questions that are being answered. `began` is when the attempt did, by the stopwatch."""

    ask: Ask
    task: asyncio.Task[Sequence[Answer]]
    began: float


class SchedulingLoop:
    """Schedules until it is stopped."""

    def __init__(
        self, scheduler: Scheduler, writer: Writer, recorder: Recorder, observer: Observer, *, timers: Timers,
        stopwatch: Stopwatch, limit: int, extenders: Extenders | None = None,
    ) -> None:  # fmt: skip
        """`extenders` are asked; without them none may be configured."""
        self.scheduler = scheduler
        self._extenders = extenders
        self._answering: Answering | None = None
        self._observer = observer
        self._faults = Faults(observer)
        self._work = asyncio.Event()
        self.effects = Effects(
            scheduler, writer, recorder, observer, self._faults, timers=timers, limit=limit, wake=self._work.set,
            extenders=extenders,
        )  # fmt: skip
        self._timers = timers
        self._stopwatch = stopwatch
        self._stopping = False
        self._paused_until = -inf
        self._acts: list[Callable[[], None]] = []

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

    async def between(self, act: Callable[[], T]) -> T:
        """Has something done between two decisions: at once, or when an extender has answered that is being asked. What
        it raises is raised here."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def do() -> None:
            if done.cancelled():
                return
            try:
                done.set_result(act())
            except Exception as error:  # noqa: BLE001 - whoever asked for it is to know, and decisions go on
                done.set_exception(error)

        self._acts.append(do)
        self._act()
        self._work.set()
        return await done

    async def run(self) -> None:
        """Decides until stopped; reports are sent meanwhile."""
        reports = asyncio.create_task(self.effects.reports.run())
        try:
            while not self._stopping:
                began = self._stopwatch.read()
                if self._decide(began + SLICE):
                    await self._give_way(self._stopwatch.read() - began)
                else:
                    await self._wait()
        finally:
            tasks = [reports] if self._answering is None else [reports, self._answering.task]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """No decision from here on."""
        self._stopping = True
        self._work.set()

    async def drain(self, seconds: float) -> int:
        """Waits for the bindings and evictions on their way, for no longer than that; how many were given up."""
        return await self.effects.drain(seconds)

    def _act(self) -> None:
        """What waits to be done between decisions; nothing while a decision is open."""
        while self._acts and self.scheduler.asked is None:
            self._acts.pop(0)()
            if self._extenders is not None:
                self._extenders.follow()

    # ---- turns

    def _decide(self, end: float) -> bool:
        """Decides until then; False if there is nothing to decide any more, or may be nothing decided."""
        self._work.clear()
        self._act_on_the_rest()
        self._act()
        while not self._held_until(self._timers.now()):
            decided = self._decide_one()
            self._act_on_the_rest()
            self._act()
            if not decided:
                return False
            if self._stopwatch.read() >= end:
                return True
        return False

    def _held_until(self, now: float) -> float | None:
        """Until when nothing may be decided: inf while there are too many bindings, or extenders are asked; None if
        something may be."""
        if self.effects.binds.full or (self._answering is not None and not self._answering.task.done()):
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
        """Decides for the next pod that is due, or goes on with the one for which extenders have answered; False if
        there is none."""
        before = self._stopwatch.read()
        made: Step | Ask | None = None
        try:
            waited, self._answering = self._answering, None
            if waited is None:
                made = self.scheduler.step(self._timers.now())
            else:
                before = waited.began
                made = self.scheduler.answer(self._answers(waited), self._timers.now())
            if isinstance(made, Step):
                self._carry_out(made, self._stopwatch.read() - before)
            elif made is not None:
                self._ask(made, before)
        except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
            self._failed(error, made if isinstance(made, Step) else None)
            return True
        return made is not None

    def _ask(self, ask: Ask, began: float) -> None:
        """Has extenders asked; nothing is decided until they have answered, or failed to."""
        assert self._extenders is not None, "there are extenders, and nobody to ask them"
        task = asyncio.create_task(self._extenders.answers(ask))
        task.add_done_callback(lambda _: self._work.set())
        self._answering = Answering(ask, task, began)

    def _answers(self, waited: Answering) -> Sequence[Answer]:
        """What they answered. A fault of ksp is a failure of all."""
        error = waited.task.exception()
        if error is None:
            return waited.task.result()
        if not isinstance(error, Exception):
            raise error
        self._faults.caught("asking extenders", error, waited.ask.pod)
        return waited.ask.failed(told(error))

    def _carry_out(self, step: Step, seconds: float) -> None:
        self._observer.decided(step, seconds)
        for effect in step.effects:
            self.effects.carry_out(effect)

    def _act_on_the_rest(self) -> None:
        """Carries out what follows from changes, outcomes and time. What faults have left behind is looked for at the
        end: a pod whose turn is still to come is not lost."""
        faults = []
        for effect in self.scheduler.effects():
            try:
                if isinstance(effect, Report):  # of waiting for volumes, which no binding stands for any more
                    self._observer.wait_failed(effect.pod, effect.message)
                self.effects.carry_out(effect)
            except Exception as error:  # noqa: BLE001 - a fault with one pod must not stop the others
                faults.append(error)
        for fault in faults:
            self._failed(fault, None)

    def _failed(self, error: Exception, step: Step | None) -> None:
        if not self.effects.failed(error, step):
            self._paused_until = self._timers.now() + PAUSE
