from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from tests.unit.core.scheduling import info, node, pod, scheduler

from ksp.core.changes import PodVolumes, SetNode, SetPod
from ksp.core.cycle import EMPTINESS, ITSELF, Decision
from ksp.core.preemption import Preempted
from ksp.core.scheduler import Step
from ksp.runtime.metrics import CoreMetrics, SchedulerMetrics, attempts_label, exponential, exposition
from ksp.runtime.observer import Binding


def shown(registry: CollectorRegistry) -> dict[str, float]:
    lines = exposition(registry, "")[0].decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def step(decision: Decision) -> Step:
    return Step(info("a", schedulerName="mine"), 1, decision, ())


def binding(attempt: int = 1) -> Binding:
    return Binding(info("a", schedulerName="mine"), "n1", attempt, first_added=1.0, began=5.0, decided=5.5)


def test_a_pod_that_is_bound() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    metrics.decided(step(Decision(node="n1")), 0.25)
    assert "scheduler_schedule_attempts_total" not in "".join(shown(registry))
    metrics.bound(binding(attempt=3), now=6.0)
    found = shown(registry)
    assert found['scheduler_schedule_attempts_total{profile="mine",result="scheduled"}'] == 1
    assert found['scheduler_e2e_scheduling_duration_seconds_sum{profile="mine",result="scheduled"}'] == 1.0
    assert found["scheduler_scheduling_algorithm_duration_seconds_sum"] == 0.25
    assert found["scheduler_binding_duration_seconds_sum"] == 0.5
    assert found['scheduler_pod_scheduling_duration_seconds_sum{attempts="3"}'] == 5.0
    assert found["scheduler_pod_scheduling_attempts_sum"] == 3


@pytest.mark.parametrize(("failed", "result"), [(False, "unschedulable"), (True, "error")])
def test_a_pod_that_finds_no_node(failed: bool, result: str) -> None:
    registry = CollectorRegistry()
    SchedulerMetrics(registry).decided(step(Decision(message="no", failed=failed)), 0.125)
    found = shown(registry)
    assert found[f'scheduler_schedule_attempts_total{{profile="mine",result="{result}"}}'] == 1
    assert found[f'scheduler_e2e_scheduling_duration_seconds_sum{{profile="mine",result="{result}"}}'] == 0.125
    assert found["scheduler_scheduling_algorithm_duration_seconds_count"] == 0


def preemption(*victims: str) -> Step:
    pod, decision = info("a", schedulerName="mine"), Decision(message="no", denied_by=frozenset({"R"}))
    return Step(pod, 1, decision, (), Preempted("n1", tuple(map(info, victims)), ()))


def test_preemptions_and_their_victims() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    metrics.decided(preemption(*"bcdefg"), 0.1)
    metrics.decided(preemption("h"), 0.1)
    metrics.decided(step(Decision(message="no", denied_by=frozenset({"R"}))), 0.1)
    for reason in (ITSELF, EMPTINESS):  # nobody else's place would help
        metrics.decided(step(Decision(message="no", denied_by=frozenset({reason}))), 0.1)
    metrics.decided(step(Decision(message="no", failed=True)), 0.1)
    metrics.decided(step(Decision(node="n1")), 0.1)
    found = shown(registry)
    assert found["scheduler_preemption_attempts_total"] == 3
    assert found["scheduler_preemption_victims_sum"] == 7
    buckets = {
        bound: found[f'scheduler_preemption_victims_bucket{{le="{bound}"}}'] for bound in ("5.0", "10.0", "50.0")
    }
    assert buckets == {"5.0": 1, "10.0": 2, "50.0": 2}


def test_volumes_that_are_not_bound() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    metrics.not_bound(binding(), "no", now=7.0)
    metrics.not_bound(replace(binding(), volumes=PodVolumes()), "no", now=7.0)
    metrics.wait_failed(info("a", schedulerName="mine"), "too late")
    found = shown(registry)
    assert found['scheduler_volume_scheduling_stage_error_total{operation="bind"}'] == 2
    assert found['scheduler_schedule_attempts_total{profile="mine",result="error"}'] == 3


def test_a_binding_that_fails_and_a_fault_are_errors() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    metrics.not_bound(binding(), "no", now=7.0)
    metrics.fault("deciding", info("a", schedulerName="mine"))
    metrics.fault("taking in SetPod", None)
    found = shown(registry)
    assert found['scheduler_schedule_attempts_total{profile="mine",result="error"}'] == 2
    assert found['ksp_internal_errors_total{doing="deciding"}'] == 1
    assert found['ksp_internal_errors_total{doing="taking in SetPod"}'] == 1


def test_the_buckets_are_those_of_kube_scheduler() -> None:
    registry = CollectorRegistry()
    SchedulerMetrics(registry).bound(binding(), now=6.0)
    names = "".join(shown(registry))
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)
    for bound in ("0.001", "0.002", "16.384", "+Inf"):
        assert f'scheduler_binding_duration_seconds_bucket{{le="{bound}"}}' in names
    for bound in ("0.01", "5242.88"):
        assert f'scheduler_pod_scheduling_duration_seconds_bucket{{attempts="1",le="{bound}"}}' in names
    assert "_created" not in names


def test_many_attempts_are_one_label() -> None:
    assert [attempts_label(n) for n in (1, 14, 15, 99)] == ["1", "14", "15+", "15+"]


def test_the_core_is_asked_when_somebody_looks() -> None:
    registry, core = CollectorRegistry(), scheduler()
    registry.register(CoreMetrics(core, lambda: 7, lambda: 3))
    core.on(SetNode(node("n1")), 0.0)
    core.on(SetPod(pod("runs", on="n1")), 0.0)
    core.on(SetPod(pod("waits")), 0.0)
    found = shown(registry)
    assert found['scheduler_pending_pods{queue="active"}'] == 1
    assert found['scheduler_scheduler_cache_size{type="nodes"}'] == 1
    assert found['scheduler_scheduler_cache_size{type="pods"}'] == 1
    assert found['scheduler_scheduler_cache_size{type="assumed_pods"}'] == 0
    assert found['scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"}'] == 1
    assert (found["ksp_bindings_in_flight"], found["ksp_preemptions_in_flight"]) == (7, 3)
    core.step(0.0)
    found = shown(registry)
    assert found['scheduler_pending_pods{queue="active"}'] == 0
    assert found['scheduler_scheduler_cache_size{type="assumed_pods"}'] == 1


def test_equivalence_classes_and_questions_about_unschedulable_pods() -> None:
    registry, core = CollectorRegistry(), scheduler()
    registry.register(CoreMetrics(core, lambda: 0, lambda: 0))
    assert shown(registry)['scheduler_equiv_cache_lookups_total{result="hit"}'] == 0
    core.on(SetNode(node("n1")), 0.0)
    core.on(SetPod(pod("runs", on="n1", requests={"cpu": "2"})), 0.0)
    for name in ("a", "b", "c"):
        core.on(SetPod(pod(name, requests={"cpu": "4"})), 0.0)
        core.step(0.0)
    found = shown(registry)
    assert found['scheduler_equiv_cache_lookups_total{result="hit"}'] == 2
    assert found['scheduler_equiv_cache_lookups_total{result="miss"}'] == 1
    assert found['ksp_equiv_cache_size{type="classes"}'] == 1
    assert found['ksp_equiv_cache_size{type="memos"}'] > 1
    assert "ksp_equiv_cache_invalidations_total" in found
    core.on(SetNode(node("n2", cpu="3")), 5.0)
    core.on(SetNode(node("n2", cpu="4")), 5.0)
    found = shown(registry)
    assert found['ksp_requeue_questions_total{answer="waits"}'] == 1
    assert found['ksp_requeue_questions_total{answer="fits"}'] == 1
    assert found['ksp_requeue_questions_total{answer="unknown"}'] == 0
    assert found["ksp_requeue_left_waiting_pods_total"] == 3 + 2
