"""What /metrics shows: kube-scheduler 1.19's names, labels and buckets, for what is measured here; then ksp's own.

Each instance has a registry of its own. Gauges are read from the core when somebody asks. What is not measured is not
there: the core has no stopwatch, so nothing is known of the time that a single rule takes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from ksp import __version__
from ksp.core.cycle import EMPTINESS, ITSELF
from ksp.core.scheduler import Scheduler, Step
from ksp.core.sleepers import ANSWERS
from ksp.model.info import PodInfo
from ksp.runtime.observer import Binding

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each histogram, which kube-scheduler does not have

MANY_ATTEMPTS: Final = 15

Labels = TypeVar("Labels", bound=tuple[str, ...])


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets, as Prometheus' Go client makes them."""
    return tuple(start * factor**i for i in range(count))


def linear(start: float, width: float, count: int) -> tuple[float, ...]:
    """The same, at equal distances."""
    return tuple(start + width * i for i in range(count))


_ATTEMPT: Final = exponential(0.001, 2, 15)


class SchedulerMetrics:
    """Counts and measures what the loop tells; an `Observer`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._attempts = Counter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods: unschedulable means that no node fits, error that something went wrong.",
            ("result", "profile"),
            registry=registry,
        )
        self._e2e = Histogram(
            "scheduler_e2e_scheduling_duration_seconds",
            "An attempt, from its begin to the end of its binding.",
            ("result", "profile"),
            buckets=_ATTEMPT,
            registry=registry,
        )
        self._algorithm = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time to find a node for a pod.",
            buckets=_ATTEMPT,
            registry=registry,
        )
        self._binding = Histogram(
            "scheduler_binding_duration_seconds", "Time to bind a pod.", buckets=_ATTEMPT, registry=registry
        )
        self._pod = Histogram(
            "scheduler_pod_scheduling_duration_seconds",
            "From when a pod was first seen waiting to its binding, over all attempts.",
            ("attempts",),
            buckets=exponential(0.01, 2, 20),
            registry=registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that a pod needed to be bound.",
            buckets=exponential(1, 2, 5),
            registry=registry,
        )
        self._preemptions = Counter(
            "scheduler_preemption_attempts",
            "Pods that fit nowhere, for which it was asked whether others have to go.",
            registry=registry,
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Pods that have to go for another's sake, at a time.",
            buckets=linear(5, 5, 10),
            registry=registry,
        )
        self._stages = Counter(
            "scheduler_volume_scheduling_stage_error",
            "Pods that were not bound since something went wrong with their volumes, by what was being done.",
            ("operation",),
            registry=registry,
        )
        self._faults = Counter(
            "ksp_internal_errors", "Faults of ksp itself, by what was being done.", ("doing",), registry=registry
        )

    def decided(self, step: Step, seconds: float) -> None:
        decision = step.decision
        if decision.node:
            self._algorithm.observe(seconds)
            return
        self._attempt("error" if decision.failed else "unschedulable", step.pod, seconds)
        if not decision.failed and decision.denied_by.isdisjoint({ITSELF, EMPTINESS}):
            self._preemptions.inc()
        if step.preempted is not None:
            self._victims.observe(len(step.preempted.victims))

    def bound(self, binding: Binding, now: float) -> None:
        self._attempt("scheduled", binding.pod, now - binding.began)
        self._binding.observe(now - binding.decided)
        self._pod.labels(attempts_label(binding.attempt)).observe(now - binding.first_added)
        self._pod_attempts.observe(binding.attempt)

    def not_bound(self, binding: Binding, message: str, now: float) -> None:
        self._attempt("error", binding.pod, now - binding.began)
        if binding.volumes is not None:
            self._stages.labels("bind").inc()

    def wait_failed(self, pod: PodInfo, message: str) -> None:
        self._attempts.labels("error", pod.scheduler_name).inc()
        self._stages.labels("bind").inc()

    def fault(self, where: str, pod: PodInfo | None) -> None:
        self._faults.labels(where).inc()
        if pod is not None and where == "deciding":
            self._attempts.labels("error", pod.scheduler_name).inc()

    def _attempt(self, result: str, pod: PodInfo, seconds: float) -> None:
        self._attempts.labels(result, pod.scheduler_name).inc()
        self._e2e.labels(result, pod.scheduler_name).observe(seconds)


def attempts_label(attempts: int) -> str:
    """How kube-scheduler labels a number of attempts, so that labels stay few."""
    return f"{MANY_ATTEMPTS}+" if attempts >= MANY_ATTEMPTS else str(attempts)


class CoreMetrics(Collector):
    """What stands in the core's queue and cache at the moment, and what the core counts; how many bindings are on their
    way, and for how many pods others are being evicted."""

    def __init__(self, scheduler: Scheduler, binding: Callable[[], int], preempting: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._binding = binding
        self._preempting = preempting

    def collect(self) -> Iterable[Metric]:
        yield _gauge("scheduler_pending_pods", "Pods that wait, by queue.", "queue", self._scheduler.pending())
        yield _gauge(
            "scheduler_scheduler_cache_size", "Nodes and pods in the cache.", "type", self._scheduler.cache_size()
        )
        yield _counter(
            "scheduler_queue_incoming_pods",
            "Pods that came to a queue, by what brought them.",
            ("queue", "event"),
            self._scheduler.queue.incoming,
        )
        yield _counter(
            "ksp_unread_fields",
            "Pods with a field that the policy does not read, and what became of them.",
            ("field", "outcome"),
            self._scheduler.unread.counts,
        )
        yield GaugeMetricFamily("ksp_bindings_in_flight", "Bindings whose outcome is not known yet.", self._binding())
        yield GaugeMetricFamily(
            "ksp_preemptions_in_flight", "Pods for whose sake others are still to be deleted.", self._preempting()
        )
        yield from self._of_classes()
        yield from self._of_sleepers()

    def _of_classes(self) -> Iterable[Metric]:
        classes = [cycle.classes for cycle in self._scheduler.cycles.values()]
        counters = [each.counters for each in classes]
        found = {("hit",): sum(c.hits for c in counters), ("miss",): sum(c.misses for c in counters)}
        yield _counter(
            "scheduler_equiv_cache_lookups",
            "Pods to decide for, by whether a pod that rules cannot tell from it had been decided for.",
            ("result",),
            found,
        )
        yield CounterMetricFamily(
            "ksp_equiv_cache_invalidations",
            "How often a rule had to be asked about all nodes again, since what it reads had changed.",
            sum(c.invalidations for c in counters),
        )
        sizes = [each.size() for each in classes]
        by_type = {name: sum(size[name] for size in sizes) for name in ("classes", "memos")}
        yield _gauge(
            "ksp_equiv_cache_size", "Classes of pods, and answers of single rules, that are kept.", "type", by_type
        )

    def _of_sleepers(self) -> Iterable[Metric]:
        sleepers = self._scheduler.queue.sleepers
        answers = {(answer,): sleepers.answers[answer] for answer in ANSWERS}
        yield _counter(
            "ksp_requeue_questions",
            "How often it was asked after an event whether unschedulable pods that are alike fit now, by the answer.",
            ("answer",),
            answers,
        )
        yield CounterMetricFamily(
            "ksp_requeue_left_waiting_pods",
            "Unschedulable pods that an event might have helped, and that an answer let wait.",
            sleepers.left_waiting,
        )


def _gauge(name: str, help: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, help, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def _counter(name: str, help: str, labels: tuple[str, ...], values: Mapping[Labels, int]) -> Metric:
    family = CounterMetricFamily(name, help, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


class BuildInfo(Collector):
    """The version of ksp."""

    def collect(self) -> Iterable[Metric]:
        build = {"version": __version__, "python_version": platform.python_version()}
        yield InfoMetricFamily("ksp_build", "The version of ksp.", build)


def new_registry() -> CollectorRegistry:
    """A registry with what is known of the process: memory, CPU, garbage collection."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """The metrics in the format that a scraper's Accept header asks for, and the content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
