"""Why pods have no node, told to their users: as a condition of the pod; and for which node they wait.

Only the latest report of a pod counts, and it is dropped when the pod waits no more. A few are sent at a time, so that
bindings, which share the limit of requests, come first. What cannot be sent is not tried again: the pod's next attempt
reports anew. But of the node that it waits for not each report speaks: so what was to be said of that goes with the
next one, until it has been said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from cachetools import LRUCache

from ksp.core.changes import ClearNomination, Report
from ksp.kube.write.writes import Patched
from ksp.model.info import PodInfo

SENDERS: Final = 4
"""How many reports are sent at a time."""
REMEMBERED: Final = 1000
"""Of how many pods it is remembered for which node they wait, if that could not be sent."""


class ConditionWriter(Protocol):
    """Writes what the pod does not say already: the condition PodScheduled=False, the node that it is nominated to.
    Raises nothing for what the server does."""

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched: ...

    async def clear_nomination(self, pod: PodInfo) -> Patched: ...


class Reports:
    """Reports that wait to be sent: at most one for each pod that waits."""

    def __init__(
        self, writer: ConditionWriter, current: Callable[[Report | ClearNomination], PodInfo | None],
        caught: Callable[[str, Exception, PodInfo], None],
    ) -> None:  # fmt: skip
        """`current` gives the report's pod as it is now, None if that is not to be said of it any more. `caught` is
        told of a fault: with what, which, and whose; the report is dropped."""
        self._writer = writer
        self._current = current
        self._caught = caught
        self._latest: dict[str, Report | ClearNomination] = {}
        self._sending: set[str] = set()
        self._unsaid: LRUCache[str, str] = LRUCache(REMEMBERED)
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._latest)

    def put(self, report: Report | ClearNomination) -> None:
        """Send this, instead of what is still to be sent of the pod. Where it says nothing of the condition, or of the
        node, what was to be said of that is sent with it."""
        uid = report.pod.uid
        self._latest[uid] = _joined(self._latest.get(uid), report)
        self._some.set()

    async def run(self) -> None:
        """Sends until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(self._send_all())

    async def _send_all(self) -> None:
        while True:
            report = await self._next()
            uid = report.pod.uid
            pod = self._current(report)
            if pod is None:
                self._unsaid.pop(uid, None)
                continue
            self._sending.add(uid)
            try:
                await self._send(pod, report)
            except Exception as error:  # noqa: BLE001 - a fault with one pod must not keep the others from being told
                self._caught("reporting", error, pod)
            self._sending.discard(uid)
            self._some.set()

    async def _send(self, pod: PodInfo, report: Report | ClearNomination) -> None:
        node = _node_of(report)
        if node is None:
            node = self._unsaid.get(pod.uid)
        if isinstance(report, ClearNomination):
            outcome = await self._writer.clear_nomination(pod)
        else:
            outcome = await self._writer.set_condition(pod, report.reason, report.message, node)
        if node is not None and outcome is Patched.FAILED:
            self._unsaid[pod.uid] = node
        else:
            self._unsaid.pop(pod.uid, None)

    async def _next(self) -> Report | ClearNomination:
        """The report that has waited longest, of a pod that none is being sent of."""
        while True:
            uid = next((uid for uid in self._latest if uid not in self._sending), None)
            if uid is not None:
                return self._latest.pop(uid)
            self._some.clear()
            await self._some.wait()


def _joined(before: Report | ClearNomination | None, report: Report | ClearNomination) -> Report | ClearNomination:
    """Both in one: where the second says nothing of the condition, or of the node, the first counts."""
    if before is None:
        return report
    if isinstance(report, ClearNomination):
        return replace(before, nominated_node="") if isinstance(before, Report) else report
    return replace(report, nominated_node=_node_of(before)) if report.nominated_node is None else report


def _node_of(report: Report | ClearNomination) -> str | None:
    return "" if isinstance(report, ClearNomination) else report.nominated_node
