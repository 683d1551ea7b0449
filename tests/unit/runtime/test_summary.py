from __future__ import annotations

import asyncio

import pytest
from tests.unit.core.scheduling import node, pod
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.driving import World, running

from ksp.core.changes import SetNode, SetPod
from ksp.runtime.summary import EVERY, Summary


async def test_what_was_done_is_said_every_ten_seconds_and_nothing_while_nothing_happens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="ksp.runtime.summary")
    timers = VirtualTimers()
    summary = Summary(timers)
    world = World(timers=timers, observers=(summary,))
    for name in ("a", "b"):
        world.loop.deliver(SetPod(pod(name)))
    world.loop.deliver(SetPod(pod("large", requests={"cpu": "99"})))
    world.loop.deliver(SetNode(node("n1", cpu="4")))
    saying = asyncio.create_task(summary.run())
    async with running(world):
        await world.writer.until(lambda w: len(w.binds) == 2 and bool(w.conditions))
        await world.timers.advance(EVERY)
        assert caplog.messages == ["pods bound=2 no_node=1 last_seconds=10"]
        await world.timers.advance(3 * EVERY)
        assert len(caplog.messages) == 1
        world.loop.stop()
    saying.cancel()
    await asyncio.wait([saying])
