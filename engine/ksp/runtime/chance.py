"""Chance, and the stopwatch: what the core is given from outside."""

from __future__ import annotations

from random import Random
from time import perf_counter


class RandomDice:
    """Dice of `ksp.ports`. With a seed they fall the same way each time."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)


class SystemStopwatch:
    """Seconds of the computer's finest clock."""

    def read(self) -> float:
        return perf_counter()
