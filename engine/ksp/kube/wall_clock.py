"""The time of day, and how the API writes it.

Whoever stamps what it writes takes a `WallClock`; intervals are measured with `ksp.kube.timers`, which never goes back.
"""

from __future__ import annotations

import datetime as dt
from typing import Protocol


class WallClock(Protocol):
    """Tells the time of day. It may jump."""

    def wall(self) -> dt.datetime:
        """Now, in UTC."""
        ...


class SystemWallClock:
    """The computer's clock."""

    def wall(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)


def whole_seconds(moment: dt.datetime) -> str:
    """As metav1.Time is written: `2020-01-02T03:04:05Z`. The fraction is cut off."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microseconds(moment: dt.datetime) -> str:
    """As metav1.MicroTime is written: `2020-01-02T03:04:05.000006Z`. Servers refuse any other number of digits."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
