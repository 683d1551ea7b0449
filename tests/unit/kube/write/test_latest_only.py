"""One at a time for each key, and of those who wait only the latest."""

from __future__ import annotations

import asyncio

import pytest

from ksp.kube.write.latest_only import LatestOnly


async def test_one_at_a_time_and_the_latest_comes_next() -> None:
    turns = LatestOnly()
    assert await turns.enter("a")
    assert await turns.enter("b")
    second = asyncio.create_task(turns.enter("a"))
    await asyncio.sleep(0)
    assert turns.contested("a")
    third = asyncio.create_task(turns.enter("a"))
    assert not await second
    turns.leave("a")
    assert await third
    assert not turns.contested("a")
    turns.leave("a")
    turns.leave("b")
    assert len(turns) == 0


async def test_one_that_insists_keeps_its_place() -> None:
    turns = LatestOnly()
    await turns.enter("a")
    insisting = asyncio.create_task(turns.enter("a", insist=True))
    await asyncio.sleep(0)
    assert not await turns.enter("a")
    turns.leave("a")
    assert await insisting
    turns.leave("a")
    assert len(turns) == 0


@pytest.mark.parametrize("left_before", [True, False])
async def test_a_cancelled_one_passes_its_turn_on(*, left_before: bool) -> None:
    """Cancelled while it waits, and in the moment in which its turn had come."""
    turns = LatestOnly()
    await turns.enter("a")
    waiting = asyncio.create_task(turns.enter("a"))
    await asyncio.sleep(0)
    if left_before:
        turns.leave("a")
    waiting.cancel()
    if not left_before:
        turns.leave("a")
    await asyncio.wait([waiting], timeout=10)
    assert waiting.cancelled()
    assert len(turns) == 0
    assert await turns.enter("a")


async def test_a_cancelled_one_does_not_take_away_the_turn_of_the_next() -> None:
    turns = LatestOnly()
    await turns.enter("a")
    cancelled = asyncio.create_task(turns.enter("a"))
    await asyncio.sleep(0)
    cancelled.cancel()
    following = asyncio.create_task(turns.enter("a"))
    await asyncio.wait([cancelled], timeout=10)
    assert cancelled.cancelled()
    assert turns.contested("a")
    turns.leave("a")
    assert await following
