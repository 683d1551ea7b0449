"""Waiting until the caches are in sync, and saying what for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from ksp.kube.timers import Timers
from ksp.runtime.log import entry

_log = logging.getLogger(__name__)

EVERY: Final = 5.0
"""Seconds between two entries about what is waited for."""
SHORT: Final = 120
"""Characters of a reason that is repeated each time."""
FIRST: Final = 1.0
"""Seconds until the first one: most clusters are in sync by then."""


class Caches(Protocol):
    """`ksp.kube.watch.shared_informers.SharedInformers`, as far as it is waited for."""

    async def wait_for_sync(self) -> None: ...

    def waiting_for(self) -> list[tuple[str, str]]: ...


async def synced(caches: Caches, timers: Timers, waiting: Callable[[str], None]) -> None:
    """Returns when they are. `waiting` is told at once, and then now and then, what is waited for."""
    waiting("waiting for caches: " + ", ".join(kind for kind, _ in caches.waiting_for()))
    _log.info("waiting for caches")
    telling = asyncio.create_task(_tell(caches, timers, waiting))
    try:
        await caches.wait_for_sync()
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(caches: Caches, timers: Timers, waiting: Callable[[str], None]) -> None:
    pause = FIRST
    while True:
        await timers.sleep(pause)
        pause = EVERY
        waits = [(kind, _in_short(why)) for kind, why in caches.waiting_for()]
        said = [f"waiting for {kinds}: {why}" for kinds, why in by_reason(waits)]
        waiting("; ".join(said))
        for each in said:
            _log.info(entry(each))


def _in_short(why: str) -> str:
    """A whole sentence about one kind stands in the log already, as a warning."""
    return why if len(why) <= SHORT else "the warnings in the log say why, and what to do"


def by_reason(waiting: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The kinds that wait for the same reason together: `pods, nodes`."""
    kinds: dict[str, list[str]] = {}
    for kind, why in waiting:
        kinds.setdefault(why, []).append(kind)
    return [(", ".join(each), why) for why, each in kinds.items()]
