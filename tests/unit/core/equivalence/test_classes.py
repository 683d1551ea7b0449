"""What a class says of its pods: the same as if each were judged anew."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.unit.core.scheduling import FakeDice, cluster, cycle_of, default_profile, info, node, profile_of

from ksp.core.cycle import EMPTINESS, Cycle, Decision
from ksp.core.equivalence.totals import NARROW, nth
from ksp.core.nominations import Nominations
from ksp.core.state import ClusterState

CROWDED = "predicate Crowded { deny 'full' when node.podCount >= 2 }"
SPREAD = f"{CROWDED} priority Empty {{ score 100 - 10 * node.podCount }}"
WEB = {"app": "web"}


def spread() -> Any:
    return profile_of(SPREAD, "predicates { Crowded } priorities { Empty: 1 }")


def said(decision: Decision) -> tuple[object, ...]:
    found = decision.filtered
    left = [each.name for each in found.feasible]
    return decision.node, decision.message, decision.failed, decision.denied_by, left, found.refused, found.examined


# ---- nothing changed


def test_what_is_said_of_a_class_that_fits_nowhere_is_said_once() -> None:
    state = cluster(*map(node, "ab"))
    cycle = cycle_of(default_profile(), state, keep_scores=False)
    first = cycle.decide(info("p", requests={"cpu": "9"}))
    second = cycle.decide(info("q", requests={"cpu": "9"}))
    assert first.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert (second.message, second.denied_by) == (first.message, first.denied_by)
    assert second.message is first.message
    state.set_node(node("c", cpu="2"))
    assert cycle.decide(info("r", requests={"cpu": "9"})).message == "0/3 nodes are available: 3 Insufficient cpu."
    state.set_node(node("c", cpu="16"))
    assert cycle.decide(info("s", requests={"cpu": "9"})).node == "c"


def test_a_failure_names_each_pod_of_the_class() -> None:
    profile = profile_of("predicate Odd { fail 'odd' when node.podCount == 0 }", "predicates { Odd }")
    cycle = cycle_of(profile, cluster(node("a")))
    for name in ("p", "q"):
        assert cycle.decide(info(name)).message == f'running "Odd" filter plugin for pod "{name}": odd'


# ---- what was shown stays what it was


def test_a_decision_shows_what_was_said_then() -> None:
    state = cluster(*map(node, "abc"))
    cycle = cycle_of(spread(), state, keep_scores=False)
    for i in range(2):
        state.add_pod(info(f"x{i}"), "b")
    decision = cycle.decide(info("p"))
    for i in range(2):
        state.add_pod(info(f"y{i}"), "a")
        state.remove_pod(f"x{i}")
    state.remove_node("c")
    state.set_node(node("d"))  # in the place of c
    later = cycle.decide(info("q"))
    assert [each.name for each in decision.filtered.feasible] == ["a", "c"]
    assert list(decision.filtered.refused) == ["b"]
    assert [each.name for each in later.filtered.feasible] == ["b", "d"]
    assert list(later.filtered.refused) == ["a"]


# ---- every way to the same decision


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("profile", [default_profile, spread], ids=["default", "spread"])
def test_all_ways_lead_to_the_same_decision(profile: Any, seed: int) -> None:
    """With and without classes and columns, by sums and node by node: the same node, by the same fall of the dice."""
    random, state = Random(seed), cluster(*(node(f"n{i}", zone=f"z{i % 3}") for i in range(12)))
    settings: list[dict[str, Any]] = [
        {"keep_scores": False}, {"keep_scores": True}, {"equivalence_classes": 0, "columns": False},
        {"keep_scores": False, "columns": False}, {"keep_scores": False, "equivalence_classes": 1},
    ]  # fmt: skip
    cycles = [cycle_of(profile(), state, FakeDice(), **each) for each in settings]
    for i in range(60):
        change(random, state, i)
        pod = info(f"p{i}", requests={"cpu": random.choice(["1", "2"])}, labels=WEB)
        falls = random.randrange(100)
        decisions = [said(decide(cycle, pod, falls)) for cycle in cycles]
        assert decisions[1:] == decisions[:-1]


def decide(cycle: Cycle, pod: Any, fall: int) -> Decision:
    class Falling:
        def below(self, n: int) -> int:
            return fall % n

    cycle.dice = Falling()
    return cycle.decide(pod)


def change(random: Random, state: ClusterState, i: int) -> None:
    names = list(state.nodes)
    match random.randrange(6):
        case 0 | 1 | 2:
            state.add_pod(info(f"x{i}", labels=WEB), random.choice(names))
        case 3 if state.pods:
            state.remove_pod(random.choice(list(state.pods)))
        case 4:
            state.set_node(node(random.choice(names), zone=f"z{random.randrange(4)}", cpu=random.choice("1248")))
        case 5:
            if i % 2 and len(names) > 6:
                state.remove_node(random.choice(names))
            else:
                state.set_node(node(f"m{i}", zone=f"z{random.randrange(3)}"))


def test_scores_of_some_feasible_nodes_are_not_counted_once_they_are_the_same_for_all() -> None:
    """While there are pods the score depends on which nodes are feasible; without pods it is a constant."""
    rules = """
    priority Varies {
      view pods = count p in cluster.pods
      score pods > 0 ? (feasible[0].name == node.name ? 90 : 10) : 50
    }
    """
    state = cluster(*map(node, "abc"))
    profile = profile_of(rules, "priorities { Varies: 1 }")
    fast, slow = cycle_of(profile, state, keep_scores=False), cycle_of(profile, state)
    for fall in range(3):
        for change in (lambda: state.add_pod(info("x"), "c"), lambda: state.remove_pod("x")):
            change()
            assert said(decide(fast, info("p"), fall)) == said(decide(slow, info("p"), fall))


@pytest.mark.parametrize("more", range(4))
def test_what_was_normalised_of_the_feasible_is_not_taken_for_what_is_made_of_a_constant(more: int) -> None:
    """However often views changed while the score depended on who is feasible."""
    rules = """
    priority Varies {
      view pods = count p in cluster.pods
      score pods > 0 ? (feasible[0].name == node.name ? 90 : 10) : 50
      normalize
    }
    """
    state = cluster(*map(node, "abc"))
    fast = cycle_of(profile_of(rules, "priorities { Varies: 1 }"), state, keep_scores=False)
    for i in range(1 + more):
        state.add_pod(info(f"x{i}"), "c")
        assert decide(fast, info("p"), 1).node == "a"
    for uid in list(state.pods):
        state.remove_pod(uid)
    assert decide(fast, info("p"), 1).node == "b"


# ---- nominated pods


def test_what_holds_with_nominated_pods_is_not_kept() -> None:
    """The pods of a class see the claim of a more important pod, or do not: by the pod, not by the class."""
    state, claims = cluster(node("a", pods="1")), Nominations()
    claims.put(info("claimant", priority=5), "a")
    cycle = cycle_of(default_profile(), state, nominations=claims)
    assert cycle.decide(info("small", priority=1)).message == "0/1 nodes are available: 1 Too many pods."
    assert cycle.decide(info("great", priority=9)).node == "a"
    assert cycle.decide(info("small", priority=1)).message == "0/1 nodes are available: 1 Too many pods."
    claims.remove("claimant")
    assert cycle.decide(info("small", priority=1)).node == "a"


def test_nominated_pods_that_come_and_go_in_a_decision_leave_no_trace() -> None:
    """A memo that saw the state in between would have the nominated pod in it."""
    rules = """
    predicate Alone { view there = count p in cluster.pods by p.node.name deny 'not alone' when there[node.name] > 0 }
    """
    state, claims = cluster(*map(node, "ab")), Nominations()
    cycle = cycle_of(profile_of(rules, "predicates { Alone }"), state, nominations=claims)
    assert len(cycle.decide(info("before")).filtered.feasible) == 2
    claims.put(info("claimant", priority=5), "a")
    during = cycle.decide(info("p"))
    assert ([each.name for each in during.filtered.feasible], list(during.filtered.refused)) == (["b"], ["a"])
    claims.remove("claimant")
    after = cycle.decide(info("p"))
    assert [each.name for each in after.filtered.feasible] == ["a", "b"]


def test_a_node_has_to_pass_without_the_nominated_pods_too() -> None:
    rules = "predicate Needs { deny 'needs a friend' when node.podCount < 1 }"
    state, claims = cluster(node("a")), Nominations()
    claims.put(info("claimant", priority=5), "a")
    cycle = cycle_of(profile_of(rules, "predicates { Needs }"), state, nominations=claims)
    assert cycle.decide(info("p")).message == "0/1 nodes are available: 1 needs a friend."


# ---- a part of the nodes


def test_a_failure_on_a_node_that_is_not_looked_at_is_none() -> None:
    rules = "predicate Odd { fail 'odd' when node.name == 'n150' }"
    profile = profile_of(rules, "predicates { Odd }", "percentageOfNodesToScore = 50")
    cycle = cycle_of(profile, cluster(*(node(f"n{i:03}") for i in range(200))))
    assert cycle.decide(info("p")).node == "n000"
    assert cycle.decide(info("q")).message == 'running "Odd" filter plugin for pod "q": odd'


# ---- whether it fits


def test_whether_a_pod_fits_is_told_without_an_attempt() -> None:
    state = cluster(node("a"))
    dice = FakeDice()
    cycle = cycle_of(spread(), state, dice)
    assert cycle.denied_by(info("p")) == frozenset()
    for name in "xy":
        state.add_pod(info(name), "a")
    assert cycle.denied_by(info("p")) == frozenset({"Crowded"})
    state.remove_pod("x")
    assert cycle.denied_by(info("p")) == frozenset()
    assert dice.sides == []


def test_only_an_attempt_tells_what_is_wrong() -> None:
    rules = "predicate Odd { fail 'odd' when 'odd' in node.labels }"
    state = cluster(node("a"))
    cycle = cycle_of(profile_of(rules, "predicates { Odd }"), state)
    assert cycle.denied_by(info("p")) == frozenset()
    assert cycle.denied_by(info("p", requests={"cpu": "many"})) is None
    state.set_node(node("b", labels={"odd": "yes"}))
    assert cycle.denied_by(info("p")) is None
    state.set_node(node("b"))
    assert cycle.denied_by(info("p")) == frozenset()
    for name in "ab":
        state.remove_node(name)
    assert cycle.denied_by(info("p")) == frozenset({EMPTINESS})


def test_a_node_that_pods_are_nominated_to_has_to_take_the_pod_with_them() -> None:
    claims = Nominations()
    state = cluster(node("a"), node("b"))
    rules = """
    predicate Odd { fail 'odd' when node.podCount > 2 }
    predicate Tight { deny 'tight' when node.podCount > 0 }
    """
    cycle = cycle_of(profile_of(rules, "predicates { Odd, Tight }"), state, nominations=claims)
    claims.put(info("claimant", priority=5), "a")
    assert cycle.denied_by(info("p")) == frozenset()  # b takes it
    claims.put(info("other", priority=5), "b")
    assert cycle.denied_by(info("p")) == frozenset({"Tight"})
    assert not state.pods
    assert cycle.denied_by(info("p", priority=6)) == frozenset()  # their claims do not count
    assert cycle.denied_by(info("other", priority=5)) == frozenset()  # its own neither
    for i, place in enumerate("aabb"):
        claims.put(info(f"c{i}", priority=5), place)
    assert cycle.denied_by(info("p")) is None  # a rule fails with so many
    state.add_pod(info("x"), "a")
    state.add_pod(info("y"), "b")
    assert cycle.denied_by(info("p")) == frozenset({"Tight"})  # it would not fit without them: they are not looked at


def test_of_nodes_that_are_refused_for_good_and_nodes_with_claims_all_rules_are_told() -> None:
    claims = Nominations()
    state = cluster(node("a"), node("b", labels={"odd": "yes"}))
    rules = "predicate Odd { deny 'odd' when 'odd' in node.labels } predicate Tight { deny 't' when node.podCount > 0 }"
    cycle = cycle_of(profile_of(rules, "predicates { Odd, Tight }"), state, nominations=claims)
    claims.put(info("claimant", priority=5), "a")
    assert cycle.denied_by(info("p")) == frozenset({"Odd", "Tight"})


def test_a_pod_that_its_own_node_does_not_take_because_of_another_claim_is_kept_by_that() -> None:
    claims = Nominations()
    state = cluster(node("a"), node("b", labels={"odd": "yes"}))
    rules = "predicate Odd { deny 'odd' when 'odd' in node.labels } predicate Tight { deny 't' when node.podCount > 0 }"
    cycle = cycle_of(profile_of(rules, "predicates { Odd, Tight }"), state, nominations=claims)
    mine = info("mine", priority=5)
    claims.put(mine, "a")
    assert cycle.denied_by(mine, claims) == frozenset()
    claims.put(info("other", priority=9), "a")
    assert cycle.denied_by(mine, claims) == frozenset({"Odd", "Tight"})
    state.remove_node("b")
    assert cycle.denied_by(mine, claims) == frozenset({"Tight"})
    assert cycle.denied_by(info("third", priority=5), claims) == frozenset({"Tight"})
    claims.remove("other")
    assert cycle.denied_by(mine, claims) == frozenset()


def test_who_may_deny_is_not_only_who_does_so_first() -> None:
    rules = """
    predicate Small { deny 's' when node.podCount > 0 }
    predicate Odd { deny 'odd' when 'odd' in node.labels && pod.spec.priority < 5 }
    """
    state = cluster(node("a", labels={"odd": "yes"}))
    state.add_pod(info("x"), "a")
    cycle = cycle_of(profile_of(rules, "predicates { Small, Odd }"), state)
    assert cycle.denied_by(info("p")) == frozenset({"Small"})
    assert cycle.may_deny(info("p")) == frozenset({"Small", "Odd"})
    assert cycle.may_deny(info("p", priority=5)) == frozenset({"Small"})
    closed = "predicate Closed { prefilter { deny 'c' when pod.spec.priority < 5 } } " + rules
    cycle = cycle_of(profile_of(closed, "predicates { Closed, Small, Odd }"), state)
    assert cycle.may_deny(info("p")) == frozenset({"Closed", "Small", "Odd"})


def test_what_prefilter_says_is_told_too() -> None:
    rules = """
    predicate Closed { prefilter { deny 'closed' when pod.spec.priority < 3 fail 'odd' when pod.spec.priority > 7 } }
    """
    cycle = cycle_of(profile_of(rules, "predicates { Closed }"), cluster(node("a")))
    assert [cycle.denied_by(info("p", priority=each)) for each in (1, 5, 9)] == [
        frozenset({"Closed"}), frozenset(), None,
    ]  # fmt: skip


# ---- the n-th


@pytest.mark.parametrize("size", [1, NARROW, 3 * NARROW + 1])
def test_the_nth_of_a_mask(size: int) -> None:
    mask = np.arange(size) % 3 == 0
    places = np.flatnonzero(mask)
    assert [nth(mask, n) for n in range(len(places))] == places.tolist()
