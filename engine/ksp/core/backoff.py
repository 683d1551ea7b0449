"""How long a pod waits before it is tried again: a function of its attempts alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """`initial` seconds after the first attempt, doubled after each further one, at most `maximum`: 1 2 4 8 10 10."""

    initial: float = 1.0
    maximum: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.initial <= self.maximum:
            raise ValueError(f"backoff must have 0 < initial <= maximum, not {self.initial} and {self.maximum}")

    def duration(self, attempts: int) -> float:
        """Seconds to wait after that many attempts (at least 1)."""
        seconds = self.initial
        for _ in range(1, attempts):
            seconds *= 2
            if seconds > self.maximum:
                return self.maximum
        return seconds
