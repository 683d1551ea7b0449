"""What the runner times, and what it makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.sim.bench.watches import HandWatch, TimedScheduler, surroundings

from ksp.sim.bench.figures import Conditions, Figures, Run
from ksp.sim.bench.runner import measure
from ksp.sim.bench.scenario import Size
from ksp.sim.bench.workloads import CHURN_EVERY, WORKLOADS


def timed(workload: str, size: Size, steps: list[float]) -> Run:
    watch = HandWatch()
    scheduler = TimedScheduler(watch, steps)
    conditions = Conditions(workload, size.nodes, size.pods, size.existing, size.pending)
    return measure(conditions, WORKLOADS[workload](size), scheduler, surroundings(scheduler, watch))


def test_all_that_the_core_does_for_a_pod_counts() -> None:
    found = timed("SchedulingBasic", Size(5, 10), [0.002] * 10).figures
    assert found.core_seconds == pytest.approx(10 * (0.001 + 0.002 + 0.001))
    assert found.decisions_per_second == pytest.approx(250)
    assert [found.arrival_ms, found.confirmation_ms] == pytest.approx([1, 1])
    assert found.cpu_seconds == pytest.approx(0.04)
    assert found.cpu_ms_per_decision == pytest.approx(4)
    assert found.peak_memory_mib == 7.0


def test_milliseconds_are_of_deciding_alone() -> None:
    steps = [i / 1000 for i in (100, *range(1, 100))]
    found = timed("SchedulingBasic", Size(5, 100), steps).figures
    assert [found.p50_ms, found.p90_ms, found.p99_ms] == pytest.approx([50, 90, 99])
    assert [found.max_ms, found.first_ms] == pytest.approx([100, 100])


def test_what_happens_before_does_not_count() -> None:
    few, many = (timed("Unschedulable", Size(5, 10, existing, existing), [0.002] * 10) for existing in (0, 20))
    assert replace(few.figures, classes=0) == replace(many.figures, classes=0)
    assert (many.conditions.existing, many.conditions.pending) == (20, 20)


def test_pods_that_find_no_node_are_decided_and_not_placed() -> None:
    found = timed("SchedulingPodAntiAffinity", Size(10, 12), [0.002] * 12)
    assert (found.figures.placed, found.figures.attempts) == (8, 12)
    assert found.figures.core_seconds == pytest.approx(12 * (0.001 + 0.002) + 8 * 0.001)
    assert found.conditions.existing == 2


def test_churn_counts_and_its_pods_are_no_decisions() -> None:
    pods = 2 * CHURN_EVERY
    found = timed("SchedulingWithMixedChurn", Size(10, pods), [0.002] * (pods + 1)).figures
    assert (found.placed, found.attempts) == (pods, pods + 1)
    assert found.churn_ms == pytest.approx(6 / pods)  # three come, three go
    assert found.core_seconds == pytest.approx(0.006 + 2 * pods * 0.001 + (pods + 1) * 0.002)


def test_who_is_told() -> None:
    watch, heard = HandWatch(), list[int]()
    scheduler = TimedScheduler(watch, [0.0] * 100)
    around = surroundings(scheduler, watch)
    told = type(around)(around.stopwatch, around.processor, around.peak_memory, around.settle, heard.append)
    measure(Conditions("", 5, 100), WORKLOADS["SchedulingBasic"](Size(5, 100)), scheduler, told)
    assert heard == [0, 64, 100]


def test_a_run_is_the_same_again() -> None:
    first, second = (timed("MixedSchedulingBasePod", Size(10, 60), [0.001] * 60) for _ in range(2))
    assert first == second
    assert isinstance(first.figures, Figures)


def test_how_often_the_class_was_known() -> None:
    found = timed("MixedSchedulingBasePod", Size(5, 150), [0.001] * 150).figures
    assert (found.hits, found.misses) == (100, 50)
    assert found.hit_rate == pytest.approx(2 / 3)
    assert found.classes == 51  # that of the pod that warms up is among them


def test_a_decision_without_a_class_is_cold() -> None:
    cold = [0.001 * i for i in range(1, 51)]
    found = timed("MixedSchedulingBasePod", Size(5, 100), [*cold, *[0.0] * 50]).figures
    assert (found.misses, found.hits) == (50, 50)
    assert [found.cold_ms, found.first_ms] == pytest.approx([25, 1])


def test_a_preemption_is_an_attempt_and_the_pod_is_decided_again() -> None:
    """Two attempts for each pod: the first ends in a preemption, and all that has to go for it counts."""
    found = timed("PreemptionBasic", Size(4, 4), [0.002] * 20)
    figures = found.figures
    assert (figures.placed, figures.attempts, figures.preemptions) == (4, 8, 4)
    assert figures.preemptions_per_second == pytest.approx(4 / (4 * 0.002))
    assert figures.churn_ms == pytest.approx(3)  # three pods are shown to be gone for each
    assert figures.core_seconds == pytest.approx(4 * 0.001 + 12 * 0.001 + found.figures.attempts * 0.002 + 4 * 0.001)


def test_without_preemptions_there_is_no_rate_of_them() -> None:
    figures = timed("SchedulingBasic", Size(5, 10), [0.002] * 10).figures
    assert (figures.preemptions, figures.preemptions_per_second) == (0, 0.0)
