from __future__ import annotations

import asyncio

import msgspec
from tests.unit.kube import api_objects

from ksp.kube.watch.delta_fifo import Delta, DeltaFifo
from ksp.kube.watch.indexer import Indexer
from ksp.model.pod import Pod


def pod(name: str, version: int, uid: str = "") -> Pod:
    return msgspec.convert(api_objects.pod(name, version, uid), Pod)


A3, A4, A5 = pod("a", 3), pod("a", 4), pod("a", 5)
OTHER = pod("a", 9, uid="other")
KEY = "w/a"


def queue(*told: Pod) -> tuple[DeltaFifo[Pod], Indexer[Pod]]:
    """A queue over a store that has been told of these."""
    store: Indexer[Pod] = Indexer()
    for value in told:
        store.set(f"w/{value.metadata.name}", value)
    return DeltaFifo(store), store


def test_deltas_come_in_the_order_in_which_their_keys_came() -> None:
    fifo, _ = queue()
    b = pod("b", 1)
    fifo.put(KEY, A3)
    fifo.put("w/b", b)
    fifo.put(KEY, A4)
    assert [fifo.pop(), fifo.pop(), fifo.pop()] == [Delta(KEY, None, A4), Delta("w/b", None, b), None]


def test_known_version_is_no_news_whether_it_was_told_or_not() -> None:
    fifo, _ = queue(A3)
    assert not fifo.put(KEY, pod("a", 3))
    assert fifo.put(KEY, A4)
    assert not fifo.put(KEY, pod("a", 4))
    assert len(fifo) == 1


def test_deletion_keeps_the_final_state_of_what_was_told() -> None:
    fifo, _ = queue(A3)
    assert fifo.delete(KEY, A5)
    assert fifo.latest(KEY) is None
    assert not fifo.delete(KEY, A5)
    assert fifo.pop() == Delta(KEY, A5, None)


def test_object_made_again_stands_beside_the_end_of_the_one_before() -> None:
    fifo, _ = queue(A3)
    fifo.delete(KEY, A5)
    fifo.put(KEY, OTHER)
    assert fifo.pop() == Delta(KEY, A5, OTHER)


def test_end_of_an_object_that_was_never_told_hides_no_end_that_was_seen() -> None:
    fifo, _ = queue(A3)
    fifo.delete(KEY, A5)
    fifo.put(KEY, OTHER)
    fifo.delete(KEY, OTHER)
    assert fifo.pop() == Delta(KEY, A5, None)


def test_object_that_came_and_went_is_no_change() -> None:
    fifo, _ = queue()
    fifo.put(KEY, A3)
    fifo.delete(KEY, A4)
    assert fifo.pop() == Delta(KEY, A4, None)
    assert fifo.pop() is None


def test_what_is_unknown_cannot_be_deleted_or_held() -> None:
    fifo, _ = queue()
    assert not fifo.delete(KEY, A3)
    fifo.hold(KEY, "u")
    assert fifo.pop() is None


async def test_replacement_deletes_what_it_did_not_see_in_the_store_and_in_the_queue() -> None:
    fifo, _ = queue(A3, pod("b", 1), pod("c", 2))
    fifo.put("w/d", pod("d", 3))
    replacement = fifo.replacing()
    replacement.put(KEY, A4)
    replacement.hold("w/b", "")
    await replacement.finish()
    deltas = {delta.key: delta for delta in iter(fifo.pop, None)}
    assert deltas == {
        KEY: Delta(KEY, None, A4),
        "w/c": Delta("w/c", None, None),
        "w/d": Delta("w/d", None, None),
    }


async def test_sync_means_that_all_of_the_first_list_has_been_popped_and_no_more() -> None:
    fifo, _ = queue()
    synced = [fifo.has_synced]
    replacement = fifo.replacing()
    replacement.put("w/a", A3)
    replacement.put("w/b", pod("b", 1))
    fifo.pop()
    synced.append(fifo.has_synced)
    await replacement.finish()
    fifo.put("w/c", pod("c", 2))
    synced.append(fifo.has_synced)
    fifo.pop()
    synced.append(fifo.has_synced)
    await fifo.replacing().finish()
    synced.append(fifo.has_synced)
    assert synced == [False, False, False, True, True]


async def test_empty_list_is_in_sync_at_once_and_wakes_who_waits_to_notice_it() -> None:
    fifo, _ = queue()
    waiting = asyncio.create_task(fifo.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    await fifo.replacing().finish()
    async with asyncio.timeout(1):
        await waiting
    assert fifo.has_synced
    assert fifo.pop() is None
    again = asyncio.create_task(fifo.wait())
    await asyncio.sleep(0)
    assert not again.done()
    again.cancel()


async def test_many_deletions_give_others_their_turns() -> None:
    fifo, _ = queue(*(pod(f"p{i}", i) for i in range(6_000)))
    turns: list[int] = []
    finishing = asyncio.create_task(fifo.replacing().finish())
    while not finishing.done():
        turns.append(len(fifo))
        await asyncio.sleep(0)
    assert turns == [0, 2_000, 4_000, 6_000]


async def test_list_is_told_when_the_last_delta_that_it_brought_is_popped() -> None:
    fifo, _ = queue()
    fifo.put("w/before", pod("before", 1))
    replacement = fifo.replacing(7.0)
    replacement.put(KEY, A3)
    replacement.put("w/before", pod("before", 1))
    await replacement.finish()
    fifo.put("w/after", pod("after", 9))
    fifo.put(KEY, A4)  # in the place of what the list brought
    told = [(fifo.pop() and fifo.told_lists()) for _ in range(3)]
    assert told == [[], [7.0], []]


async def test_list_that_brings_nothing_is_told_at_once() -> None:
    fifo, _ = queue(A3)
    for began in (1.0, 2.0):
        replacement = fifo.replacing(began)
        replacement.put(KEY, A3)
        await replacement.finish()
    assert fifo.told_lists() == [1.0, 2.0]
    assert fifo.told_lists() == []
    async with asyncio.timeout(5):
        await fifo.wait()


async def test_list_that_nobody_was_asked_for_or_that_breaks_off_is_not_told() -> None:
    fifo, _ = queue(A3)
    await fifo.replacing().finish()
    fifo.replacing(1.0).put(KEY, A4)
    while fifo.pop() is not None:
        pass
    assert fifo.told_lists() == []


async def test_list_with_an_object_that_cannot_be_read_does_not_tell_of_all() -> None:
    fifo, _ = queue(A3)
    replacement = fifo.replacing(1.0)
    replacement.hold(KEY, "a")
    await replacement.finish()
    assert fifo.told_lists() == []
