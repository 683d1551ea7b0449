from __future__ import annotations

import asyncio

from ksp.kube.watch.pacing import Pacer


async def test_work_gives_way_after_each_slice_of_bytes_and_of_objects() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def work(count: int, size: int) -> int:
        before = turns
        pacer = Pacer(slice_bytes=100_000)
        for _ in range(count):
            await pacer.spent(size)
        return turns - before

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    assert await work(5, 19_000) == 1
    assert await work(50, 19_000) == 10
    assert await work(1, 5_000_000) == 1
    assert await work(97, 0) == 0
    assert await work(980, 0) == 10
    task.cancel()
