"""Which node an attempt chooses, and what it says when it chooses none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.core.scheduling import FakeDice, cluster, cycle_of, default_profile, info, node, profile_of

from ksp.core.cycle import ITSELF, NO_NODES, claim_errors, nodes_to_find
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.storage import PersistentVolumeClaim

ANY = profile_of("predicate Any { deny 'never' when false }", "predicates { Any }")

# nodes, percentage, result: rows that kube-scheduler 1.19 gave.
NUM_NODES = [
    (0, -1, 0), (0, 0, 0), (1, 0, 1), (10, 50, 10), (50, 1, 50), (99, 0, 99), (99, 30, 99), (99, 100, 99),
    (100, 0, 100), (100, 1, 100), (100, 50, 100), (100, 100, 100), (101, 0, 100), (124, 0, 100), (125, 0, 100),
    (200, 0, 100), (250, 0, 120), (250, 50, 125), (500, 0, 230), (500, 3, 100), (500, 30, 150), (1000, 0, 420),
    (1000, -1, 420), (1000, 3, 100), (1000, 40, 400), (1000, 99, 990), (1000, 100, 1000), (1000, 150, 1000),
    (5624, 0, 337), (5625, 0, 281), (5750, -1, 287), (5755, 3, 172), (8000, 0, 400), (8000, 101, 8000),
    (10000, 0, 500), (10000, 1, 100), (15000, 0, 750), (15000, 1, 150), (15000, 33, 4950), (100000, 0, 5000),
]  # fmt: skip


# ---- how many nodes are enough


@pytest.mark.parametrize(("nodes", "percentage", "enough"), NUM_NODES)
def test_as_many_nodes_are_looked_for_as_by_kube_scheduler(nodes: int, percentage: int, enough: int) -> None:
    assert nodes_to_find(nodes, percentage) == enough


@pytest.mark.shared
def test_nodes_to_find_agrees_with_every_recorded_row(shared: Path) -> None:
    recorded = json.loads((shared / "golden" / "numnodes-1.19.json").read_text())
    assert recorded["columns"] == ["numAllNodes", "percentage", "result"]
    rows = recorded["rows"]
    assert len(rows) > 1000
    assert {tuple(row) for row in NUM_NODES} <= {tuple(row) for row in rows}
    assert [row for row in rows if nodes_to_find(row[0], row[1]) != row[2]] == []


def test_the_search_stops_early_and_goes_on_where_it_ended() -> None:
    sampling = profile_of(
        "predicate Any { deny 'never' when false }", "predicates { Any }", "percentageOfNodesToScore = 50"
    )
    cycle = cycle_of(sampling, cluster(*(node(f"n{i:03}") for i in range(250))))
    first = cycle.decide(info("p")).filtered
    assert [n.name for n in first.feasible] == [f"n{i:03}" for i in range(125)]
    assert (first.examined, cycle.start) == (125, 125)
    second = cycle.decide(info("p")).filtered
    assert [n.name for n in second.feasible] == [f"n{i:03}" for i in range(125, 250)]
    assert cycle.start == 0


def test_refused_nodes_count_as_examined_and_the_search_wraps_around() -> None:
    nodes = [node(f"n{i:03}", labels={"bad": "yes"} if i % 2 else {}) for i in range(200)]
    odd = profile_of(
        "predicate Good { deny 'bad' when 'bad' in node.labels }",
        "predicates { Good }",
        "percentageOfNodesToScore = 1",
    )
    cycle = cycle_of(odd, cluster(*nodes))
    cycle.start = 100
    found = cycle.decide(info("p")).filtered
    assert len(found.feasible) == 100
    assert found.feasible[0].name == "n100"
    assert found.feasible[-1].name == "n098"
    assert (found.examined, cycle.start) == (199, 99)


def test_a_start_beyond_the_last_node_begins_again() -> None:
    cycle = cycle_of(
        profile_of("predicate Any { deny 'never' when false }", "predicates { Any }", "percentageOfNodesToScore = 50"),
        cluster(*(node(f"n{i:03}") for i in range(200))),
    )
    cycle.start = 450
    assert cycle.decide(info("p")).filtered.feasible[0].name == "n050"


def test_all_nodes_are_looked_at_from_the_first_if_all_are_wanted() -> None:
    cycle = cycle_of(ANY, cluster(*(node(f"n{i:03}") for i in range(150))))
    for _ in range(2):
        found = cycle.decide(info("p")).filtered
        assert found.examined == 150
        assert found.feasible[0].name == "n000"


# ---- the choice


def test_the_highest_total_wins_without_dice() -> None:
    dice = FakeDice()
    profile = profile_of("priority Best { score size(node.name) }", "priorities { Best: 3 }")
    decision = cycle_of(profile, cluster(node("a"), node("bbb"), node("cc")), dice).decide(info("p"))
    assert decision.node == "bbb"
    assert dice.sides == []
    assert decision.scored is not None
    assert decision.scored.total == [3, 9, 6]


@pytest.mark.parametrize(("fall", "chosen"), [(0, "a"), (1, "c"), (2, "d")])
def test_ties_are_broken_by_dice_among_those_that_tie(fall: int, chosen: str) -> None:
    dice = FakeDice(fall)
    profile = profile_of("priority Best { score node.name == 'b' ? 0 : 50 }", "priorities { Best: 1 }")
    decision = cycle_of(profile, cluster(*map(node, "abcd")), dice).decide(info("p"))
    assert decision.node == chosen
    assert dice.sides == [3]


def test_a_single_feasible_node_is_taken_without_scoring() -> None:
    broken = profile_of("priority Broken { score size(node.name) * 1000 }", "priorities { Broken: 1 }")
    alone = cycle_of(broken, cluster(node("only"))).decide(info("p"))
    assert (alone.node, alone.scored) == ("only", None)
    two = cycle_of(broken, cluster(node("a"), node("b"))).decide(info("p"))
    assert two.failed
    assert not two.node


def test_without_priorities_any_feasible_node_may_be_chosen() -> None:
    dice = FakeDice(1)
    decision = cycle_of(ANY, cluster(node("a"), node("b")), dice).decide(info("p"))
    assert decision.node == "b"
    assert decision.scored is not None
    assert decision.scored.total == [1, 1]


# ---- no node


def test_the_reasons_of_all_nodes_stand_in_one_sentence() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    state = cluster(node("small", cpu="1"), node("tiny", cpu="500m"), node("gpu", taints=[taint]))
    decision = cycle_of(default_profile(), state).decide(info("p", requests={"cpu": "2"}))
    assert decision.message == (
        "0/3 nodes are available: 1 node(s) had taint {gpu: }, that the pod didn't tolerate, 2 Insufficient cpu."
    )
    assert decision.denied_by == {"PodFitsResources", "PodToleratesNodeTaints"}
    assert not decision.failed


def test_what_prefilter_denies_counts_for_every_node() -> None:
    rules = "predicate Closed { prefilter { deny unresolvable 'closed' when pod.spec.priority < 10 } }"
    profile = profile_of(rules, "predicates { Closed }")
    decision = cycle_of(profile, cluster(node("a"), node("b"))).decide(info("p"))
    assert decision.message == "0/2 nodes are available: 2 closed."
    assert decision.denied_by == {"Closed"}
    assert cycle_of(profile, cluster(node("a"))).decide(info("p", priority=10)).node == "a"


def test_an_empty_cluster_has_no_place_yet() -> None:
    decision = cycle_of(default_profile(), ClusterState()).decide(info("p"))
    assert (decision.message, decision.failed) == (NO_NODES, False)
    assert NO_NODES == "no nodes available to schedule pods"


def test_a_failing_rule_fails_the_attempt_in_kube_schedulers_words() -> None:
    rules = "predicate Odd implements OddPlugin { fail 'no ${node.name}' when node.name == 'b' }"
    profile = profile_of(rules, "predicates { Odd }")
    decision = cycle_of(profile, cluster(node("a"), node("b"))).decide(info("p"))
    assert decision.message == 'running "OddPlugin" filter plugin for pod "p": no b'
    assert decision.failed
    assert not decision.node


def test_a_rule_that_fails_in_prefilter_fails_the_attempt_at_once() -> None:
    rules = "predicate Odd implements OddPlugin { prefilter { fail 'odd pod' when pod.name == 'p' } }"
    decision = cycle_of(profile_of(rules, "predicates { Odd }"), cluster(node("a"))).decide(info("p"))
    assert decision.message == 'prefilter plugin "OddPlugin" failed for pod "p": odd pod'
    assert decision.failed
    assert decision.filtered.examined == 0


def test_a_node_that_an_earlier_rule_denied_does_not_fail_the_attempt() -> None:
    rules = """
    predicate First { deny 'not b' when node.name == 'b' }
    predicate Second { fail 'reached b' when node.name == 'b' }
    """
    state = cluster(node("a"), node("b"))
    assert cycle_of(profile_of(rules, "predicates { First, Second }"), state).decide(info("p")).node == "a"
    assert cycle_of(profile_of(rules, "predicates { Second, First }"), state).decide(info("p")).failed


# ---- claims, before all rules


def claim(name: str, **metadata: str) -> PersistentVolumeClaim:
    return convert(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": "default", **metadata}})


def using(*claims: str, extra: bool = False) -> list[dict[str, object]]:
    volumes: list[dict[str, object]] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return [{"name": "scratch", "emptyDir": {}}, *volumes] if extra else volumes


def test_a_claim_that_is_missing_or_going_is_an_error() -> None:
    state = cluster(node("n"))
    state.set_object("persistentVolumeClaims", "default", "here", claim("here"))
    state.set_object(
        "persistentVolumeClaims", "default", "going", claim("going", deletionTimestamp="2020-01-01T00:00:00Z")
    )
    state.set_object("persistentVolumeClaims", "other", "gone", claim("gone"))
    cycle = cycle_of(ANY, state)
    assert cycle.decide(info("p", volumes=using("here", extra=True))).node == "n"
    for name, message in [("gone", "not found"), ("going", "is being deleted")]:
        decision = cycle.decide(info("p", volumes=using("here", name)))
        assert decision.message == f'persistentvolumeclaim "{name}" {message}'
        assert decision.failed


def test_the_first_claim_that_is_wrong_is_named() -> None:
    assert list(claim_errors(info("p", volumes=using("b", "a")), cluster(node("n")))) == [
        'persistentvolumeclaim "b" not found',
        'persistentvolumeclaim "a" not found',
    ]
    decision = cycle_of(ANY, cluster(node("n"))).decide(info("p", volumes=using("b", "a")))
    assert decision.message == 'persistentvolumeclaim "b" not found'


def test_claims_come_before_the_empty_cluster() -> None:
    decision = cycle_of(ANY, ClusterState()).decide(info("p", volumes=using("a")))
    assert decision.message == 'persistentvolumeclaim "a" not found'


def test_amounts_that_cannot_be_read_are_named() -> None:
    decision = cycle_of(ANY, cluster(node("n"))).decide(info("p", requests={"cpu": "many"}))
    assert not decision.failed
    assert decision.denied_by == {ITSELF}
    assert "many" in decision.message
    assert "cpu" in decision.message
