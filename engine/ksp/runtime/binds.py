"""Bindings in the background: each is a task of its own, while the next pod is decided.

There are at most `limit` at a time. While there are that many the loop decides for nobody, so that no more pods are
assumed than the API server can be told of soon.

While the API server cannot be reached, a binding waits and is tried again every second or so: nothing was processed, so
nothing can happen twice, and the decision stays good as long as the pod waits and the node is there.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from ksp.kube.timers import Timers
from ksp.kube.write.writes import Bound, NotBound
from ksp.model.info import PodInfo
from ksp.runtime.observer import Binding

Outcome = Bound | NotBound | Exception
"""What came of a binding; an exception is a fault."""

AGAIN: Final = 0.8
"""Seconds, and up to half as many more, before a binding for which there was no connection is tried again."""


class BindWriter(Protocol):
    """Tells the API server of a binding, and settles what came of it."""

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound: ...


class BindKeeper(Protocol):
    """Whose bindings they are."""

    def still_wanted(self, binding: Binding) -> bool:
        """Whether the decision is still good."""
        ...

    def unreached(self, message: str) -> None:
        """There is no connection; the binding waits."""
        ...

    def bind_ended(self, binding: Binding, outcome: Outcome) -> None:
        """Called once for each binding, unless it is given up."""
        ...


class Binds:
    """The bindings on their way."""

    def __init__(self, writer: BindWriter, timers: Timers, limit: int, keeper: BindKeeper) -> None:
        if limit < 1:
            raise ValueError(f"at least one binding must be allowed at a time, not {limit}")
        self.limit = limit
        self._writer = writer
        self._timers = timers
        self._keeper = keeper
        self._open: dict[asyncio.Task[None], Binding] = {}
        self._uids: set[str] = set()

    @property
    def full(self) -> bool:
        return len(self._open) >= self.limit

    def __len__(self) -> int:
        return len(self._open)

    def start(self, binding: Binding) -> None:
        """Bind; the keeper is told the outcome. The pod must not be being bound already."""
        assert binding.pod.uid not in self._uids
        self._uids.add(binding.pod.uid)
        task = asyncio.get_running_loop().create_task(self._carry_out(binding))
        self._open[task] = binding

    def __contains__(self, uid: object) -> bool:
        """Whether a pod of that uid is being bound."""
        return uid in self._uids

    async def drain(self, seconds: float) -> list[Binding]:
        """Waits for all of them, for no longer than that; gives up those that are left, which are the result."""
        if self._open:
            patience = asyncio.ensure_future(self._timers.sleep(seconds))
            everything = asyncio.ensure_future(asyncio.wait(list(self._open)))
            try:
                await asyncio.wait({patience, everything}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                patience.cancel()
                everything.cancel()
                await asyncio.gather(patience, everything, return_exceptions=True)
        return await self._give_up()

    async def _give_up(self) -> list[Binding]:
        left = dict(self._open)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return list(left.values())

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
        self._keeper.bind_ended(binding, outcome)

    async def _bind(self, binding: Binding) -> Bound | NotBound:
        while True:
            outcome = await self._writer.bind(binding.pod, binding.node)
            if isinstance(outcome, Bound) or not outcome.unreached or not self._keeper.still_wanted(binding):
                return outcome
            self._keeper.unreached(outcome.message)
            await self._timers.sleep(AGAIN * (1 + self._timers.jitter() / 2))
