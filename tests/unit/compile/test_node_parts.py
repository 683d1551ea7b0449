"""Parts of a node: what changed and what is read, in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from ksp.check.schema import fields_of
from ksp.compile.node_parts import EVERYTHING, NODE_PARTS, SUMS, changed_parts, parts_at, parts_of, parts_read, snapshot
from ksp.model.decode import convert
from ksp.model.info import NodeInfo
from ksp.model.node import Node


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ('labels["a"]', {"labels"}),
        ("metadata.labels[…]", {"labels"}),
        ("metadata.name", {"name"}),
        ("spec.taints[…].key", {"spec.taints"}),
        ("spec", {"spec.taints", "spec.unschedulable", "spec.providerID"}),
        ('allocatable["example.com/a.b"]', {"allocatable"}),
        ('status.allocatable["cpu"]', {"status.allocatable"}),
        ("podCount", {"podCount"}),
        ("*", EVERYTHING),
    ],
)
def test_a_path_leads_to_parts(path: str, parts: set[str]) -> None:
    assert parts_of(path) == parts


def test_all_of_metadata_has_what_stands_beside_it_too() -> None:
    assert {"labels", "annotations", "name", "uid", "metadata.resourceVersion"} <= parts_of("metadata")


def test_a_footprint_reads_the_parts_of_its_paths() -> None:
    assert parts_read(("labels", "metadata.labels", "hostPorts")) == {"labels", "hostPorts"}
    assert parts_read(()) == frozenset()


@pytest.mark.parametrize("path", ["colour", "spec.colour", "metadata.colour"])
def test_what_no_node_has_is_no_part(path: str) -> None:
    with pytest.raises(KeyError):
        parts_of(path)


def test_attributes_lead_to_the_same_parts() -> None:
    for name, field in fields_of("Node").items():
        assert parts_at(field.path) == parts_of(name)
    for name, field in fields_of("NodeStatus").items():
        assert parts_at(("status", *field.path)) == parts_of(f"status.{name}")
    assert parts_at(("metadata", "labels", "zone")) == parts_at(("labels", "zone")) == {"labels"}


FULL: dict[str, Any] = {
    "metadata": {
        "name": "n", "generateName": "g", "namespace": "s", "uid": "u", "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "c", "deletionTimestamp": "d", "labels": {"a": "b"}, "annotations": {"a": "b"},
        "ownerReferences": [{"name": "o"}], "finalizers": ["f"],
    },
    "spec": {"unschedulable": True, "taints": [{"key": "k"}], "providerID": "p"},
    "status": {
        "capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready"}],
        "images": [{"names": ["i"], "sizeBytes": 1}], "declaredFeatures": ["f"],
    },
}  # fmt: skip
DERIVED = {"status.allocatable": {"allocatable"}, "status.images": {"images"}}


@pytest.mark.parametrize(("group", "field"), [(group, field) for group, fields in FULL.items() for field in fields])
def test_each_field_that_differs_is_told(group: str, field: str) -> None:
    without = {**FULL, group: {name: value for name, value in FULL[group].items() if name != field}}
    old, new = (snapshot(NodeInfo.of(convert(Node, value))) for value in (FULL, without))
    parts = parts_of(f"{group}.{field}")
    assert changed_parts(old, new) == changed_parts(new, old) == parts.union(*(DERIVED.get(p, set()) for p in parts))
    assert changed_parts(old, old) == frozenset()


def test_every_part_but_the_sums_can_be_told() -> None:
    empty, full = snapshot(NodeInfo.of(convert(Node, {}))), snapshot(NodeInfo.of(convert(Node, FULL)))
    assert changed_parts(empty, full) == NODE_PARTS - SUMS


def test_the_same_amount_written_in_another_way_is_no_other_amount() -> None:
    one, same = ({**FULL, "status": {"allocatable": {"cpu": cpu}}} for cpu in ("1", "1000m"))
    old, new = (snapshot(NodeInfo.of(convert(Node, value))) for value in (one, same))
    assert changed_parts(old, new) == {"status.allocatable"}
