"""Columns over nodes: what they cost, when they are made anew, and what may be kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.state import objects

from ksp.compile import node_columns
from ksp.compile.node_columns import NodeColumns, Touched
from ksp.compile.node_parts import EVERYTHING, SUMS, SUMS_WITHOUT_PORTS
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import EMPTY_NODE
from ksp.model.node import Node

COLOUR = ("labels", "colour")


def cluster(*colours: str, capacity: int = 100) -> tuple[ClusterState, NodeColumns]:
    """Nodes n0, n1, ... of these colours."""
    state = ClusterState(journal_capacity=capacity)
    for i, colour in enumerate(colours):
        state.set_node(objects.node(f"n{i}", labels={"colour": colour}))
    return state, NodeColumns(state)


def test_a_pod_touches_the_sums_of_its_node_alone() -> None:
    state, columns = cluster("red", "blue")
    cpu = columns.rows().amounts("requested", "cpu")
    before = columns.generation
    state.add_pod(objects.pod("p", cpu="2", host_port=80), "n1")
    state.update_pod(objects.pod("p", cpu="2", host_port=80, labels={"app": "web"}))
    columns.follow()
    assert cpu[:2].tolist() == [0, 2000]
    assert columns.changed(before) == [Touched(columns.generation, 1, SUMS)]
    middle = columns.generation
    state.update_pod(objects.pod("p", cpu="1"))
    state.set_object("services", "default", "web", object())
    columns.follow()
    assert columns.changed(middle) == [
        Touched(columns.generation, 1, frozenset({"requested", "nonzeroRequested", "hostPorts"}))
    ]
    assert columns.changed(columns.generation) == ()


def test_a_slot_is_taken_again() -> None:
    state, columns = cluster("red", "blue", "green")
    before, order = columns.generation, columns.order
    state.remove_node("n1")
    columns.follow()
    assert columns.nodes[1] is EMPTY_NODE
    assert columns.alive[:3].tolist() == [True, False, True]
    assert not columns.in_order
    state.set_node(objects.node("late"))
    columns.follow()
    assert columns.slot_of == {"n0": 0, "late": 1, "n2": 2}
    assert [t[1:] for t in columns.changed(before) or ()] == [(1, EVERYTHING)] * 2
    assert order.tolist() == [0, 1, 2]
    assert columns.order.tolist() == [0, 2, 1]


def test_a_node_that_changed_and_went_leaves_nothing() -> None:
    state, columns = cluster("red")
    columns.rows().amounts("allocatable", "cpu")
    state.set_node(objects.node("n0", labels={"colour": "red"}))
    state.remove_node("n0")
    columns.follow()
    assert columns.rows().amounts("allocatable", "cpu").tolist() == [0] * columns.slots


def test_the_order_is_the_same_array_until_it_is_another() -> None:
    state, columns = cluster("red", "blue")
    order = columns.order
    state.set_node(objects.node("n0", labels={"colour": "green"}))
    columns.follow()
    assert columns.order is order
    state.set_node(objects.node("n2"))
    columns.follow()
    assert columns.order.tolist() == [0, 1, 2]
    assert order.tolist() == [0, 1]
    assert columns.in_order


def test_nobody_writes_to_what_is_shown() -> None:
    _, columns = cluster("red", "blue")
    rows = columns.rows(columns.order)
    shown: list[np.ndarray[Any, Any]] = [rows.amounts("allocatable", "cpu"), rows.pod_count(), rows.ids(COLOUR)]
    for array in [*shown, rows.present("requested", "cpu"), columns.order, columns.alive]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_more_nodes_than_slots() -> None:
    state, columns = cluster("red")
    columns.rows().ids(COLOUR)
    slots = columns.slots
    for i in range(1, slots + 1):
        state.set_node(objects.node(f"n{i}", labels={"colour": f"c{i}"}, cpu=f"{i}m"))
    columns.follow()
    assert columns.slots > slots
    rows = columns.rows(columns.order)
    assert [rows.text_of(i) for i in rows.ids(COLOUR).tolist()] == ["red", *(f"c{i}" for i in range(1, slots + 1))]
    assert rows.amounts("allocatable", "cpu").tolist() == [4000, *range(1, slots + 1)]


def test_slots_are_numbered_anew_when_most_are_empty() -> None:
    state, columns = cluster(*["red"] * 300, capacity=1000)
    before = columns.generation
    for i in range(290):
        state.remove_node(f"n{i}")
    columns.follow()
    assert columns.slots == node_columns.STEP
    assert columns.changed(before) is None
    assert columns.changed(columns.generation) == ()
    assert columns.rows().amounts("allocatable", "cpu")[:11].tolist() == [4000] * 10 + [0]


def test_who_falls_behind_the_journal_starts_again() -> None:
    state, columns = cluster("red", capacity=2)
    before = columns.generation
    for i in range(4):
        state.add_pod(objects.pod(f"p{i}"), "n0")
    columns.follow()
    assert columns.changed(before) is None
    assert columns.rows().pod_count()[0] == 4


def test_the_log_of_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_columns, "MOST_TOUCHED", 3)
    state, columns = cluster("red")
    generations = [columns.generation]
    for i in range(7):
        state.add_pod(objects.pod(f"p{i}"), "n0")
        columns.follow()
        generations.append(columns.generation)
    answers = [columns.changed(generation) for generation in generations]
    assert [None if answer is None else len(answer) for answer in answers] == [None, None, None, None, 3, 2, 1, 0]
    assert answers[6] == [Touched(columns.generation, 0, SUMS_WITHOUT_PORTS)]


def test_texts_that_no_node_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_columns, "NEW_IDS", 10)
    state, columns = cluster("red", "blue")
    columns.rows().ids(COLOUR)
    for i in range(1000):
        state.set_node(objects.node("n0", labels={"colour": f"c{i}"}))
        columns.follow()
    assert len(columns.interner.texts) < 40
    rows = columns.rows(columns.order)
    assert [rows.text_of(i) for i in rows.ids(COLOUR).tolist()] == ["c999", "blue"]
    assert rows.id_of("red") == -1


def test_columns_that_were_long_not_asked_for_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_columns, "MOST_COLUMNS", 8)
    state, columns = cluster("red")
    for i in range(30):
        columns.rows().ids(("labels", f"key-{i}"))
        state.add_pod(objects.pod(f"p{i}"), "n0")
        columns.follow()
        assert columns.rows().pod_count()[0] == i + 1
        assert len(columns._columns) <= 8


def test_an_absent_label_is_not_an_empty_one_but_reads_so() -> None:
    state, columns = cluster("", "red")
    state.set_node(objects.node("bare"))
    columns.follow()
    rows = columns.rows(columns.order)
    assert len(set(rows.ids(COLOUR).tolist())) == 3
    assert rows.same_text(COLOUR, "").tolist() == [True, False, True]
    assert rows.gather({"": 5, "red": 7}, COLOUR).tolist() == [5, 7, 5]
    assert columns.slots_with(COLOUR, "").tolist() == [0, 2]


def test_numbers_of_a_view_keep_their_type() -> None:
    _, columns = cluster("red", "blue")
    counts: list[Mapping[str, float]] = [{"red": 2**62 + 1}, {"red": 0.5}, {}]
    for each in counts:
        for rows in (columns.rows(columns.order), columns.rows()):
            found = rows.gather(each, COLOUR)
            assert found[:2].tolist() == [each.get("red", 0), 0]
    assert columns.rows().gather({"red": 1}, COLOUR).dtype == np.int64
    assert columns.rows().gather({"red": 1.0}, COLOUR).dtype == np.float64


def test_groups_of_the_same_slots_are_kept_while_the_parts_are_the_same() -> None:
    state, columns = cluster(*(f"c{i % 3}" for i in range(100)))
    slots = np.arange(20, 100)
    inverse, nodes = columns.rows(slots).group((COLOUR,))
    state.add_pod(objects.pod("p"), "n30")
    columns.follow()
    assert columns.rows(slots).group((COLOUR,))[0] is inverse
    with pytest.raises(ValueError, match="read-only"):
        slots[0] = 1
    state.set_node(objects.node("n30", labels={"colour": "c9"}))
    columns.follow()
    inverse, nodes = columns.rows(slots).group((COLOUR,))
    assert [nodes[i].labels["colour"] for i in inverse.tolist()] == [columns.nodes[s].labels["colour"] for s in slots]
    other = np.arange(100)
    assert columns.rows(other).gather({"c9": 1}, COLOUR).tolist() == [int(i == 30) for i in range(100)]


def test_the_groups_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_columns, "MOST_SELECTIONS", 3)
    _, columns = cluster(*(f"c{i % 3}" for i in range(100)))
    for start in range(10):
        inverse, nodes = columns.rows(np.arange(start, start + 60)).group((COLOUR,))
        assert nodes[inverse[0]].labels["colour"] == f"c{start % 3}"
        assert len(columns._selections) <= 3


def test_values_without_a_hash_are_told_apart() -> None:
    state, columns = cluster()
    for name, capacity in (
        ("a", {"cpu": "1"}),
        ("b", {"cpu": "1"}),
        ("c", {f"example.com/{i}": "1" for i in range(9)}),
    ):
        state.set_node(convert(Node, {"metadata": {"name": name}, "status": {"capacity": capacity}}))
    columns.follow()
    rows = columns.rows(columns.order)
    ids = rows.ids(("status", "capacity")).tolist()
    assert ids[0] == ids[1] != ids[2]
    inverse, nodes = rows.group((("status", "capacity"),))
    assert [nodes[i].status.capacity for i in inverse.tolist()] == [node.status.capacity for node in rows.nodes]
    assert columns.slots_with(("status", "capacity"), {"cpu": "1"}).tolist() == [0, 1]
