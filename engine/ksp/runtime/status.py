"""Which policy the loop really runs, and what went wrong last with another: one small document.

It is served as `/policyz`, stands as an annotation in the lease of the scheduler that leads, and is what `ksp status`
shows. So it is about generations that the core runs, never about what was only read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ksp import __version__
from ksp.kube.printable import printable
from ksp.kube.wall_clock import WallClock, whole_seconds
from ksp.policy.assemble import Policy

ANNOTATION: Final = "ksp-scheduler.dev/status"
LIMIT: Final = 4096
"""Bytes of the document in the lease."""
MESSAGE: Final = 800
TEXT: Final = 200
"""Bytes of a message, and of a name or a path."""
PROFILES: Final = 10
"""So many profiles, and so many extenders; of the rest only the number is told."""
GENERATIONS: Final = 200
"""So many are remembered."""


class ProfileStatus(msgspec.Struct, frozen=True, rename="camel"):
    """A profile: the name of its scheduler, and how many rules it has."""

    name: str
    predicates: int
    priorities: int


class Failure(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A policy that was not taken, or was taken back: when, at which stage of reloading (`ksp.runtime.reload`), why,
    and the hash of its texts if they could be read."""

    at: str
    stage: str
    message: str
    texts: str = ""


class Status(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`generation` is the number of the policy that decides, from 1; 0 if there is none yet. `source` is what it was
    read from, `source_kind` "file", "folder", "ConfigMap", "legacy file", or "" for the shipped rules. `extenders` are
    their URLs. `rollbacks` counts policies that were taken back. `failure` came after the generation; None if it was
    the last that was tried. Times are as the API writes them."""

    identity: str
    version: str
    started_at: str
    leading: bool = False
    generation: int = 0
    policy: str = ""
    source_kind: str = ""
    source: str = ""
    sha256: str = ""
    loaded_at: str = ""
    profiles: tuple[ProfileStatus, ...] = ()
    more_profiles: int = 0
    extenders: tuple[str, ...] = ()
    more_extenders: int = 0
    rollbacks: int = 0
    failure: Failure | None = None


class StatusBoard:
    """Keeps the document; `changed` is called when it says something else."""

    def __init__(self, clock: WallClock, identity: str) -> None:
        self.changed: Callable[[], None] = _tell_nobody
        self._clock = clock
        self._status = Status(identity, __version__, whole_seconds(clock.wall()))
        self._generations: dict[int, Status] = {}

    @property
    def status(self) -> Status:
        return self._status

    def running(self, generation: int, policy: Policy, source: str, source_kind: str = "") -> None:
        """From now on that policy decides. A failure before it is history."""
        profiles = [
            ProfileStatus(printable(each.scheduler_name, TEXT), len(each.predicates), len(each.priorities))
            for each in policy.profiles[:PROFILES]
        ]
        self._set(
            generation=generation,
            policy=printable(policy.name, TEXT),
            source_kind=source_kind,
            source=printable(source, TEXT),
            sha256=policy.sha256,
            loaded_at=whole_seconds(self._clock.wall()),
            profiles=tuple(profiles),
            more_profiles=max(0, len(policy.profiles) - PROFILES),
            extenders=tuple(printable(each.name, TEXT) for each in policy.extenders[:PROFILES]),
            more_extenders=max(0, len(policy.extenders) - PROFILES),
            failure=None,
        )
        self._generations[generation] = self._status
        if len(self._generations) > GENERATIONS:
            del self._generations[min(self._generations)]

    def went_back(self, generation: int, to: int) -> None:
        """From now on what was the generation `to` decides again. Why is told as a failure before."""
        now = self._status
        forgotten = Status(now.identity, now.version, now.started_at, policy=f"that of generation {to}")
        old = self._generations.get(to, forgotten)
        self._status = msgspec.structs.replace(
            old, leading=now.leading, failure=now.failure, rollbacks=now.rollbacks + 1
        )
        self._set(generation=generation)
        self._generations[generation] = self._status

    def failed(self, stage: str, message: str, texts: str = "") -> None:
        """Another policy was not taken, or is taken back."""
        lines = "; ".join(line.strip() for line in message.splitlines() if line.strip())
        self._set(failure=Failure(whole_seconds(self._clock.wall()), stage, printable(lines, MESSAGE), texts))

    def mended(self) -> None:
        """What is there is again what decides."""
        self._set(failure=None)

    def leads(self, leading: bool) -> None:
        self._set(leading=leading)

    def annotations(self) -> dict[str, str | None]:
        """For the lease. Never longer than LIMIT."""
        return {ANNOTATION: encoded(self._status)}

    def text(self) -> str:
        """The whole document, for `/policyz`."""
        return msgspec.json.encode(self._status).decode()

    def _set(self, **changes: object) -> None:
        self._status = msgspec.structs.replace(self._status, **changes)
        self.changed()


def encoded(status: Status) -> str:
    """Compact JSON, of at most LIMIT bytes: profiles and extenders go first if it is longer."""
    text = msgspec.json.encode(status)
    if len(text) > LIMIT:
        profiles, extenders = status.more_profiles + len(status.profiles), status.more_extenders + len(status.extenders)
        text = msgspec.json.encode(
            msgspec.structs.replace(status, profiles=(), more_profiles=profiles, extenders=(), more_extenders=extenders)
        )
    return text.decode()


def _tell_nobody() -> None:
    """Where there is no lease."""
