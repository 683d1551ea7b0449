"""The cluster's state: what is visible, in which order, and what the journal says of it."""

from __future__ import annotations

import pytest
from tests.state.objects import node, pod

from ksp.compile.node_parts import EVERYTHING, SUMS
from ksp.core.errors import StateError
from ksp.core.node_order import BETA_REGION, BETA_ZONE, REGION, ZONE, zone_key
from ksp.core.state import CLUSTER_KINDS, INDEXED_FIELDS, NAMESPACED_KINDS, ClusterState
from ksp.model.info import EMPTY_NODE, NodeInfo


def names(state: ClusterState) -> list[str]:
    return [info.name for info in state.node_list()]


def changes(state: ClusterState, since: int) -> list[tuple[str, object]] | None:
    """Kinds and keys of the changes."""
    found = state.changes_since(since)
    return None if found is None else [(change.kind, change.key) for change in found]


def with_nodes(**zones: str) -> ClusterState:
    state = ClusterState()
    for name, zone in zones.items():
        state.set_node(node(name, zone=zone))
    return state


# ---- nodes


def test_nodes_stand_zone_by_zone_in_turn() -> None:
    state = with_nodes(a1="a", a2="a", b1="b", a3="a", c1="c", c2="c")
    assert names(state) == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_node_that_changes_zone_becomes_the_last_there() -> None:
    state = with_nodes(a1="a", b1="b", b2="b", a2="a")
    state.set_node(node("a1", zone="b"))
    assert names(state) == ["a2", "b1", "b2", "a1"]


def test_a_zone_that_loses_its_last_node_loses_its_place() -> None:
    state = with_nodes(a1="a", b1="b")
    state.remove_node("a1")
    state.set_node(node("a1", zone="a"))
    assert names(state) == ["b1", "a1"]


def test_an_update_in_the_same_zone_keeps_list_and_node() -> None:
    state = with_nodes(a1="a", b1="b")
    listed, first = state.node_list(), state.nodes["a1"]
    state.set_node(node("a1", zone="a", cpu="8"))
    assert state.node_list() is listed
    assert listed[0] is first
    assert first.allocatable["cpu"] == 8000


def test_a_node_info_takes_the_place_and_the_pods_of_the_old_one() -> None:
    state = with_nodes(a1="a", b1="b")
    info = pod("p")
    state.add_pod(info, "a1")
    state.node_list()
    successor = NodeInfo.of(node("a1", zone="a"))
    state.set_node(successor)
    assert state.node_list()[0] is state.nodes["a1"] is info.node is successor
    assert successor.requested["cpu"] == 100


def test_a_node_info_with_pods_is_refused() -> None:
    full = NodeInfo.of(node("n"))
    full.add_pod(pod("p"))
    with pytest.raises(StateError, match="comes with pods"):
        ClusterState().set_node(full)


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ("", "")),
        ({ZONE: "z"}, ("", "z")),
        ({REGION: "r"}, ("r", "")),
        ({ZONE: "z", REGION: "r", BETA_ZONE: "bz", BETA_REGION: "br"}, ("br", "bz")),
        ({ZONE: "z", BETA_ZONE: ""}, ("", "")),
    ],
)
def test_beta_labels_win_even_if_empty(labels: dict[str, str], key: tuple[str, str]) -> None:
    assert zone_key(labels) == key


# ---- pods


def test_a_pod_without_its_node_waits_aside() -> None:
    state = ClusterState()
    info = pod("p", terms=INDEXED_FIELDS)
    state.add_pod(info, "late")
    assert not state.pods
    assert not state.pods_in_namespace("default")
    assert not any(state.pods_with(field) for field in INDEXED_FIELDS)
    assert state.invisible_pods() == [info]
    assert state.node_name_of("p") == "late"
    assert state.generation == 0
    state.set_node(node("late"))
    assert state.pods == {"p": info}
    assert info.node is state.nodes["late"]
    assert all(state.pods_with(field) == {"p": info} for field in INDEXED_FIELDS)


def test_a_removed_node_takes_its_pods_out_of_sight() -> None:
    state = with_nodes(n="")
    first, second = pod("p1"), pod("p2")
    state.add_pod(first, "n")
    state.add_pod(second, "n")
    state.remove_node("n")
    assert not state.pods
    assert first.node is EMPTY_NODE
    assert state.remove_pod("p1") is first
    state.set_node(node("n"))
    assert list(state.nodes["n"].pods) == ["p2"]
    assert state.nodes["n"].requested["cpu"] == 100


def test_an_update_keeps_places_and_moves_between_indexes() -> None:
    state = with_nodes(n="")
    for uid in ("p1", "p2", "p3"):
        state.add_pod(pod(uid, terms=["required_affinity"], host_port=int(uid[1])), "n")
    state.update_pod(pod("p2", cpu="1", terms=["preferred_affinity"], host_port=9))
    row = state.nodes["n"]
    assert list(row.pods) == list(state.pods) == list(state.pods_in_namespace("default")) == ["p1", "p2", "p3"]
    assert [port.port for port in row.host_ports] == [1, 9, 3]
    assert row.requested["cpu"] == 1200
    assert list(state.pods_with("required_affinity")) == ["p1", "p3"]
    assert list(state.pods_with("preferred_affinity")) == ["p2"]


def test_what_is_known_or_unknown_is_not_taken_twice() -> None:
    state = with_nodes(n="")
    state.add_pod(pod("p"), "n")
    with pytest.raises(StateError, match="placed already, on node n"):
        state.add_pod(pod("p"), "m")
    for unknown in (lambda: state.remove_pod("q"), lambda: state.update_pod(pod("q"))):
        with pytest.raises(StateError, match="pod q is not placed"):
            unknown()
    with pytest.raises(StateError, match="there is no node m"):
        state.remove_node("m")


# ---- other objects


def test_objects_are_found_by_namespace_or_by_name() -> None:
    state = ClusterState()
    state.set_object("services", "shop", "web", "service")
    state.set_object("storageClasses", "", "fast", "class")
    assert state.objects["services"] == {"shop": {"web": "service"}}
    assert state.objects["storageClasses"] == {"fast": "class"}
    assert state.objects.keys() == NAMESPACED_KINDS | CLUSTER_KINDS
    state.remove_object("services", "shop", "web")
    state.remove_object("storageClasses", "", "fast")
    assert state.objects["services"] == state.objects["storageClasses"] == {}
    assert changes(state, 0) == [
        ("services", ("shop", "web")),
        ("storageClasses", ("", "fast")),
        ("services", ("shop", "web")),
        ("storageClasses", ("", "fast")),
    ]


def test_objects_that_are_not_there_are_not_removed() -> None:
    state = ClusterState()
    with pytest.raises(StateError, match="no web among services in namespace 'shop'"):
        state.remove_object("services", "shop", "web")
    with pytest.raises(StateError, match="no objects of kind secrets"):
        state.set_object("secrets", "shop", "key", object())
    assert state.generation == 0


# ---- the journal


def test_the_journal_names_what_changed() -> None:
    state = with_nodes(n="")
    state.add_pod(pod("p"), "n")
    state.update_pod(pod("p"))
    start = state.generation
    assert start == 3
    state.remove_node("n")
    assert changes(state, start) == [("pod", "p"), ("node", "n")]
    state.set_node(node("n"))
    assert changes(state, start + 2) == [("node", "n"), ("pod", "p")]
    assert changes(state, state.generation) == []


def test_the_journal_tells_what_of_a_node_differs() -> None:
    state = with_nodes(n="a")
    state.set_node(node("n", zone="b", cpu="4"))
    state.set_node(NodeInfo.of(node("n", zone="b", cpu="8")))
    state.set_node(node("n", zone="b", cpu="8"))
    state.remove_node("n")
    told = [change.parts for change in state.changes_since(0) or ()]
    assert told == [EVERYTHING, {"labels"}, {"allocatable", "status.allocatable"}, set(), EVERYTHING]


def test_the_journal_tells_which_sums_of_the_node_differ() -> None:
    state = with_nodes(n="")
    start = state.generation
    state.add_pod(pod("p", host_port=80), "n")
    state.update_pod(pod("p", host_port=80, labels={"app": "web"}))
    state.update_pod(pod("p", host_port=81))
    state.update_pod(pod("p", host_port=81, cpu="0"))
    state.update_pod(pod("p", cpu="200m"))
    state.remove_pod("p")
    told = [(change.node, change.parts) for change in state.changes_since(start) or ()]
    assert [parts for _, parts in told] == [
        SUMS,
        set(),
        {"hostPorts"},
        {"requested", "nonzeroRequested"},
        {"requested", "nonzeroRequested", "hostPorts"},
        SUMS - {"hostPorts"},
    ]
    assert {name for name, _ in told} == {"n"}


def test_pods_that_go_out_of_sight_with_their_node_are_told_with_it() -> None:
    state = with_nodes(n="")
    state.add_pod(pod("p"), "n")
    start = state.generation
    state.remove_node("n")
    state.set_node(node("n"))
    told = [(change.kind, change.node, change.parts) for change in state.changes_since(start) or ()]
    sums = SUMS - {"hostPorts"}
    assert told == [("pod", "n", sums), ("node", "n", EVERYTHING), ("node", "n", EVERYTHING), ("pod", "n", sums)]


def test_each_kind_has_the_number_of_its_last_change() -> None:
    state = with_nodes(n="")
    assert state.generation_of("pod") == 0
    state.add_pod(pod("p"), "n")
    state.set_object("services", "shop", "web", "service")
    kinds = ("node", "pod", "services", "replicaSets")
    assert [state.generation_of(kind) for kind in kinds] == [1, 2, 3, 0]


def test_a_follower_too_far_behind_starts_again() -> None:
    state = ClusterState(journal_capacity=2)
    for name in ("n1", "n2", "n3"):
        state.set_node(node(name))
    assert changes(state, 0) is None
    assert changes(state, 1) == [("node", "n2"), ("node", "n3")]
    with pytest.raises(StateError, match="no change has the number 4"):
        changes(state, 4)


def test_a_node_bears_the_number_of_its_last_change() -> None:
    state = with_nodes(n="", m="")
    state.add_pod(pod("p"), "n")
    assert (state.nodes["n"].generation, state.nodes["m"].generation) == (3, 2)
    state.remove_node("n")
    state.set_node(node("n"))
    assert state.nodes["n"].generation == state.generation
    state.remove_pod("p")
    assert state.nodes["n"].generation == state.generation


# ---- priorities


def test_the_lowest_priority_is_that_of_visible_pods() -> None:
    state = with_nodes(a="")
    assert state.lowest_priority() is None
    for uid, priority, on in (("p", 5, "a"), ("q", 5, "a"), ("r", 3, "a"), ("s", -1, "gone")):
        state.add_pod(pod(uid, priority=priority), on)
    assert state.lowest_priority() == 3
    state.update_pod(pod("r", priority=7))
    assert state.lowest_priority() == 5
    state.remove_pod("p")
    assert state.lowest_priority() == 5
    state.remove_pod("q")
    assert state.lowest_priority() == 7
    state.set_node(node("gone"))
    assert state.lowest_priority() == -1
    state.remove_node("gone")
    assert state.lowest_priority() == 7
    state.update_pod(pod("r", priority=7, namespace="other"))
    state.remove_pod("r")
    assert state.lowest_priority() is None
