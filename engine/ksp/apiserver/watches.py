"""Watches: what is sent first, what follows, bookmarks, and how a stream ends. Sockets are in `server`."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ksp.apiserver import list_options
from ksp.apiserver.clock import Timer
from ksp.apiserver.list_options import Options
from ksp.apiserver.lists import cached
from ksp.apiserver.negotiation import Form
from ksp.apiserver.render import as_table, empty, partial, public
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
BACKLOG: Final = 50_000
"""Lines that wait for a client that does not read; beyond that the stream ends."""
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Shape:
    """How lines are written: watchers with the same shape share the bytes."""

    group_version: str
    plural: str
    transform: str
    transform_version: str


class Watch:
    """One watch: a queue of lines that the socket's side empties, fed by the store and by timers."""

    def __init__(self, call: Call, options: Options) -> None:
        self.call = call
        self.ended = False
        self._options = options
        self._kind = call.state.store.kind(call.resource.storage_id)
        self._namespace = call.context().namespace or None
        self._lines: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._timers: list[Timer] = []
        self._after = 0
        self._columns = call.form.transform == "Table"
        form = call.form
        self._shape = _Shape(call.resource.group_version, call.resource.plural, form.transform, form.transform_version)

    # --- what the socket's side sees

    def start(self) -> None:
        """Puts the first lines into the queue and listens."""
        options, store = self._options, self.call.state.store
        from_start = options.revision in {"", "0"} and options.initial_events is not False
        if options.initial_events or from_start:
            self._initial()
        else:
            self._after = int(options.revision) if options.revision else store.revision
            if not self._replay():
                return
        self._kind.listeners.add(self._on_event)
        self._set_timers()

    async def lines(self) -> bytes:
        """All lines that wait, at least one; nothing means that the stream has ended."""
        while not self._lines:
            if self.ended:
                return b""
            self._news.clear()
            await self._news.wait()
        found = b"".join(self._lines)
        self._lines.clear()
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

    def _initial(self) -> None:
        """ADDED of all there is, and in newer versions the bookmark that says that this was all."""
        store, options = self.call.state.store, self._options
        self._after = store.revision
        objects = [self._kind.objects[key] for key in self._kind.keys(self._namespace)]
        if not self.call.state.version.cached_lists_sorted:
            objects = [objects[index] for index in self.call.state.dice.shuffled(len(objects))]
        for obj in objects:
            if options.fits is None or options.fits(obj):
                self._put(self._line("ADDED", obj))
        if self.call.state.version.watch_list and options.bookmarks:
            self._bookmark(INITIAL_EVENTS_END)

    def _replay(self) -> bool:
        """What happened since the version that is asked for; False if that is not known any more."""
        store = self.call.state.store
        if not cached(self.call):
            if self._after < store.compacted:
                return self._too_old(list_options.WATCH_TOO_OLD)
        elif self._after < self._kind.since:
            return self._too_old(f"too old resource version: {self._after} ({self._kind.since})")
        for event in self._kind.events_after(self._after):
            self._on_event(event)
        return True

    def _too_old(self, message: str) -> bool:
        status = plain_error(410, message, "Expired").status
        self._put(_encode({"type": "ERROR", "object": status}) + b"\n")
        self.end()
        return False

    # --- events

    def _on_event(self, event: Event) -> None:
        if event.revision <= self._after or self.ended:
            return
        if self._namespace is not None and event.key[0] != self._namespace:
            return
        fits = self._options.fits
        if fits is None:
            self._put(self._shared(event, event.type, leaves=False))
            return
        now = event.type != "DELETED" and fits(event.current)
        before = event.previous is not None and fits(event.previous)
        if now:
            self._put(self._shared(event, "MODIFIED" if before else "ADDED", leaves=False))
        elif before:
            self._put(self._shared(event, "DELETED", leaves=event.type != "DELETED"))

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

    def _bookmark(self, annotations: Json | None = None) -> None:
        meta: Json = {"resourceVersion": str(max(self._after, self.call.state.store.revision))}
        if annotations is not None:
            meta["annotations"] = annotations
        shown = empty(self.call.resource, self.call.state.version, meta)
        self._put(_encode({"type": "BOOKMARK", "object": self._formed(shown)}) + b"\n")

    def _set_timers(self) -> None:
        clock = self.call.state.clock
        timeout = float(self._options.timeout) or SHORTEST_TIMEOUT * (1 + self.call.state.dice.fraction())
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
        if len(self._lines) > BACKLOG:
            self.end()
        self._news.set()


def open_watch(call: Call) -> Watch:
    """Raises 400, 422, and 500 for a resourceVersion that is no number."""
    options = list_options.read(call)
    list_options.revision_of(options.revision)
    return Watch(call, options)
