"""Dates for moments of virtual time, as the API writes them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


class VirtualDates:
    """Virtual time begins at the latest of the given dates, so that what happens then is younger than what was there;
    in 1970 if there are none. What is no date is not looked at."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._origin = max(_moments(known), default=0.0)

    def text(self, seconds: float) -> str:
        """The date so many virtual seconds after the beginning, to the second."""
        moment = datetime.fromtimestamp(min(self._origin + seconds, _LAST), UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _moments(texts: Iterable[str]) -> Iterable[float]:
    for text in texts:
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(text)
            yield (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
