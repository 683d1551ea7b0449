"""The lines of a watch. A line is an event: its type, and an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ksp.kube.errors import ApiError
from ksp.kube.http.reader import MalformedError
from ksp.kube.watch.objects import Readable, Unreadable, read_object
from ksp.kube.watch.resources import Resource

# A bookmark with this annotation says that all that was there at the start of the watch has been sent (KEP-3157).
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Changed:
    """An object was added or modified: for a cache that is one thing."""

    found: Readable[Any] | Unreadable


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone, or does not match the selector any more. It is shown as it was at last."""

    found: Readable[Any] | Unreadable


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All events up to this version have been sent. `initial_end`: and what there was at the start as well."""

    resource_version: str
    initial_end: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event of a type that the API does not have today."""

    type: str


Event = Changed | Deleted | Bookmark | Unknown


class _Line(msgspec.Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str | None = None
    annotations: dict[str, Any] | None = None


class _BookmarkObject(msgspec.Struct):
    """Real servers leave out or null what they like of a bookmark's object; two fields count."""

    metadata: _BookmarkMeta | None = None


class _Status(msgspec.Struct):
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None


_LINES: Final = msgspec.json.Decoder(_Line)
_BOOKMARKS: Final = msgspec.json.Decoder(_BookmarkObject | None)
_STATUSES: Final = msgspec.json.Decoder(_Status | None)


def read_line(resource: Resource, line: bytes) -> Event:
    """The event in a line. Raises ApiError for an ERROR event, and MalformedError for what is no event at all."""
    try:
        event = _LINES.decode(line)
        match event.type:
            case "ADDED" | "MODIFIED":
                return Changed(read_object(resource, event.object))
            case "DELETED":
                return Deleted(read_object(resource, event.object))
            case "BOOKMARK":
                return _bookmark(event.object)
            case "ERROR":
                raise _error(event.object)
            case _:
                return Unknown(event.type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"a line of the watch is not an event: {error}") from error


def _bookmark(data: bytes) -> Bookmark:
    meta = (_BOOKMARKS.decode(data) or _BookmarkObject()).metadata or _BookmarkMeta()
    return Bookmark(meta.resource_version or "", (meta.annotations or {}).get(INITIAL_EVENTS_END) == "true")


def _error(data: bytes) -> ApiError:
    """The Status of an ERROR event as the error that the request could have had: "too old" comes in both forms."""
    status = _STATUSES.decode(data) or _Status()
    details = status.details or {}
    seconds = details.get("retryAfterSeconds")
    return ApiError(
        status.code or 500,
        status.reason or "InternalError",
        status.message or "the watch ended with an error that says nothing",
        details,
        float(seconds) if isinstance(seconds, int | float) and seconds else None,
    )
