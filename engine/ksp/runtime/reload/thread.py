"""Work in a thread that nobody waits for when the process ends.

A file on a network mount may never answer, and a policy may take seconds to compile. The threads of asyncio's executor
are waited for at the end, whatever became of those who asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """What the work gives, or raises. If this is cancelled, the work goes on, and nobody hears of it."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the work was asked for
            done.set_exception(error)

    Thread(target=run, name="policy", daemon=True).start()
    return await asyncio.wrap_future(done)
