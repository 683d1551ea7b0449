"""An event that repeats: what was observed of it, and what of that the server knows.

count      how often it was observed
written    how many of those the server knows of; the event is dirty while it is less
exists     the server has the Event, so that it is patched and not created
busy       it waits in the queue, or is being written
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ksp.kube.events.objects import Occurrence


@dataclass(frozen=True, slots=True)
class Pace:
    """How often an event that repeats is written: at most every `refresh` seconds after its first repetition.

    After `quiet` seconds without a repetition the next one is a new event.
    """

    refresh: float
    quiet: float


@dataclass(frozen=True, slots=True)
class EventApi:
    """A version of the API that keeps events. `create` (with the host's name) and `patch` give the bodies of requests.

    `combines`: the text of an event can be changed, so that similar events become one.
    """

    group: str
    version: str
    pace: Pace
    combines: bool
    create: Callable[[Series, str], dict[str, Any]]
    patch: Callable[[Series], dict[str, Any]]

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> tuple[str, ...]:
        """The segments of the path before the namespace."""
        return ("apis", self.group, self.version) if self.group else ("api", self.version)


class Series:
    """`said` is the first occurrence; `seen` and `next_write` are monotonic seconds, `last` is the time of day.

    `name` is that of the Event object, empty before there is one.
    """

    __slots__ = (
        "api", "busy", "count", "exists", "key", "last", "name", "next_write", "note", "said", "seen", "written"
    )  # fmt: skip

    def __init__(self, key: object, api: EventApi, said: Occurrence, note: str, now: float) -> None:
        self.key = key
        self.api = api
        self.said = said
        self.note = note
        self.last: dt.datetime = said.at
        self.seen = now
        self.next_write = now
        self.count = 1
        self.written = 0
        self.name = ""
        self.exists = False
        self.busy = False

    @property
    def namespace(self) -> str:
        """Where the Event is: with its object, or in `default`."""
        return self.said.regarding.namespace or "default"

    @property
    def unwritten(self) -> int:
        """Occurrences that the server does not know of."""
        return self.count - self.written

    def repeat(self, at: dt.datetime, note: str, now: float) -> None:
        """It happened again. The note counts where the API lets it change."""
        self.count += 1
        self.last, self.seen = max(self.last, at), now
        if self.api.combines:
            self.note = note

    def is_quiet(self, now: float) -> bool:
        return now - self.seen > self.api.pace.quiet
