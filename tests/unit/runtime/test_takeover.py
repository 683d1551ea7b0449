from __future__ import annotations

import asyncio

from tests.unit.kube.timers import VirtualTimers, settle
from tests.unit.runtime.embedded import Said

from ksp.runtime.takeover import LOOK, MOST, caught_up


class Caches:
    def __init__(self, *troubles: tuple[str, str]) -> None:
        self.broken = list(troubles)

    def troubles(self) -> list[tuple[str, str]]:
        return self.broken


async def test_a_new_leader_waits_for_its_watches_of_pods_and_nodes() -> None:
    timers, caches = VirtualTimers(), Caches(("pods", "connection refused"))
    waiting = asyncio.create_task(caught_up(caches.troubles, timers))
    await timers.advance(5)
    assert not waiting.done()
    caches.broken.clear()
    await timers.advance(LOOK)
    await settle()
    assert waiting.done()


async def test_other_kinds_are_not_waited_for() -> None:
    timers = VirtualTimers()
    await caught_up(Caches(("services", "forbidden")).troubles, timers)
    assert timers.slept == []


async def test_it_does_not_wait_for_ever() -> None:
    timers, caches = VirtualTimers(), Caches(("nodes", "forbidden"))
    with Said() as said:
        waiting = asyncio.create_task(caught_up(caches.troubles, timers))
        await timers.advance(MOST - 1)
        assert not waiting.done()
        await timers.advance(1 + LOOK)
        await waiting
    assert said.messages[-1] == "decides although caches may be behind kinds=nodes"
