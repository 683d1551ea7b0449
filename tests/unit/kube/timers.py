"""Time that stands still until a test advances it."""

from __future__ import annotations

import asyncio
import datetime as dt
import heapq
import itertools

START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
"""The time of day at which `now` is zero."""
TURNS = 20
"""How often other tasks may run after each sleeper has been woken, before the next one is."""


class VirtualTimers:
    """`ksp.kube.timers.Timers` for tests: a sleep ends when the test has advanced the time far enough.

    Work that waits for sockets may need longer than the few turns of the loop that `advance` gives it: then the test
    awaits what it is interested in, or `asleep`, before it advances again. `slept` records the lengths asked for.
    """

    def __init__(self, start: float = 0.0, jitter: float = 0.0) -> None:
        self.slept: list[float] = []
        self._now = start
        self._jitter = jitter
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def now(self) -> float:
        return self._now

    def wall(self) -> dt.datetime:
        """The same time as a time of day, for who takes a `ksp.kube.wall_clock.WallClock`."""
        return START + dt.timedelta(seconds=self._now)

    def jitter(self) -> float:
        return self._jitter

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        self._changed.set()
        await woken

    @property
    def sleeping(self) -> int:
        """How many tasks sleep."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def asleep(self, count: int = 1, within: float = 5.0) -> None:
        """Returns when at least `count` tasks sleep; TimeoutError after `within` real seconds."""
        async with asyncio.timeout(within):
            while self.sleeping < count:
                self._changed.clear()
                await self._changed.wait()

    async def advance(self, seconds: float) -> None:
        """Lets `seconds` pass: whoever is due wakes in order of time, each at its own time."""
        end = self._now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                self._now = max(self._now, due)
                woken.set_result(None)
                await settle()
        self._now = end

    async def next(self) -> float:
        """Advances to the first sleeper's time and wakes it; the seconds that passed."""
        await self.asleep()
        before = self._now
        await self.advance(min(due for due, _, woken in self._sleepers if not woken.done()) - before)
        return self._now - before


async def settle(turns: int = TURNS) -> None:
    """Lets the other tasks run until they wait, as far as `turns` turns of the loop suffice."""
    for _ in range(turns):
        await asyncio.sleep(0)
