"""What the scheduler knows of one kind: a store with indexes, and those who are told of each change.

    nothing ──on_add──▶ there ──on_update──▶ there ──on_delete──▶ nothing

Each handler is told of each step once, in this order for each key. An object in whose place another of the same name
stands is deleted, and then the other is added. Of what was deleted while no watch was open only the last known state
can be told: then `known_final_state` is False.

Who is told of lists learns, once all handlers have been told of all that a list brought, when it was asked for. It is a
read at a quorum, so whatever the server had accepted before that time has been told then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from ksp.kube.watch.delta_fifo import Delta, DeltaFifo, same_object, same_version
from ksp.kube.watch.indexer import Index, Indexer, Lister
from ksp.kube.watch.resources import Object, Resource

T = TypeVar("T", bound=Object)
T_contra = TypeVar("T_contra", bound=Object, contravariant=True)

# Deltas that are told before others have a turn. A handler takes tens of microseconds.
SLICE: Final = 50


class Handler(Protocol[T_contra]):
    """Who is told. Plain functions, called on the loop; what they raise is a bug and ends the informer.

    The lister already shows the change when a handler is told of it.
    """

    def on_add(self, obj: T_contra) -> None: ...

    def on_update(self, old: T_contra, new: T_contra) -> None: ...

    def on_delete(self, obj: T_contra, known_final_state: bool) -> None: ...


class Informer(Generic[T]):
    """The cache of one kind. Its reflector writes into `fifo`; `deliver` takes it from there."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._store: Indexer[T] = Indexer()
        self.fifo: DeltaFifo[T] = DeltaFifo(self._store)
        self._handlers: list[Handler[T]] = []
        self._told_of_lists: list[Callable[[float], None]] = []
        self._synced = asyncio.Event()

    @property
    def lister(self) -> Lister[T]:
        """What the handlers have been told of."""
        return self._store

    @property
    def has_synced(self) -> bool:
        """Whether the handlers have been told of all that was there at first."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        await self._synced.wait()

    def add_handler(self, handler: Handler[T]) -> None:
        """From now on the handler is told of all changes; of what is there already, at once, as additions."""
        for value in self._store.list():
            handler.on_add(value)
        self._handlers.append(handler)

    def tell_of_lists(self, told: Callable[[float], None]) -> None:
        """From now on it is called after each list with the time at which that was asked for, by the reflector's clock.
        Not for lists with an object that could not be read."""
        self._told_of_lists.append(told)

    def add_index(self, name: str, function: Index[T]) -> None:
        """From now on the lister finds objects by the values that the function gives."""
        self._store.add_index(name, function)

    async def deliver(self) -> None:
        """Tells of changes as they come, until cancelled. Raises what a handler raises."""
        while True:
            await self.fifo.wait()
            self.deliver_some(SLICE)
            await asyncio.sleep(0)

    def deliver_some(self, most: int) -> None:
        """Tells of at most so many changes."""
        for _ in range(most):
            delta = self.fifo.pop()
            if delta is None:
                break
            self._apply(delta)
        if self.fifo.has_synced:
            self._synced.set()
        for began in self.fifo.told_lists():
            for told in self._told_of_lists:
                told(began)

    def _apply(self, delta: Delta[T]) -> None:
        old, now = self._store.get(delta.key), delta.now
        if old is not None and (now is None or not same_object(old, now)):
            self._remove(delta.key, old, delta.final)
            old = None
        if now is None or (old is not None and same_version(old, now)):
            return
        self._store.set(delta.key, now)
        for handler in self._handlers:
            if old is None:
                handler.on_add(now)
            else:
                handler.on_update(old, now)

    def _remove(self, key: str, old: T, final: T | None) -> None:
        seen = final if final is not None and same_object(final, old) else None
        self._store.remove(key)
        for handler in self._handlers:
            handler.on_delete(old if seen is None else seen, seen is not None)
