"""The affinity terms of running pods, and which of them match a pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.chooser import Dice
from tests.oracle.clusters import ClusterMaker
from tests.unit.core.scheduling import REQUIRED, anti_affinity, cluster, info, node

from ksp.compile.terms import FEW, FIELDS, Terms
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo, affinity_term_matches
from ksp.model.pod import Pod

ANTI = "required_anti_affinity"


def state_with(*pods: PodInfo) -> ClusterState:
    state = cluster(node("a"))
    for pod in pods:
        state.add_pod(pod, "a")
    return state


def terms_about(*selectors: dict[str, Any] | None, namespaces: tuple[str, ...] = ()) -> dict[str, Any]:
    """The field `affinity` of a pod that does not want to be near those pods."""
    terms = [{"topologyKey": "zone", "labelSelector": s, "namespaces": list(namespaces)} for s in selectors]
    return {"podAntiAffinity": {REQUIRED: terms}}


def labelled(**labels: str) -> PodInfo:
    return info("asked", labels=labels)


def test_equal_terms_share_an_id_and_others_have_their_own() -> None:
    terms = Terms(
        state_with(*(info(n, affinity=anti_affinity("web")) for n in "ab"), info("c", affinity=terms_about({})))
    )
    assert len(terms.matching(ANTI, labelled(app="web"))) == 2
    assert len(terms.matching(ANTI, labelled(app="db"))) == 1
    assert terms.matching("required_affinity", labelled(app="web")) == ()


def test_a_term_is_there_as_long_as_a_pod_has_it() -> None:
    state = state_with(*(info(n, affinity=anti_affinity("web")) for n in "ab"))
    terms = Terms(state)
    (web,) = terms.matching(ANTI, labelled(app="web"))
    seen = terms.generation
    state.remove_pod("a")
    assert terms.generation == seen
    assert terms.holders(ANTI, (web,)).keys() == {"b"}
    state.remove_pod("b")
    assert terms.generation > seen
    assert terms.matching(ANTI, labelled(app="web")) == ()
    assert terms.holders(ANTI, (web,)) == {}


def test_an_id_is_not_used_for_another_term_and_a_term_that_comes_back_has_its_own() -> None:
    state = state_with(info("a", affinity=anti_affinity("web")))
    terms = Terms(state)
    web = terms.matching(ANTI, labelled(app="web"))
    state.remove_pod("a")
    state.add_pod(info("b", affinity=anti_affinity("db")), "a")
    assert terms.matching(ANTI, labelled(app="db")) != web
    state.add_pod(info("c", affinity=anti_affinity("web")), "a")
    assert terms.matching(ANTI, labelled(app="web")) == web


def test_a_pod_that_changes_its_terms_leaves_the_old_ones() -> None:
    state = state_with(info("a", affinity=anti_affinity("web")))
    terms = Terms(state)
    web = terms.matching(ANTI, labelled(app="web"))
    state.update_pod(info("a", affinity=anti_affinity("db")))
    assert terms.matching(ANTI, labelled(app="web")) == ()
    assert terms.holders(ANTI, web) == {}
    state.update_pod(info("a"))
    assert terms.matching(ANTI, labelled(app="db")) == ()


def test_terms_are_about_pods_of_their_namespaces() -> None:
    terms = Terms(state_with(info("a", affinity=terms_about({}, namespaces=("x", "default", "x")))))
    assert len(terms.matching(ANTI, labelled())) == 1
    assert terms.matching(ANTI, info("asked", metadata={"namespace": "other"})) == ()


@pytest.mark.parametrize("selector", [None, {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}])
def test_a_term_whose_selector_matches_nothing_matches_no_pod(selector: dict[str, Any] | None) -> None:
    assert Terms(state_with(info("a", affinity=terms_about(selector)))).matching(ANTI, labelled(app="web")) == ()


@pytest.mark.parametrize("number", [FEW, FEW + 1])
def test_of_many_ids_a_pods_terms_are_found_too(number: int) -> None:
    pods = [info(f"p{i}", affinity=terms_about({"matchLabels": {f"k{i}": "v"}})) for i in range(number)]
    terms = Terms(state_with(*pods))
    ids = terms.matching(ANTI, labelled(**{f"k{i}": "v" for i in range(number)}))
    assert len(ids) == number
    assert [terms.among(ANTI, pod, ids) for pod in pods] == [pod.required_anti_affinity for pod in pods]
    assert [len(terms.among(ANTI, pod, ids[1:])) for pod in pods].count(0) == 1


def test_a_pod_with_several_terms_has_those_that_are_asked_for() -> None:
    both = info("a", affinity=terms_about({"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}))
    terms = Terms(state_with(both))
    (found,) = terms.among(ANTI, both, terms.matching(ANTI, labelled(app="db")))
    assert found.selector.match_labels == {"app": "db"}


def test_who_falls_behind_the_journal_starts_again() -> None:
    state = ClusterState(journal_capacity=2)
    state.set_node(node("a"))
    state.add_pod(info("old", affinity=anti_affinity("web")), "a")
    terms = Terms(state)
    web = terms.matching(ANTI, labelled(app="web"))
    state.remove_pod("old")
    for i in range(4):
        state.add_pod(info(f"p{i}", affinity=anti_affinity("db")), "a")
    assert terms.matching(ANTI, labelled(app="web")) == ()
    assert terms.holders(ANTI, web) == {}
    assert len(terms.matching(ANTI, labelled(app="db"))) == 1


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_the_index_finds_what_asking_every_term_would(seed: int) -> None:
    maker = ClusterMaker(Dice(seed))
    state = cluster(node("n0"), node("n1"))
    terms = Terms(state)
    for i in range(30):
        uid = f"p{maker.choose.number(0, 7)}"
        if state.node_name_of(uid) is not None:
            state.remove_pod(uid)
        state.add_pod(PodInfo.of(convert(Pod, maker.pod(uid))), "n0")
        asked = PodInfo.of(convert(Pod, maker.pod(f"asked-{i}")))
        for field in FIELDS:
            ids = terms.matching(field, asked)
            assert list(ids) == sorted(set(ids))
            for pod in state.pods.values():
                matching = [term for term in getattr(pod, field) if affinity_term_matches(term, asked)]
                assert list(terms.among(field, pod, ids)) == matching
                assert (pod.uid in terms.holders(field, ids)) == bool(matching)
