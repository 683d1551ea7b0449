"""Runs what waits on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.unit.kube.timers import VirtualTimers

T = TypeVar("T")


async def driven(timers: VirtualTimers, work: Coroutine[Any, Any, T], within: float = 20.0) -> T:
    """The result of the work; whenever somebody sleeps, the time goes on to where the first one wakes."""
    async with asyncio.timeout(within):
        task = asyncio.create_task(work)
        try:
            while not task.done():
                asleep = asyncio.create_task(timers.asleep(within=within))
                await asyncio.wait({task, asleep}, return_when=asyncio.FIRST_COMPLETED)
                asleep.cancel()
                if not task.done():
                    await timers.next()
            return await task
        finally:
            task.cancel()
