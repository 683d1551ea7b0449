"""The heap whose items can leave from the middle."""

from __future__ import annotations

from ksp.core.lazy_heap import SMALL, LazyHeap


def drained(heap: LazyHeap[str]) -> list[str]:
    items = []
    while (first := heap.first()) is not None:
        items.append(first[1])
        heap.discard(first[1])
    return items


def test_items_leave_by_key_then_by_turn() -> None:
    heap: LazyHeap[str] = LazyHeap()
    for name, key in [("c", 2.0), ("b", 1.0), ("a", 1.0), ("d", 0.0)]:
        heap.put(name, name, (key,))
    heap.discard("d")
    heap.discard("nobody")
    heap.put("c", "c", (0.5,))
    assert "d" not in heap
    assert len(heap) == 3
    assert list(heap) == ["b", "a", "c"]
    assert drained(heap) == ["c", "b", "a"]


def test_dead_entries_do_not_pile_up() -> None:
    heap: LazyHeap[str] = LazyHeap()
    heap.put("first", "first", (0.0,))
    for turn in range(10_000):
        heap.put("other", "other", (float(turn),))
        heap.discard(f"none {turn}")
    assert len(heap._heap) <= 2 * len(heap) + SMALL
    assert drained(heap) == ["first", "other"]
