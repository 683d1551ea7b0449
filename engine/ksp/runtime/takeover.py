"""What a new leader waits for before it decides: that it sees what the one before it did.

A lease can change hands in a moment in which watches are broken: when the API server comes back, the lease is written
before watches are open again. Who decides then does not know of the last bindings, and asks nodes for more than they
have. So the watches of pods and nodes have to be open; but for no longer than `MOST`, since something else may be wrong
with them, of which the log tells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ksp.kube.timers import Timers
from ksp.runtime.log import entry

_log = logging.getLogger(__name__)

MOST: Final = 30.0
LOOK: Final = 0.1
"""Seconds between two looks."""
KINDS: Final = frozenset({"pods", "nodes"})

Troubles = Callable[[], list[tuple[str, str]]]
"""The kinds whose cache is not kept up to date at the moment, and why."""


async def caught_up(troubles: Troubles, timers: Timers) -> None:
    """Returns when the caches that matter are kept up to date."""
    began = timers.now()
    said = False
    while bad := [(kind, why) for kind, why in troubles() if kind in KINDS]:
        if timers.now() - began >= MOST:
            _log.warning(entry("decides although caches may be behind", kinds=",".join(kind for kind, _ in bad)))
            return
        if not said:
            _log.info(entry("waits until caches are kept up to date again", error=bad[0][1]))
            said = True
        await timers.sleep(LOOK)
