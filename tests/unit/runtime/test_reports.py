from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.unit.core.scheduling import info
from tests.unit.kube.timers import settle
from tests.unit.runtime.driving import WITHIN

from ksp.core.changes import UNSCHEDULABLE, Report
from ksp.model.info import PodInfo
from ksp.runtime.reports import SENDERS, Reports


@dataclass
class Writer:
    """Each patch takes until the test ends it."""

    begun: list[tuple[str, str]] = field(default_factory=list)
    open: list[asyncio.Future[None]] = field(default_factory=list)

    async def set_condition(self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None) -> None:
        self.begun.append((pod.name, message))
        self.open.append(asyncio.get_running_loop().create_future())
        await self.open[-1]


@asynccontextmanager
async def sending(writer: Writer, *waiting: str) -> AsyncIterator[Reports]:
    pods = {name: info(name) for name in waiting}
    reports = Reports(writer, pods.get)
    async with asyncio.timeout(WITHIN):
        task = asyncio.create_task(reports.run())
        yield reports
        task.cancel()
        await asyncio.wait({task})


def report(name: str, message: str = "") -> Report:
    return Report(info(name), UNSCHEDULABLE, message)


async def test_a_few_are_sent_at_a_time_in_the_order_of_their_coming() -> None:
    writer, names = Writer(), [f"p{i}" for i in range(10)]
    async with sending(writer, *names) as reports:
        for name in names:
            reports.put(report(name))
        await settle()
        assert [name for name, _ in writer.begun] == names[:SENDERS]
        writer.open[0].set_result(None)
        await settle()
        assert [name for name, _ in writer.begun] == names[: SENDERS + 1]
        assert len(reports) == 10 - SENDERS - 1


async def test_only_the_latest_of_a_pod_is_sent() -> None:
    writer = Writer()
    async with sending(writer, "a", "b") as reports:
        for message in ("1", "2", "3"):
            reports.put(report("a", message))
        await settle()
        assert writer.begun == [("a", "3")]


async def test_of_one_pod_there_is_never_more_than_one_on_its_way() -> None:
    writer = Writer()
    async with sending(writer, "a", "b") as reports:
        reports.put(report("a", "1"))
        await settle()
        reports.put(report("a", "2"))
        reports.put(report("a", "3"))
        reports.put(report("b", "1"))
        await settle()
        assert writer.begun == [("a", "1"), ("b", "1")]
        writer.open[0].set_result(None)
        await settle()
        assert writer.begun == [("a", "1"), ("b", "1"), ("a", "3")]


async def test_a_pod_that_waits_no_more_is_left_alone() -> None:
    writer = Writer()
    async with sending(writer, "b") as reports:
        reports.put(report("a"))
        reports.put(report("b"))
        await settle()
        assert [name for name, _ in writer.begun] == ["b"]
