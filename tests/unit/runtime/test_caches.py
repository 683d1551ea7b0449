from __future__ import annotations

import asyncio

import pytest
from tests.unit.kube.timers import VirtualTimers, settle
from tests.unit.runtime.driving import WITHIN

from ksp.runtime.caches import by_reason, synced

REFUSED = "connection refused (https://10.0.0.1:6443)"


class Caches:
    def __init__(self, *waiting: tuple[str, str]) -> None:
        self.waiting = list(waiting)
        self.done = asyncio.Event()

    async def wait_for_sync(self) -> None:
        await self.done.wait()

    def waiting_for(self) -> list[tuple[str, str]]:
        return self.waiting


def test_kinds_that_wait_for_the_same_are_told_together() -> None:
    found = by_reason([("pods", REFUSED), ("services", "listing"), ("nodes", REFUSED)])
    assert found == [("pods, nodes", REFUSED), ("services", "listing")]


async def test_what_is_waited_for_is_said_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="ksp")
    timers, told = VirtualTimers(), list[str]()
    caches = Caches(("pods", REFUSED), ("nodes", REFUSED))
    async with asyncio.timeout(WITHIN):
        waiting = asyncio.create_task(synced(caches, timers, told.append))
        await settle()
        assert told == ["waiting for caches: pods, nodes"]
        await timers.advance(1)
        assert told[1:] == [f"waiting for pods, nodes: {REFUSED}"]
        caches.waiting = [("pods", "listing, 500 so far")]
        await timers.advance(10)
        assert told[2:] == ["waiting for pods: listing, 500 so far"] * 2
        assert not waiting.done()
        caches.done.set()
        await waiting
        await timers.advance(100)
    assert len(told) == 4
    assert caplog.messages == ["waiting for caches", *told[1:]]


async def test_long_reasons_are_not_repeated_and_their_kinds_are_told_together() -> None:
    timers, told = VirtualTimers(), list[str]()
    caches = Caches(
        *((kind, f"cannot list {kind}: add to the ClusterRole: " + "rule " * 40) for kind in ("pods", "nodes"))
    )
    async with asyncio.timeout(WITHIN):
        waiting = asyncio.create_task(synced(caches, timers, told.append))
        await settle()
        await timers.advance(1)
        assert told[1:] == ["waiting for pods, nodes: the warnings in the log say why, and what to do"]
        caches.done.set()
        await waiting
