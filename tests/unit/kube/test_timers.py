from __future__ import annotations

import asyncio

from tests.unit.kube.timers import VirtualTimers, settle

from ksp.kube.timers import AwakeTimers, SystemTimers


async def test_sleepers_wake_in_order_each_at_its_own_time() -> None:
    timers, woken = VirtualTimers(), list[tuple[str, float]]()

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await timers.sleep(nap)
            woken.append((name, timers.now()))

    tasks = [asyncio.create_task(sleeper(*work)) for work in (("a", 3.0, 1.0), ("b", 1.0, 2.5), ("c", 3.0))]
    await timers.advance(3.4)
    assert woken == [("b", 1.0), ("a", 3.0), ("c", 3.0)]
    assert (timers.now(), timers.sleeping) == (3.4, 2)
    assert await timers.next() == 3.5 - 3.4
    await timers.next()
    await asyncio.gather(*tasks)
    assert woken[3:] == [("b", 3.5), ("a", 4.0)]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    timers = VirtualTimers()
    task = asyncio.create_task(timers.sleep(1))
    await timers.asleep()
    task.cancel()
    await settle()
    assert timers.sleeping == 0
    await timers.advance(2)
    assert timers.now() == 2


async def test_the_computers_clock_does_not_go_back() -> None:
    timers = SystemTimers()
    before = timers.now()
    await timers.sleep(-1)
    assert timers.now() >= before
    assert all(0 <= timers.jitter() < 1 for _ in range(100))


async def test_the_clock_of_leases_goes_on_like_the_other_one() -> None:
    timers = AwakeTimers()
    before = timers.now()
    await timers.sleep(0.001)
    assert timers.now() > before
