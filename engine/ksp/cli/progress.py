"""How far the scheduling of many pods is, on a terminal; in a pipe nothing is said."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ksp.sim.cluster import Attempt
from ksp.sim.outcome import PodRecord


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} pods/s" if task.speed else "")


class Bar:
    """A bar on stderr that shows how many pods have been decided for, and how fast. Nothing in a pipe."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TextColumn("remaining"),
            TimeRemainingColumn(),
        )  # fmt: skip
        self._shown = sys.stderr.isatty()
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not self._shown)
        self._pods = self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def expect(self, pods: int, what: str = "scheduling") -> None:
        """So many pods will be tried. Shows the bar, in the place of one that was shown before."""
        self._pods, self._seen = pods, 0
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._bar.add_task(what, total=pods)
        self._bar.start()

    def show(self, done: int) -> None:
        """So many have been decided for."""
        if self._shown:
            self._bar.update(self._bar.tasks[0].id, completed=done)

    def tell(self, time: float, record: PodRecord) -> None:
        """An attempt was made, or a pod was left alone."""
        self._seen += record.attempts <= 1
        again = self._seen >= self._pods and record.attempts > 1
        if self._shown:
            what = "trying again" if again else "scheduling"
            self._bar.update(self._bar.tasks[0].id, completed=self._seen, description=what)

    def stop(self) -> None:
        self._bar.stop()


def with_progress(attempts: Iterable[Attempt], pods: int) -> Iterator[Attempt]:
    """The same attempts, with a bar on stderr."""
    with Bar() as bar:
        bar.expect(pods)
        for attempt in attempts:
            bar.tell(attempt.time, attempt.record)
            yield attempt
