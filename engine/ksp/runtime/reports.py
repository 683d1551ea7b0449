"""Why pods have no node, told to their users: as a condition of the pod.

Only the latest report of a pod counts, and it is dropped when the pod waits no more. A few are sent at a time, so that
bindings, which share the limit of requests, come first. What cannot be sent is not tried again: the pod's next attempt
reports anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from ksp.core.changes import Report
from ksp.model.info import PodInfo

SENDERS: Final = 4
"""How many reports are sent at a time."""


class ConditionWriter(Protocol):
    """Writes the condition PodScheduled=False where the pod does not say so already; raises nothing."""

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> object: ...


class Reports:
    """Reports that wait to be sent: at most one for each pod that waits."""

    def __init__(self, writer: ConditionWriter, current: Callable[[str], PodInfo | None]) -> None:
        """`current` gives the pod of a uid as it is now, None if it waits no more."""
        self._writer = writer
        self._current = current
        self._latest: dict[str, Report] = {}
        self._sending: set[str] = set()
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._latest)

    def put(self, report: Report) -> None:
        """Send this, instead of what is still to be sent of the pod."""
        self._latest[report.pod.uid] = report
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
            pod = self._current(uid)
            if pod is not None:
                self._sending.add(uid)
                await self._writer.set_condition(pod, report.reason, report.message)
                self._sending.discard(uid)
                self._some.set()

    async def _next(self) -> Report:
        """The report that has waited longest, of a pod that none is being sent of."""
        while True:
            uid = next((uid for uid in self._latest if uid not in self._sending), None)
            if uid is not None:
                return self._latest.pop(uid)
            self._some.clear()
            await self._some.wait()
