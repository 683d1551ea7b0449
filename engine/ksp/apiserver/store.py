"""The objects, one counter of revisions, and a log of each kind, from which watches and old lists are served.

An object is a JSON dict that is never changed once it is stored; a new version is a new dict. Each write takes the next
revision, as in etcd. The log of a kind is its watch cache: it reaches back to the server's start or `window` events,
whichever is less. `compact` forgets old versions as an etcd compaction does; the logs stay.
"""

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""

WINDOW: Final = 20_000
"""Events that are kept of a kind; of pods, about 10 kB each."""


@dataclass(slots=True)
class Event:
    """One write. `current` is the new version, of a deletion the last one with the deletion's resourceVersion."""

    revision: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    key: Key
    current: Json
    previous: Json | None
    """The version before; None of an ADDED."""
    encoded: dict[object, bytes] = field(default_factory=dict)
    """Lines of watches that are made already, by their form; kept while the watchers are told, who share them."""


class Kind:
    """All objects of one kind, ordered by key, and their log."""

    __slots__ = ("_order", "_stale", "listeners", "log", "objects", "since")

    def __init__(self, window: int, since: int) -> None:
        self.objects: dict[Key, Json] = {}
        self.log: deque[Event] = deque(maxlen=window)
        self.since = since
        """The log holds all events above this revision."""
        self.listeners: set[Callable[[Event], None]] = set()
        self._order: list[Key] = []
        self._stale = False

    def keys(self, namespace: str | None = None) -> list[Key]:
        """In order; of one namespace or of all."""
        if self._stale:
            self._order = sorted(self.objects)
            self._stale = False
        if namespace is None:
            return self._order
        start = bisect.bisect_left(self._order, (namespace, ""))
        end = bisect.bisect_left(self._order, (namespace + "\0", ""))
        return self._order[start:end]

    def record(self, event: Event) -> None:
        if len(self.log) == self.log.maxlen:
            self.since = self.log[0].revision
        self.log.append(event)
        if event.type == "DELETED":
            self.objects.pop(event.key, None)
            self._stale = True
        else:
            if event.type == "ADDED":
                self._stale = True
            self.objects[event.key] = event.current
        for listener in tuple(self.listeners):
            listener(event)
        event.encoded.clear()

    def events_after(self, revision: int) -> list[Event]:
        """From the log, oldest first."""
        log = self.log
        low, high = 0, len(log)
        if high and log[-1].revision <= revision:
            return []
        if high > 64 and log[high - 64].revision <= revision:
            low = high - 64
        else:
            low = bisect.bisect_right(log, revision, key=lambda event: event.revision)
        return [event for event in islice(log, low, high) if event.revision > revision]

    def at(self, revision: int) -> dict[Key, Json]:
        """All objects as they were: what happened since is taken back."""
        objects = dict(self.objects)
        for event in reversed(self.events_after(revision)):
            if event.previous is None:
                objects.pop(event.key, None)
            else:
                objects[event.key] = event.previous
        return objects

    def forget(self, revision: int) -> None:
        """Starts the log anew, as the watch cache of a process that has just started."""
        self.log.clear()
        self.since = revision


class Store:
    """All kinds. `put` and `remove` are the only writes; both tell the kind's listeners at once."""

    def __init__(self, window: int = WINDOW) -> None:
        self.revision = 1
        self.compacted = 0
        """Versions at and below this revision are gone from etcd (not from the logs)."""
        self._window = window
        self._started = 0
        """The revision at which the watch caches began."""
        self._kinds: dict[str, Kind] = {}

    def kind(self, resource: str) -> Kind:
        found = self._kinds.get(resource)
        if found is None:
            found = self._kinds[resource] = Kind(self._window, self._started)
        return found

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return self.kind(resource).objects.get((namespace, name))

    def list(self, resource: str, namespace: str | None = None) -> Iterator[Json]:
        kind = self.kind(resource)
        return iter([kind.objects[key] for key in kind.keys(namespace)])

    def put(self, resource: str, obj: Json) -> Json:
        """Writes the next version of `obj`; `obj` and its metadata are kept, and get the resourceVersion."""
        kind = self.kind(resource)
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        self.revision += 1
        meta["resourceVersion"] = str(self.revision)
        previous = kind.objects.get(key)
        kind.record(Event(self.revision, "ADDED" if previous is None else "MODIFIED", key, obj, previous))
        return obj

    def remove(self, resource: str, namespace: str, name: str) -> Json | None:
        """Takes the object out; gives its last version, with the resourceVersion of the deletion."""
        kind = self.kind(resource)
        key = (namespace, name)
        previous = kind.objects.get(key)
        if previous is None:
            return None
        self.revision += 1
        last = {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(self.revision)}}
        kind.record(Event(self.revision, "DELETED", key, last, previous))
        return last

    def compact(self) -> None:
        """Forgets all versions but the current ones, as `etcdctl compact` does."""
        self.compacted = self.revision

    def restart(self, writes: int = 0) -> None:
        """What a new process finds: the objects, and watch caches that begin now, after `writes` of its own."""
        self.revision += writes
        self._started = self.revision
        for kind in self._kinds.values():
            kind.forget(self.revision)

    def counts(self) -> dict[str, int]:
        """How many objects there are of each kind that has any."""
        return {name: len(kind.objects) for name, kind in self._kinds.items() if kind.objects}


class DryRun:
    """A store in which nothing is written: what `dryRun=All` and strategies under it see."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return self._store.get(resource, namespace, name)

    def list(self, resource: str, namespace: str | None = None) -> Iterator[Json]:
        return self._store.list(resource, namespace)

    def put(self, resource: str, obj: Json) -> Json:
        return obj

    def remove(self, resource: str, namespace: str, name: str) -> Json | None:
        return self._store.get(resource, namespace, name)
