"""Watches: what is sent first, what follows, bookmarks, and how a stream ends. Sockets are in `server`."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

import msgspec

from ksp.apiserver.clock import Timer
from ksp.apiserver.handlers import list_options
from ksp.apiserver.handlers.list_options import Options
from ksp.apiserver.handlers.lists import cached
from ksp.apiserver.http.negotiation import Form
from ksp.apiserver.http.render import as_table, empty, partial, public
from ksp.apiserver.state import Call
from ksp.apiserver.status import plain_error
from ksp.apiserver.store import Event

Json = dict[str, Any]

BOOKMARK_EVERY: Final = 60.0
"""Seconds between two bookmarks."""
LAST_BOOKMARK: Final = 2.0
"""Seconds before the end of the watch."""
SHORTEST_TIMEOUT: Final = 1800
"""Seconds, at least, of a watch that names no timeout; at most twice that."""
LONGEST_TIMEOUT: Final = 365 * 24 * 3600
"""Seconds that a watch lasts at most."""
BACKLOG: Final = 32 * 1024 * 1024
"""Bytes of lines that wait for a client that does not read; beyond that the stream ends, and they are let go."""
SLICE: Final = 200
"""Lines of the beginning that are made at a time: others get their turn while a long list is written."""
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}

_encode: Final = msgspec.json.Encoder().encode
_log: Final = logging.getLogger("ksp.apiserver")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How lines are written: watchers with the same shape share the bytes."""

    group_version: str
    plural: str
    transform: str
    transform_version: str
    include: str
    """What a row of a Table carries."""


class Watch:
    """One watch: a queue of lines that the socket's side empties, fed by the store and by timers.

    What is to be told of the past is not put into the queue: its lines are made when they are asked for, from objects
    that the store has anyway. So a client that does not read costs no more than the backlog.
    """

    def __init__(self, call: Call, options: Options) -> None:
        self.call = call
        self.ended = False
        self._options = options
        self._kind = call.state.store.kind(call.resource.storage_id)
        self._namespace = call.context().namespace or None
        self._past: Iterator[bytes] = iter(())
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        """Bytes in the queue."""
        self._news = asyncio.Event()
        self._timers: list[Timer] = []
        self._after = 0
        self._columns = call.form.transform == "Table"
        form, include = call.form, call.target.query.get("includeObject", "")
        where = call.resource.group_version, call.resource.plural
        self._shape = _Shape(*where, form.transform, form.transform_version, include)

    # --- what the socket's side sees

    def start(self) -> None:
        """Sees what is to be told of the past, and listens."""
        options, store = self._options, self.call.state.store
        from_start = options.revision in {"", "0"} and options.initial_events is not False
        if options.initial_events or from_start:
            past = self._initial()
        else:
            self._after = int(options.revision) if options.revision else store.revision
            too_old = self._too_old()
            if too_old:
                self._put(_error(410, too_old, "Expired"))
                self.end()
                return
            past = self._replay(self._kind.events_after(self._after))
            self._after = max(self._after, store.revision)
        # The first line now: of a Table it names the columns, which no event that comes later shall do.
        self._past = chain(tuple(islice(past, 1)), past)
        self._kind.listeners.add(self._on_event)
        self._set_timers()

    async def lines(self) -> bytes:
        """Lines that wait, at least one; nothing means that the stream has ended."""
        past = b"".join(islice(self._past, SLICE))
        if past:
            return past
        while not self._lines:
            if self.ended:
                return b""
            self._news.clear()
            await self._news.wait()
        found = b"".join(self._lines)
        self._lines.clear()
        self._waiting = 0
        return found

    def end(self) -> None:
        """No more lines after those that wait."""
        self.ended = True
        self._news.set()

    def close(self) -> None:
        """Stops listening; safe to call again."""
        self._kind.listeners.discard(self._on_event)
        for timer in self._timers:
            timer.cancel()

    # --- beginning

    def _initial(self) -> Iterator[bytes]:
        """ADDED of all there is now, and in newer versions the bookmark that says that this was all."""
        self._after = self.call.state.store.revision
        objects = [self._kind.objects[key] for key in self._kind.keys(self._namespace)]
        if not self.call.state.version.cached_lists_sorted:
            objects = [objects[index] for index in self.call.state.dice.shuffled(len(objects))]
        return self._added(objects, self._after)

    def _added(self, objects: Sequence[Json], revision: int) -> Iterator[bytes]:
        for obj in objects:
            if line := self._safely(self._added_line, obj):
                yield line
        if self.call.state.version.watch_list and self._options.bookmarks:
            yield self._bookmark_line(revision, INITIAL_EVENTS_END)

    def _too_old(self) -> str:
        """What is said if the version that is asked for is not known any more; nothing if it is."""
        store = self.call.state.store
        if not cached(self.call):
            return list_options.WATCH_TOO_OLD if self._after < max(store.compacted, self._kind.since) else ""
        since = self._kind.since
        return f"too old resource version: {self._after} ({since})" if self._after < since else ""

    def _replay(self, events: Sequence[Event]) -> Iterator[bytes]:
        for event in events:
            if line := self._safely(self._line_of, event):
                yield line
            event.encoded.clear()

    def _added_line(self, obj: Json) -> bytes:
        fits = self._options.fits
        return self._line("ADDED", obj) if fits is None or fits(obj) else b""

    # --- events

    def _on_event(self, event: Event) -> None:
        if event.revision <= self._after or self.ended:
            return
        if line := self._safely(self._line_of, event):
            self._put(line)

    def _safely(self, make: Callable[[Any], bytes], of: Any) -> bytes:
        """The line of an object or event, or the one that says that there is a fault, with which the stream ends.

        The fault is this watcher's, and not that of whoever writes the object.
        """
        try:
            return make(of)
        except Exception:  # noqa: BLE001 it is logged with its traceback
            _log.exception("a watch cannot show one of the %s", self._shape.plural)
            self._put(_error(500, "the object cannot be shown", "InternalError"))
            self.end()
            return b""

    def _line_of(self, event: Event) -> bytes:
        """Nothing for what the watch does not look at."""
        if self._namespace is not None and event.key[0] != self._namespace:
            return b""
        fits = self._options.fits
        if fits is None:
            return self._shared(event, event.type, leaves=False)
        before = event.previous is not None and fits(event.previous)
        if event.type != "DELETED" and fits(event.current):
            return self._shared(event, "MODIFIED" if before else "ADDED", leaves=False)
        return self._shared(event, "DELETED", leaves=event.type != "DELETED") if before else b""

    def _shared(self, event: Event, type: str, *, leaves: bool) -> bytes:
        """The line of an event. An object that leaves a selector is shown as it was, with the new resourceVersion."""
        if self._columns:
            return self._line(type, self._object_of(event, leaves=leaves))
        key = (self._shape, type, leaves)
        line = event.encoded.get(key)
        if line is None:
            line = event.encoded[key] = self._line(type, self._object_of(event, leaves=leaves))
        return line

    @staticmethod
    def _object_of(event: Event, *, leaves: bool) -> Json:
        if not leaves or event.previous is None:
            return event.current
        meta = {**event.previous["metadata"], "resourceVersion": str(event.revision)}
        return {**event.previous, "metadata": meta}

    def _line(self, type: str, obj: Json) -> bytes:
        shown = public(obj, self.call.resource, self.call.state.version)
        return _encode({"type": type, "object": self._formed(shown)}) + b"\n"

    def _formed(self, shown: Json) -> Json:
        form: Form = self.call.form
        if form.transform == "Table":
            meta = {key: shown["metadata"][key] for key in ("selfLink", "resourceVersion") if key in shown["metadata"]}
            columns, self._columns = self._columns, False
            return as_table([shown], meta, form, self.call.context(), columns=columns)
        return partial(shown, form) if form.transform else shown

    # --- bookmarks and the end

    def _bookmark(self) -> None:
        self._put(self._bookmark_line(max(self._after, self.call.state.store.revision)))

    def _bookmark_line(self, revision: int, annotations: Json | None = None) -> bytes:
        meta: Json = {"resourceVersion": str(revision)}
        if annotations is not None:
            meta["annotations"] = annotations
        shown = empty(self.call.resource, self.call.state.version, meta)
        return _encode({"type": "BOOKMARK", "object": self._formed(shown)}) + b"\n"

    def _set_timers(self) -> None:
        clock = self.call.state.clock
        timeout = float(min(self._options.timeout, LONGEST_TIMEOUT)) or SHORTEST_TIMEOUT * (
            1 + self.call.state.dice.fraction()
        )
        self._timers.append(clock.call_later(timeout, self.end))
        if self._options.bookmarks and cached(self.call):
            self._timers.append(clock.call_later(BOOKMARK_EVERY, self._periodic))
            if self._sends_last(timeout):
                self._timers.append(clock.call_later(timeout - LAST_BOOKMARK, self._bookmark))

    def _sends_last(self, timeout: float) -> bool:
        """A short watch ends without one; older versions look for due bookmarks more rarely."""
        return timeout > (2 * LAST_BOOKMARK if self.call.state.version.watch_list else BOOKMARK_EVERY)

    def _periodic(self) -> None:
        if not self.ended:
            self._bookmark()
            self._timers.append(self.call.state.clock.call_later(BOOKMARK_EVERY, self._periodic))

    def _put(self, line: bytes) -> None:
        if self.ended:
            return
        self._lines.append(line)
        self._waiting += len(line)
        if self._waiting > BACKLOG:
            self._lines.clear()
            self._past = iter(())
            self.end()
        self._news.set()


def _error(code: int, message: str, reason: str) -> bytes:
    return _encode({"type": "ERROR", "object": plain_error(code, message, reason).status}) + b"\n"


def open_watch(call: Call) -> Watch:
    """Raises 400, 422, and 500 for a resourceVersion that is no number."""
    options = list_options.read(call)
    list_options.revision_of(options.revision)
    return Watch(call, options)
