"""What has changed and has not been told yet: one delta a key, in the order in which the keys came in.

    reflector ── put, delete, hold, replacing ──▶ DeltaFifo ── pop ──▶ informer: store, handlers

There is one thread, so nothing is locked; the queue is there because reading and telling have different speeds. A
list of 150,000 pods is read in slices, and told in slices, and in between the scheduler decides. While a key waits,
what else happens to it is merged into its delta: a handler learns the latest state, not each one on the way. What it
must not miss is that an object is another one than before: a delta holds the end of the old one beside the new one.

The store follows the deltas as they are popped, so handlers and listers always agree.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from ksp.kube.watch.resources import Object

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)

# Keys that are compared at the end of a list before others have a turn.
_SLICE: Final = 2_000


class Store(Protocol[T_co]):
    """What has been told so far."""

    def get(self, key: str) -> T_co | None: ...

    def keys(self) -> Iterable[str]: ...


@dataclass(slots=True)
class Delta(Generic[T]):
    """The way from what the store has under a key to `now`; None: there is nothing any more.

    `final` is the last state of what was deleted, if its deletion was seen.
    """

    key: str
    final: T | None
    now: T | None


class DeltaFifo(Generic[T]):
    """Deltas between `store` and what the reflector knows. One reflector writes, one informer pops."""

    def __init__(self, store: Store[T]) -> None:
        self._store = store
        self._order: deque[str] = deque()
        self._deltas: dict[str, Delta[T]] = {}
        self._initial: int | None = None
        self._popped = 0
        # Lists that have come in: after how many deltas all that they brought is told, and when each was asked for.
        self._lists: deque[tuple[int, float]] = deque()
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._order)

    @property
    def has_synced(self) -> bool:
        """Whether a whole list has come in, and all that it brought has been popped."""
        return self._initial == 0

    def latest(self, key: str) -> T | None:
        """The object as the reflector knows it, told or not."""
        delta = self._deltas.get(key)
        return self._store.get(key) if delta is None else delta.now

    def put(self, key: str, value: T) -> bool:
        """An object is there. False: it is the one that is known already, in the same version."""
        known = self.latest(key)
        if known is not None and same_version(known, value):
            return False
        self._delta(key).now = value
        return True

    def delete(self, key: str, final: T | None) -> bool:
        """An object is gone; `final` if its last state is known. False: there was none."""
        if self.latest(key) is None:
            return False
        delta = self._delta(key)
        if final is not None and (delta.final is None or same_object(delta.final, final)):
            delta.final = final
        delta.now = None
        return True

    def hold(self, key: str, uid: str) -> None:
        """An object is there but cannot be read: what is known of it stays, unless it is of another object."""
        known = self.latest(key)
        if known is not None and uid and known.metadata.uid != uid:
            self.delete(key, None)

    def replacing(self, began: float | None = None) -> Replacement[T]:
        """A whole list begins to come in, which was asked for at that time; None: nobody was asked."""
        return Replacement(self, {*self._store.keys(), *self._deltas}, began)

    def pop(self) -> Delta[T] | None:
        """The delta that has waited longest. The caller brings the store to `now` before anything else happens."""
        if not self._order:
            self._ready.clear()
            return None
        if self._initial:
            self._initial -= 1
        self._popped += 1
        return self._deltas.pop(self._order.popleft())

    def told_lists(self) -> list[float]:
        """The lists of which all that they brought has been popped, each once: when they were asked for."""
        told = []
        while self._lists and self._lists[0][0] <= self._popped:
            told.append(self._lists.popleft()[1])
        return told

    async def wait(self) -> None:
        """Returns when there is something to pop, or an end of a list to notice."""
        await self._ready.wait()

    def replaced(self, began: float | None) -> None:
        """A whole list has come in: at the first, what waits now is what has to be told before all is in sync. `began`
        is when it was asked for; None if it does not tell of every object."""
        if self._initial is None:
            self._initial = len(self._order)
            self._ready.set()
        if began is not None:
            self._lists.append((self._popped + len(self._order), began))
            self._ready.set()

    def _delta(self, key: str) -> Delta[T]:
        delta = self._deltas.get(key)
        if delta is None:
            delta = self._deltas[key] = Delta(key, None, self._store.get(key))
            self._order.append(key)
            self._ready.set()
        return delta


class Replacement(Generic[T]):
    """A whole list, as it comes in: objects count at once, and what the list does not have is gone at its end.

    A list that is not finished deletes nothing. If of some item not even the key could be read, nothing is deleted
    either: the item may be any of those that seem to be missing. A list of which some item could not be read tells
    nothing of that one, so it does not count among `told_lists`.
    """

    def __init__(self, fifo: DeltaFifo[T], unseen: set[str], began: float | None) -> None:
        self._fifo = fifo
        self._unseen = unseen
        self._began = began
        self._nameless = False

    def put(self, key: str, value: T) -> None:
        """The list has an object."""
        self._unseen.discard(key)
        self._fifo.put(key, value)

    def delete(self, key: str, final: T | None) -> None:
        """While the list came in, as a stream, an object was deleted."""
        self._unseen.discard(key)
        self._fifo.delete(key, final)

    def hold(self, key: str, uid: str) -> None:
        """The list has an object that cannot be read; `key` is empty if that cannot be read either."""
        self._began = None
        self._nameless = self._nameless or not key
        self._unseen.discard(key)
        self._fifo.hold(key, uid)

    async def finish(self) -> None:
        """The list has ended: what it did not have was deleted at some time, and its last state is not known."""
        for count, key in enumerate(() if self._nameless else self._unseen, start=1):
            self._fifo.delete(key, None)
            if count % _SLICE == 0:
                await asyncio.sleep(0)
        self._unseen = set()
        self._fifo.replaced(self._began)


def same_object(one: Object, other: Object) -> bool:
    """Two states of one object; another object of the same name has another uid."""
    return one.metadata.uid == other.metadata.uid


def same_version(one: Object, other: Object) -> bool:
    """Nothing happened between the two."""
    return same_object(one, other) and one.metadata.resource_version == other.metadata.resource_version
