"""What classes and memos may take, and that nothing is kept where nothing is to be kept."""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakSet

import pytest
from tests.unit.core.scheduling import cluster, cycle_of, default_profile, info, node

from ksp.core.equivalence import classes
from ksp.core.equivalence.classes import CLASS, MEASURED, PodClass
from ksp.core.equivalence.memo import MEMO, Memo
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo

BYTES = 3_000_000


def nodes(number: int) -> ClusterState:
    return cluster(*(node(f"n{i}", zone=f"z{i % 3}", cpu=str(4 + i % 5)) for i in range(number)))


def kind(i: int) -> PodInfo:
    """Pods of which no two share the memos that have arrays."""
    return info(f"p{i}", requests={"cpu": f"{i % 1000 + 1}m"}, labels={"app": f"a{i}"})


def living(kind: type) -> list[Any]:
    return [each for each in gc.get_objects() if isinstance(each, kind)]


def test_all_together_take_no_more_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the few that came since it was looked at last."""
    monkeypatch.setattr(classes, "MOST_BYTES", BYTES)
    cycle = cycle_of(default_profile(), nodes(256), keep_scores=False)
    cycle.classes.most_bytes = BYTES
    most = 0
    for i in range(200):
        assert cycle.decide(kind(i)).node
        most = max(most, cycle.classes.bytes)
    largest = max(each.bytes for each in cycle.classes._alive)
    memos = len(default_profile().predicates) + len(default_profile().priorities)
    assert BYTES < most <= BYTES + (MEASURED + 1) * (largest + memos * (MEMO + 8 * 320))
    assert cycle.classes.size()["classes"] < 200


def test_the_bytes_are_those_of_the_arrays() -> None:
    cycle = cycle_of(default_profile(), nodes(256), keep_scores=False)
    for i in range(4):
        cycle.decide(kind(i))
    slots = cycle.present.columns.slots
    kept = cycle.classes
    assert kept.bytes > 4 * (CLASS + slots * (4 + 8)) + 4 * 2 * (MEMO + slots * 8)


def test_who_gave_way_decides_as_before() -> None:
    """Pods of a class that is gone, of one whose memos are gone, and of one that was there all the time."""
    state = nodes(64)
    small, ample = (cycle_of(default_profile(), state, keep_scores=False) for _ in range(2))
    small.classes.most_bytes = 0
    for i in range(120):
        pod = kind(i % 40)
        assert small.decide(pod).node == ample.decide(pod).node
        state.add_pod(info(f"x{i}", labels=pod.labels), f"n{i % 64}")
    assert small.classes.size()["classes"] <= MEASURED + 1 < ample.classes.size()["classes"]


def test_more_nodes_leave_room_for_fewer_classes() -> None:
    """Though no class is new."""
    state = nodes(16)
    cycle = cycle_of(default_profile(), state, keep_scores=False)
    for i in range(40):
        cycle.decide(kind(i))
    cycle.classes.most_bytes = cycle.classes.bytes
    for i in range(2_000):
        state.set_node(node(f"m{i}"))
    for i in range(30):
        cycle.decide(kind(i))
    state.set_node(node("last one that does not fit the slots there are"))
    for i in range(600):
        state.set_node(node(f"o{i}"))
    cycle.decide(kind(0))
    assert cycle.classes.size()["classes"] < 40


def test_a_class_is_held_by_nobody_once_it_gave_way() -> None:
    cycle = cycle_of(default_profile(), nodes(8), keep_scores=False, equivalence_classes=1_000)
    for i in range(30):
        cycle.decide(kind(i))
    held = cycle.classes._alive, cycle.classes._recall._alive
    assert [len(each) for each in held] == [30, cycle.classes.size()["memos"]]
    cycle.classes.most_bytes = 0
    for i in range(30, 30 + MEASURED):
        cycle.decide(kind(i))
    assert len(held[0]) == cycle.classes.size()["classes"] <= MEASURED
    assert len(held[1]) == cycle.classes.size()["memos"]


@pytest.mark.parametrize("columns", [True, False])
def test_without_classes_nothing_is_kept(columns: bool) -> None:
    state = nodes(8)
    cycle = cycle_of(default_profile(), state, keep_scores=False, equivalence_classes=0, columns=columns)
    before: list[WeakSet[Any]] = [WeakSet(living(each)) for each in (PodClass, Memo)]
    for i in range(5):
        assert cycle.decide(kind(i)).node
    assert [len(living(each)) for each in (PodClass, Memo)] == [len(each) for each in before]
    assert cycle.classes.size() == {"classes": 0, "memos": 0}
    assert cycle.classes.bytes == 0
    assert cycle.classes.counters.hits == 0
