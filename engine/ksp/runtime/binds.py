"""Bindings in the background, of pods and of their volumes: each is a task of its own, while the next pod is decided.

While there are `limit` of them the loop decides for nobody, so that no more pods are assumed than the API server can be
told of soon. A pod that waits until the cluster has bound its volumes is none of them: the core waits for that. When
that is done it is bound, be there `limit` others or not. Nor are those that extenders do: at most `limit` of these are
under way at a time, too, and the others wait for their turn, but they hold up nobody else, or an extender that does not
answer would stop all.

While the API server cannot be reached, a binding waits and is tried again every second or so: nothing was processed, so
nothing can happen twice, and the decision stays good as long as the pod waits and the node is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from ksp.kube.timers import Timers
from ksp.kube.write.writes import Bound, NotBound, VolumeOrClaim, VolumesWritten, Wrote
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.policy.extender import Extender
from ksp.runtime.draining import drained
from ksp.runtime.observer import Binding

Outcome = Bound | VolumesWritten | NotBound | Exception
"""What came of a binding; an exception is a fault."""

AGAIN: Final = 0.8
"""Seconds, and up to half as many more, before a binding for which there was no connection is tried again."""
NOT_WANTED: Final = "the pod or the node went away before the extender was asked"


class BindWriter(Protocol):
    """Tells the API server of a binding, and settles what came of it."""

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound: ...

    async def bind_volumes(
        self, pod: PodInfo, node: str, static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
        dynamic: Sequence[PersistentVolumeClaim], wrote: Wrote,
    ) -> VolumesWritten | NotBound: ...  # fmt: skip


class BindingExtenders(Protocol):
    """Has extenders bind, and settles what came of it."""

    async def bind(self, extender: Extender, pod: PodInfo, node: str) -> Bound | NotBound: ...


class BindKeeper(Protocol):
    """Whose bindings they are."""

    def still_wanted(self, binding: Binding) -> bool:
        """Whether the decision is still good."""
        ...

    def unreached(self, message: str) -> None:
        """There is no connection; the binding waits."""
        ...

    def wrote(self, chosen: VolumeOrClaim, stored: VolumeOrClaim) -> None:
        """A volume or claim was written, as part of a binding."""
        ...

    def bind_ended(self, binding: Binding, outcome: Outcome) -> None:
        """Called once for each binding, unless it is given up."""
        ...


class Binds:
    """The bindings on their way."""

    def __init__(
        self,
        writer: BindWriter,
        timers: Timers,
        limit: int,
        keeper: BindKeeper,
        extenders: BindingExtenders | None = None,
    ) -> None:
        if limit < 1:
            raise ValueError(f"at least one binding must be allowed at a time, not {limit}")
        self.limit = limit
        self._writer = writer
        self._timers = timers
        self._keeper = keeper
        self._extenders = extenders
        self._open: dict[asyncio.Task[None], Binding] = {}
        self._uids: set[str] = set()
        self._own = 0
        self._turn = asyncio.Semaphore(limit)

    @property
    def full(self) -> bool:
        return self._own >= self.limit

    def __len__(self) -> int:
        return len(self._open)

    def start(self, binding: Binding) -> None:
        """Bind; the keeper is told the outcome. The pod must not be being bound already."""
        assert binding.pod.uid not in self._uids
        self._uids.add(binding.pod.uid)
        self._own += binding.extender is None
        task = asyncio.get_running_loop().create_task(self._carry_out(binding))
        self._open[task] = binding

    def __contains__(self, uid: object) -> bool:
        """Whether a pod of that uid is being bound."""
        return uid in self._uids

    async def drain(self, seconds: float) -> list[Binding]:
        """Waits for all of them, for no longer than that; gives up those that are left, which are the result."""
        about = dict(self._open)
        return [about[task] for task in await drained(about, seconds, self._timers)]

    async def _carry_out(self, binding: Binding) -> None:
        outcome: Outcome
        try:
            outcome = await self._bind(binding)
        except Exception as error:  # noqa: BLE001 - it is an outcome, and the keeper says which
            outcome = error
        finally:
            task = asyncio.current_task()
            assert task is not None
            del self._open[task]
            self._uids.discard(binding.pod.uid)
            self._own -= binding.extender is None
        self._keeper.bind_ended(binding, outcome)

    async def _bind(self, binding: Binding) -> Bound | VolumesWritten | NotBound:
        while True:
            outcome = await self._write(binding)
            if not isinstance(outcome, NotBound) or not outcome.unreached or not self._keeper.still_wanted(binding):
                return outcome
            self._keeper.unreached(outcome.message)
            await self._timers.sleep(AGAIN * (1 + self._timers.jitter() / 2))

    async def _write(self, binding: Binding) -> Bound | VolumesWritten | NotBound:
        pod, node, volumes = binding.pod, binding.node, binding.volumes
        if binding.extender is not None:
            return await self._extended(binding, binding.extender)
        if volumes is None:
            return await self._writer.bind(pod, node)
        return await self._writer.bind_volumes(pod, node, volumes.static, volumes.dynamic, self._keeper.wrote)

    async def _extended(self, binding: Binding, extender: Extender) -> Bound | NotBound:
        """Bound by the extender, when it is its turn."""
        assert self._extenders is not None, "an extender binds, and there is nobody to ask it"
        async with self._turn:
            if not self._keeper.still_wanted(binding):
                return NotBound(NOT_WANTED)
            return await self._extenders.bind(extender, binding.pod, binding.node)
