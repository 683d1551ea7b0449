"""Time and chance for everything that waits at the edge: a parameter, so that tests advance it by hand."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final, Protocol


class Timers(Protocol):
    """Seconds that pass, and the jitter of backoffs."""

    def now(self) -> float:
        """Monotonic seconds since an epoch of its own."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns when `seconds` have passed; at the next turn of the loop where they are zero or less."""
        ...

    def jitter(self) -> float:
        """A number from 0 up to, not including, 1."""
        ...


class SystemTimers:
    """The computer's clock and Python's random numbers."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def jitter(self) -> float:
        return random.random()


class AwakeTimers(SystemTimers):
    """As SystemTimers; but the time goes on while the computer sleeps, where it can tell (Linux). For what others count
    on meanwhile, such as a lease."""

    def now(self) -> float:
        return time.clock_gettime(_BOOT_TIME) if _BOOT_TIME is not None else super().now()


_BOOT_TIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)
