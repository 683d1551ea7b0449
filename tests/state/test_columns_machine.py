"""Columns that follow a state against what its nodes say, under churn, and with limits so low that all are met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.state import objects

from ksp.compile import node_columns, node_rows, node_values
from ksp.compile.node_columns import NodeColumns, Part, Rows
from ksp.compile.node_parts import NODE_PARTS, parts_at
from ksp.core.node_order import ZONE
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import EMPTY_NODE, NodeInfo, PodInfo
from ksp.model.node import Node

GPU = "example.com/gpu"
MAPS = ("allocatable", "requested", "nonzero_requested", "images")
NAMES = ("cpu", "pods", GPU, "web:1")
COLOUR, SIZE = ("labels", "colour"), ("labels", "size")
TEXTS: tuple[Part, ...] = (("name",), COLOUR, SIZE, ("labels", ZONE), ("annotations", "colour"))
OTHERS: tuple[Part, ...] = (
    ("spec", "taints"),
    ("spec", "unschedulable"),
    ("host_ports",),
    ("images",),
    ("requested",),
    ("status", "allocatable"),
    ("status", "allocatable", GPU),
    ("metadata", "labels", "colour"),
    ("metadata",),
)
WORDS = ("", "red", "blue", "n1", "zone-a", "12")

node_names = st.sampled_from([f"n{i}" for i in range(7)])
uids = st.sampled_from([f"u{i}" for i in range(6)])
words = st.sampled_from(WORDS)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    labels = draw(st.dictionaries(st.sampled_from(["colour", "size"]), words, max_size=2))
    zone = draw(st.sampled_from(["", "zone-a", "red"]))
    allocatable: dict[str, Any] = {"cpu": draw(st.sampled_from(["1", "1000m", "8"])), "pods": "10"}
    if draw(st.booleans()):
        allocatable[GPU] = draw(st.sampled_from(["0", "9223372036854775807"]))
    return convert(
        Node,
        {
            "metadata": {
                "name": draw(node_names),
                "resourceVersion": draw(st.sampled_from(["1", "2"])),
                "labels": labels | ({ZONE: zone} if zone else {}),
                "annotations": draw(st.sampled_from([{}, {"colour": "red"}])),
            },
            "spec": {
                "unschedulable": draw(st.booleans()),
                "taints": draw(st.sampled_from([[], [{"key": "a", "effect": "NoSchedule"}], [{"key": "b"}]])),
            },
            "status": {
                "allocatable": allocatable,
                "images": draw(st.sampled_from([[], [{"names": ["web:1"], "sizeBytes": 7}]])),
            },
        },
    )


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    return objects.pod(
        draw(uids),
        cpu=draw(st.sampled_from(["0", "100m", "2"])),
        labels={"app": draw(st.sampled_from(["web", "db"]))},
        host_port=draw(st.sampled_from([0, 80, 81])),
    )


class ColumnsMachine(RuleBasedStateMachine):
    """`diligent` follows each change; `slow` now and then, and may find that the journal does not go back so far."""

    def __init__(self) -> None:
        super().__init__()
        limits: dict[str, Any] = {
            "STEP": 2,
            "SPARE": 4,
            "NEW_IDS": 5,
            "MOST_TOUCHED": 6,
            "MOST_COMBINATIONS": 2,
        }
        self.patches = [patch.multiple(node_columns, **limits), patch.multiple(node_rows, FEW=2)]
        self.patches += [patch.multiple(node_values, FEWER=2)]
        for each in self.patches:
            each.start()
        self.state = ClusterState(journal_capacity=12)
        self.diligent, self.slow = NodeColumns(self.state), NodeColumns(self.state)
        self.pictures: list[tuple[int, list[Mapping[str, object]]]] = []

    def teardown(self) -> None:
        for each in self.patches:
            each.stop()

    # ---- changes

    @rule(node=nodes(), in_place=st.booleans())
    def set_node(self, node: Node, in_place: bool) -> None:
        self.state.set_node(node if in_place else NodeInfo.of(node))

    @precondition(lambda self: self.state.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        self.state.remove_node(data.draw(st.sampled_from(sorted(self.state.nodes))))

    @precondition(lambda self: self.state.nodes)
    @rule(data=st.data(), node=nodes())
    def node_goes_and_another_comes(self, data: st.DataObject, node: Node) -> None:
        self.state.remove_node(data.draw(st.sampled_from(sorted(self.state.nodes))))
        self.state.set_node(node)

    @rule(node=nodes(), in_place=st.booleans())
    def node_comes_or_changes_and_goes(self, node: Node, in_place: bool) -> None:
        self.state.set_node(node if in_place else NodeInfo.of(node))
        self.state.remove_node(node.metadata.name)

    @rule(pod=pods(), name=node_names)
    def place(self, pod: PodInfo, name: str) -> None:
        if self.state.node_name_of(pod.uid) is None:
            self.state.add_pod(pod, name)
        else:
            self.state.update_pod(pod)

    @rule(uid=uids)
    def remove_pod(self, uid: str) -> None:
        if self.state.node_name_of(uid) is not None:
            self.state.remove_pod(uid)

    @rule()
    def follow_after_a_while(self) -> None:
        self.slow.follow()
        agree(self.slow, self.state)
        agree(NodeColumns(self.state), self.state)

    # ---- what holds

    @invariant()
    def columns_are_what_the_nodes_say(self) -> None:
        order = self.diligent.order
        listed = order.tolist()
        self.diligent.follow()
        assert order.tolist() == listed
        assert (self.diligent.order is order) == (self.diligent.order.tolist() == listed)
        agree(self.diligent, self.state)
        self.all_that_changed_was_told()

    def all_that_changed_was_told(self) -> None:
        now = picture(self.diligent)
        for generation, before in self.pictures:
            touched = self.diligent.changed(generation)
            if touched is not None:
                hold_complete(before, now, touched)
        assert self.diligent.changed(self.diligent.generation) == ()
        self.pictures = [*self.pictures[-5:], (self.diligent.generation, now)]


def hold_complete(before: list[Mapping[str, object]], now: list[Mapping[str, object]], touched: Any) -> None:
    """Every part that differs was named."""
    empty = part_values(EMPTY_NODE)
    told: dict[int, set[str]] = {}
    for _, slot, parts in touched:
        told.setdefault(slot, set()).update(parts)
    for slot, values in enumerate(now):
        old = before[slot] if slot < len(before) else empty
        assert {part for part in values if values[part] != old[part]} <= told.get(slot, set())
    assert len(before) <= len(now)


def picture(columns: NodeColumns) -> list[Mapping[str, object]]:
    """The values of all parts, by slot."""
    return [part_values(node) for node in columns.nodes]


def part_values(node: NodeInfo) -> Mapping[str, object]:
    """The values of all parts that columns show, as they are now."""
    found: dict[str, list[object]] = {part: [] for part in NODE_PARTS}
    for attributes in (("labels",), ("annotations",), *OTHERS, ("pod_count",), ("nonzero_requested",), ("name",)):
        for part in parts_at(attributes) if attributes != ("metadata",) else ():
            value = at(node, attributes)
            found[part].append(str(sorted(value.items()) if isinstance(value, dict) else value))
    return found


def at(node: NodeInfo, part: Part) -> Any:
    """What the path leads to; None if an entry is not there."""
    value: Any = node
    for step in part:
        value = value.get(step) if isinstance(value, dict) else getattr(value, step)
    return value


def agree(columns: NodeColumns, state: ClusterState) -> None:
    """The columns say what the nodes say."""
    names = [node.name for node in state.node_list()]
    assert columns.generation == state.generation
    assert columns.slot_of.keys() == state.nodes.keys()
    assert all(columns.nodes[slot] is state.nodes[name] for name, slot in columns.slot_of.items())
    assert [columns.nodes[slot].name for slot in columns.order.tolist()] == names
    assert columns.in_order == (columns.order.tolist() == list(range(len(names))))
    assert np.flatnonzero(columns.alive).tolist() == sorted(columns.slot_of.values())
    assert all(node is EMPTY_NODE for node, there in zip(columns.nodes, columns.alive, strict=True) if not there)
    assert len(columns.nodes) == len(columns.alive) == columns.slots
    for rows, expected in rows_of(columns):
        assert rows.size == len(rows.slots) == len(expected)
        assert all(one is other for one, other in zip(rows.nodes, expected, strict=True))
        numbers_agree(rows, expected)
        ids_agree(rows, expected)
        groups_agree(rows, expected)
        views_agree(rows, expected)
    indexes_agree(columns)


def rows_of(columns: NodeColumns) -> list[tuple[Rows, list[NodeInfo]]]:
    """All slots, the nodes in order, every second slot from the end, one slot; with their nodes."""
    slots = np.arange(columns.slots)
    chosen = [columns.order, slots[::-2], slots[1:2]]
    every = [(columns.rows(some), [columns.nodes[slot] for slot in some.tolist()]) for some in chosen]
    return [(columns.rows(), columns.nodes), *every]


def numbers_agree(rows: Rows, nodes: list[NodeInfo]) -> None:
    assert rows.pod_count().tolist() == [node.pod_count for node in nodes]
    for map_ in MAPS:
        for name in NAMES:
            assert rows.amounts(map_, name).tolist() == [getattr(node, map_).get(name, 0) for node in nodes]
            assert rows.present(map_, name).tolist() == [name in getattr(node, map_) for node in nodes]


def ids_agree(rows: Rows, nodes: list[NodeInfo]) -> None:
    for part in TEXTS + OTHERS:
        values, ids = [at(node, part) for node in nodes], rows.ids(part).tolist()
        assert [[a == b for b in ids] for a in ids] == [[a == b for b in values] for a in values], part
        if part in TEXTS:
            assert [rows.text_of(id_) for id_ in ids] == [value or "" for value in values]
            for word in WORDS:
                assert (rows.ids(part) == rows.id_of(word)).tolist() == [value == word for value in values]
                assert rows.same_text(part, word).tolist() == [(value or "") == word for value in values]
    colours, zones = rows.ids(COLOUR), rows.ids(("labels", ZONE))
    assert (colours == zones).tolist() == [at(node, COLOUR) == at(node, ("labels", ZONE)) for node in nodes]


def groups_agree(rows: Rows, nodes: list[NodeInfo]) -> None:
    for parts in ((), (COLOUR,), (COLOUR, ("spec", "taints")), (("name",), SIZE, ("images",)), (("requested",),)):
        inverse, representatives = rows.group(parts)
        values = [[at(node, part) for part in parts] for node in nodes]
        assert [[at(representatives[i], part) for part in parts] for i in inverse.tolist()] == values
        assert sorted(set(inverse.tolist())) == list(range(len(representatives)))
        distinct = [each for i, each in enumerate(values) if each not in values[:i]]
        assert len(representatives) == len(distinct)


def views_agree(rows: Rows, nodes: list[NodeInfo]) -> None:
    many = {word: i + 1 for i, word in enumerate((*WORDS, *(f"n{i}" for i in range(7)), "elsewhere"))}
    for counts in ({}, {"red": 3}, {"": 2}, {"elsewhere": 1}, many):
        for part in TEXTS:
            texts = [at(node, part) or "" for node in nodes]
            assert rows.gather(counts, part).tolist() == [counts.get(text, 0) for text in texts]
            assert rows.has_key(counts, part).tolist() == [text in counts for text in texts]
            halves = rows.gather({text: n / 2 for text, n in counts.items()}, part)
            assert halves.tolist() == [counts.get(text, 0) / 2 for text in texts]


def indexes_agree(columns: NodeColumns) -> None:
    there = [(slot, node) for slot, node in enumerate(columns.nodes) if columns.alive[slot]]
    for part in TEXTS:
        for word in WORDS:
            expected = [slot for slot, node in there if (at(node, part) or "") == word]
            assert columns.slots_with(part, word).tolist() == expected
    for taints in {node.spec.taints for _, node in there}:
        expected = [slot for slot, node in there if node.spec.taints == taints]
        assert columns.slots_with(("spec", "taints"), taints).tolist() == expected


# Each step looks at everything, which Hypothesis takes for the drawing of a slow example on a busy machine.
ColumnsMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
TestColumns = ColumnsMachine.TestCase
