"""Choices for generators: fewer and quicker draws than a strategy for each would need, and they shrink to the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


@cache
def _below(limit: int) -> st.SearchStrategy[int]:
    return st.integers(0, limit - 1)


class Chooser:
    """Draws from Hypothesis in a few words."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def number(self, least: int, most: int) -> int:
        drawn: int = self.draw(_below(most - least + 1))
        return least + drawn

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)] if len(options) > 1 else options[0]

    def chance(self, percent: int) -> bool:
        """True that often; it shrinks to False."""
        drawn: int = self.draw(_below(100))
        return drawn >= 100 - percent

    def some(self, most: int, make: Callable[[], T], percent: int = 50) -> list[T]:
        """A few things; in so many percent of cases none."""
        if self.chance(percent):
            return []
        return [make() for _ in range(self.number(1, most))]


class Dice(Chooser):
    """Chooses by a seed: what comes of it is fuller than what Hypothesis likes to begin with, and does not shrink."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent
