"""How feasible nodes are scored."""

from __future__ import annotations

import pytest
from tests.unit.core.scheduling import cluster, cycle_of, default_profile, info, node, profile_of

from ksp.core.score import Scored
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.policy.profile import Profile


def scored(profile: Profile, state: ClusterState, pod: PodInfo | None = None) -> Scored:
    return cycle_of(profile, state).score(pod or info("p"), state.node_list())


def one(body: str) -> Profile:
    return profile_of(f"priority One implements OnePlugin {{ {body} }}", "priorities { One: 1 }")


def test_totals_are_weighted_sums_in_the_order_of_the_nodes() -> None:
    rules = "priority Short { score 10 - size(node.name) } priority Long { score size(node.name) }"
    profile = profile_of(rules, "priorities { Short: 2, Long: 3 }")
    result = scored(profile, cluster(node("a"), node("bb")))
    assert result.by_plugin == {"Short": [9, 8], "Long": [1, 2]}
    assert result.total == [21, 22]
    assert not result.error


def test_priorities_of_one_plugin_both_count() -> None:
    rules = "priority A implements X { score size(node.name) } priority B implements X { score 10 }"
    result = scored(profile_of(rules, "priorities { A: 3, B: 1 }"), cluster(node("a"), node("bb")))
    assert result.total == [13, 16]


def test_without_priorities_every_node_scores_one() -> None:
    result = scored(
        profile_of("predicate Any { deny 'never' when false }", "predicates { Any }"), cluster(*map(node, "abc"))
    )
    assert result == Scored({}, [1, 1, 1], "")


def annotated(name: str, score: str) -> Node:
    return convert(Node, {"metadata": {"name": name, "annotations": {"score": score}}})


@pytest.mark.parametrize("value", ["101", "-1", "1000000"])
def test_a_score_outside_of_0_to_100_is_an_error(value: str) -> None:
    rules = one("score int(node.annotations['score'])")
    result = scored(rules, cluster(annotated("a", "50"), annotated("b", value)))
    assert "One" in result.error
    assert value in result.error
    assert result.total == []


def test_a_pod_without_containers_has_no_images_anywhere() -> None:
    result = scored(default_profile(), cluster(node("a"), node("b")), info("p", containers=[]))
    assert result.by_plugin["ImageLocality"] == [0, 0]


@pytest.mark.parametrize("value", ["0", "100"])
def test_the_bounds_themselves_are_scores(value: str) -> None:
    result = scored(one(f"score {value}"), cluster(node("a")))
    assert result.total == [int(value)]


def test_a_normalize_block_that_leaves_the_range_is_an_error() -> None:
    result = scored(one("score size(node.name) normalize { score node.score * 60 }"), cluster(node("a"), node("bb")))
    assert "120" in result.error


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("normalize", [33, 100, 0]),
        ("normalize reversed", [67, 0, 100]),
        ("normalize { score feasible.map(n, n.score).sum() - node.score }", [300, 0, 0]),
    ],
)
def test_normalize_maps_to_the_largest(form: str, expected: list[int]) -> None:
    state = cluster(node("a", labels={"n": "x"}), node("b", labels={"n": "xxx"}), node("c"))
    result = scored(one(f"score size(node.labels['n']) * 100 {form}"), state)
    if max(expected) > 100:
        assert "300" in result.error
    else:
        assert result.by_plugin == {"OnePlugin": expected}


@pytest.mark.parametrize(("form", "expected"), [("normalize", [0, 0]), ("normalize reversed", [100, 100])])
def test_normalize_of_nothing_but_zeros(form: str, expected: list[int]) -> None:
    assert scored(one(f"score 0 {form}"), cluster(node("a"), node("b"))).total == expected


def test_errors_of_rules_are_told_in_kube_schedulers_words() -> None:
    state = cluster(node("a"), node("b"))
    asked = scored(one("fail 'no ${node.name}' when node.name == 'b' score 1"), state)
    assert asked.error == 'error while running score plugin for pod "p": no b'
    before = scored(one("prescore { fail 'odd pod' when pod.name == 'p' } score 1"), state)
    assert before.error == 'error while running "OnePlugin" prescore plugin for pod "p": odd pod'


def test_prescore_of_a_later_priority_comes_before_scores_of_an_earlier_one() -> None:
    rules = """
    priority Early { fail 'early' when node.name != '' score 1 }
    priority Late { prescore { fail 'late' when pod.name != '' } score 1 }
    """
    result = scored(profile_of(rules, "priorities { Early: 1, Late: 1 }"), cluster(node("a"), node("b")))
    assert result.error == 'error while running "Late" prescore plugin for pod "p": late'
