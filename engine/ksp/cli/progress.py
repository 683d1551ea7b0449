"""How far a simulation is, on a terminal; in a pipe nothing is said."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ksp.sim.cluster import Attempt


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} pods/s" if task.speed else "")


def with_progress(attempts: Iterable[Attempt], pods: int) -> Iterator[Attempt]:
    """The same attempts, with a bar on stderr that shows how many of the pods have been decided for."""
    if not sys.stderr.isatty():
        yield from attempts
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TextColumn("remaining"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, seen = bar.add_task("scheduling", total=pods), 0
        for attempt in attempts:
            seen += attempt.record.attempts <= 1
            again = "trying again" if seen >= pods and attempt.record.attempts > 1 else "scheduling"
            bar.update(task, completed=seen, description=again)
            yield attempt
