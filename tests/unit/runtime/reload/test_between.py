"""What is done between two decisions waits while an extender is asked."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.runtime.driving import World, running


async def test_it_is_done_at_once_where_no_decision_is_open() -> None:
    world = World()
    assert await world.loop.between(lambda: 7) == 7


async def test_it_waits_for_the_end_of_an_open_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    world, asked = World(), [True]
    monkeypatch.setattr(type(world.scheduler), "asked", property(lambda _: asked[0] or None))
    async with running(world):
        waiting = asyncio.create_task(world.loop.between(lambda: "done"))
        await world.timers.advance(1)
        assert not waiting.done()
        asked.clear()
        asked.append(False)
        assert await world.loop.between(lambda: "later") == "later"
        assert await waiting == "done"


async def test_what_it_raises_is_raised_where_it_was_asked_for() -> None:
    world = World()
    with pytest.raises(ZeroDivisionError):
        await world.loop.between(lambda: 1 // 0)


async def test_what_nobody_waits_for_any_more_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    world, asked, done = World(), [True], []
    monkeypatch.setattr(type(world.scheduler), "asked", property(lambda _: asked[0] or None))
    waiting = asyncio.create_task(world.loop.between(lambda: done.append("late")))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    asked[0] = False
    await world.loop.between(lambda: None)
    assert done == []
