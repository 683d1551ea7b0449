"""Chance that can be repeated: dice with a seed."""

from __future__ import annotations

from random import Random

DEFAULT_SEED = 1


class SeededDice:
    """Dice of `ksp.ports` that fall the same way for the same seed."""

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._random = Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)


class FirstFace:
    """Dice that always fall on the first: of nodes that tie, the first in order is taken."""

    def below(self, _: int) -> int:
        return 0
