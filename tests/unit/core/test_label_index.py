"""Visible pods by their labels."""

from __future__ import annotations

from tests.unit.core.scheduling import cluster, info, node

from ksp.core.state import ClusterState


def state() -> ClusterState:
    made = cluster(node("a"), node("b"))
    made.add_pod(info("p", labels={"app": "web", "index": "0"}), "a")
    made.add_pod(info("q", labels={"app": "web", "index": "1"}), "b")
    made.add_pod(info("r"), "b")
    return made


def web(made: ClusterState) -> list[str]:
    return [*made.pods_labelled("default", "app", "web")]


def test_pods_are_found_by_namespace_label_and_value() -> None:
    made = state()
    assert web(made) == ["p", "q"]
    assert made.pods_labelled("default", "index", "1") == {"q": made.pods["q"]}
    assert not made.pods_labelled("default", "app", "db")
    assert not made.pods_labelled("other", "app", "web")


def test_a_pod_that_changes_is_found_by_its_new_labels() -> None:
    made = state()
    made.update_pod(info("p", labels={"app": "db", "index": "0"}))
    assert web(made) == ["q"]
    assert [*made.pods_labelled("default", "app", "db")] == ["p"]
    assert made.pods_labelled("default", "index", "0")["p"] is made.pods["p"]
    made.update_pod(info("p", labels={"app": "db", "index": "0"}))
    assert made.pods_labelled("default", "app", "db")["p"] is made.pods["p"]
    made.update_pod(info("p"))
    assert not made.pods_labelled("default", "app", "db")


def test_a_pod_that_moves_to_another_namespace_is_found_there_only() -> None:
    made = state()
    made.update_pod(info("p", labels={"app": "web"}, metadata={"namespace": "other"}))
    assert web(made) == ["q"]
    assert [*made.pods_labelled("other", "app", "web")] == ["p"]
    assert [*made.pods_in_namespace("default")] == ["q", "r"]


def test_only_pods_on_nodes_that_exist_are_found() -> None:
    made = state()
    made.remove_node("a")
    assert web(made) == ["q"]
    made.remove_pod("q")
    made.remove_pod("r")
    assert web(made) == []
    made.set_node(node("a"))
    assert web(made) == ["p"]
