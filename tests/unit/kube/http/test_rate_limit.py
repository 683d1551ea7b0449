from __future__ import annotations

import asyncio

from tests.unit.kube.timers import VirtualTimers, settle

from ksp.kube.http.rate_limit import TokenBucket


async def taken(bucket: TokenBucket, timers: VirtualTimers, times: list[float], count: int) -> None:
    for _ in range(count):
        await bucket.take()
        times.append(timers.now())


async def test_a_burst_goes_at_once_and_then_the_rate_holds() -> None:
    timers, times = VirtualTimers(), list[float]()
    bucket = TokenBucket(50, 100, timers)
    task = asyncio.create_task(taken(bucket, timers, times, 105))
    await settle()
    assert times == [0.0] * 100
    await timers.advance(0.1)
    await task
    assert [round(time, 6) for time in times[100:]] == [0.02, 0.04, 0.06, 0.08, 0.1]


async def test_sleeping_too_long_costs_nothing() -> None:
    class Sluggish(VirtualTimers):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds + 0.3)

    timers, times = Sluggish(), list[float]()
    task = asyncio.create_task(taken(TokenBucket(10, 5, timers), timers, times, 1005))
    while not task.done():
        await timers.next()
    assert 100.0 <= times[-1] <= 100.5


async def test_first_come_first_served() -> None:
    timers, order = VirtualTimers(), list[int]()
    bucket = TokenBucket(1, 1, timers)

    async def one(number: int) -> None:
        await bucket.take()
        order.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(20)]
    await settle()
    for _ in range(19):
        await timers.advance(1.0)
    await asyncio.gather(*tasks)
    assert order == list(range(20))


async def test_a_late_comer_does_not_overtake_when_a_token_is_there() -> None:
    timers, order = VirtualTimers(), list[str]()
    bucket = TokenBucket(1, 1, timers)

    async def one(name: str) -> None:
        await bucket.take()
        order.append(name)

    await one("burst")
    waiting = asyncio.create_task(one("waiting"))
    await settle()
    timers._now += 5  # the token is there, and who waits for it has not woken yet
    late = asyncio.create_task(one("late"))
    await settle()
    await timers.advance(5)
    await asyncio.gather(waiting, late)
    assert order == ["burst", "waiting", "late"]


async def test_who_is_cancelled_has_taken_nothing() -> None:
    timers, times = VirtualTimers(), list[float]()
    bucket = TokenBucket(1, 1, timers)
    await bucket.take()
    impatient = [asyncio.create_task(bucket.take()) for _ in range(50)]
    await settle()
    for task in impatient:
        task.cancel()
    await asyncio.gather(*impatient, return_exceptions=True)
    next_one = asyncio.create_task(taken(bucket, timers, times, 1))
    await settle()
    await timers.advance(1)
    await next_one
    assert times == [1.0]


async def test_no_limit() -> None:
    timers = VirtualTimers()
    for qps in (0, -1):
        await taken(TokenBucket(qps, 1, timers), timers, [], 1000)
    assert timers.slept == []


async def test_a_burst_below_one_is_one() -> None:
    timers = VirtualTimers()
    await TokenBucket(1, 0, timers).take()
    assert timers.slept == []


async def test_what_is_unused_is_kept_up_to_the_burst() -> None:
    timers, times = VirtualTimers(), list[float]()
    bucket = TokenBucket(10, 3, timers)
    await taken(bucket, timers, times, 3)
    await timers.advance(1000)
    task = asyncio.create_task(taken(bucket, timers, times, 4))
    await settle()
    assert len(times) == 6
    await timers.advance(0.1)
    await task
