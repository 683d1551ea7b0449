"""Simulations as text: tables for a terminal of 100 columns or more, and for a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ksp.cli.amounts import human, percent
from ksp.cli.terminal import counted
from ksp.sim.outcome import Eviction, Fate, NodeUse, Outcome, PodRecord, totals
from ksp.sim.texts import ManifestError

COLUMNS = 100
SMALL = 100
"""As many pods are shown one by one."""
_MOST_GROUPS, _MOST_REASONS, _EXAMPLES = 12, 20, 3
_MOST_LISTED = 20


def write(parts: Iterable[RenderableType], stream: TextIO) -> None:
    """For a terminal in its width and with colours; for anything else plain and 100 columns wide."""
    if stream.isatty():
        _console(stream, None).print(*parts, sep="\n")
        return
    text = StringIO()
    _console(text, COLUMNS).print(*parts, sep="\n")
    stream.write("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))


def _console(stream: TextIO, width: int | None) -> Console:
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """With what a terminal might obey written out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def full_name(record: PodRecord) -> str:
    return f"{record.namespace}/{record.name}"


def titled(title: str, *parts: RenderableType) -> RenderableType:
    return Group(Text(), Text(title, style="bold"), *(Padding(part, (0, 0, 0, 2)) for part in parts))


# ---- where the pods went


def pods_by_pod(records: Iterable[PodRecord]) -> Table:
    """Each pod with its node."""
    table = _table("pod", "node")
    for record in records:
        table.add_row(_cell(full_name(record)), _cell(record.node or "-"))
    return table


def pods_by_node(outcome: Outcome) -> Table:
    """Each node with the pods that were placed on it, and how full it is."""
    table = _table("node", "cpu", "memory", "pods placed on it", right=("cpu", "memory"))
    names: dict[str, list[str]] = {}
    for record in outcome.records:
        if record.node:
            names.setdefault(record.node, []).append(printable(full_name(record)))
    for node in sorted(outcome.nodes, key=lambda each: each.name):
        shares = (percent(node.requested.get(name, 0), node.allocatable.get(name, 0)) for name in ("cpu", "memory"))
        table.add_row(_cell(node.name), *shares, Text(", ".join(names.get(node.name, [])) or "-"))
    return table


def pods_by_group(outcome: Outcome) -> Table:
    """Nodes that have the same to give, together: how many, how many of them have or had pods, how many pods were
    placed there, how full they are."""
    placed = Counter(record.node for record in outcome.records)
    extended = [name for name in outcome.allocation if "/" in name][:3]
    shown = ("cpu", "memory", *extended)
    heads = ("nodes", "used", "pods", *(printable(name.rpartition("/")[2]) for name in shown))
    table = _table("each has", *heads, right=heads)
    groups: dict[str, list[NodeUse]] = {}
    for node in outcome.nodes:
        groups.setdefault(_shape(node), []).append(node)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = ordered[:_MOST_GROUPS]
    rest = [node for _, nodes in ordered[_MOST_GROUPS:] for node in nodes]
    if rest:
        rows.append((f"{len(ordered) - _MOST_GROUPS} other kinds", rest))
    for shape, nodes in rows:
        requested, allocatable = totals(n.requested for n in nodes), totals(n.allocatable for n in nodes)
        shares = (percent(requested.get(name, 0), allocatable.get(name, 0)) for name in shown)
        used = sum(n.pods > 0 or n.name in placed for n in nodes)
        pods = sum(placed[n.name] for n in nodes)
        table.add_row(_cell(shape), f"{len(nodes):,}", f"{used:,}", f"{pods:,}", *shares)
    return table


def _shape(node: NodeUse) -> str:
    units = {"cpu": "cpu", "memory": "", "ephemeral-storage": None, "pods": None}
    parts = []
    for name, amount in totals([node.allocatable]).items():
        unit = units.get(name, name)
        if unit is not None:
            parts.append(f"{human(name, amount)} {unit}".rstrip())
    return ", ".join(parts)


# ---- why the others did not


def reasons_by_pod(records: Iterable[PodRecord]) -> Table:
    """The sentence for each pod that waits; pods with the same one together."""
    table = _table("pod", "why not")
    names: dict[str, list[str]] = {}
    for record in records:
        names.setdefault(record.message, []).append(printable(full_name(record)))
    for message, pods in names.items():
        table.add_row(Text("\n".join(pods), overflow="fold"), _cell(message))
        table.add_section()
    return table


def reasons_by_count(records: Sequence[PodRecord]) -> Table:
    """What denied the pods that wait: how many pods for the same set of reasons, with examples."""
    table = _table("pods", "why not", "for example", right=("pods",))
    groups: dict[str, list[PodRecord]] = {}
    for record in records:
        groups.setdefault(reason_set(record), []).append(record)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    for reasons, pods in ordered[:_MOST_REASONS]:
        examples = [printable(full_name(record)) for record in pods[:_EXAMPLES]]
        table.add_row(f"{len(pods):,}", _cell(reasons), Text("\n".join(examples), overflow="fold"))
    if len(ordered) > _MOST_REASONS:
        rest = ordered[_MOST_REASONS:]
        table.add_row(f"{sum(len(pods) for _, pods in rest):,}", f"{len(rest)} other sets of reasons", "")
    return table


def reason_set(record: PodRecord) -> str:
    """The reasons without their counts of nodes; of an attempt that ended in an error, the error."""
    return "; ".join(sorted(record.reasons)) or record.message


# ---- who had to go


def evictions_by_pod(evictions: Iterable[Eviction]) -> Table:
    """Each pod that was evicted, with the node that it left and the pod for which it did."""
    listed = list(evictions)
    budgets = any(each.against_budget for each in listed)
    table = _table("pod", "had to leave", "for", *(("against its budget",) if budgets else ()))
    for each in listed:
        against = ["yes" if each.against_budget else ""] if budgets else []
        table.add_row(_cell(each.pod), _cell(each.node), _cell(each.by), *against)
    return table


def evictions_by_preemptor(evictions: Iterable[Eviction]) -> Table:
    """For whom how many pods had to go, those for whom the most did first, with examples."""
    table = _table("evicted", "for", "for example", right=("evicted",))
    groups: dict[str, list[Eviction]] = {}
    for each in evictions:
        groups.setdefault(each.by, []).append(each)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    for by, gone in ordered[:_MOST_REASONS]:
        examples = [f"{printable(each.pod)} on {printable(each.node)}" for each in gone[:_EXAMPLES]]
        table.add_row(f"{len(gone):,}", _cell(by), Text("\n".join(examples), overflow="fold"))
    rest = ordered[_MOST_REASONS:]
    if rest:
        table.add_row(f"{sum(len(gone) for _, gone in rest):,}", counted(len(rest), "other pod"), "")
    return table


# ---- sums


def allocation_table(outcome: Outcome) -> Table:
    """What pods ask for and what there is, of each resource."""
    peaks = any(each.peak != each.requested for each in outcome.allocation.values())
    heads = ("requested", "of", "share", *(("at most",) if peaks else ()))
    table = _table("resource", *heads, right=heads)
    for name, each in outcome.allocation.items():
        cells = [human(name, each.requested), human(name, each.allocatable), percent(each.requested, each.allocatable)]
        table.add_row(_cell(name), *cells, *([human(name, each.peak)] if peaks else []))
    return table


def summary(outcome: Outcome, clock: str = "of virtual time") -> Iterator[str]:
    """A few lines: how many pods found a place, and how fast that was decided."""
    if not outcome.records:
        runs = f"{counted(outcome.running, 'pod')} {'runs' if outcome.running == 1 else 'run'} already"
        yield f"{runs if outcome.running else 'no pod runs'}, and none waits for a node"
        return
    placed, waiting = outcome.count(Fate.PLACED), outcome.count(Fate.WAITING)
    yield f"{placed:,} of {counted(len(outcome.records), 'pod')} placed, {waiting:,} found no node"
    alone = Counter(printable(r.message) for r in outcome.records if r.fate is Fate.LEFT_ALONE)
    for why, count in alone.items():
        yield f"{counted(count, 'pod')} left alone: {why}"
    if outcome.evictions:
        preemptors = len({each.by for each in outcome.evictions})
        ran = sum(each.was_running for each in outcome.evictions)
        before = f", {ran:,} of them ran from the start" if ran else ""
        yield f"{counted(len(outcome.evictions), 'pod')} evicted for {counted(preemptors, 'other')}{before}"
        against = sum(each.against_budget for each in outcome.evictions)
        if against:
            yield f"{against:,} of them against a disruption budget"
    left = sum(record.left is not None for record in outcome.records)
    if left:
        yield f"{counted(left, 'pod')} went away again"
    speed = f", {outcome.rate:,.0f} a second" if outcome.rate else ""
    yield f"{counted(outcome.decisions, 'decision')}{speed}; {duration(outcome.now)} {clock}"


def duration(seconds: float) -> str:
    """`61 s`, `2.5 h`, `149.3 days`."""
    if seconds < 3600:
        return f"{seconds:,.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds < 86400 else f"{seconds / 86400:,.1f} days"


def listed(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    """A list below its title, if there is anything in it; a long one is cut."""
    if not lines:
        return
    shown = [printable(line) for line in lines[:_MOST_LISTED]]
    if len(lines) > _MOST_LISTED:
        shown.append(f"and {len(lines) - _MOST_LISTED:,} more")
    yield titled(title, Text("\n".join(shown)))


def left_out(invalid: Sequence[ManifestError]) -> Iterator[RenderableType]:
    """What --skip-invalid went on without."""
    return listed(f"Left out, not valid ({len(invalid):,})", [str(error) for error in invalid])


# ---- cells


def _table(*heads: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for head in heads:
        wrapped = head in ("why not", "pods placed on it", "each has")
        table.add_column(
            head, justify="right" if head in right else "left", overflow="fold", ratio=1 if wrapped else None
        )
    return table


def _cell(text: str) -> Text:
    return Text(printable(text), overflow="fold")
