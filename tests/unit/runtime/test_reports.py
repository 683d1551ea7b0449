from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.core.scheduling import info
from tests.unit.kube.timers import settle
from tests.unit.runtime.driving import WITHIN

from ksp.core.changes import UNSCHEDULABLE, ClearNomination, Report
from ksp.kube.write.writes import Patched
from ksp.model.info import PodInfo
from ksp.runtime.reports import SENDERS, Reports


@dataclass
class Writer:
    """Each patch takes until the test ends it."""

    begun: list[tuple[str, str]] = field(default_factory=list)
    nominations: list[tuple[str, str | None]] = field(default_factory=list)
    open: list[asyncio.Future[Patched]] = field(default_factory=list)
    faults: list[tuple[str, str, str]] = field(default_factory=list)

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched:
        self.begun.append((pod.name, message))
        self.nominations.append((pod.name, nominated_node))
        self.open.append(asyncio.get_running_loop().create_future())
        return await self.open[-1]

    async def clear_nomination(self, pod: PodInfo) -> Patched:
        return await self.set_condition(pod, "", "(cleared)", "")

    def caught(self, where: str, error: Exception, pod: PodInfo) -> None:
        self.faults.append((where, str(error), pod.name))


@asynccontextmanager
async def sending(writer: Writer, *waiting: str) -> AsyncIterator[Reports]:
    pods = {name: info(name) for name in waiting}
    reports = Reports(writer, lambda report: pods.get(report.pod.uid), writer.caught)
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
        writer.open[0].set_result(Patched.SENT)
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
        writer.open[0].set_result(Patched.SENT)
        await settle()
        assert writer.begun == [("a", "1"), ("b", "1"), ("a", "3")]


async def test_a_pod_that_waits_no_more_is_left_alone() -> None:
    writer = Writer()
    async with sending(writer, "b") as reports:
        reports.put(report("a"))
        reports.put(report("b"))
        await settle()
        assert [name for name, _ in writer.begun] == ["b"]


async def test_the_node_that_a_pod_waits_for_is_told_with_the_condition() -> None:
    writer = Writer()
    async with sending(writer, "a") as reports:
        reports.put(replace(report("a"), nominated_node="n1"))
        await settle()
        assert writer.nominations == [("a", "n1")]


@pytest.mark.parametrize("first", ["n1", ""])
async def test_a_report_that_says_nothing_of_the_node_takes_along_what_was_still_to_be_said(first: str) -> None:
    writer = Writer()
    async with sending(writer, "a") as reports:
        reports.put(replace(report("a", "1"), nominated_node=first))
        reports.put(report("a", "2"))
        await settle()
        assert (writer.begun, writer.nominations) == ([("a", "2")], [("a", first)])


async def test_a_nomination_that_ends_goes_with_the_report_that_waits() -> None:
    writer = Writer()
    async with sending(writer, "a", "b") as reports:
        reports.put(replace(report("a", "1"), nominated_node="n1"))
        reports.put(ClearNomination(info("a")))
        reports.put(ClearNomination(info("b")))
        reports.put(report("b", "2"))
        await settle()
        assert writer.begun == [("a", "1"), ("b", "2")]
        assert writer.nominations == [("a", ""), ("b", "")]


async def test_a_nomination_that_ends_is_told_alone_where_there_is_no_report() -> None:
    writer = Writer()
    async with sending(writer, "a") as reports:
        reports.put(ClearNomination(info("a")))
        await settle()
        assert writer.begun == [("a", "(cleared)")]


async def test_what_could_not_be_said_of_the_node_is_said_with_the_next_report() -> None:
    writer = Writer()
    async with sending(writer, "a") as reports:
        reports.put(ClearNomination(info("a")))
        await settle()
        writer.open[0].set_result(Patched.FAILED)
        for message in ("1", "2"):
            reports.put(report("a", message))
            await settle()
            writer.open[-1].set_result(Patched.SENT)
            await settle()
        assert writer.begun == [("a", "(cleared)"), ("a", "1"), ("a", "2")]
        assert writer.nominations == [("a", ""), ("a", ""), ("a", None)]


async def test_faults_of_the_writer_are_told_and_the_next_reports_are_sent() -> None:
    writer, names = Writer(), [f"p{i}" for i in range(SENDERS + 1)]
    async with sending(writer, *names) as reports:
        for name in names:
            reports.put(report(name))
        await settle()
        for each in writer.open[:SENDERS]:
            each.set_exception(ValueError("a bug"))
        await settle()
        assert [name for name, _ in writer.begun] == names
        reports.put(report(names[0], "again"))
        await settle()
        assert writer.begun[-1] == (names[0], "again")
    assert writer.faults == [("reporting", "a bug", name) for name in names[:SENDERS]]
