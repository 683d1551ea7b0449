"""The end of tasks that have a while to finish."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ksp.kube.timers import Timers


async def drained(tasks: Collection[asyncio.Task[None]], seconds: float, timers: Timers) -> list[asyncio.Task[None]]:
    """Waits for all of them, for no longer than that. The result are those that were left: they are cancelled, and at
    their end."""
    if not tasks:
        return []
    patience = asyncio.ensure_future(timers.sleep(seconds))
    everything = asyncio.ensure_future(asyncio.wait(list(tasks)))
    try:
        await asyncio.wait({patience, everything}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in (patience, everything):
            wait.cancel()
        await asyncio.gather(patience, everything, return_exceptions=True)
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    return left
