"""Which nodes are judged how, with and without nominated pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.core.scheduling import (
    FakeDice,
    anti_affinity,
    cluster,
    cycle_of,
    default_profile,
    info,
    node,
    profile_of,
)

from ksp.compile.node_columns import NodeColumns
from ksp.compile.runtime import Denial
from ksp.compile.tables import Tables
from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.errors import StateError
from ksp.core.filter import Filtered
from ksp.core.nominations import Nominations
from ksp.core.state import INDEXED_FIELDS, ClusterState
from ksp.model.info import PodInfo
from ksp.policy.profile import Profile

WEB = {"app": "web"}


def nominated(**nodes: PodInfo) -> Nominations:
    nominations = Nominations()
    for name, pod in nodes.items():
        nominations.put(pod, name)
    return nominations


def judged(
    state: ClusterState, pod: PodInfo, nominations: Nominations | None = None, profile: Profile | None = None
) -> Filtered:
    return cycle_of(profile or default_profile(), state, nominations=nominations).decide(pod).filtered


def outcome(found: Filtered) -> dict[str, str]:
    """By node, "fits" or the rule that refused it."""
    return {n.name: "fits" for n in found.feasible} | {name: r.rule for name, r in found.refused.items()}


# ---- one pass


def test_the_first_rule_that_refuses_decides_what_is_told() -> None:
    rules = """
    predicate One { deny 'one' when node.name != 'a' }
    predicate Two { deny unresolvable 'two' when node.name != 'b' }
    """
    state = cluster(*map(node, "abc"))
    found = judged(state, info("p"), profile=profile_of(rules, "predicates { One, Two }"))
    told = {name: (r.rule, r.answer) for name, r in found.refused.items()}
    assert told == {
        "a": ("Two", Denial(True, ("two",))),
        "b": ("One", Denial(False, ("one",))),
        "c": ("One", Denial(False, ("one",))),
    }
    assert found.examined == 3
    assert found.before is None


def test_without_predicates_everything_fits() -> None:
    state = cluster(*map(node, "ab"))
    rules = "priority Any { score 1 }"
    found = judged(state, info("p"), profile=profile_of(rules, "priorities { Any: 1 }"))
    assert outcome(found) == {"a": "fits", "b": "fits"}


# ---- two passes


@pytest.mark.parametrize(
    ("priority", "uid", "expected"),
    [
        (10, "claimant", "PodFitsResources"),
        (0, "claimant", "PodFitsResources"),
        (-1, "claimant", "fits"),
        (10, "p", "fits"),
    ],
)
def test_nominated_pods_count_if_they_are_as_important_and_others(priority: int, uid: str, expected: str) -> None:
    state = cluster(node("n", cpu="2"))
    claims = nominated(n=info(uid, requests={"cpu": "2"}, priority=priority))
    assert outcome(judged(state, info("p"), claims)) == {"n": expected}


def test_a_nomination_counts_on_its_node_only() -> None:
    state = cluster(node("a", cpu="2"), node("b", cpu="2"))
    claims = nominated(a=info("claimant", requests={"cpu": "2"}))
    assert outcome(judged(state, info("p"), claims)) == {"a": "PodFitsResources", "b": "fits"}


def test_a_node_must_fit_without_the_nominated_pods_too() -> None:
    """The affinity that a nominated pod would satisfy does not hold yet."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": WEB}}
    wants = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    state = cluster(node("n", labels={"kubernetes.io/hostname": "n"}))
    follower = info("p", affinity=wants)
    claims = nominated(n=info("claimant", labels=WEB))
    assert outcome(judged(state, follower, claims)) == {"n": "MatchInterPodAffinity"}
    state.add_pod(info("runs", labels=WEB), "n")
    assert outcome(judged(state, follower, claims)) == {"n": "fits"}


def test_prefilter_does_not_see_nominated_pods() -> None:
    rules = """
    predicate Once {
      view placed = count p in cluster.pods where p.name == "claimant"
      prefilter { deny "seen" when placed > 0 }
    }
    """
    state = cluster(node("n"))
    claims = nominated(n=info("claimant"))
    assert outcome(judged(state, info("p"), claims, profile_of(rules, "predicates { Once }"))) == {"n": "fits"}


def test_a_refusal_in_the_first_pass_does_not_reach_the_next_node() -> None:
    """Node b is in the zone of a, where a pod is nominated that would keep `web` out: it is not there yet."""
    state = cluster(node("a", zone="z"), node("b", zone="z"), node("c", zone="y"))
    state.add_pod(info("elsewhere", affinity=anti_affinity("web")), "c")
    claims = nominated(a=info("claimant", affinity=anti_affinity("web")))
    found = judged(state, info("p", labels=WEB), claims)
    assert outcome(found) == {"a": "MatchInterPodAffinity", "b": "fits", "c": "MatchInterPodAffinity"}


# ---- nothing is left behind


def snapshot(state: ClusterState) -> Mapping[str, Any]:
    """All that rules can see, and the orders in which they see it; no generations."""
    return {
        "nodes": [
            (n.name, n.requested.copy(), n.nonzero_requested.copy(), n.pod_count, n.host_ports, list(n.pods))
            for n in state.node_list()
        ],
        "pods": {uid: pod.node.name for uid, pod in state.pods.items()},
        "namespaces": list(state.pods_in_namespace("default")),
        "indexes": {field: list(state.pods_with(field)) for field in INDEXED_FIELDS},
    }


def crowded() -> tuple[ClusterState, Nominations]:
    """Two zones with pods that spread, avoid each other and use ports; two pods are nominated."""
    state = cluster(*(node(name, zone=zone) for name, zone in zip("abcd", "zzyy", strict=True)))
    for i, name in enumerate("abcda"):
        state.add_pod(info(f"r{i}", labels=WEB, affinity=anti_affinity("db")), name)
    port = [{"name": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    claims = nominated(
        a=info("n1", labels=WEB, affinity=anti_affinity("db"), containers=port),
        c=info("n2", labels={"app": "db"}, affinity=anti_affinity("web"), requests={"cpu": "3"}),
    )
    return state, claims


INCOMING: list[dict[str, Any]] = [
    {"labels": WEB},
    {"labels": {"app": "db"}},
    {"requests": {"cpu": "2"}},
    {"containers": [{"name": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
    {
        "labels": WEB,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": WEB},
            }
        ],
    },
]


@pytest.mark.parametrize("fields", INCOMING, ids=["web", "db", "large", "port", "spread"])
def test_two_passes_leave_the_state_as_it_was(fields: dict[str, Any]) -> None:
    state, claims = crowded()
    before = snapshot(state)
    judged(state, info("p", **fields), claims)
    assert snapshot(state) == before


@pytest.mark.parametrize("fields", INCOMING, ids=["web", "db", "large", "port", "spread"])
def test_two_passes_leave_the_views_as_they_were(fields: dict[str, Any]) -> None:
    """After two passes the same views, brought up to date, say what fresh ones say."""
    state, claims = crowded()
    present, incoming = Present.of(state), info("p", **fields)
    Cycle(default_profile(), present, claims.nodes, FakeDice()).decide(incoming)
    kept = Cycle(default_profile(), present, dict, FakeDice()).decide(incoming).filtered
    fresh = judged(state, incoming)
    assert (kept.refused, kept.feasible) == (fresh.refused, fresh.feasible)


def test_the_state_is_restored_even_if_a_rule_breaks() -> None:
    """A bug of ours in a rule must not leave a nominated pod on a node."""
    state, claims = crowded()
    before = snapshot(state)

    class Broken(Tables):
        def view(self, *arguments: Any) -> Any:
            if "n1" in self.state.pods:
                raise RuntimeError("broken")
            return super().view(*arguments)

    rules = "predicate Alone { view on = count p in cluster.pods by p.node.name deny 'x' when on[node.name] > 9 }"
    present = Present(state, Broken(state), NodeColumns(state))
    subject = Cycle(profile_of(rules, "predicates { Alone }"), present, claims.nodes, FakeDice())
    with pytest.raises(RuntimeError, match="broken"):
        subject.decide(info("p", labels=WEB))
    assert snapshot(state) == before


def test_the_state_is_restored_even_if_a_nominated_pod_has_a_place() -> None:
    """Of which there is none: whoever gets a place has no claim any more."""
    state = cluster(*map(node, "ab"))
    nominations = nominated(a=info("one", priority=5))
    nominations.put(info("two", priority=5, affinity=anti_affinity("x")), "a")
    state.add_pod(info("two"), "b")
    with pytest.raises(StateError):
        judged(state, info("p"), nominations)
    assert list(state.pods) == ["two"]


def test_the_nodes_to_look_at_are_those_with_nominated_pods_that_count() -> None:
    state = cluster(*map(node, "abcd"))
    claims = nominated(
        a=info("n1", priority=5), b=info("n2", priority=1), c=info("p", priority=9), gone=info("n3", priority=5)
    )
    found = cycle_of(default_profile(), state, nominations=claims).with_nominated.verdicts(info("p", priority=5))
    assert found == {"a": None}
