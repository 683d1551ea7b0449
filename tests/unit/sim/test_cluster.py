"""A cluster in virtual time: what happens when, what ends it, and that it repeats."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ksp.core.changes import Change, SetNode, SetObject, SetPod
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.sim.cluster import LAST_ROUND, VirtualCluster
from ksp.sim.dice import SeededDice
from ksp.sim.openb import Arrival
from ksp.sim.outcome import Eviction, Fate, Outcome
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


def running(name: str, on: str, cpu: str = "1", **spec: Any) -> SetPod:
    return SetPod(pod(name, cpu, nodeName=on, **spec))


def cluster(
    nodes: Iterable[Change],
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
    """Its claim is not there, which is an error, so it is tried again and again while other pods are placed."""
    others = [Arrival(pod(f"other-{i}", cpu="10m"), 0.5 + i / 2, None) for i in range(40)]
    waits = pod("waits", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "lost"}}])
    sim = cluster([node("n")], Arrival(waits, 0.0, None), *others)
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


# ---- preemption


def test_a_pod_of_low_priority_goes_for_one_of_high_priority() -> None:
    low = running("low", "n", terminationGracePeriodSeconds=7)
    sim = cluster([node("n", cpu=1), low], Arrival(pod("high", priority=5), 100.0, None))
    assert [(a.time, a.record.attempts) for a in sim.attempts()] == [(100.0, 1), (107.0, 2)]
    outcome = sim.outcome()
    assert placed(outcome) == {"high": "n"}
    assert outcome.evictions == (Eviction("default/low", "n", "default/high", 100.0, was_running=True),)
    assert (outcome.running, outcome.allocation["cpu"].requested, outcome.allocation["cpu"].peak) == (1, 1000, 1000)


@pytest.mark.parametrize(("grace", "placed_at"), [({}, 30.0), ({"terminationGracePeriodSeconds": 0}, 1.0)])
def test_a_pod_has_thirty_seconds_to_end_unless_it_says_so(grace: dict[str, Any], placed_at: float) -> None:
    """A preemptor has to back off for a second at least."""
    sim = cluster([node("n", cpu=1), running("low", "n", **grace)], Arrival(pod("high", priority=5), 0.0, None))
    assert sim.finish().records[0].decided == placed_at


def test_an_evicted_pod_that_had_arrived_is_not_made_anew() -> None:
    sim = cluster(
        [node("n", cpu=1)], Arrival(pod("low"), 0.0, 20.0), Arrival(pod("high", priority=5), 10.0, None),
    )  # fmt: skip
    low, high = sim.finish().records
    assert (low.fate, low.node, low.evicted_by, low.attempts, low.left) == (Fate.EVICTED, "", "default/high", 1, None)
    assert (high.fate, high.node, high.decided) == (Fate.PLACED, "n", 40.0)
    (eviction,) = sim.outcome().evictions
    assert not eviction.was_running


def test_who_does_not_preempt_waits() -> None:
    polite = pod("polite", priority=5, preemptionPolicy="Never")
    outcome = cluster([node("n", cpu=1), running("low", "n")], Arrival(polite, 0.0, None)).finish()
    assert placed(outcome) == {"polite": ""}
    assert outcome.evictions == ()
    assert outcome.now == LAST_ROUND


def test_the_last_that_started_goes_first() -> None:
    """Of two nodes with a pod each, the one whose pod was placed later."""
    nodes = [node("n1", cpu=1), node("n2", cpu=1)]
    first, second = Arrival(pod("low-1"), 0.0, None), Arrival(pod("low-2"), 50.0, None)
    for seed in range(4):
        sim = cluster(nodes, first, second, Arrival(pod("high", priority=5), 100.0, None), seed=seed)
        assert [each.pod for each in sim.finish().evictions] == ["default/low-2"]


def test_what_ran_before_is_older_than_what_was_placed() -> None:
    old = pod("old", nodeName="n1")
    since = replace(old, status=replace(old.status, start_time="2031-05-05T12:00:00Z"))
    nodes: list[Change] = [node("n1", cpu=1), node("n2", cpu=1), SetPod(since)]
    sim = cluster(nodes, Arrival(pod("new"), 5.0, None), Arrival(pod("high", priority=5), 100.0, None))
    assert [each.pod for each in sim.finish().evictions] == ["default/new"]


def test_a_pod_that_was_on_its_way_out_leaves_and_nobody_else_goes() -> None:
    leaving = pod("leaving", nodeName="n", terminationGracePeriodSeconds=12)
    told = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    sim = cluster(
        [node("n", cpu=2), SetPod(told), running("low", "n")],
        Arrival(pod("plain"), 0.0, None), Arrival(pod("polite", priority=5, preemptionPolicy="Never"), 5.0, None),
    )  # fmt: skip
    outcome = sim.finish()
    assert placed(outcome) == {"plain": "", "polite": "n"}
    assert (outcome.records[1].decided, outcome.evictions) == (12.0, ())
    assert (outcome.running, outcome.allocation["cpu"].requested) == (2, 2000)


def test_a_pod_that_is_being_deleted_can_be_a_victim_too() -> None:
    leaving = pod("leaving", nodeName="n", terminationGracePeriodSeconds=12)
    told = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    outcome = cluster([node("n", cpu=1), SetPod(told)], Arrival(pod("high", priority=5), 5.0, None)).finish()
    assert placed(outcome) == {"high": "n"}
    assert outcome.records[0].decided == 12.0


def test_preemption_ends_with_nobody_left_to_evict() -> None:
    """Pods of rising priority come for one place: each goes for the next, and none comes back."""
    arrivals = [Arrival(pod(f"p-{i}", priority=i), 100.0 * i, None) for i in range(5)]
    outcome = cluster([node("n", cpu=1)], *arrivals).finish()
    assert placed(outcome) == {"p-0": "", "p-1": "", "p-2": "", "p-3": "", "p-4": "n"}
    assert [(each.pod, each.by) for each in outcome.evictions] == [
        (f"default/p-{i}", f"default/p-{i + 1}") for i in range(4)
    ]
    assert outcome.count(Fate.EVICTED) == 4


def test_a_pod_that_leaves_while_others_go_for_it() -> None:
    sim = cluster(
        [node("n", cpu=1), running("low", "n")], Arrival(pod("high", priority=5), 0.0, 10.0),
        Arrival(pod("next"), 20.0, None),
    )  # fmt: skip
    high, following = sim.finish().records
    assert (high.fate, high.left) == (Fate.WAITING, 10.0)
    assert (following.node, following.decided) == ("n", 30.0)


def budget(**spec: Any) -> SetObject:
    """Its status allows one disruption."""
    value = {"metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": {"disruptionsAllowed": 1}}
    return SetObject("podDisruptionBudgets", "default", "b", convert(PodDisruptionBudget, value))


def test_a_budget_is_used_up_by_evictions() -> None:
    """Of three pods of `db` one may be missing. The first preemptor takes it; the second takes the other pod, though it
    has a higher priority."""
    selector = {"matchLabels": {"app": "db"}}
    nodes = [node(f"n{i}", cpu=1) for i in range(4)]
    pods = [*(running(f"db-{i}", f"n{i}") for i in range(3)), running("other", "n3", priority=3)]
    sim = cluster(
        [*nodes, *pods, budget(selector=selector, maxUnavailable=1)],
        Arrival(pod("high-0", priority=5), 0.0, None), Arrival(pod("high-1", priority=5), 100.0, None),
    )  # fmt: skip
    gone = [each.pod.partition("-")[0] for each in sim.finish().evictions]
    assert gone == ["default/db", "default/other"]


# ---- volumes


def storage_class(name: str, provisioner: str, mode: str = "WaitForFirstConsumer", **more: Any) -> SetObject:
    value = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}
    return SetObject("storageClasses", "", name, convert(StorageClass, value))


def claim(name: str, of: str) -> SetObject:
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    value = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
    return SetObject("persistentVolumeClaims", "default", name, convert(PersistentVolumeClaim, value))


def local_volume(name: str, on: str) -> SetObject:
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    spec = {
        "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
    }  # fmt: skip
    return SetObject(
        "persistentVolumes", "", name, convert(PersistentVolume, {"metadata": {"name": name}, "spec": spec})
    )


def using(name: str, *claims: str) -> Pod:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, "10m", volumes=volumes)


def test_a_pod_goes_where_a_volume_is_and_the_next_of_its_claim_too() -> None:
    objects = [storage_class("local", "kubernetes.io/no-provisioner"), local_volume("disk", "n2"), claim("c", "local")]
    sim = cluster(
        [node("n1"), node("n2"), node("n3"), *objects],
        Arrival(using("a", "c"), 0.0, None), Arrival(using("b", "c"), 5.0, None),
    )  # fmt: skip
    outcome = sim.finish()
    assert placed(outcome) == {"a": "n2", "b": "n2"}
    assert [record.attempts for record in outcome.records] == [1, 1]
    bound = sim.scheduler.state.objects["persistentVolumeClaims"]["default"]["c"]
    assert (bound.spec.volume_name, bound.status.phase) == ("disk", "Bound")


def test_a_volume_that_is_taken_is_nobody_elses() -> None:
    objects = [storage_class("local", "kubernetes.io/no-provisioner"), local_volume("disk", "n2")]
    claims = [claim("c", "local"), claim("d", "local")]
    sim = cluster(
        [node("n1"), node("n2"), *objects, *claims],
        Arrival(using("a", "c"), 0.0, None), Arrival(using("b", "d"), 0.0, None),
    )  # fmt: skip
    first, second = sim.finish().records
    assert (first.node, second.node) == ("n2", "")
    assert "didn't find available persistent volumes to bind" in second.message


def test_a_volume_is_made_where_the_pod_goes() -> None:
    allowed = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["n2", "n3"]}]}]
    objects = [storage_class("fast", "disk.example.com", allowedTopologies=allowed), claim("c", "fast")]
    sim = cluster(
        [node("n1"), node("n2"), node("n3"), *objects],
        Arrival(using("a", "c"), 0.0, None), Arrival(using("b", "c"), 5.0, None), seed=3,
    )  # fmt: skip
    first, second = sim.finish().records
    assert first.node in ("n2", "n3")
    assert second.node == first.node


def test_claims_that_wait_for_nobody_are_bound_at_the_start() -> None:
    objects = [storage_class("now", "disk.example.com", "Immediate"), claim("c", "now")]
    outcome = cluster([node("n"), *objects], Arrival(using("a", "c"), 0.0, None)).finish()
    assert placed(outcome) == {"a": "n"}


def test_ephemeral_volumes_have_claims_that_come_and_go_with_their_pod() -> None:
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    sim = cluster(
        [node("n"), storage_class("fast", "disk.example.com")],
        Arrival(pod("a", "10m", volumes=[volume]), 0.0, 10.0),
    )  # fmt: skip
    first = next(sim.attempts())
    assert first.record.node == "n"
    objects = sim.scheduler.state.objects
    assert list(objects["persistentVolumeClaims"]["default"]) == ["a-scratch"]
    assert len(objects["persistentVolumes"]) == 1
    sim.finish()
    assert not objects["persistentVolumeClaims"]
    assert not objects["persistentVolumes"]


# ---- whatever comes

GRACES = (None, 0, 5, 90)


def arrival_of(draw: st.DataObject, i: int) -> Arrival:
    spec: dict[str, Any] = {"priority": draw.draw(st.integers(0, 3))}
    if draw.draw(st.booleans()):
        spec["preemptionPolicy"] = draw.draw(st.sampled_from(["Never", "PreemptLowerPriority"]))
    if (grace := draw.draw(st.sampled_from(GRACES))) is not None:
        spec["terminationGracePeriodSeconds"] = grace
    arrives = draw.draw(st.integers(0, 60)) / 2
    leaves = draw.draw(st.none() | st.integers(1, 200))
    cpu = draw.draw(st.sampled_from(["500m", "1", "2"]))
    return Arrival(pod(f"p-{i}", cpu, **spec), arrives, None if leaves is None else arrives + leaves)


@settings(max_examples=60)
@given(st.data())
def test_it_ends_and_the_books_are_right(draw: st.DataObject) -> None:
    nodes = [node(f"n{i}", cpu=draw.draw(st.integers(1, 3))) for i in range(draw.draw(st.integers(1, 3)))]
    arrivals = sorted(
        (arrival_of(draw, i) for i in range(draw.draw(st.integers(1, 10)))), key=lambda each: each.arrives
    )
    protected = budget(selector={"matchLabels": {"app": "p"}}, maxUnavailable=draw.draw(st.integers(0, 2)))
    sim = cluster([*nodes, protected], *arrivals, seed=draw.draw(st.integers(0, 3)))
    attempts = list(islice(sim.attempts(), 100 * len(arrivals)))
    assert len(attempts) < 100 * len(arrivals)
    outcome = sim.outcome()
    there = {info.uid: name for name, found in sim.scheduler.state.nodes.items() for info in found.pods.values()}
    stays = {r.uid: r.node for r in outcome.records if r.fate is Fate.PLACED and r.left is None}
    assert there == stays
    assert all(use.requested["cpu"] <= use.allocatable["cpu"] for use in outcome.nodes)
    evicted = {record.uid: record.evicted_by for record in outcome.records if record.fate is Fate.EVICTED}
    assert evicted == {each.pod: each.by for each in outcome.evictions}
    priorities = {f"default/{each.pod.metadata.name}": each.pod.spec.priority or 0 for each in arrivals}
    assert all(priorities[each.pod] < priorities[each.by] for each in outcome.evictions)
    assert outcome.allocation["cpu"].requested == sum(use.requested["cpu"] for use in outcome.nodes)
    assert sim.scheduler.cache.assumed_count == 0
    assert not sim.scheduler.evictions.victims
