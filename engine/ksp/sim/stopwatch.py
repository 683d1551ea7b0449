"""Stopwatches of `ksp.ports`: one that runs, one that runs while the process does, one that stands still."""

from __future__ import annotations

from time import perf_counter, process_time


class RunningStopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = perf_counter()

    def read(self) -> float:
        return perf_counter() - self._start


class ProcessorStopwatch:
    """Seconds that the processor has worked for this process since the stopwatch was made."""

    def __init__(self) -> None:
        self._start = process_time()

    def read(self) -> float:
        return process_time() - self._start


class StoppedStopwatch:
    """Always 0: for runs that must not differ."""

    def read(self) -> float:
        return 0.0
