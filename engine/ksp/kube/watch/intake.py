"""What a reflector makes of objects and events: changes in the queue, and the position up to which all is known.

Nothing here waits. What cannot be read is reported, and nothing is lost for it: an object's last good version stays.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ksp.kube.errors import KubeError
from ksp.kube.http.reader import MalformedError
from ksp.kube.resource_versions import is_newer, is_older
from ksp.kube.watch.delta_fifo import DeltaFifo, Replacement
from ksp.kube.watch.objects import Readable, Unreadable
from ksp.kube.watch.observer import ReflectorObserver
from ksp.kube.watch.recovery import WentBackError
from ksp.kube.watch.resources import Object, Resource
from ksp.kube.watch.watch_events import Bookmark, Changed, Deleted, Event, Unknown

T = TypeVar("T", bound=Object)

Found = Readable[Any] | Unreadable


class NotStreamedError(KubeError):
    """The server does not give lists as streams."""


class Intake(Generic[T]):
    """The position of one reflector; empty before the first list."""

    def __init__(self, resource: Resource, fifo: DeltaFifo[T], observer: ReflectorObserver) -> None:
        self._resource = resource
        self._fifo = fifo
        self._observer = observer
        self.position = ""

    def take(self, event: Event) -> bool:
        """An event of a watch at the position. True: the position has moved. Raises WentBackError."""
        match event:
            case Changed(found) | Deleted(found):
                if not is_newer(found.resource_version, self.position):
                    self._observer.repeated(self._resource.plural)
                    return False
                self._change(found) if isinstance(event, Changed) else self._delete(found)
                return self.move(found.resource_version)
            case Bookmark(version):
                if is_older(version, self.position):
                    raise WentBackError("went back")
                return self.move(version)
            case Unknown():
                self._report_unknown(event)
                return False

    def take_initial(self, event: Event, streamed: StreamedList[T]) -> None:
        """An event of a watch that begins with all that there is. Raises NotStreamedError where that does not hold."""
        match event:
            case Changed(found):
                self.take_listed(found, streamed.replacement)
                streamed.count += 1
            case Deleted(found):
                streamed.replacement.delete(self._named(found), found.value if isinstance(found, Readable) else None)
            case Bookmark(version, initial_end):
                if not initial_end:
                    raise NotStreamedError("the server sends events, and not first all that there is")
                streamed.end(version)
            case Unknown():
                self._report_unknown(event)

    def take_listed(self, found: Found, replacement: Replacement[T]) -> None:
        """An item of a list. One that the selector excludes counts as not there."""
        if isinstance(found, Unreadable):
            self._report(found)
            replacement.hold(found.key, found.uid)
        elif found.wanted:
            replacement.put(found.key, found.value)

    def move(self, version: str) -> bool:
        """All up to this version is known. False: that was so already, or it is not said which."""
        if not version or version == self.position:
            return False
        self.position = version
        self._observer.position(self._resource.plural, version)
        return True

    def _change(self, found: Found) -> None:
        if isinstance(found, Unreadable):
            self._report(found)
            self._fifo.hold(found.key, found.uid)
        elif found.wanted:
            self._fifo.put(found.key, found.value)
        else:
            self._fifo.delete(found.key, found.value)

    def _delete(self, found: Found) -> None:
        self._fifo.delete(self._named(found), found.value if isinstance(found, Readable) else None)

    def _named(self, found: Found) -> str:
        """The key of what was deleted. Raises WentBackError if that cannot be read."""
        if isinstance(found, Unreadable):
            self._report(found)
            if not found.key:
                raise WentBackError("a deletion without a name")
        return found.key

    def _report(self, found: Unreadable) -> None:
        self._observer.undecodable(self._resource.plural, found.key, found.message)

    def _report_unknown(self, event: Unknown) -> None:
        self._observer.undecodable(self._resource.plural, "", f"an event of the unknown type {event.type[:60]!r}")


class StreamedList(Generic[T]):
    """A list that comes in as the first events of a watch. `version` is set by the bookmark that ends it."""

    def __init__(self, replacement: Replacement[T], began: float) -> None:
        self.replacement = replacement
        self.began = began
        self.count = 0
        self.version = ""

    def end(self, version: str) -> None:
        if not version:
            raise MalformedError("the bookmark that ends the list has no resourceVersion")
        self.version = version
