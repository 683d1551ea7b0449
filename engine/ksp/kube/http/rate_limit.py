"""How many requests ksp sends a second: a token bucket, as client-go's (`--kube-api-qps`, `--kube-api-burst`)."""

from __future__ import annotations

import asyncio

from ksp.kube.timers import Timers


class TokenBucket:
    """`burst` requests at once, then `qps` a second; those who wait are served in the order in which they came.

    `qps` of zero or less is no limit. What is in the bucket follows from the time alone, so sleeping too long costs
    nothing (no drift), and who is cancelled while waiting has taken nothing.
    """

    def __init__(self, qps: float, burst: int, timers: Timers) -> None:
        self._qps = qps
        self._burst = float(max(1, burst))
        self._timers = timers
        self._tokens = self._burst
        self._filled = timers.now()
        self._turn = asyncio.Lock()  # first come, first served

    async def take(self) -> None:
        """Returns when a request may be sent."""
        if self._qps <= 0 or (not self._turn.locked() and self._taken()):
            return
        async with self._turn:
            while not self._taken():
                await self._timers.sleep((1.0 - self._tokens) / self._qps)

    def _taken(self) -> bool:
        now = self._timers.now()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now
        if self._tokens < 1.0 - 1e-9:  # a sleep of exactly the missing time must suffice
            return False
        self._tokens -= 1.0
        return True
