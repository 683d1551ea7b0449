"""Measurements and comparisons as tables: aligned for a terminal, or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ksp.cli.terminal import counted
from ksp.sim.bench.comparison import Change, Comparison, Pair
from ksp.sim.bench.figures import Conditions, Spread, Summary
from ksp.sim.bench.records import Record
from ksp.sim.bench.rule_times import RuleTimes

_HEADS: Final = (
    "workload", "nodes", "pods", "running", "decisions/s", "p50 ms", "p90 ms", "p99 ms", "max ms", "cold ms", "hits",
    "cpu ms", "MiB",
)  # fmt: skip
_FIGURES: Final = {
    "decisions_per_second": "decisions/s", "p50_ms": "p50 ms", "p99_ms": "p99 ms", "cpu_ms_per_decision": "cpu ms",
    "peak_memory_mib": "MiB", "preemptions_per_second": "preemptions/s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text. The first `left` columns are aligned to the left, the others to the right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def text(self, width: int | None = None) -> str:
        """Aligned, two spaces between columns. Columns that are more than `width` allows follow in a block below, which
        begins with those on the left again."""
        lines = [self.heads, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        return "\n\n".join(
            "\n".join("  ".join(self._cells(line, widths, block)).rstrip() for line in lines)
            for block in self._blocks(widths, width)
        )

    def markdown(self) -> str:
        rules = ["---" if i < self.left else "---:" for i in range(len(self.heads))]
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.heads, rules, *self.rows))

    def _blocks(self, widths: Sequence[int], most: int | None) -> list[list[int]]:
        """Places of columns, in blocks that are no wider than `most`, as far as one column beside the left allows."""
        left = list(range(self.left))
        blocks = [[*left]]
        for place in range(self.left, len(widths)):
            wide = sum(widths[i] + 2 for i in blocks[-1]) + widths[place]
            if most is not None and wide > most and len(blocks[-1]) > self.left:
                blocks.append([*left])
            blocks[-1].append(place)
        return blocks

    def _cells(self, line: Sequence[str], widths: Sequence[int], block: Sequence[int]) -> Iterator[str]:
        for i in block:
            yield line[i].ljust(widths[i]) if i < self.left else line[i].rjust(widths[i])


def drawn(table: Table, *, markdown: bool, width: int | None = None) -> str:
    """`width` is that of a terminal; None where lines are not broken."""
    return table.markdown() if markdown else table.text(width)


# ---- one record


def circumstances(record: Record) -> str:
    """What ran where, and under which conditions that all runs share."""
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    machine = ", ".join(
        f"{value} {name}" if isinstance(value, int) else value for name, value in record.machine.items()
    )
    shared = sorted({_conditions(each.conditions) for each in record.summaries()})
    return "; ".join(part for part in (versions, machine, *shared) if part)


def _conditions(of: Conditions) -> str:
    parts = [of.policy, *([of.provider] if of.provider else [])]
    if of.percentage_of_nodes_to_score is not None:
        parts.append(f"percentageOfNodesToScore {of.percentage_of_nodes_to_score}")
    parts.append(f"equivalence classes {'on' if of.equivalence_classes else 'off'}")
    parts.append(f"columns {'on' if of.columns else 'off'}")
    return ", ".join([*parts, f"seed {of.seed}"])


def measurements(record: Record) -> Table:
    """A row for each workload and size; of several runs the medians, and the spread of the first figure. Preemptions
    stand last, if there are any."""
    found = record.summaries()
    if not any(each.median.preemptions for each in found):
        return Table(_HEADS, [_row(each) for each in found])
    heads = (*_HEADS, "preemptions", "preemptions/s")
    return Table(heads, [[*_row(each), *_preemptions(each)] for each in found])


def _preemptions(of: Summary) -> list[str]:
    return [f"{of.median.preemptions:,}", _rate(of, "preemptions_per_second")] if of.median.preemptions else ["-", "-"]


def _rate(of: Summary, name: str) -> str:
    """With the spread of several runs."""
    rate = f"{getattr(of.median, name):,.0f}"
    return rate if of.runs == 1 else f"{rate} ({_range(of.spread[name])})"


def _row(of: Summary) -> list[str]:
    conditions, found = of.conditions, of.median
    times = (found.p50_ms, found.p90_ms, found.p99_ms, found.max_ms, found.cold_ms)
    return [
        conditions.workload, f"{conditions.nodes:,}", f"{conditions.pods:,}", f"{conditions.existing or 0:,}",
        _rate(of, "decisions_per_second"),
        *(milliseconds(time) for time in times), share(found.hit_rate), milliseconds(found.cpu_ms_per_decision),
        f"{found.peak_memory_mib:,.0f}",
    ]  # fmt: skip


def _range(spread: Spread) -> str:
    return f"{spread.least:,.0f}..{spread.most:,.0f}"


def milliseconds(value: float) -> str:
    """Three digits that say something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def notes(record: Record) -> Iterator[str]:
    """What the table does not show and should not be overlooked."""
    for each in record.summaries():
        of, found = each.conditions, each.median
        where = f"{of.workload}, {counted(of.nodes, 'node')}"
        if found.placed < of.pods:
            yield f"{where}: {of.pods - found.placed:,} of {of.pods:,} pods found no node"
        if of.pending:
            yield f"{where}: beside {of.pending:,} pods that fit nowhere"


# ---- rules


def rules(times: Sequence[RuleTimes], pods: int) -> Table:
    """The most expensive first; microseconds for each measured pod."""
    heads = ("rule", "kind", "us/pod", "binding", "judging", "prepared", "evaluations", "in columns", "denied")
    return Table(heads, [_rule(each, max(1, pods)) for each in times], left=2)


def _rule(of: RuleTimes, pods: int) -> list[str]:
    seconds = (of.seconds, of.binding_seconds, of.judging_seconds)
    columns = of.columns / of.evaluations if of.evaluations else None
    return [
        of.name, of.kind, *(f"{1e6 * each / pods:,.1f}" for each in seconds), f"{of.prepared:,}", f"{of.evaluations:,}",
        share(columns), share(of.selectivity),
    ]  # fmt: skip


# ---- two records


def comparison(of: Comparison) -> Table:
    """A row for each figure of each workload. What lies within the spread is marked."""
    heads = ("workload", "nodes", "figure", "before", "after", "ratio", "")
    rows = [_changed(pair, change) for pair in of.pairs for change in pair.changes]
    return Table(heads, rows, left=3)


def _changed(pair: Pair, change: Change) -> list[str]:
    conditions = pair.before.conditions
    shown: Callable[[float], str] = milliseconds if change.figure.endswith("_ms") else lambda value: f"{value:,.0f}"
    if change.figure == "cpu_ms_per_decision":
        shown = milliseconds
    ratio = "-" if change.ratio is None else f"{change.ratio:.2f}"
    return [
        conditions.workload, f"{conditions.nodes:,}", _FIGURES[change.figure], shown(change.before),
        shown(change.after), ratio, _meaning(change),
    ]  # fmt: skip


def _meaning(change: Change) -> str:
    if change.clear is None:
        return "one run: spread unknown"
    return "" if change.clear else "within the spread"


def differences(of: Comparison) -> Iterator[str]:
    """Conditions that are not the same in both, and what only one has."""
    for pair in of.pairs:
        for name in pair.differing:
            before, after = (getattr(each.conditions, name) for each in (pair.before, pair.after))
            what = name.replace("_", " ")
            yield f"{pair.before.conditions.workload}, {what}: {_said(before)} before, {_said(after)} after"
    for where, missing in (("before", of.only_before), ("after", of.only_after)):
        for conditions in missing:
            size = f"{counted(conditions.nodes, 'node')}, {counted(conditions.pods, 'pod')}"
            yield f"only {where}: {conditions.workload}, {size}"


def _said(value: object) -> str:
    return "on" if value is True else "off" if value is False else str(value)
