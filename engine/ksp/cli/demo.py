"""`ksp demo`: an embedded API server, and the scheduler that works on it over HTTP, before the user's eyes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ksp.cli.terminal import counted, width

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ksp.cli.live_run import Settled, Trial
    from ksp.sim.outcome import Outcome, PodRecord

_NAME, COLUMNS = 36, 100


@click.command
@click.option("--openb", type=click.Path(path_type=Path), metavar="FOLDER", help="A trace instead of the examples.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N pods of the trace.")
@click.option("--emulate", type=click.Choice(["1.19", "1.36"]), default="1.36", show_default=True, help="The server.")
@click.option("--keep", is_flag=True, help="Leave server and scheduler running, for kubectl, until Ctrl-C.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the dice that choose among equal nodes.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def demo(openb: Path | None, limit: int | None, emulate: str, keep: bool, seed: int, output_format: str) -> None:
    """Schedule the example cluster on an API server of ksp's own, by the rules of kube-scheduler 1.19.

    Starts the server, makes the pods one by one over HTTP, and shows where each goes, and why the rest find no node.
    With --keep the cluster stays, to be tried with kubectl: pods run, and go when they are deleted, budgets are
    counted, and claims get volumes.
    """
    from ksp.cli.live_run import Trial
    from ksp.sim.texts import ManifestError

    if limit is not None and openb is None:
        raise click.UsageError("--limit is for a trace: name one with --openb")
    try:
        asyncio.run(_until_told(_demo(Trial(openb, limit, emulate, seed), as_json=output_format == "json", keep=keep)))
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    except asyncio.CancelledError:
        raise click.Abort from None


async def _until_told(work: Coroutine[object, object, None]) -> None:
    """Runs it until a signal, which cancels it, so that the server goes too; be it that the terminal is closed."""
    task = asyncio.ensure_future(work)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(each, task.cancel)
    await task


async def _demo(trial: Trial, *, as_json: bool, keep: bool) -> None:
    from ksp.cli.live_run import settled
    from ksp.cli.profile_choice import DEFAULT
    from ksp.cli.progress import Bar
    from ksp.cli.report_json import render

    head = f"An API server as of {trial.emulate}, and the rules of {DEFAULT} (seed {trial.seed})"
    with Bar() if trial.openb or as_json else nullcontext(_Lines(head)) as audience:
        async with settled(trial, audience) as done:
            if isinstance(audience, Bar):
                audience.stop()
            if as_json:
                click.echo(render(done.outcome, policy=DEFAULT, seed=trial.seed))
            else:
                if trial.openb:
                    click.echo(head)
                _write(_report(done))
            if keep:
                try:
                    await _kept(done.kubeconfig, trial.emulate)
                except asyncio.CancelledError:
                    raise click.exceptions.Exit(0) from None  # that is how it is to end


class _Lines:
    """A line for each pod that arrives, and for those that find a place later."""

    def __init__(self, head: str) -> None:
        self._head = head

    def expect(self, pods: int) -> None:
        click.echo(f"{self._head}\n\n  time  {counted(pods, 'pod')}")

    def tell(self, time: float, record: PodRecord) -> None:
        if record.node or record.attempts == 1:
            why = record.node or "waits: " + (_in_short(record.reasons) or record.message)
            line = f"{time:6.2f}  {record.namespace + '/' + record.name:{_NAME}}  {why}"
            click.echo(line[: width(sys.stdout) or COLUMNS])


def _in_short(reasons: Mapping[str, int]) -> str:
    """What most nodes were denied for, and how many other reasons there are."""
    most = max(sorted(reasons), key=reasons.__getitem__, default="")
    return f"{most} (+{len(reasons) - 1})" if len(reasons) > 1 else most


async def _kept(kubeconfig: Path, emulate: str) -> None:
    """Until Ctrl-C. Pods that have a node run from here on, those that are deleted go, claims get volumes."""
    from ksp.cli.controllers import play_controllers

    click.echo(
        f"\nServer and scheduler go on until Ctrl-C. In another terminal:\n\n"
        f"  export KUBECONFIG={kubeconfig}\n"
        "  kubectl get pods --all-namespaces --output wide\n"
        "  kubectl describe pod --namespace shop monolith\n"
        "  kubectl run try --image=none\n"
    )
    await play_controllers(kubeconfig, emulate)


def _report(done: Settled) -> Iterator[RenderableType]:
    from rich.text import Text

    from ksp.cli import report
    from ksp.sim.outcome import Fate

    outcome = done.outcome
    small = len(outcome.records) <= report.SMALL
    waiting = [record for record in outcome.records if record.fate is Fate.WAITING]
    yield report.titled("Where the pods went", (report.pods_by_node if small else report.pods_by_group)(outcome))
    if waiting:
        table = report.reasons_by_pod(waiting) if small else report.reasons_by_count(waiting)
        yield report.titled("Why the rest did not", table)
    yield report.titled("Allocation", report.allocation_table(outcome))
    speed = () if small else _speed(outcome, done.cpu)
    yield report.titled("In short", Text("\n".join([*report.summary(outcome, "in all"), *speed])))


def _speed(outcome: Outcome, cpu: float) -> Iterator[str]:
    pods = max(1, len(outcome.records))
    rate = pods / outcome.now if outcome.now else 0.0
    yield f"over HTTP {rate:,.0f} pods a second, and {1000 * cpu / pods:.1f} ms of the scheduler's CPU for each"


def _write(parts: Iterator[RenderableType]) -> None:
    from ksp.cli.report import write

    write(parts, sys.stdout)
