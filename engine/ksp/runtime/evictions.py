"""Evictions in the background: a task for each pod that preempts, in which its victims go one after another.

The first victim that cannot be deleted ends it: without its place the others would go in vain. So does the end of the
claim for whose sake they go: who preempts may go away meanwhile, or find another node. A victim that has left the node
by then, or is leaving it, is passed over: where many pods preempt at once, each counts those of the others among its
own.

At most `AT_A_TIME` pods have their victims deleted at the same time, so that bindings, which share the limit of
requests, are not held up.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Protocol

from ksp.core.changes import Evict
from ksp.kube.timers import Timers
from ksp.kube.write.writes import Evicted, Failed, Gone
from ksp.model.info import PodInfo
from ksp.runtime.draining import drained

AT_A_TIME: Final = 8


class EvictionWriter(Protocol):
    """Tells the API server to delete a pod, and settles what came of it."""

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed: ...


class EvictionKeeper(Protocol):
    """Whose evictions they are."""

    def needs(self, evict: Evict) -> bool:
        """Whether the pod still waits for the node."""
        ...

    def is_in_the_way(self, evict: Evict, victim: PodInfo) -> bool:
        """Whether the victim is still on the node, and not on its way out."""
        ...

    def evicted(self, evict: Evict, victim: PodInfo) -> None:
        """This victim is being deleted, because it was asked for."""
        ...

    def not_evicted(self, evict: Evict, victim: PodInfo, why: str | Exception) -> None:
        """This victim stays, and so do those after it; an exception is a fault. Called instead of `evictions_ended`."""
        ...

    def evictions_ended(self, evict: Evict, *, done: bool) -> None:
        """All victims are gone, or on their way out; or, if not `done`, not all are, as none is needed any more."""
        ...


@dataclass(frozen=True, slots=True)
class _Stays:
    """A victim that could not be deleted; an exception is a fault."""

    victim: PodInfo
    why: str | Exception


class Evictions:
    """The evictions on their way."""

    def __init__(self, writer: EvictionWriter, timers: Timers, keeper: EvictionKeeper) -> None:
        self._writer = writer
        self._timers = timers
        self._keeper = keeper
        self._open: dict[asyncio.Task[None], Evict] = {}
        self._latest: dict[str, Evict] = {}
        self._turns = asyncio.Semaphore(AT_A_TIME)

    def __len__(self) -> int:
        """For how many pods others are being evicted."""
        return len(self._open)

    def __contains__(self, uid: object) -> bool:
        """Whether pods are being evicted for one of that uid."""
        return uid in self._latest

    def start(self, evict: Evict) -> None:
        """Evict; the keeper is told the outcome, unless the same pod preempts again before: then only of the later."""
        self._latest[evict.preemptor.uid] = evict
        self._open[asyncio.get_running_loop().create_task(self._carry_out(evict))] = evict

    async def drain(self, seconds: float) -> list[Evict]:
        """Waits for all of them, for no longer than that; gives up those that are left, which are the result."""
        about = dict(self._open)
        return [about[task] for task in await drained(about, seconds, self._timers)]

    async def _carry_out(self, evict: Evict) -> None:
        try:
            async with self._turns:
                ended = await self._evict(evict)
        finally:
            task = asyncio.current_task()
            assert task is not None
            del self._open[task]
            is_latest = self._latest.get(evict.preemptor.uid) is evict
            if is_latest:
                del self._latest[evict.preemptor.uid]
        if not is_latest:
            return
        if isinstance(ended, _Stays):
            self._keeper.not_evicted(evict, ended.victim, ended.why)
        else:
            self._keeper.evictions_ended(evict, done=ended)

    async def _evict(self, evict: Evict) -> bool | _Stays:
        """The first victim that stays; else whether all had to go, and do."""
        for victim in evict.victims:
            try:
                if not self._keeper.needs(evict):
                    return False
                if not self._keeper.is_in_the_way(evict, victim):
                    continue
                outcome = await self._writer.evict(victim, evict.preemptor)
                if isinstance(outcome, Failed):
                    return _Stays(victim, outcome.message)
                if isinstance(outcome, Evicted):
                    self._keeper.evicted(evict, victim)
            except Exception as error:  # noqa: BLE001 - it is an outcome, and the keeper says which
                return _Stays(victim, error)
        return True
