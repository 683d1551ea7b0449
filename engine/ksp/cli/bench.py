"""`ksp bench`: how fast the core decides."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from ksp.cli.bench_plot import check_plot
from ksp.cli.feature_gates import EQUIVALENCE_CLASSES, own_gates

if TYPE_CHECKING:
    from ksp.cli.bench_process import Measured
    from ksp.sim.bench.comparison import Comparison
    from ksp.sim.bench.figures import Conditions
    from ksp.sim.bench.records import Record


def _numbers(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, ...]:
    """`1000` or `100,500,1000`."""
    try:
        found = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError as error:
        raise click.BadParameter(f"`{text}` is no number, nor several with commas between") from error
    if min(found) < 1:
        between = " (a comma stands between two sizes)" if len(found) > 1 else ""
        raise click.BadParameter(f"a cluster has at least one node, which `{text}` does not say of each{between}")
    return found


def _names(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The workloads; all if none is named."""
    from ksp.check.report import did_you_mean
    from ksp.sim.bench.workloads import WORKLOADS

    for name in given:
        if name not in WORKLOADS:
            meant = did_you_mean(name, WORKLOADS)
            raise click.BadParameter(f"there is no workload `{name}`: {meant or '--list names those that there are'}")
    return tuple(dict.fromkeys(given)) or tuple(WORKLOADS)


def _list(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    from ksp.sim.bench.workloads import WORKLOADS, about

    if asked:
        click.echo("\n\n".join(f"{name}\n{click.wrap_text(about(name), 78, '  ', '  ')}" for name in WORKLOADS))
        context.exit()


WITH_PENDING: Final = ("Unschedulable",)
"""The workloads that --pending is for."""

EPILOG = """\b
Such as:
  ksp bench --core                                         all workloads, 1,000 nodes
  ksp bench --core --nodes 5000 --runs 5 --json new.json   to keep
  ksp bench --compare old.json new.json                    what a change has brought
"""
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog=EPILOG)
@click.option("--core", is_flag=True, help="Measure the core alone, without an API server.")
@click.option(
    "--workload", "workloads", multiple=True, metavar="NAME", callback=_names, help="Only this one (several)."
)
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Say what they are.")
@click.option(
    "--nodes", default="1000", show_default=True, metavar="N,...", callback=_numbers, help="Sizes of cluster."
)
@click.option("--pods", type=click.IntRange(1), default=1000, show_default=True, metavar="N", help="Measured pods.")
@click.option("--existing", type=click.IntRange(0), metavar="N", help="Pods that run already (--list says how many).")
@click.option("--pending", type=click.IntRange(0), metavar="N", help="Pods that fit nowhere, of Unschedulable.")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs of each.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the dice that choose among equal nodes.")
@click.option("--policy", metavar="FILE", help="The rules (those of kube-scheduler 1.19 if not given).")
@click.option("--provider", metavar="NAME", help="A provider of the policy, instead of its profiles.")
@click.option(
    "--percentage-of-nodes-to-score", "percentage", type=click.IntRange(0, 100), metavar="N",
    help="Instead of what the policy says; 0 adapts to the cluster's size.",
)  # fmt: skip
@click.option(
    "--feature-gates", "gates", multiple=True, metavar="NAME=BOOL,...", callback=own_gates,
    help=f"{EQUIVALENCE_CLASSES}=false decides each pod anew.",
)  # fmt: skip
@click.option("--columns/--no-columns", default=True, help="Judge many nodes at once, or one by one.")
@click.option("--rules", is_flag=True, help="Also say what each rule costs. That slows all of it down.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write runs and medians there.")
@click.option("--markdown", is_flag=True, help="Write tables as Markdown.")
@click.option("--plot", "plot_file", type=_FILE, metavar="FILE", callback=check_plot, help="Draw an .svg or .png.")
@click.option("--show", type=_FILE, metavar="FILE", help="Measure nothing: show what --json wrote.")
@click.option("--compare", nargs=2, type=_FILE, metavar="BEFORE AFTER", help="Compare two that --json wrote.")
def bench(
    core: bool, workloads: tuple[str, ...], nodes: tuple[int, ...], pods: int, existing: int | None,
    pending: int | None, runs: int, seed: int, policy: str | None, provider: str | None, percentage: int | None,
    gates: Mapping[str, bool], columns: bool, rules: bool, json_file: Path | None, markdown: bool,
    plot_file: Path | None, show: Path | None, compare: tuple[Path, Path] | None,
) -> None:  # fmt: skip
    """Measure how many pods a second the core decides.

    Workloads are made from nothing and named after those of kube-scheduler's scheduler_perf. Each run is a process of
    its own. With --runs the figures are medians, and the spread stands beside them. `hits` is the share of decisions
    for which the pod's equivalence class was known, `cold` what one without costs; milliseconds are of deciding alone,
    decisions a second of all that the core does for a pod.
    """
    _check_choice(core=core, show=show, compare=compare, writes=json_file is not None or plot_file is not None)
    if compare is not None:
        _compare(*compare, markdown=markdown)
        return
    if show is not None:
        record = _read(show)
    else:
        if pending is not None and not {*workloads} & {*WITH_PENDING}:
            raise click.UsageError(f"--pending: pods that fit nowhere are part of {', '.join(WITH_PENDING)} only")
        _check_output(json_file)
        from ksp.cli.profile_choice import DEFAULT, chosen_profiles
        from ksp.sim.bench.figures import Conditions

        chosen_profiles(policy or DEFAULT, provider, percentage)  # its errors are told once, here
        conditions = Conditions(
            "", 0, pods, existing, pending, seed, policy or DEFAULT, provider, percentage, gates[EQUIVALENCE_CLASSES],
            columns,
        )  # fmt: skip
        plan = [replace(conditions, workload=name, nodes=count) for name in workloads for count in nodes]
        record = _recorded([each for each in plan for _ in range(runs)], rules=rules)
    try:
        _keep(record, json_file, plot_file)
    finally:  # what was measured is shown, even if it cannot be written
        _say(_report(record, markdown=markdown))


def _check_choice(*, core: bool, show: Path | None, compare: tuple[Path, Path] | None, writes: bool) -> None:
    """One of measuring, showing and comparing. Raises click.UsageError."""
    asked = [name for name, given in (("--core", core), ("--show", show), ("--compare", compare)) if given]
    if not asked:
        raise click.UsageError("only the core can be measured yet: ksp bench --core")
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} do not go together: --core measures, the others read files")
    if compare is not None and writes:
        raise click.UsageError("--compare writes no file: --json and --plot are for --core and --show")


# ---- measuring


def _recorded(plan: list[Conditions], *, rules: bool) -> Record:
    from ksp.sim.bench.records import Record

    found = list(_measured(plan, rules=rules))
    times = {i: each.rules for i, each in enumerate(found) if each.rules is not None}
    return Record([each.run for each in found], _versions(), _machine(), times)


def _measured(plan: list[Conditions], *, rules: bool) -> Iterator[Measured]:
    from ksp.cli.bench_process import measured_apart
    from ksp.cli.progress import Bar
    from ksp.cli.terminal import counted

    with Bar() as bar:
        for i, conditions in enumerate(plan):
            bar.expect(
                conditions.pods, f"{i + 1}/{len(plan)} {conditions.workload}, {counted(conditions.nodes, 'node')}"
            )
            yield measured_apart(conditions, rules=rules, tell=bar.show)


def _versions() -> dict[str, str | int]:
    from importlib.metadata import version

    from ksp import __version__

    return {"ksp": __version__, "Python": platform.python_version(), "NumPy": version("numpy")}


def _machine() -> dict[str, str | int]:
    return {"system": f"{platform.system()} {platform.machine()}", "processors": os.cpu_count() or 1}


# ---- files


def _check_output(path: Path | None) -> None:
    """Better now than after minutes of work."""
    if path is not None and not path.absolute().parent.is_dir():
        raise click.UsageError(f"there is no folder {path.parent} to write to")


def _keep(record: Record, json_file: Path | None, plot_file: Path | None) -> None:
    """Raises OSError."""
    if json_file is not None:
        from ksp.sim.bench.records import text_of

        json_file.write_text(text_of(record) + "\n", encoding="utf-8")
    if plot_file is not None:
        from ksp.cli.bench_plot import plot

        plot(record.summaries(), plot_file)


def _read(path: Path) -> Record:
    from ksp.sim.bench.records import RecordError, record_of

    try:
        return record_of(path.read_bytes())
    except RecordError as error:
        _refuse(f"{path}: {error}")


def _refuse(message: str) -> NoReturn:
    from ksp.cli.report import printable

    raise click.ClickException(printable(message))


# ---- reports


def _say(lines: Iterable[str]) -> None:
    """On stdout. A file may have been made by someone else: no character of it does anything to a terminal."""
    from ksp.cli.report import printable

    click.echo("\n".join(printable(each) for part in lines for each in part.split("\n")))


def _report(record: Record, *, markdown: bool) -> Iterator[str]:
    from ksp.cli import bench_tables as tables
    from ksp.cli.terminal import counted, width

    room = width(sys.stdout)
    yield f"The core alone: {tables.circumstances(record)}"
    yield ""
    yield tables.drawn(tables.measurements(record), markdown=markdown, width=room)
    notes = list(tables.notes(record))
    if notes:
        yield from ("", *(f"- {note}" for note in notes))
    for place, times in record.rules.items():
        of = record.runs[place].conditions
        yield f"\n{of.workload}, {counted(of.nodes, 'node')}: what each rule costs, in microseconds a pod\n"
        yield tables.drawn(tables.rules(times, of.pods), markdown=markdown, width=room)


def _compare(before: Path, after: Path, *, markdown: bool) -> None:
    from ksp.cli import bench_tables as tables
    from ksp.cli.terminal import width
    from ksp.sim.bench.comparison import compared
    from ksp.sim.bench.records import RecordError

    first, second = _read(before), _read(after)
    try:
        found: Comparison = compared(first, second)
    except RecordError as error:
        _refuse(f"{before} and {after} do not fit together: {error}")
    said = [f"{when}: {tables.circumstances(record)}" for when, record in (("before", first), ("after", second))]
    said += ["", tables.drawn(tables.comparison(found), markdown=markdown, width=width(sys.stdout))]
    notes = [f"- {note}" for note in tables.differences(found)]
    _say([*said, *([""] if notes else []), *notes])
