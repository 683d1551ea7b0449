"""What changed in the cluster's state, in order, for those who keep something made of it.

The journal names what changed, not how: who follows it reads the present state, so a change that is replayed late,
or twice, does no harm. Changes are numbered from 1; a follower remembers the number up to which it has read. Only
the last `capacity` changes are kept: who falls further behind starts from the whole state again.
"""

from __future__ import annotations

from typing import NamedTuple

from ksp.core.errors import StateError

DEFAULT_CAPACITY = 8192

Key = str | tuple[str, str]


class Change(NamedTuple):
    """One thing that is not as it was: it came, left, or became another.

    `kind` is "pod" (the key is its uid), "node" (its name), or a kind of other objects by the name that policies use,
    such as "services" (the key is namespace and name; the namespace is "" where the kind has none).
    """

    kind: str
    key: Key


class Journal:
    """The last changes, in a ring: both operations cost what they give."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a journal keeps at least one change, not {capacity}")
        self.capacity = capacity
        self.generation = 0
        self._ring: list[Change] = []

    def append(self, kind: str, key: Key) -> int:
        """Note a change; its number."""
        change = Change(kind, key)
        if len(self._ring) < self.capacity:
            self._ring.append(change)
        else:
            self._ring[self.generation % self.capacity] = change
        self.generation += 1
        return self.generation

    def since(self, generation: int) -> list[Change] | None:
        """The changes after that number, oldest first; None if some of them are no longer kept."""
        if not 0 <= generation <= self.generation:
            raise StateError(f"no change has the number {generation}: the last is {self.generation}")
        if self.generation - generation > len(self._ring):
            return None
        return [self._ring[i % self.capacity] for i in range(generation, self.generation)]
