"""Says what became of a change of the policy: in the log, by an event, in metrics, on the status board.

The event is about the ConfigMap that holds the policy. A policy in files has none: then it is about the scheduler's own
pod, if the environment names that (POD_NAME, POD_NAMESPACE, and POD_UID, so that `kubectl describe pod` finds it).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ksp.kube.events.objects import EventType, ObjectReference
from ksp.kube.wall_clock import WallClock
from ksp.policy.assemble import Policy
from ksp.runtime.log import entry
from ksp.runtime.reload.metrics import ReloadMetrics
from ksp.runtime.reload.source import PolicySource
from ksp.runtime.status import StatusBoard

_log = logging.getLogger(__name__)

RELOADED: Final = "PolicyReloaded"
FAILED: Final = "PolicyReloadFailed"
ROLLED_BACK: Final = "PolicyRolledBack"
ACTION: Final = "Reloading"
LINES: Final = 60
"""Lines of diagnostics in the log."""
SHORT: Final = 12
"""Digits of a hash that people compare."""

_QUOTED: Final = re.compile(r"(\d+ *)?\||=")
"""How lines of a diagnostic begin that quote the text, or say more about it."""


class EventSink(Protocol):
    """`ksp.kube.events.recorder.EventRecorder`, as far as it is told of policies."""

    def event(self, regarding: ObjectReference, type: EventType, reason: str, action: str, note: str) -> None: ...


class Telling:
    """All that is said of reloads. Where nothing is known that events could be about, there are none."""

    def __init__(
        self, source: PolicySource, board: StatusBoard, metrics: ReloadMetrics, events: EventSink, clock: WallClock,
        environ: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.board = board
        self.metrics = metrics
        self.regarding = _own_pod(environ)
        self._source = source
        self._events = events
        self._clock = clock

    def adopted(self, number: int, policy: Policy, passed: int, left: int) -> None:
        """A new policy decides. `passed` of its tests' expectations were met; `left` pods name no profile any more."""
        self.board.running(number, policy, self._source.name, self._source.kind)
        self.metrics.ended("adopted")
        self.metrics.took(self._clock.wall().timestamp())
        names = ", ".join(profile.scheduler_name for profile in policy.profiles)
        about = {"generation": number, "policy": policy.name, "sha256": policy.sha256, "profiles": names}
        more = {"pods_without_profile": left} if left else {}
        _log.info(entry("the policy is reloaded", **about, tests_passed=passed, **more))
        note = f"Generation {number} decides for {names}: policy {policy.sha256[:SHORT]}"
        self._event("Normal", RELOADED, note)

    def unchanged(self) -> None:
        """The texts are those that decide. After a failure that is news."""
        self.metrics.ended("unchanged")
        if self.board.status.failure is not None:
            number = self.board.status.generation
            self._event("Normal", RELOADED, f"Generation {number} decides: the policy is again as it was")
        self.board.mended()
        _log.info(entry("the policy is read again, and is as it was", source=self._source.name))

    def not_again(self, why: str) -> None:
        """The texts were tried before."""
        _log.warning(entry("the policy is read again, and not tried again", source=self._source.name, reason=why))

    def failed(self, stage: str, message: str, texts: str) -> None:
        """The last good policy stays."""
        generation, lines = self.board.status.generation, message.splitlines()
        self.board.failed(stage, _in_short(lines), texts)
        self.metrics.ended("failed")
        about = {"stage": stage, "source": self._source.name, "texts": texts[:SHORT], "generation": generation}
        _log.error(entry("the policy is not reloaded, the last good one stays", **about))
        for line in lines[:LINES]:
            _log.error("    %s", line)
        if len(lines) > LINES:
            _log.error("    and %d more lines", len(lines) - LINES)
        self._event("Warning", FAILED, f"Not reloaded, generation {generation} stays: {stage}: {_in_short(lines)}")

    def rolled_back(self, number: int, to: int, why: str, texts: str) -> None:
        """The policy that decided did not do; what was generation `to` decides again, as `number`."""
        gone = self.board.status.generation
        self.board.failed("probation", why, texts)
        self.board.went_back(number, to)
        self.metrics.ended("rolled_back")
        about = {"generation": number, "as": to, "instead_of": gone, "reason": why}
        _log.error(entry("the policy went back to the last good one", **about))
        note = f"Generation {gone} is taken back, the policy of generation {to} decides again as {number}: {why}"
        self._event("Warning", ROLLED_BACK, note)

    def _event(self, type: EventType, reason: str, note: str) -> None:
        if self.regarding is not None:
            self._events.event(self.regarding, type, reason, ACTION, note)


def _in_short(lines: Sequence[str]) -> str:
    """What is wrong and where, without the texts that diagnostics quote."""
    said = (line.strip() for line in lines)
    return "; ".join(line for line in said if line and not _QUOTED.match(line))


def _own_pod(environ: Mapping[str, str]) -> ObjectReference | None:
    name, namespace = environ.get("POD_NAME"), environ.get("POD_NAMESPACE")
    if not name or not namespace:
        return None
    return ObjectReference(kind="Pod", api_version="v1", namespace=namespace, name=name, uid=environ.get("POD_UID", ""))
