"""How long to wait after a failure: longer each time, with jitter, and from the start again after a healthy while.

The figures of client-go's reflector are the default: 0.8 s, doubled up to 30 s, plus up to as much again by chance
(jitter 1.0), reset after two minutes without a failure.
"""

from __future__ import annotations

from ksp.kube.timers import Timers


class Backoff:
    """Waits for one task. `next` is called once for each failure and tells how long to wait, in seconds."""

    def __init__(
        self,
        timers: Timers,
        *,
        initial: float = 0.8,
        maximum: float = 30.0,
        factor: float = 2.0,
        jitter: float = 1.0,
        reset_after: float = 120.0,
    ) -> None:
        self._timers = timers
        self._initial = initial
        self._maximum = maximum
        self._factor = factor
        self._jitter = jitter
        self._reset_after = reset_after
        self._step = initial
        self._waited_until = float("-inf")

    def next(self) -> float:
        """From `step` to `step * (1 + jitter)`, where `step` grows with each failure."""
        now = self._timers.now()
        if now - self._waited_until > self._reset_after:
            self.reset()
        delay = self._step * (1 + self._jitter * self._timers.jitter())
        self._step = min(self._step * self._factor, self._maximum)
        self._waited_until = now + delay
        return delay

    def reset(self) -> None:
        """The next failure counts as the first."""
        self._step = self._initial
