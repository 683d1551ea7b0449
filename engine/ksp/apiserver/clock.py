"""Time and chance of the server, injected: tests step through minutes at once and repeat their dice."""

import asyncio
import heapq
import itertools
import random
import string
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol


class Timer(Protocol):
    """Something that will be called once, unless it is cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """What the server knows of time."""

    def now(self) -> datetime:
        """In UTC."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Calls on the event loop when `seconds` have passed."""


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class _Entry:
    """A row of the virtual clock's agenda."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Time that moves when it is told to; what is due is called in order, at its own time."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._agenda: list[tuple[datetime, int, _Entry]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        entry = _Entry(callback)
        heapq.heappush(self._agenda, (self._now + timedelta(seconds=seconds), next(self._order), entry))
        return entry

    @property
    def waiting(self) -> int:
        """How many are to be called."""
        return sum(entry.callback is not None for _, _, entry in self._agenda)

    def advance(self, seconds: float) -> None:
        """Lets `seconds` pass."""
        until = self._now + timedelta(seconds=seconds)
        while self._agenda and self._agenda[0][0] <= until:
            due, _, entry = heapq.heappop(self._agenda)
            self._now = due
            if entry.callback is not None:
                entry.callback()
        self._now = until


async def sleep(clock: Clock, seconds: float) -> None:
    """Waits by `clock`."""
    waiter = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = clock.call_later(seconds, wake)
    try:
        await waiter
    finally:
        timer.cancel()


_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of generateName (apimachinery `util/rand`): no vowels, so that no words come out."""


class RandomDice:
    """Chance by Python's generator; a seed makes a run repeatable."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._random.choices(_LETTERS, k=5))

    def shuffled(self, count: int) -> list[int]:
        order = list(range(count))
        self._random.shuffle(order)
        return order

    def fraction(self) -> float:
        """In [0, 1)."""
        return self._random.random()

    def token(self, letters: int = 32) -> str:
        """A bearer token for those who are on this machine: not a secret that anything else rests on."""
        return "".join(random.SystemRandom().choices(string.ascii_letters + string.digits, k=letters))
