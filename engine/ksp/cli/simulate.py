"""`ksp simulate`: a cluster's pods, or a trace, scheduled in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ksp.sim.outcome import Outcome
    from ksp.sim.workload import Workload


@dataclass(frozen=True, slots=True)
class _Input:
    """What is to be scheduled."""

    paths: tuple[str, ...]
    trace: Path | None
    skip_invalid: bool
    limit: int | None

    def workload(self) -> Workload:
        """Reads it; what is not valid ends the command."""
        from ksp.core.changes import SetNode, SetPod
        from ksp.sim.texts import ManifestError

        try:
            found = self._read()
        except ManifestError as error:
            _refuse(str(error))
        if not found.arrivals and not any(isinstance(change, SetNode | SetPod) for change in found.cluster):
            nothing = "there are no nodes and no pods in " + ", ".join(self.paths or [str(self.trace)])
            _refuse("; ".join([nothing, *found.notes]))
        return found if self.limit is None else found.limited(self.limit)

    def _read(self) -> Workload:
        from ksp.sim.manifests import load
        from ksp.sim.openb import load_openb
        from ksp.sim.workload import of_manifests, of_trace

        if self.trace is not None:
            return of_trace(load_openb(self.trace, skip_invalid=self.skip_invalid))
        read = load(self.paths, stdin=sys.stdin.buffer, skip_invalid=self.skip_invalid)
        return of_manifests(read, skip_invalid=self.skip_invalid)


@click.command
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option(
    "--openb", type=click.Path(path_type=Path), metavar="FOLDER", help="Schedule a trace: nodes.csv and pods.csv."
)
@click.option("--policy", metavar="FILE", help="The rules (those of kube-scheduler 1.19 if not given).")
@click.option("--provider", metavar="NAME", help="A provider of the policy, instead of its profiles.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the dice that choose among equal nodes.")
@click.option("--departures", is_flag=True, help="The trace's pods leave again at their time.")
@click.option(
    "--percentage-of-nodes-to-score",
    "percentage",
    type=click.IntRange(0, 100),
    metavar="N",
    help="Instead of what the policy says; 0 adapts to the cluster's size.",
)
@click.option("--limit", type=click.IntRange(0), metavar="N", help="Only the first N pods.")
@click.option("--skip-invalid", is_flag=True, help="Go on without what is not valid, and list it.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the report there."
)
def simulate(
    paths: tuple[str, ...], openb: Path | None, policy: str | None, provider: str | None, seed: int, departures: bool,
    percentage: int | None, limit: int | None, skip_invalid: bool, output_format: str, output: Path | None,
) -> None:  # fmt: skip
    """Schedule the pods of a cluster in virtual time: where each goes, why the rest do not, and who has to go for whom.

    PATH is a manifest, what `kubectl get -o yaml` or `-o json` printed, a folder of these, `-` for standard input, or
    the folder of a trace in the openb format. Pods that name a node run already. Exits 0 if some pods find no node, and
    1 if something is not valid.
    """
    from ksp.cli.profile_choice import DEFAULT, chosen_profiles
    from ksp.cli.progress import with_progress
    from ksp.cli.report_json import render
    from ksp.sim.cluster import VirtualCluster
    from ksp.sim.dice import SeededDice
    from ksp.sim.stopwatch import RunningStopwatch

    _check_output(output)
    given = _Input(*_sources(paths, openb), skip_invalid, limit)
    if departures and given.trace is None:
        raise click.UsageError("--departures is for a trace: manifests do not say when their pods leave")
    profiles = chosen_profiles(policy or DEFAULT, provider, percentage)
    workload = given.workload()
    cluster = VirtualCluster(profiles, workload, SeededDice(seed), departures=departures, stopwatch=RunningStopwatch())
    for _ in with_progress(cluster.attempts(), len(workload.arrivals)):
        pass
    outcome = cluster.outcome()
    if output_format == "json":
        text = render(outcome, policy=policy or DEFAULT, seed=seed, invalid=workload.invalid, notes=workload.notes)
        _write_text(text, output)
    else:
        _write(_report(outcome, workload), output)


def _sources(paths: tuple[str, ...], openb: Path | None) -> tuple[tuple[str, ...], Path | None]:
    """Manifests, or the folder of a trace."""
    from ksp.sim.openb import is_openb

    if openb is not None:
        if paths:
            raise click.UsageError("a trace and manifests cannot be scheduled together")
        return (), openb
    if not paths:
        raise click.UsageError("name manifests, a folder of them, or a trace with --openb")
    if len(paths) == 1 and paths[0] != "-" and is_openb(Path(paths[0])):
        return (), Path(paths[0])
    return paths, None


def _check_output(output: Path | None) -> None:
    """Better now than after minutes of work."""
    if output is not None and not output.absolute().parent.is_dir():
        raise click.UsageError(f"there is no folder {output.parent} to write to")


def _refuse(message: str) -> NoReturn:
    from ksp.cli.report import printable

    raise click.ClickException(printable(message))


# ---- the report


def _report(outcome: Outcome, workload: Workload) -> Iterator[RenderableType]:
    from rich.text import Text

    from ksp.cli import report
    from ksp.sim.outcome import Fate

    small = len(outcome.records) <= report.SMALL
    waiting = [record for record in outcome.records if record.fate is Fate.WAITING]
    if outcome.records:
        table = report.pods_by_pod(outcome.records) if small else report.pods_by_group(outcome)
        yield report.titled("Where the pods went", table)
    if waiting:
        table = report.reasons_by_pod(waiting) if small else report.reasons_by_count(waiting)
        yield report.titled("Why the rest did not", table)
    if outcome.evictions:
        few = len(outcome.evictions) <= report.SMALL
        table = (report.evictions_by_pod if few else report.evictions_by_preemptor)(outcome.evictions)
        yield report.titled("Who had to go", table)
    if outcome.nodes:
        yield report.titled("Allocation", report.allocation_table(outcome))
    yield from report.left_out(workload.invalid)
    yield from report.listed("Notes", workload.notes)
    yield report.titled("In short", Text("\n".join(report.summary(outcome))))


def _write(parts: Iterator[RenderableType], output: Path | None) -> None:
    from ksp.cli.report import write

    if output is None:
        write(parts, sys.stdout)
        return
    with output.open("w", encoding="utf-8") as stream:
        write(parts, stream)


def _write_text(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
