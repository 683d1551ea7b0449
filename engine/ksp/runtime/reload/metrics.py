"""What /metrics shows of reloads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from ksp.runtime.metrics import exponential
from ksp.runtime.status import StatusBoard

Outcome = Literal["adopted", "unchanged", "failed", "rolled_back"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("adopted", "unchanged", "failed", "rolled_back")


class ReloadMetrics:
    """Counts what became of changes, and measures how long their stages take."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reloads = Counter(
            "ksp_policy_reloads", "Changes of the policy, and what became of them.", ("outcome",), registry=registry
        )
        for outcome in OUTCOMES:
            self._reloads.labels(outcome)
        self._successful = Gauge(
            "ksp_policy_last_reload_successful",
            "1 if the last change of the policy was taken and kept, or there was none; else 0.",
            registry=registry,
        )
        self._successful.set(1)
        self._success = Gauge(
            "ksp_policy_last_reload_success_timestamp_seconds",
            "When the policy was taken that was the last to be taken.",
            registry=registry,
        )
        self._seconds = Histogram(
            "ksp_policy_reload_duration_seconds",
            "Time that a stage of a reload takes.",
            ("stage",),
            buckets=exponential(0.001, 2, 17),
            registry=registry,
        )

    def ended(self, outcome: Outcome) -> None:
        """Something became of a change."""
        self._reloads.labels(outcome).inc()
        self._successful.set(outcome in {"adopted", "unchanged"})

    def took(self, at: float) -> None:
        """A policy was taken, at that time of day, in seconds since 1970."""
        self._success.set(at)

    def stage(self, stage: str, seconds: float) -> None:
        """So long took a stage: vet, assemble, caches, prepare, adopt."""
        self._seconds.labels(stage).observe(seconds)


class PolicyInfo(Collector):
    """Which policy decides."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        status = self._board.status
        yield GaugeMetricFamily(
            "ksp_policy_generation", "The generation of the policy that decides.", status.generation
        )
        if status.generation:
            about = {"policy": status.policy, "sha256": status.sha256}
            yield InfoMetricFamily("ksp_policy", "The policy that decides, and the hash of its files.", about)
