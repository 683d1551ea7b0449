"""Work in threads that nobody waits for at the end."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from ksp.runtime.reload.thread import in_thread


async def test_it_gives_what_the_work_gives_and_raises_what_it_raises() -> None:
    assert await in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


def test_a_process_ends_though_the_work_does_not() -> None:
    """As of a file on a network mount that is dead. (Of asyncio's threads the end would wait.)"""
    answers, began = Event(), Event()

    def work() -> None:
        began.set()
        answers.wait(30)

    async def main() -> None:
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(began.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not answers.is_set()
    answers.set()
