"""Who has to leave a node so that a pod finds room there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.preemption.worlds import World, running, urgent
from tests.unit.core.scheduling import REQUIRED, anti_affinity, profile_of

from ksp.core.node_order import ZONE

WEB = {"app": "web"}
HOSTNAME = "kubernetes.io/hostname"


def test_only_pods_of_lower_priority_are_victims() -> None:
    world = World({"n": [running("equal", cpu="2", priority=10), running("low", cpu="2", priority=9)]})
    assert world.victims(urgent()) == ("n", ["low"])
    assert World({"n": [running("equal", cpu="4", priority=10)]}).victims(urgent()) is None


def test_a_pod_without_a_priority_has_priority_0() -> None:
    world = World({"n": [running("low", cpu="4")]})
    assert world.victims(urgent(priority=0)) is None
    assert world.victims(urgent(priority=1)) == ("n", ["low"])


def test_no_more_pods_go_than_have_to() -> None:
    world = World({"n": [running(f"p{i}") for i in range(4)]})
    _, victims = world.victims(urgent(cpu="2")) or ("", [])
    assert len(victims) == 2


def test_the_most_important_are_spared() -> None:
    """The highest priority first, of equals who runs longest; who has not started counts as starting now."""
    pods = [
        running("new", started=0, priority=1),
        running("late", started=3, priority=1),
        running("early", started=2, priority=1),
        running("low", started=1, priority=0),
    ]
    for cpu, gone in (("1", ["low"]), ("2", ["new", "low"]), ("3", ["late", "new", "low"])):
        assert World({"n": pods}).victims(urgent(cpu=cpu)) == ("n", gone)
        for pod in pods:
            pod.node = type(pod.node)()


def test_a_pod_too_large_for_what_would_be_spared_before_it_leaves_room_for_others() -> None:
    pods = [running("big", cpu="3", priority=2), running("small", cpu="1", priority=1)]
    assert World({"n": pods}).victims(urgent(cpu="2")) == ("n", ["big"])


def test_a_node_on_which_even_their_departure_does_not_help_is_none() -> None:
    pods = {"n": [running("high", cpu="3", priority=20), running("low", cpu="1")]}
    assert World(pods).victims(urgent(cpu="2")) is None


def test_a_node_that_is_refused_for_good_is_none() -> None:
    pods = {"n": [running("low", cpu="4")]}
    taints = [{"key": "k", "effect": "NoSchedule"}]
    assert World(pods, n={"taints": taints}).victims(urgent()) is None


def test_a_node_that_another_rule_refuses_for_good_behind_the_first_is_looked_at_in_vain() -> None:
    """Resources are asked about before node affinity."""
    world = World({"n": [running("low", cpu="4")]})
    assert world.victims(urgent(nodeSelector={"disk": "ssd"})) is None


def test_a_port_is_freed() -> None:
    port: dict[str, Any] = {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]}
    world = World({"n": [running("other"), running("user", priority=5, **port)]})
    assert world.victims(urgent(cpu="1", **port)) == ("n", ["user"])


def test_a_pod_that_is_avoided_leaves() -> None:
    world = World({"n": [running("other"), running("web", labels=WEB, priority=5)]}, n={"labels": {HOSTNAME: "n"}})
    assert world.victims(urgent(affinity=anti_affinity("web", HOSTNAME))) == ("n", ["web"])


def test_a_pod_that_avoids_leaves_even_if_another_in_the_domain_would_have_done() -> None:
    """Pods are taken off one node at a time: where one on each of two nodes is in the way, no node helps."""
    zone = {"labels": {ZONE: "z"}}
    web = [running(f"web{i}", labels=WEB) for i in range(2)]
    world = World({"a": web[:1], "b": web[1:]}, a=zone, b=zone)
    assert world.victims(urgent(affinity=anti_affinity("web"))) is None


def test_who_the_pod_wants_to_be_near_is_no_victim() -> None:
    """When all of lower priority are gone the pod has no neighbour, and that is final for the node."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": WEB}}
    near: dict[str, Any] = {"podAffinity": {REQUIRED: [term]}}
    pods = [running("web", cpu="1", labels=WEB), running("low", cpu="3")]
    assert World({"n": pods}, n={"labels": {HOSTNAME: "n"}}).victims(urgent(affinity=near)) is None


def test_spreading_makes_room_by_taking_from_the_fullest_domain() -> None:
    constraint = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": WEB},
    }  # fmt: skip
    world = World(
        {"a": [running("w1", labels=WEB)], "b": [running("high", cpu="4", priority=20)]},
        a={"zone": "a"},
        b={"zone": "b"},
    )
    assert world.victims(urgent(labels=WEB, topologySpreadConstraints=[constraint])) == ("a", ["w1"])


def test_pods_that_leave_were_not_counted_in_spreading_and_make_no_room() -> None:
    """kube-scheduler 1.19 takes them out of a count in which they never were."""
    constraint = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": WEB},
    }  # fmt: skip
    leaving = running("w0", labels=WEB, metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"})
    world = World(
        {"a": [leaving, running("w1", labels=WEB, priority=20)], "b": [running("high", cpu="4", priority=20)]},
        a={"zone": "a"},
        b={"zone": "b"},
    )
    assert world.victims(urgent(labels=WEB, topologySpreadConstraints=[constraint])) is None


def test_a_rule_that_fails_meanwhile_does_not_admit_the_node() -> None:
    rules = 'predicate Odd { deny "many" when node.podCount > 1 fail "one" when node.podCount == 1 }'
    world = World({"n": [running("a"), running("b")]}, profile_of(rules, "predicates { Odd }"))
    assert world.victims(urgent()) == ("n", ["a", "b"])


@pytest.mark.parametrize(("unresolvable", "found"), [("", ("n", ["web"])), ("unresolvable ", None)])
def test_what_is_said_of_all_nodes_is_said_of_each(unresolvable: str, found: object) -> None:
    rules = f"""predicate Closed {{
        view web = count p in cluster.pods where p.labels["app"] == "web"
        prefilter {{ deny {unresolvable}"closed" when web > 0 }}
    }}"""
    world = World({"n": [running("web", labels=WEB)]}, profile_of(rules, "predicates { Closed }"))
    assert world.victims(urgent()) == found


# ---- nominated pods


def test_room_is_left_for_nominated_pods_of_the_same_or_a_higher_priority() -> None:
    for priority, gone in ((10, ["p2", "p3"]), (9, ["p3"])):
        pods = [running(f"p{i}", priority=-i) for i in range(4)]
        world = World({"n": pods})
        world.nominations.put(urgent("first", cpu="1", priority=priority), "n")
        assert world.victims(urgent(cpu="1")) == ("n", gone)


def test_a_pod_has_to_fit_without_the_nominated_pods_too() -> None:
    """The pod it wants to be near is nominated only: it may never come."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": WEB}}
    near: dict[str, Any] = {"podAffinity": {REQUIRED: [term]}}
    world = World({"n": [running("low", cpu="4")]}, n={"labels": {HOSTNAME: "n"}})
    world.nominations.put(urgent("web", cpu="1", labels=WEB), "n")
    assert world.victims(urgent(cpu="1", affinity=near)) is None


def test_nominated_pods_of_lower_priority_lose_their_claim_to_the_node() -> None:
    world = World({"n": [running("low", cpu="4")], "m": [running("high", cpu="4", priority=20)]})
    for name, priority, claim in (("a", 9, "n"), ("b", 10, "n"), ("c", 9, "m")):
        world.nominations.put(urgent(name, cpu="1", priority=priority), claim)
    outcome = world.attempt(urgent())
    assert [pod.name for pod in getattr(outcome, "cleared", ())] == ["a"]


# ---- nothing is left behind


def test_the_state_is_as_before_and_nodes_bear_the_same_numbers() -> None:
    pods = [running("web", cpu="2", labels=WEB), running("low", cpu="2")]
    world = World({"n": pods}, n={"labels": {HOSTNAME: "n"}})
    node = world.state.nodes["n"]
    before = node.generation, list(node.pods), dict(node.requested)
    assert world.victims(urgent(affinity=anti_affinity("web", HOSTNAME))) == ("n", ["web"])
    assert (node.generation, list(node.pods), dict(node.requested)) == before
