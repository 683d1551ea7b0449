"""`ksp demo`: the example cluster, scheduled in virtual time before the user's eyes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ksp.sim.cluster import Attempt
    from ksp.sim.outcome import Outcome
    from ksp.sim.workload import Workload

INTERVAL = 0.5
"""Virtual seconds between two pods."""
_NAME, _NODE = 36, 12


@click.command
@click.option("--seed", type=int, default=1, show_default=True, help="Of the dice that choose among equal nodes.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def demo(seed: int, output_format: str) -> None:
    """Schedule the example cluster that comes with ksp, by the rules of kube-scheduler 1.19.

    Every half second of virtual time a pod arrives. Shows where each goes, and why the rest find no node.
    """
    from ksp.cli.profile_choice import DEFAULT, chosen_profiles
    from ksp.cli.report_json import render
    from ksp.sim.cluster import VirtualCluster
    from ksp.sim.dice import SeededDice
    from ksp.sim.stopwatch import RunningStopwatch

    workload = _examples()
    cluster = VirtualCluster(chosen_profiles(), workload, SeededDice(seed), stopwatch=RunningStopwatch())
    if output_format == "json":
        click.echo(render(cluster.finish(), policy=DEFAULT, seed=seed, notes=workload.notes))
        return
    click.echo(_head(workload, seed))
    for line in _progress(cluster.attempts()):
        click.echo(line)
    _write(_report(cluster.outcome()))


def _examples() -> Workload:
    import ksp
    from ksp.sim.manifests import load
    from ksp.sim.workload import of_manifests

    folder = Path(ksp.__file__).parent / "examples"
    return of_manifests(load([str(folder / "cluster"), str(folder / "workload")]), interval=INTERVAL)


def _head(workload: Workload, seed: int) -> str:
    from ksp.cli.profile_choice import DEFAULT
    from ksp.cli.terminal import counted
    from ksp.core.changes import SetNode

    nodes = sum(isinstance(change, SetNode) for change in workload.cluster)
    pods = counted(len(workload.arrivals), "pod")
    return f"{pods} for {counted(nodes, 'node')}, by the rules of {DEFAULT} (seed {seed})\n\n  time  pod\n"


def _progress(attempts: Iterator[Attempt]) -> Iterator[str]:
    """A line for each pod that arrives, and for those that find a place later; in the end one for all that do not."""
    from ksp.cli.terminal import counted

    again: dict[str, float] = {}
    for attempt in attempts:
        record = attempt.record
        if record.node or record.attempts == 1:
            why = record.node or "waits: " + (_most_common(record.reasons) or record.message)
            yield f"{attempt.time:6.1f}  {record.namespace + '/' + record.name:{_NAME}}  {why}"
        if record.node:
            again.pop(record.uid, None)
        elif record.attempts > 1:
            again[record.uid] = attempt.time
    if again:
        tried = f"{counted(len(again), 'pod')} tried again, for the last time a minute after the last change"
        yield f"{max(again.values()):6.1f}  {tried}: no node"


def _most_common(reasons: Mapping[str, int]) -> str:
    """What most nodes were denied for."""
    return max(sorted(reasons), key=reasons.__getitem__, default="")


def _report(outcome: Outcome) -> Iterator[RenderableType]:
    from rich.text import Text

    from ksp.cli import report
    from ksp.sim.outcome import Fate

    waiting = [record for record in outcome.records if record.fate is Fate.WAITING]
    yield report.titled("Where the pods went", report.pods_by_node(outcome))
    yield report.titled("Why the rest did not", report.reasons_by_pod(waiting))
    yield report.titled("Allocation", report.allocation_table(outcome))
    yield report.titled("In short", Text("\n".join(report.summary(outcome))))


def _write(parts: Iterator[RenderableType]) -> None:
    from ksp.cli.report import write

    write(parts, sys.stdout)
