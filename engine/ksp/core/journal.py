"""What changed in the cluster's state, in order, for those who keep something made of it.

The journal names what changed and which parts of it, not how: who follows it reads the present state, so a change that
is replayed late, or twice, does no harm. Changes are numbered from 1; a follower remembers the number up to which it
has read. Only the last `capacity` changes are kept: who falls further behind starts from the whole state again.

A *trial* is a stretch of changes that leaves everything as it was. Its changes are numbered like others, and who
follows meanwhile is told of them; at its end they are dropped, and who comes later is not troubled with them, however
many they were. So the third change after number n need not have number n + 3. Who has read some changes of a trial and
not all of them starts from the whole state again.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from ksp.core.errors import StateError

DEFAULT_CAPACITY = 8192

Key = str | tuple[str, str]

NO_PARTS: Final[frozenset[str]] = frozenset()


class Change(NamedTuple):
    """One thing that is not as it was: it came, left, or became another.

    `kind` is "pod" (the key is its uid), "node" (its name), or a kind of other objects by the name that policies use,
    such as "services" (the key is namespace and name; the namespace is "" where the kind has none).

    `parts` are what differs of a node, in the words of `ksp.compile.node_parts`. Of a "node" that came or left they are
    EVERYTHING, which holds "*"; none means that only its versions differ. Of a "pod" they are the sums of its `node`
    that are not as they were: none if a pod became another that asks for the same. `node` is "" for other objects.
    """

    kind: str
    key: Key
    node: str = ""
    parts: frozenset[str] = NO_PARTS


class Journal:
    """The last changes, in a ring: all operations cost what they give."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a journal keeps at least one change, not {capacity}")
        self.capacity = capacity
        self.generation = 0
        self._ring: list[Change] = []
        self._place = 0  # in the ring, of the next change: it counts those that are not dropped
        self._last: dict[str, int] = {}
        self._trial: list[Change] | None = None
        self._dropped: list[_Dropped] = []

    def append(self, kind: str, key: Key, node: str = "", parts: frozenset[str] = NO_PARTS) -> int:
        """Note a change; its number."""
        change = Change(kind, key, node, parts)
        if self._trial is not None:
            self._trial.append(change)
        else:
            self._keep(change)
        self.generation += 1
        self._last[kind] = self.generation
        return self.generation

    def generation_of(self, kind: str) -> int:
        """The number of the last change of that kind; 0 if there was none."""
        return self._last.get(kind, 0)

    def since(self, generation: int) -> list[Change] | None:
        """The changes after that number, oldest first; None if some of them are no longer kept."""
        if not 0 <= generation <= self.generation:
            raise StateError(f"no change has the number {generation}: the last is {self.generation}")
        trial = self._trial or []
        begun = self.generation - len(trial)
        if generation >= begun:
            return trial[generation - begun :]
        place = self._place_of(generation, begun)
        kept = None if place is None else self._from(place)
        return kept if kept is None or not trial else kept + trial

    # ---- trials

    def begin_trial(self) -> None:
        """What changes from now on will be taken back."""
        if self._trial is not None:
            raise StateError("a trial is under way")
        self._trial = []

    def end_trial(self, *, undone: bool) -> None:
        """The changes since its beginning are dropped if all of them are undone, else kept like others."""
        trial, self._trial = self._trial, None
        if trial is None:
            raise StateError("no trial is under way")
        if not undone:
            for change in trial:
                self._keep(change)
        elif trial:
            sum_ = len(trial) + (self._dropped[-1].sum if self._dropped else 0)
            self._dropped.append(_Dropped(self.generation, self.generation - len(trial), sum_))
            del self._dropped[: -self.capacity]

    # ---- places

    def _keep(self, change: Change) -> None:
        if len(self._ring) < self.capacity:
            self._ring.append(change)
        else:
            self._ring[self._place % self.capacity] = change
        self._place += 1

    def _place_of(self, generation: int, begun: int) -> int | None:
        """How many changes are kept, or were, up to that number, which is before that of the trial's beginning; None if
        it is a number within a trial, or too old to be known."""
        if not self._dropped or generation >= self._dropped[-1].end:
            return self._place - (begun - generation)
        after = bisect_right(self._dropped, generation, key=_end)
        if generation > self._dropped[after].start or (after == 0 and len(self._dropped) == self.capacity):
            return None
        return generation - (self._dropped[after - 1].sum if after else 0)

    def _from(self, place: int) -> list[Change] | None:
        """The changes from that place on."""
        if self._place - place > len(self._ring):
            return None
        if place == self._place:
            return []
        start, end = place % self.capacity, (self._place - 1) % self.capacity + 1
        return self._ring[start:end] if start < end else self._ring[start:] + self._ring[:end]


class _Dropped(NamedTuple):
    """A trial that ended with number `end`, and had begun at `start`; so many changes were dropped since the first."""

    end: int
    start: int
    sum: int


def _end(dropped: _Dropped) -> int:
    return dropped.end
