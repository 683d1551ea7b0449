"""Decides which events are written: repetitions are counted, floods are held back, and nothing is counted twice.

    observe ─▶ a new series, or a repetition of one that is known (same object, source, type, reason, action and note)
            ─▶ may it be written now?  first occurrence, first repetition: at once; then at the pace of the API;
                                       always: only with a token of the spam filter
    sweep   ─▶ what waited for its time or for a token, and what has ended

Each observed occurrence ends in a write that the server took (`written`) or is reported as dropped, with the reason:

    spam        a flood: its event never got a token while it went on
    evicted     more than `size` events at once
    queue_full, rejected, unreachable, shutdown     told by the caller to `failed` or `abandon`

It is synchronous, and knows no clock: `now` is in monotonic seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ksp.kube.events.objects import NOTE_LIMIT, Occurrence
from ksp.kube.events.series import EventApi, Series
from ksp.kube.events.similar import PREFIX, SimilarEvents
from ksp.kube.events.spam import SpamFilter
from ksp.kube.printable import printable

SERIES: Final = 4096


class Correlator:
    """`dropped(reason, count)` is told of occurrences that will never be written.

    What `observe` and `sweep` return is `busy`; the caller writes it and tells `wrote` or `failed`. At most `size - 1`
    may be busy at once.
    """

    def __init__(self, dropped: Callable[[str, int], None], spam: SpamFilter | None = None, size: int = SERIES) -> None:
        self._dropped = dropped
        self._spam = spam or SpamFilter()
        self._similar = SimilarEvents()
        self._size = size
        self._series: OrderedDict[object, Series] = OrderedDict()  # the least recently seen first

    def __len__(self) -> int:
        return len(self._series)

    def observe(self, said: Occurrence, api: EventApi, now: float) -> Series | None:
        """Something happened. The series, if it is to be written now."""
        key, note = self._identify(said, api, now)
        series = self._series.get(key)
        if series is None or (series.is_quiet(now) and not series.unwritten):
            series = self._series[key] = Series(key, api, said, note, now)
        else:
            series.repeat(said.at, note, now)
        self._series.move_to_end(key)
        self._make_room()
        return series if self._admits(series, now) else None

    def sweep(self, now: float, *, closing: bool = False) -> list[Series]:
        """What is due by now. `closing`: what is not yet due as well. What has ended is forgotten."""
        due = []
        for series in [series for series in self._series.values() if not series.busy]:
            ended = series.is_quiet(now)
            timely = closing or ended or now >= series.next_write
            if series.unwritten and timely and self._takes_token(series, now):
                due.append(series)
            elif ended and not (series.exists and series.unwritten):
                self._forget(series, "spam")
        return due

    def wrote(self, series: Series, count: int, now: float) -> None:
        """The server took `count` occurrences in all."""
        series.written, series.exists, series.busy = count, True, False
        series.next_write = now if count == 1 else now + series.api.pace.refresh

    def failed(self, series: Series, reason: str) -> None:
        """It cannot be written. What comes next is a new event."""
        series.busy = False
        self._forget(series, reason)

    def abandon(self, reason: str) -> None:
        """Nothing will be written any more."""
        for series in list(self._series.values()):
            self._forget(series, reason)

    def _identify(self, said: Occurrence, api: EventApi, now: float) -> tuple[object, str]:
        """What makes two occurrences the same event, and its text."""
        thing = (api.group_version, said.source, said.type, said.reason, said.action, said.regarding.identity)
        if api.combines and self._similar.too_many(thing, said.note, now):
            return thing, printable(PREFIX + said.note, NOTE_LIMIT)
        return (*thing, said.note), said.note

    def _admits(self, series: Series, now: float) -> bool:
        return not series.busy and now >= series.next_write and self._takes_token(series, now)

    def _takes_token(self, series: Series, now: float) -> bool:
        series.busy = self._spam.admits((series.said.source, series.said.regarding.identity), now)
        return series.busy

    def _make_room(self) -> None:
        if len(self._series) > self._size:
            self._forget(next(series for series in self._series.values() if not series.busy), "evicted")

    def _forget(self, series: Series, reason: str) -> None:
        if self._series.get(series.key) is series:
            del self._series[series.key]
        if series.unwritten:
            self._dropped(reason, series.unwritten)
            series.written = series.count
