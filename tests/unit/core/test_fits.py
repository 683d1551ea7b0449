"""A pod is held against one node again and again, while other pods leave it and come back."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import Watched
from tests.unit.core.scheduling import anti_affinity, cluster, default_profile, info, node, profile_of

from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.fits import Fits
from ksp.core.what_if import WhatIf
from ksp.policy.profile import Profile

RULES = """
predicate Full { deny "full" when node.podCount > 1 }
predicate Crowded {
  view near = count p in cluster.pods where p.labels["app"] == pod.labels["app"] by p.node.name
  deny "crowded" when near[node.name] > 0
}
predicate Spread {
  view web = count p in cluster.pods where p.labels["app"] == "web" by p.node.name
  deny "spread" when size(web) > 1
}
"""


def rules(*names: str) -> Profile:
    return profile_of(RULES, f"predicates {{ {', '.join(names)} }}")


def reasons(fits: Fits, name: str) -> tuple[str, ...]:
    refused = fits(fits.tables.state.nodes[name])
    if refused is None:
        return ()
    assert isinstance(refused.answer, Denial)
    return refused.answer.reasons


def test_sums_of_the_node_are_read_as_they_are() -> None:
    state = cluster(node("a"))
    for name in ("p", "q"):
        state.add_pod(info(name), "a")
    tables = Watched(state)
    fits = Fits(rules("Full"), tables, info("in"))
    assert reasons(fits, "a") == ("full",)
    with WhatIf(state, fits) as trial:
        trial.remove("p")
        assert reasons(fits, "a") == ()
        trial.restore("p")
        assert reasons(fits, "a") == ("full",)
        trial.remove("q")
        trial.add(info("nominated"), "a")
        assert reasons(fits, "a") == ("full",)
    assert not tables.asked


def test_only_rules_whose_views_changed_are_bound_again() -> None:
    state = cluster(node("a"), node("b"))
    state.add_pod(info("web", labels={"app": "web"}), "a")
    state.add_pod(info("other", labels={"app": "web"}), "b")
    state.add_pod(info("db", labels={"app": "db"}), "a")
    tables = Watched(state)
    fits = Fits(rules("Crowded", "Spread"), tables, info("in", labels={"app": "db"}))

    def bound() -> list[str]:
        found = [plan.name for plan, _ in tables.asked]
        tables.asked.clear()
        return found

    assert bound() == ["near", "web"]
    with WhatIf(state, fits) as trial:
        assert reasons(fits, "a") == ("crowded",)
        assert bound() == []
        trial.remove("db")
        assert reasons(fits, "a") == ("spread",)
        assert bound() == ["near"]
        trial.remove("web")
        assert reasons(fits, "a") == ()
        assert reasons(fits, "b") == ()
        assert bound() == ["web"]
        trial.add(info("new"), "a")
        assert reasons(fits, "a") == ()
        assert bound() == []
        trial.restore("web")
        trial.restore("db")
        assert reasons(fits, "a") == ("crowded",)
        assert bound() == ["near", "web"]


def test_a_term_that_goes_with_its_pod_comes_back_with_it() -> None:
    state = cluster(node("a", zone="1"), node("b", zone="1"))
    state.add_pod(info("shy", affinity=anti_affinity("in")), "a")
    pod = info("in", labels={"app": "in"})
    fits = Fits(default_profile(), Tables(state), pod)
    denied = (
        "node(s) didn't match pod affinity/anti-affinity",
        "node(s) didn't satisfy existing pods anti-affinity rules",
    )
    assert reasons(fits, "b") == denied
    for _ in range(2):
        with WhatIf(state, fits) as trial:
            trial.remove("shy")
            assert reasons(fits, "b") == ()
            with trial.nested():
                trial.restore("shy")
                assert reasons(fits, "b") == denied
            assert reasons(fits, "b") == ()
        assert reasons(fits, "b") == denied


def test_a_nominated_pod_brings_a_term_that_nobody_had() -> None:
    state = cluster(node("a", zone="1"), node("b", zone="1"))
    fits = Fits(default_profile(), Tables(state), info("in", labels={"app": "in"}))
    with WhatIf(state, fits) as trial:
        trial.add(info("shy", affinity=anti_affinity("in")), "a")
        assert len(reasons(fits, "b")) == 2
    assert reasons(fits, "b") == ()


def test_a_term_about_others_is_no_reason_to_bind_again() -> None:
    state = cluster(node("a"))
    tables = Watched(state)
    fits = Fits(rules("Crowded"), tables, info("in", labels={"app": "db"}))
    assert tables.used is None
    tables.asked.clear()
    with WhatIf(state, fits) as trial:
        trial.add(info("one", affinity=anti_affinity("others")), "a")
        assert reasons(fits, "a") == ()
        assert not tables.asked
        trial.add(info("two", labels={"app": "db"}, affinity=anti_affinity("more")), "a")
        assert reasons(fits, "a") == ("crowded",)
        assert len(tables.asked) == 1


def test_a_prefilter_comes_before_all_rules() -> None:
    text = """
    predicate Full { deny "full" when node.podCount > 0 }
    predicate Never { prefilter { deny "never" when pod.name == "in" } }
    predicate Broken { prefilter { fail "broken" when pod.name == "broken" } }
    """
    state = cluster(node("a"))
    state.add_pod(info("p"), "a")
    profile = profile_of(text, "predicates { Full, Never, Broken }")
    assert reasons(Fits(profile, Tables(state), info("in")), "a") == ("never",)
    refused = Fits(profile, Tables(state), info("broken"))(state.nodes["a"])
    assert refused is not None
    assert (refused.rule, refused.answer) == ("Broken", Failure("broken"))


@pytest.mark.parametrize("behind", [0, 20])
def test_it_goes_on_after_changes_that_it_did_not_see(behind: int) -> None:
    """More than the journal keeps, or none."""
    state = cluster(node("a"))
    state.add_pod(info("db", labels={"app": "db"}), "a")
    fits = Fits(rules("Crowded"), Tables(state), info("in", labels={"app": "db"}))
    state.remove_pod("db")
    for _ in range(behind * 500):
        state.set_node(node("a"))
    assert reasons(fits, "a") == ()
