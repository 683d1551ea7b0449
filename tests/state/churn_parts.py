"""What the driver of the churn machine is made of: a scheduler, and what it asked for that has not ended yet."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ksp.core.changes import Bind, BindVolumes, Evict
from ksp.core.scheduler import Scheduler


class SeededDice:
    def __init__(self) -> None:
        self.random = random.Random(0)

    def below(self, n: int) -> int:
        return self.random.randrange(n)


class LateScheduler(Scheduler):
    """What came while a question was open is taken in when `catch_up` is called, each with what follows from it."""

    def follow(self, what: Callable[[], object]) -> None:
        self._take_in(what)

    def catch_up(self) -> None:
        super()._catch_up()
        for fault in self._faults:
            raise fault

    def _catch_up(self) -> None:
        """Not before what the attempt came to is known."""


@dataclass
class Binding:
    """`done`: the API has done it, and nobody knows yet."""

    effect: Bind
    done: bool = False


@dataclass
class Writing:
    effect: BindVolumes
    done: bool = False


@dataclass
class Eviction:
    effect: Evict
    left: list[str] = field(default_factory=list)
