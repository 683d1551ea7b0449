"""A scheduler whose work takes the time that a test says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from ksp.cli.profile_choice import chosen_profiles
from ksp.core.changes import Change
from ksp.core.questions import Ask
from ksp.core.scheduler import Scheduler, Step
from ksp.policy.profile import Profile
from ksp.sim.bench.runner import Surroundings
from ksp.sim.dice import SeededDice

profiles = cache(chosen_profiles)


class HandWatch:
    """Shows what it was set to."""

    def __init__(self) -> None:
        self.time = 0.0

    def read(self) -> float:
        return self.time


class TimedScheduler(Scheduler):
    """Each change takes 1 ms, each step the next of `steps`, a binding nothing; nothing at all before `start`."""

    def __init__(self, watch: HandWatch, steps: Sequence[float], rules: Sequence[Profile] | None = None) -> None:
        super().__init__(profiles() if rules is None else rules, SeededDice(1))
        self._watch = watch
        self._steps: Iterator[float] = iter(steps)
        self.started = False

    def start(self) -> None:
        self.started = True

    def on(self, change: Change, now: float) -> None:
        super().on(change, now)
        if self.started:
            self._watch.time += 0.001

    def step(self, now: float) -> Step | None:
        if self.started:
            self._watch.time += next(self._steps)
        step = super().step(now)
        assert not isinstance(step, Ask)
        return step


def surroundings(scheduler: TimedScheduler, watch: HandWatch) -> Surroundings:
    """The processor works as long as the watch runs; 7 MiB of memory."""
    return Surroundings(watch, watch, lambda: 7.0, scheduler.start)
