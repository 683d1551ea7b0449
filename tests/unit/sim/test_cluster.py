"""A cluster in virtual time: what happens when, what ends it, and that it repeats."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from ksp.core.changes import SetNode, SetPod
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.sim.cluster import LAST_ROUND, VirtualCluster
from ksp.sim.dice import SeededDice
from ksp.sim.openb import Arrival
from ksp.sim.outcome import Fate, Outcome
from ksp.sim.workload import Workload
from ksp.source.origin import Texts, shipped


@cache
def default() -> list[Profile]:
    module = load(shipped(), DEFAULT).module
    assert module is not None
    return profiles(module)


def written(policy: str) -> list[Profile]:
    loaded = load(Texts({"p.ksp": policy}), "p.ksp")
    assert loaded.module is not None
    assert not loaded.failed, loaded.diagnostics
    return profiles(loaded.module)


def node(name: str, cpu: int = 4) -> SetNode:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": 110}
    labels = {"kubernetes.io/hostname": name}
    return SetNode(convert(Node, {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}))


def pod(name: str, cpu: str = "1", **spec: Any) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name.partition("-")[0]}}
    return convert(Pod, {"metadata": metadata, "spec": {"containers": [container], **spec}})


def near(app: str) -> dict[str, Any]:
    """Wants to be beside a pod of that app."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def cluster(
    nodes: Iterable[SetNode],
    *arrivals: Arrival,
    seed: int = 1,
    departures: bool = True,
    rules: list[Profile] | None = None,
) -> VirtualCluster:
    workload = Workload(tuple(nodes), arrivals)
    return VirtualCluster(rules or default(), workload, SeededDice(seed), departures=departures)


def placed(outcome: Outcome) -> dict[str, str]:
    return {record.name: record.node for record in outcome.records}


def test_time_jumps_from_one_arrival_to_the_next() -> None:
    sim = cluster([node("n")], Arrival(pod("a"), 5.0, None), Arrival(pod("b"), 1e6, None))
    assert [(attempt.time, attempt.record.name) for attempt in sim.attempts()] == [(5.0, "a"), (1e6, "b")]
    outcome = sim.outcome()
    assert placed(outcome) == {"a": "n", "b": "n"}
    assert (outcome.now, outcome.decisions, outcome.seconds, outcome.rate) == (1e6, 2, 0.0, 0.0)


def test_a_departure_makes_room_and_wakes_who_waits_for_it() -> None:
    sim = cluster([node("n", cpu=1)], Arrival(pod("first"), 0.0, 30.0), Arrival(pod("second"), 10.0, None))
    attempts = [(a.time, a.record.name, a.record.attempts) for a in sim.attempts()]
    assert attempts == [(0.0, "first", 1), (10.0, "second", 1), (30.0, "second", 2)]
    first, second = sim.outcome().records
    assert (first.left, second.node, second.decided, second.message) == (30.0, "n", 30.0, "")


def test_a_departure_is_not_looked_at_unless_asked_for() -> None:
    sim = cluster(
        [node("n", cpu=1)], Arrival(pod("first"), 0.0, 30.0), Arrival(pod("second"), 10.0, None), departures=False
    )
    outcome = sim.finish()
    assert placed(outcome) == {"first": "n", "second": ""}
    assert outcome.now == 10.0 + LAST_ROUND


def test_a_woken_pod_backs_off_first() -> None:
    sim = cluster([node("n", cpu=1)], Arrival(pod("first"), 0.0, 10.25), Arrival(pod("second"), 10.0, None))
    assert [a.time for a in sim.attempts()] == [0.0, 10.0, 11.0]


def test_backoff_doubles_with_each_attempt() -> None:
    """Each `other` that is placed may be the one that `waits` wants to be near. As `waits` claims a node, only an
    attempt can tell: it is tried again and again."""
    others = [Arrival(pod(f"other-{i}", cpu="10m"), 0.5 + i / 2, None) for i in range(40)]
    waits = pod("waits", **near("db"))
    claiming = replace(waits, status=replace(waits.status, nominated_node_name="n"))
    sim = cluster([node("n")], Arrival(claiming, 0.0, None), *others)
    times = [a.time for a in sim.attempts() if a.record.name == "waits"]
    assert times[:4] == [0.0, 1.0, 3.0, 7.0]


def test_a_pod_that_leaves_while_it_waits_is_not_placed_any_more() -> None:
    sim = cluster([node("n", cpu=1)], Arrival(pod("first"), 0.0, 30.0), Arrival(pod("second"), 10.0, 20.0))
    second = sim.finish().records[1]
    assert (second.node, second.left, second.fate) == ("", 20.0, Fate.WAITING)


def test_room_is_made_before_it_is_asked_for() -> None:
    sim = cluster([node("n", cpu=1)], Arrival(pod("first"), 0.0, 30.0), Arrival(pod("second"), 30.0, None))
    second = sim.finish().records[1]
    assert (second.node, second.attempts) == ("n", 1)


def test_a_pod_may_leave_when_it_arrives() -> None:
    record = cluster([node("n")], Arrival(pod("brief"), 3.0, 3.0)).finish().records[0]
    assert record.node == "n"
    assert record.left == pytest.approx(3.0)


def test_it_ends_after_a_round_that_places_none() -> None:
    outcome = cluster([node("n", cpu=1)], Arrival(pod("big", cpu="2"), 0.0, None)).finish()
    (record,) = outcome.records
    assert (outcome.now, record.attempts, record.fate) == (LAST_ROUND, 2, Fate.WAITING)
    assert record.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert record.reasons == {"Insufficient cpu": 1}


def test_who_cannot_fit_is_not_tried_again_for_what_cannot_help() -> None:
    others = [Arrival(pod(f"other-{i}", cpu="10m"), 1000.0 * i, None) for i in range(1, 9)]
    big = cluster([node("n")], Arrival(pod("big", cpu="64"), 0.0, None), *others).finish().records[0]
    assert big.attempts == 2


def test_attempts_that_end_in_an_error_do_not_go_on_for_ever() -> None:
    outcome = cluster([node("n")], Arrival(pod("odd", cpu="many"), 0.0, None), Arrival(pod("good"), 1e6, None)).finish()
    odd, good = outcome.records
    assert good.node == "n"
    assert "many" in odd.message
    assert not odd.reasons
    assert odd.attempts < 6


def test_without_nodes_all_pods_wait() -> None:
    (record,) = cluster([], Arrival(pod("a"), 0.0, None)).finish().records
    assert (record.fate, record.message) == (Fate.WAITING, "no nodes available to schedule pods")


def test_pods_of_another_scheduler_are_left_alone() -> None:
    sim = cluster([node("n")], Arrival(pod("a", schedulerName="other"), 0.0, None))
    (record,) = sim.finish().records
    assert (record.fate, record.attempts) == (Fate.LEFT_ALONE, 0)
    assert "other" in record.message


def test_gated_pods_are_left_alone() -> None:
    sim = cluster([node("n")], Arrival(pod("a", schedulingGates=[{"name": "quota"}]), 0.0, None))
    assert "quota" in sim.finish().records[0].message


def test_the_round_at_the_end_tries_all_that_wait() -> None:
    """The rule reads nothing that changes, so nothing else wakes them."""
    rules = written(
        'predicate Never { deny "no" when true }\n'
        "provider P { predicates { Never } priorities {} }\n"
        'profile "default-scheduler" uses P {}\n'
    )
    sim = cluster([node("n")], Arrival(pod("a"), 0.0, None), Arrival(pod("b"), 5.0, None), rules=rules)
    assert [(a.time, a.record.name) for a in sim.attempts()] == [
        (0.0, "a"), (5.0, "b"), (5.0 + LAST_ROUND, "a"), (5.0 + LAST_ROUND, "b"),
    ]  # fmt: skip


def test_a_seed_gives_the_same_run_again_and_another_seed_another() -> None:
    nodes = [node(f"n{i}") for i in range(8)]
    arrivals = [Arrival(pod(f"p-{i}"), 0.0, None) for i in range(8)]
    runs = {seed: placed(cluster(nodes, *arrivals, seed=seed).finish()) for seed in range(4)}
    assert runs[1] == placed(cluster(nodes, *arrivals, seed=1).finish())
    assert len({tuple(run.items()) for run in runs.values()}) > 1


def test_allocation_counts_what_runs_and_the_most_that_did() -> None:
    running = SetPod(pod("old", cpu="500m", nodeName="n"))
    workload = Workload((node("n"), running), (Arrival(pod("a", cpu="2"), 0.0, 10.0), Arrival(pod("b"), 20.0, None)))
    outcome = VirtualCluster(default(), workload, SeededDice(), departures=True).finish()
    cpu = outcome.allocation["cpu"]
    assert (cpu.requested, cpu.allocatable, cpu.peak) == (1500, 4000, 2500)
    pods = outcome.allocation["pods"]
    assert (pods.requested, pods.allocatable, pods.peak) == (2, 110, 2)
    assert outcome.running == 1
    assert "nvidia.com/gpu" not in outcome.allocation


class TickingStopwatch:
    """A second passes between two looks at it."""

    def __init__(self) -> None:
        self.looks = 0

    def read(self) -> float:
        self.looks += 1
        return float(self.looks)


def test_decisions_are_timed_by_the_stopwatch() -> None:
    workload = Workload((node("n"),), tuple(Arrival(pod(f"p-{i}"), 0.0, None) for i in range(4)))
    outcome = VirtualCluster(default(), workload, SeededDice(), stopwatch=TickingStopwatch()).finish()
    assert (outcome.decisions, outcome.seconds, outcome.rate) == (4, 4.0, 1.0)
