"""A heap whose items can leave from the middle."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

SortKey = tuple[float, ...]

# So few entries that clearing up would cost more than it saves.
SMALL = 64


class LazyHeap(Generic[T]):
    """Named items by key, smallest first; equal keys in the order in which they were put.

    An item that leaves, or is put again under another key, stays in the heap as a dead entry until it comes to the top,
    or until the dead outnumber the living. So every operation is O(log n), on the average over a sequence of them.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[SortKey, int, str]] = []
        self._living: dict[str, tuple[int, T]] = {}
        self._sequence = 0

    def put(self, name: str, item: T, key: SortKey) -> None:
        """Add the item, or give it another key."""
        self._living.pop(name, None)
        self._sequence += 1
        self._living[name] = (self._sequence, item)
        heappush(self._heap, (key, self._sequence, name))
        self._clear_up()

    def discard(self, name: str) -> None:
        self._living.pop(name, None)
        self._clear_up()

    def first(self) -> tuple[SortKey, T] | None:
        """The smallest key and its item, left in place."""
        while self._heap:
            key, sequence, name = self._heap[0]
            living = self._living.get(name)
            if living is not None and living[0] == sequence:
                return key, living[1]
            heappop(self._heap)
        return None

    def __contains__(self, name: object) -> bool:
        return name in self._living

    def __len__(self) -> int:
        return len(self._living)

    def __iter__(self) -> Iterator[T]:
        """The items in the order in which they were put."""
        return (item for _, item in self._living.values())

    def _clear_up(self) -> None:
        if len(self._heap) <= 2 * len(self._living) + SMALL:
            return
        self._heap = [entry for entry in self._heap if self._is_living(entry)]
        heapify(self._heap)

    def _is_living(self, entry: tuple[SortKey, int, str]) -> bool:
        living = self._living.get(entry[2])
        return living is not None and living[0] == entry[1]
