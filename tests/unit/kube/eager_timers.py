"""Time that jumps: a sleep is over at once, and the clock shows that it has passed."""

from __future__ import annotations

import asyncio


class EagerTimers:
    """`ksp.kube.timers.Timers` for tests against real sockets. `slept` are the lengths asked for.

    Sleeps of more than `longest` seconds last until `release`: nothing loops for ever while a test waits.
    """

    def __init__(self, longest: float = 100.0, jitter: float = 0.0) -> None:
        self.slept: list[float] = []
        self.resting = asyncio.Event()
        self._now = 0.0
        self._longest = longest
        self._jitter = jitter
        self._released = asyncio.Event()

    def now(self) -> float:
        return self._now

    def jitter(self) -> float:
        return self._jitter

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds > self._longest:
            self.resting.set()
            await self._released.wait()
        await asyncio.sleep(0)
        self._now += max(0.0, seconds)

    def elapse(self, seconds: float) -> None:
        """The time passes while nobody sleeps."""
        self._now += seconds

    def release(self) -> None:
        """Ends the long sleeps."""
        self._released.set()
        self._released = asyncio.Event()
        self.resting.clear()
