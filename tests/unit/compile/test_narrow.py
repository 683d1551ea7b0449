"""Searches: where the pods are that a view can count."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import cluster, info, node

from ksp.compile.narrow import (
    ALL,
    MOST_GROUPS,
    NONE,
    Search,
    about,
    both,
    either,
    in_namespace,
    labelled,
    search,
    selected,
)
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.selector import NOTHING, LabelSelector


def selector(**fields: Any) -> LabelSelector:
    return convert(LabelSelector, fields)


WEB = selector(matchLabels={"app": "web"})


def state() -> ClusterState:
    made = cluster(node("a"))
    for name, labels in (("w1", "web"), ("w2", "web"), ("d1", "db"), ("c1", "cache")):
        made.add_pod(info(name, labels={"app": labels, "name": name}), "a")
    made.add_pod(info("other", labels={"app": "web"}, metadata={"namespace": "other"}), "a")
    return made


def found(wanted: Search) -> set[str] | None:
    pods = search(state(), wanted)
    return None if pods is None else {*pods}


@pytest.mark.parametrize(
    ("wanted", "pods"),
    [
        (in_namespace("default"), {"w1", "w2", "d1", "c1"}),
        (in_namespace("empty"), set()),
        (both([in_namespace("default"), selected(WEB)]), {"w1", "w2"}),
        (both([in_namespace("default"), labelled("app", "db")]), {"d1"}),
        (both([in_namespace("default"), selected(WEB), labelled("name", "w2")]), {"w2"}),
        (both([in_namespace("default"), in_namespace("other")]), set()),
        (either([both([in_namespace("default"), selected(WEB)]), in_namespace("other")]), {"w1", "w2", "other"}),
        (both([in_namespace("default"), either([selected(WEB), labelled("app", "db")])]), {"w1", "w2", "d1"}),
        (both([in_namespace("default"), selected(selector(matchLabels={"app": "none"}))]), set()),
        (either([]), set()),
    ],
)
def test_a_search_finds_the_shortest_lists(wanted: Search, pods: set[str]) -> None:
    assert found(wanted) == pods


@pytest.mark.parametrize(
    "wanted", [ALL, selected(WEB), labelled("app", "web"), either([in_namespace("default"), ALL]), both([])]
)
def test_without_a_namespace_nothing_is_found_in_an_index(wanted: Search) -> None:
    assert found(wanted) is None


def test_one_of_several_values_will_do() -> None:
    several = selector(matchExpressions=[{"key": "app", "operator": "In", "values": ["db", "cache"]}])
    assert found(both([in_namespace("default"), selected(several)])) == {"d1", "c1"}


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist", "NotIn"])
def test_other_requirements_narrow_nothing(operator: str) -> None:
    values = ["db"] if operator == "NotIn" else []
    assert selected(selector(matchExpressions=[{"key": "app", "operator": operator, "values": values}])) == ALL


@pytest.mark.parametrize(
    "nothing", [NOTHING, selector(matchLabels={"-": "x"}), selector(matchExpressions=[{"key": "a", "operator": "In"}])]
)
def test_a_selector_that_matches_nothing_finds_nothing(nothing: LabelSelector) -> None:
    assert selected(nothing) == NONE


def test_a_label_that_is_absent_reads_as_the_empty_one() -> None:
    assert labelled("app", "") == ALL


def test_a_term_is_about_its_namespaces() -> None:
    term = info("p", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "z", "namespaces": ["other", "default"], "labelSelector": {"matchLabels": {"app": "web"}}}
    ]}}).required_affinity[0]  # fmt: skip
    assert found(about(term)) == {"w1", "w2", "other"}


def test_many_alternatives_are_not_multiplied() -> None:
    values = [either([labelled(key, str(i)) for i in range(9)]) for key in "abc"]
    wanted = both([in_namespace("default"), *values])
    assert wanted is not None
    assert len(wanted) <= MOST_GROUPS
    assert all(group.namespaces == ("default",) for group in wanted)
