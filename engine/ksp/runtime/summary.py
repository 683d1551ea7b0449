"""What was done lately, in one entry: so that the log shows life without a line for each pod."""

from __future__ import annotations

import logging
from typing import Final

from ksp.core.changes import Bind, BindVolumes
from ksp.core.scheduler import Step
from ksp.kube.timers import Timers
from ksp.model.info import PodInfo
from ksp.runtime.log import entry
from ksp.runtime.observer import Binding

_log = logging.getLogger(__name__)

EVERY: Final = 10.0
"""Seconds between two entries. While nothing happens there are none."""


class Summary:
    """An observer that counts, and logs what it counted. `run` it beside the loop."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._bound = self._unbound = 0
        self._without: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._timers.sleep(EVERY)
            self._say()

    def _say(self) -> None:
        if self._bound or self._unbound or self._without:
            said = {"bound": self._bound, "no_node": len(self._without), "not_bound": self._unbound}
            _log.info(entry("pods", **{name: count for name, count in said.items() if count}, last_seconds=int(EVERY)))
        self._bound = self._unbound = 0
        self._without.clear()

    # ---- what the loop tells

    def decided(self, step: Step, seconds: float) -> None:
        if any(isinstance(effect, Bind | BindVolumes) for effect in step.effects):
            self._without.discard(step.pod.uid)
        else:
            self._without.add(step.pod.uid)

    def bound(self, binding: Binding, now: float) -> None:
        self._bound += 1

    def not_bound(self, binding: Binding, message: str, now: float) -> None:
        self._unbound += 1

    def wait_failed(self, pod: PodInfo, message: str) -> None:
        self._unbound += 1

    def fault(self, where: str, pod: PodInfo | None) -> None:
        pass
