"""The scheduler as a process: signals, and what is left to say when it ends.

SIGHUP has the policy read again. The first SIGTERM or SIGINT stops it in order. A second one ends it at once, with 128
and the signal's number: bindings that are on their way may then have happened or not, which the next start sees from
the cluster. The same signal twice within `ECHO` is one: `timeout` sends it to the process and to its group.

Who has lost the lease ends at once, with 1: another may lead, and nothing else makes sure that this one does not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final

from ksp.kube.errors import ConfigError
from ksp.kube.leader_election.elector import LeadershipLostError
from ksp.runtime import heap
from ksp.runtime.app import App
from ksp.runtime.log import entry
from ksp.runtime.observer import Observer
from ksp.runtime.options import Options

_log = logging.getLogger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
ECHO: Final = 0.1  # seconds


def run_process(options: Options, observers: Sequence[Observer] = ()) -> None:
    """Schedules until a signal comes. Raises ConfigError; anything else that is raised is a fault, and logged."""
    heap.prepare()
    try:
        asyncio.run(_main(options, observers))
    except ConfigError:
        raise
    except Exception:
        _log.exception("a fault of ksp ends it")
        raise
    _log.info("stopped")


async def _main(options: Options, observers: Sequence[Observer]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    stopping = Stopping(stop, loop.time)
    for each in SIGNALS:
        loop.add_signal_handler(each, stopping.received, each)
    app = App(options, observers=observers, when_synced=heap.settle)
    loop.add_signal_handler(signal.SIGHUP, app.reloading.again)
    try:
        await app.run(stop)
    except LeadershipLostError as error:
        _log.error(entry(str(error)))
        _end(1)


class Stopping:
    """What signals to end come to. `now` is in seconds."""

    def __init__(self, stop: asyncio.Event, now: Callable[[], float]) -> None:
        self._stop = stop
        self._now = now
        self._first: tuple[signal.Signals, float] | None = None

    def received(self, which: signal.Signals) -> None:
        now = self._now()
        if self._first is None:
            self._first = which, now
            _log.info(entry("asked to stop", signal=which.name))
            self._stop.set()
            return
        first, at = self._first
        if which is first and now - at < ECHO:
            return
        _log.warning(entry("ends at once", signal=which.name))
        _end(128 + which)


def _end(code: int) -> None:
    """Now, whatever other threads and tasks wait for."""
    sys.stderr.flush()
    os._exit(code)
