"""What the core needs from outside: time, durations and chance, as parameters."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the time: seconds since an epoch of its own, never going back."""

    def now(self) -> float: ...


class Stopwatch(Protocol):
    """Measures how long a piece of work takes, in seconds; may always answer 0."""

    def read(self) -> float: ...


class Dice(Protocol):
    """Chooses among equals."""

    def below(self, n: int) -> int:
        """A number from 0 to n-1, each as likely as the others. `n` is at least 1."""
        ...
