"""What is said about an object, before it is known in which version of the API it will be written."""

from __future__ import annotations

import datetime as dt
from typing import Final, Literal

import msgspec

from ksp.kube.printable import printable
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod

EventType = Literal["Normal", "Warning"]

# Limits of the API: validation of events.k8s.io (`pkg/apis/core/validation/events.go`), in bytes.
NOTE_LIMIT: Final = 1024
WORD_LIMIT: Final = 128


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which object an event is about. `namespace` is empty for what is in none."""

    kind: str
    api_version: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """What stays the same when the object changes."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid)


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """Something happened once. `source` is who says so, e.g. `default-scheduler`; `related` is another object
    that it concerns."""

    regarding: ObjectReference
    source: str
    type: EventType
    reason: str
    action: str
    note: str
    at: dt.datetime
    related: ObjectReference | None = None


def occurrence(
    regarding: ObjectReference, source: str, type: EventType, reason: str, action: str, note: str, at: dt.datetime,
    related: ObjectReference | None = None,
) -> Occurrence:  # fmt: skip
    """With texts that the API takes: no control characters, cut at its limits."""
    return Occurrence(
        regarding=regarding,
        source=printable(source, WORD_LIMIT),
        type=type,
        reason=printable(reason, WORD_LIMIT),
        action=printable(action, WORD_LIMIT),
        note=printable(note, NOTE_LIMIT),
        at=at,
        related=related,
    )


def reference_to(object: ObjectReference | Pod | PodInfo | Node) -> ObjectReference:
    """As client-go's `reference.GetReference` makes it."""
    if isinstance(object, ObjectReference):
        return object
    meta = object.metadata
    return ObjectReference(
        kind="Node" if isinstance(object, Node) else "Pod",
        api_version="v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )
