"""What is known of a measurement: the figures of a run, and of several runs the medians with their spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is measured. `existing` and `pending` None are what the workload has by itself; a run has numbers there. In
    `pods` it has how many were measured, which may be fewer than were asked for."""

    workload: str
    nodes: int
    pods: int
    existing: int | None = None
    pending: int | None = None
    seed: int = 1
    policy: str = ""
    provider: str | None = None
    percentage_of_nodes_to_score: int | None = None
    equivalence_classes: bool = True
    columns: bool = True


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of it. `placed` of the measured pods got a node; `attempts` are all steps meanwhile, those for other
    pods and second ones included.

    `core_seconds` is all that the core did in that time, and `decisions_per_second` the measured pods by it. `p50_ms`
    to `max_ms` are of `step` alone, over all attempts, `first_ms` is the first, `cold_ms` the median of those whose
    class was not known. `arrival_ms` is what a pod costs when it comes, `confirmation_ms` when its binding succeeds and
    the watch shows it, `churn_ms` what else comes and goes: averages for each measured pod. `hit_rate` is the share of
    decisions and questions for which the pod's class was known, `classes` how many are kept in the end. `cpu_seconds`
    is the processor's time for measuring, the driver's few microseconds a pod included. `peak_memory_mib` is of the
    whole process since its start. `preemptions` attempts ended in the choice of pods that have to go, and
    `preemptions_per_second` is their number by the time of their `step`."""

    placed: int
    attempts: int
    decisions_per_second: float
    core_seconds: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    first_ms: float
    cold_ms: float
    arrival_ms: float
    confirmation_ms: float
    churn_ms: float
    hit_rate: float
    hits: int
    misses: int
    invalidations: int
    classes: int
    cpu_seconds: float
    cpu_ms_per_decision: float
    setup_seconds: float
    peak_memory_mib: float
    preemptions: int = 0
    preemptions_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run, in a process of its own."""

    conditions: Conditions
    figures: Figures


@dataclass(frozen=True, slots=True)
class Spread:
    """The least and the most of a figure in several runs."""

    least: float
    most: float

    def meets(self, other: Spread) -> bool:
        """Whether there are values that are in both: then a difference of the medians says nothing."""
        return self.least <= other.most and other.least <= self.most


@dataclass(frozen=True, slots=True)
class Summary:
    """Runs of the same: `median` has the median of each figure, `spread` least and most by the figure's name."""

    conditions: Conditions
    runs: int
    median: Figures
    spread: dict[str, Spread]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The least value that at least this share of the values do not exceed (nearest rank); 0 if there are none."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def summaries(runs: Sequence[Run]) -> list[Summary]:
    """Runs under the same conditions together, in the order in which these came first."""
    groups: dict[Conditions, list[Figures]] = {}
    for run in runs:
        groups.setdefault(run.conditions, []).append(run.figures)
    return [_summary(conditions, group) for conditions, group in groups.items()]


def _summary(conditions: Conditions, runs: Sequence[Figures]) -> Summary:
    values = {each.name: [getattr(run, each.name) for run in runs] for each in fields(Figures)}
    medians: dict[str, Any] = {name: _median(found) for name, found in values.items()}
    spread = {name: Spread(min(found), max(found)) for name, found in values.items()}
    return Summary(conditions, len(runs), Figures(**medians), spread)


def _median(values: Sequence[float]) -> float:
    """Counts stay whole."""
    middle = median(values)
    return round(middle) if all(isinstance(value, int) for value in values) else middle
