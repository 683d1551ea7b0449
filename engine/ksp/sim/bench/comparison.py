"""Two measurements side by side: the same workloads at the same size, before and after a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from ksp.sim.bench.figures import Conditions, Spread, Summary
from ksp.sim.bench.records import Record, RecordError

COMPARED: Final = ("decisions_per_second", "p50_ms", "p99_ms", "cpu_ms_per_decision", "peak_memory_mib")
PREEMPTIONS: Final = "preemptions_per_second"
"""Compared where there are any."""
_SIZE: Final = ("workload", "nodes", "pods", "existing", "pending")


@dataclass(frozen=True, slots=True)
class Change:
    """One figure, before and after. `clear` is whether the values of both sides lie apart; None if a side has a single
    run, whose spread is not known."""

    figure: str
    before: float
    after: float
    clear: bool | None

    @property
    def ratio(self) -> float | None:
        """After by before; None if that cannot be said."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True, slots=True)
class Pair:
    """The same workload at the same size in both. `differing` names other conditions that are not equal."""

    before: Summary
    after: Summary
    differing: Sequence[str]
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is in both, and what is in one only."""

    pairs: Sequence[Pair]
    only_before: Sequence[Conditions]
    only_after: Sequence[Conditions]


def compared(before: Record, after: Record) -> Comparison:
    """Raises RecordError if nothing in one fits anything in the other, or if one has several kinds of runs of the same
    workload and size."""
    first, second = _by_size(before.summaries()), _by_size(after.summaries())
    common = [size for size in first if size in second]
    if not common:
        raise RecordError(
            "they have no workload in common at the same size: "
            f"{_listed(first.values())} here, {_listed(second.values())} there"
        )
    return Comparison(
        [_pair(first[size], second[size]) for size in common],
        [each.conditions for size, each in first.items() if size not in second],
        [each.conditions for size, each in second.items() if size not in first],
    )


def _by_size(found: Iterable[Summary]) -> Mapping[tuple[object, ...], Summary]:
    result: dict[tuple[object, ...], Summary] = {}
    for each in found:
        size = tuple(getattr(each.conditions, name) for name in _SIZE)
        if size in result:
            differing = ", ".join(_differing(result[size].conditions, each.conditions))
            raise RecordError(f"{each.conditions.workload} was measured in several ways ({differing}) in one file")
        result[size] = each
    return result


def _pair(before: Summary, after: Summary) -> Pair:
    preempts = before.median.preemptions > 0 or after.median.preemptions > 0
    names = (*COMPARED, PREEMPTIONS) if preempts else COMPARED
    changes = [_change(name, before, after) for name in names]
    return Pair(before, after, _differing(before.conditions, after.conditions), changes)


def _change(name: str, before: Summary, after: Summary) -> Change:
    clear = None if min(before.runs, after.runs) < 2 else not _spread(before, name).meets(_spread(after, name))
    return Change(name, getattr(before.median, name), getattr(after.median, name), clear)


def _spread(of: Summary, name: str) -> Spread:
    return of.spread[name]


def _differing(before: Conditions, after: Conditions) -> list[str]:
    names = (each.name for each in fields(Conditions))
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def _listed(found: Iterable[Summary]) -> str:
    return ", ".join(f"{each.conditions.workload} ({each.conditions.nodes} nodes)" for each in found)
