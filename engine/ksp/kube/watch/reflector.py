"""Keeps the cache of one kind equal to the API server: list, then watch, for ever.

           ┌─────────────── too old, went back, refused ──────────────┐
           ▼                                                          │
    no position ──list, by pages or as a stream──▶ position ──watch───┤
       ▲     │                                        ▲               │
       └─────┘ failed                                 └───────────────┘ ended, silent, lost, server away

The position is the resource version up to which everything is known. It comes from a list, from events and from
bookmarks. A watch that breaks is opened again at the position, and nothing is missed; only when the server no longer
has the history since then (410, as a status or as an ERROR event) everything is listed again. What is known stays all
the while.

A server that was away may come back with less than it had: restored from a backup, or new. A watch at a position that
it has not reached yet would be silent for long and look well. So after a connection was lost or refused the first
question is where the server is, for the price of a list of one object. Who finds that it went back tells all others
(`Discovery.history`), whose positions it may have passed again.

What is not believed: an event that is not newer than the position is a repetition and is dropped
(`ksp.kube.resource_versions` says why versions may be compared). A bookmark older than the position shows that the
server's history went back, as after a restore from a backup; then no event would come for long, so everything is listed
again.

How long it waits after which failure is in `ksp.kube.watch.recovery`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.reader import MalformedError, Reader
from ksp.kube.resource_versions import is_older
from ksp.kube.timers import Timers
from ksp.kube.watch.complaints import explain
from ksp.kube.watch.delta_fifo import DeltaFifo
from ksp.kube.watch.discovery import Discovery
from ksp.kube.watch.intake import Intake, NotStreamedError, StreamedList
from ksp.kube.watch.objects import read_object
from ksp.kube.watch.observer import ReflectorObserver
from ksp.kube.watch.pacing import Pacer
from ksp.kube.watch.pages import PAGE_TIMEOUT, read_page, read_pages
from ksp.kube.watch.recovery import Recovery, RelistError, Session, ShortWatchError, WentBackError, history_is_lost
from ksp.kube.watch.resources import GroupVersion, Object, Resource
from ksp.kube.watch.watch_events import read_line

T = TypeVar("T", bound=Object)

# Seconds after which a kind that was served, and is not any more, counts as gone, and so do its objects.
GONE_AFTER: Final = 30.0

# What a reflector is at. "stream": the first part of a watch that begins with a list.
_Phase = Literal["discover", "list", "stream", "watch"]


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """Sizes and times; times are in seconds.

    `inactivity`: a watch that is silent for so long is opened again at its position: that costs one request, and
    finds a connection whose other end is gone. Servers send a bookmark about once a minute (59.6 to 60.8 s were
    seen), so a kind in which nothing happens may be opened again each minute, which is neither a failure nor worth a
    word in the log. `timeout_from`, `timeout_to`: the server ends each watch after a random time between them, so
    that watches spread over the servers. `rediscovery_from`, `rediscovery`: when a missing kind is first looked for
    again, and, as the wait is doubled each time, at the longest; plus up to as much. A server that has just started
    may not know yet of all that it will serve. `watch_list`: whether to ask for lists as streams. `page_size`: objects
    in a page of other lists.
    """

    page_size: int = 500
    inactivity: float = 60.0
    timeout_from: float = 300.0
    timeout_to: float = 600.0
    rediscovery_from: float = 10.0
    rediscovery: float = 300.0
    watch_list: bool = True


DEFAULT_SETTINGS: Final = ReflectorSettings()


class VanishedError(KubeError):
    """A kind that was served is not to be found: for good, or for a moment."""


class Reflector(Generic[T]):
    """Fills `fifo` with the objects of one kind.

    `doing` says what it is at, in a word or two; `trouble` why it does not get on, or nothing.
    """

    def __init__(
        self,
        resource: Resource,
        reader: Reader,
        discovery: Discovery,
        fifo: DeltaFifo[T],
        timers: Timers,
        observer: ReflectorObserver,
        settings: ReflectorSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.doing = "waiting for discovery"
        self.trouble = ""
        self._resource = resource
        self._reader = reader
        self._discovery = discovery
        self._fifo = fifo
        self._timers = timers
        self._observer = observer
        self._settings = settings
        self._intake = Intake(resource, fifo, observer)
        self._recovery = Recovery(timers)
        self._session = Session(timers)
        self._phase: _Phase = "discover"
        self._version: GroupVersion | None = None
        self._served = resource
        self._streams_lists = settings.watch_list
        self._page_size = settings.page_size
        self._list_expired = False
        self._looks_again = False
        self._was_served = False
        self._missing_since: float | None = None
        self._absence = Backoff(timers, initial=settings.rediscovery_from, maximum=settings.rediscovery)
        self._server_was_away = False
        self._may_have_gone_back = False
        self._history = discovery.history

    async def run(self) -> None:
        """Until cancelled. Nothing that the server or the network does ends it."""
        while True:
            self._session = Session(self._timers)
            try:
                await self._attempt()
            except KubeError as error:
                await self._recover(error)

    async def _attempt(self) -> None:
        """One list, or one watch, or one wait for a kind that is not served."""
        if self._version is None:
            self._version = await self._find()
        if self._version is None:
            await self._wait_for_kind()
            return
        path = self._resource.path_in(self._version)
        if self._intake.position:
            await self._watch(path)
            return
        self._history = self._discovery.history
        if self._streams_lists:
            await self._list_as_stream(path)
        else:
            await self._list_by_pages(path)

    # --- the version, and a kind that is not served ------------------------------------------------------------------

    async def _find(self) -> GroupVersion | None:
        """The version to use. It is kept until the server says of it that it is not there (404)."""
        self._phase = "discover"
        if self._looks_again or not self._discovery.known:
            await self._discovery.refresh()
            self._looks_again = False
        found = self._discovery.resolve(self._resource)
        if found is None and self._was_served:
            self._believe_it_is_gone()
        else:
            self._missing_since = None
        if found is not None:
            self._absence.reset()
            self._served = self._resource.served_in(found)
        return found

    def _believe_it_is_gone(self) -> None:
        """A kind that was there vanishes with an upgrade, and for some seconds while an API server starts, which knows
        not all groups at first. Raises VanishedError for as long as it may be back in a moment.
        """
        now = self._timers.now()
        if self._missing_since is None:
            self._missing_since = now
        if now - self._missing_since < GONE_AFTER:
            self._looks_again = True
            raise VanishedError(f"the API server does not serve {self._resource.plural} any more")
        self._was_served = False

    async def _wait_for_kind(self) -> None:
        """Without the kind there are no objects: that is known, and in sync. Later it is looked for again."""
        self._is_well("not served")
        await self._fifo.replacing().finish()
        await _first(self._timers.sleep(self._absence.next()), self._discovery.reconnection())
        self._looks_again = True

    # --- lists -------------------------------------------------------------------------------------------------------

    async def _list_by_pages(self, path: str) -> None:
        self._phase, self.doing = "list", "listing"
        began = self._timers.now()
        replacement, pacer = self._fifo.replacing(began), Pacer()
        position, count = "", 0
        async with aclosing(read_pages(self._reader, path, self._query(), self._page_size)) as pages:
            async for page in pages:
                self._is_well(_progress(count + len(page.items)))
                position = position or page.resource_version
                for item in page.items:
                    self._intake.take_listed(read_object(self._served, item), replacement)
                    await pacer.spent(len(item))
                count += len(page.items)
        await replacement.finish()
        self._page_size, self._list_expired = self._settings.page_size, False
        self._has_listed(position, count, began)

    async def _list_as_stream(self, path: str) -> None:
        """A watch that begins with all that there is (KEP-3157), and goes on as the watch that follows a list."""
        self._phase, self.doing = "stream", "listing"
        began = self._timers.now()
        streamed = StreamedList(self._fifo.replacing(began), began)
        await self._follow(
            path, self._query() | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, streamed
        )

    def _has_listed(self, position: str, count: int, began: float) -> None:
        self._observer.listed(self._resource.plural, count, self._timers.now() - began)
        self._was_served = True
        self._session.progressed = True
        self._is_well("delivering")
        self._intake.move(position)

    # --- watches -----------------------------------------------------------------------------------------------------

    async def _watch(self, path: str) -> None:
        self._phase = "watch"
        self._check_others()
        if self._may_have_gone_back:
            await self._check_history(path)
        await self._follow(path, self._query() | {"resourceVersion": self._intake.position}, None)

    async def _check_history(self, path: str) -> None:
        """Raises RelistError if the server has not got as far as the position: its history is not the one known."""
        query = self._query() | {"limit": "1"}
        answer = await self._reader.request("GET", path, query=query, timeout=PAGE_TIMEOUT, retry=False)
        version = read_page(answer.body).resource_version
        self._may_have_gone_back = False
        if is_older(version, self._intake.position):
            raise WentBackError(f"went back from {self._intake.position} to {version}")

    def _check_others(self) -> None:
        if self._history != self._discovery.history:
            raise RelistError("went back, as was seen with another kind")

    async def _follow(self, path: str, query: dict[str, str], streamed: StreamedList[T] | None) -> None:
        """Takes a stream's events until it ends; raises KubeError unless it ended as it should."""
        low, high = self._settings.timeout_from, self._settings.timeout_to
        seconds = low + (high - low) * self._timers.jitter()
        query |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(round(seconds))}
        pacer = Pacer()
        async with self._reader.stream(path, query=query, inactivity=self._settings.inactivity) as lines:
            self._has_opened()
            async for line in lines:
                await self._take(line, streamed)
                await pacer.spent(len(line))
        if self._phase == "stream":
            raise NotStreamedError("the stream ended before the list was complete")
        if self._session.short and not self._session.progressed:
            raise ShortWatchError("the server ends each watch at once")
        self._observer.watch_ended(self._resource.plural, "ended")
        self._recovery.went_well(self._session)

    async def _take(self, line: bytes, streamed: StreamedList[T] | None) -> None:
        event = read_line(self._served, line)
        if streamed is None or self._phase == "watch":
            self._check_others()
            if self._intake.take(event):
                self._session.progressed = True
            return
        self._intake.take_initial(event, streamed)
        if streamed.count % self._settings.page_size == 0 and streamed.count:
            self.doing = _progress(streamed.count)
        if streamed.version:
            await streamed.replacement.finish()
            self._has_listed(streamed.version, streamed.count, streamed.began)
            self._phase = "watch"

    def _has_opened(self) -> None:
        self._session.open()
        self._is_well("watching" if self._phase == "watch" else "listing")
        self._observer.watching(self._resource.plural)

    # --- failures ----------------------------------------------------------------------------------------------------

    async def _recover(self, error: KubeError) -> None:
        """Decides how to go on, and waits until it is time to."""
        silent = isinstance(error, OutcomeUnknownError) and error.timed_out and self._session.opened
        self._recovery.went_well(self._session)
        if self._session.opened:
            lost = isinstance(error, OutcomeUnknownError)
            self._observer.watch_ended(self._resource.plural, "silent" if silent else "lost" if lost else "refused")
        if self._phase == "stream" and self._does_not_stream(error, silent):
            self._streams_lists = False
            return
        if silent:
            return
        self._complain(error)
        self._draw_conclusions(error)
        await self._timers.sleep(self._recovery.delay(error))

    def _does_not_stream(self, error: KubeError, silent: bool) -> bool:
        """Whether to list by pages from now on. A stream that is only lost is tried again, but not for ever."""
        match error:
            case NotStreamedError() | MalformedError():
                return True
            case ApiError(status=status) if status in {400, 422}:
                return True
            case ApiError() | OutcomeUnknownError() if self._session.opened:
                return silent or isinstance(error, ApiError) or self._recovery.is_stuck()
            case _:
                return False

    def _complain(self, error: KubeError) -> None:
        if isinstance(error, VanishedError):
            self.trouble = str(error)
        elif self._phase == "discover":
            self.trouble = f"cannot find out what the API server serves: {error}"
        else:
            self.trouble = explain(self._resource, "list" if self._phase == "list" else "watch", error)
        self._observer.failed(self._resource.plural, self.trouble)

    def _draw_conclusions(self, error: KubeError) -> None:
        if isinstance(error, UnreachableError):
            self._server_was_away = True
            self._streams_lists = self._settings.watch_list
        if isinstance(error, WentBackError):
            self._discovery.went_back()
        self._may_have_gone_back |= isinstance(error, UnreachableError | OutcomeUnknownError)
        if isinstance(error, ApiError) and error.status == 404 and self._phase != "discover":
            self._discovery.expire()
            self._version = None
        if self._phase == "list" and isinstance(error, ApiError) and history_is_lost(error):
            # Paging takes longer than the server keeps history. Once may be bad luck; one page cannot expire.
            self._page_size = 0 if self._list_expired else self._page_size
            self._list_expired = True
        reason = self._recovery.must_relist(error) if self._phase == "watch" else ""
        if reason:
            self._intake.position = ""
            self._observer.relisting(self._resource.plural, reason)

    def _is_well(self, doing: str) -> None:
        self.doing, self.trouble = doing, ""
        if self._server_was_away:
            self._server_was_away = False
            self._discovery.reconnected()

    def _query(self) -> dict[str, str]:
        return {"fieldSelector": self._resource.fields} if self._resource.fields else {}


def _progress(count: int) -> str:
    return f"listing, {count} so far"


async def _first(*waits: Coroutine[Any, Any, None]) -> None:
    """Returns when one of them does; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
