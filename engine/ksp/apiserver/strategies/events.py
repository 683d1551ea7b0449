"""Events: stored in the form of core/v1, also served and taken in that of events.k8s.io."""

from typing import Final

from ksp.apiserver.status import Cause, invalid_value, required
from ksp.apiserver.strategies.base import Kind
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import immutable, named, quoted

NOTE_LIMIT: Final = 1024
"""Bytes of an event's message."""
NAME_LIMIT: Final = 128
"""Bytes of reason, action, and the instance that reports."""

_CORE_OF: Final = {
    "reportingController": "reportingComponent",
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""Fields of events.k8s.io that core/v1 names otherwise."""
_NEW_OF: Final = {core: new for new, core in _CORE_OF.items()}


class Events(Kind):
    """core/v1."""

    create_on_update = True
    name_check = staticmethod(names.path_segment)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        namespace = obj["metadata"].get("namespace", "")
        found = self._check_old(obj, namespace) if obj.get("eventTime") is None else self._check_new(obj, namespace)
        return [*found, *named(namespace, "namespace", names.subdomain, context.version)]

    @staticmethod
    def _check_old(obj: Json, namespace: str) -> list[Cause]:
        about = obj["involvedObject"].get("namespace", "")
        if about == namespace or (not about and namespace == "default"):
            return []
        return [invalid_value("involvedObject.namespace", quoted(about), "does not match event.namespace")]

    @staticmethod
    def _check_new(obj: Json, namespace: str) -> list[Cause]:
        """An event with eventTime says who reports what; in words of core/v1 with one exception."""
        found: list[Cause] = []
        if not obj["involvedObject"].get("namespace") and namespace not in {"default", "kube-system"}:
            found.append(invalid_value("involvedObject.namespace", '""', "does not match event.namespace"))
        if not obj.get("reportingComponent"):
            found.append(required("reportingController"))
        for name in ("reportingInstance", "action", "reason"):
            text = obj.get(name, "")
            if not text:
                found.append(required(name))
            if len(text.encode()) > NAME_LIMIT:
                found.append(invalid_value(name, '""', f"can have at most {NAME_LIMIT} characters"))
        if len(obj.get("message", "").encode()) > NOTE_LIMIT:
            found.append(invalid_value("message", '""', f"can have at most {NOTE_LIMIT} characters"))
        return found


class NewEvents(Events):
    """events.k8s.io: eventTime is required, and only the series changes."""

    def validate_create(self, obj: Json, context: Context) -> list[Cause]:
        found = super().validate_create(obj, context)
        if context.resource.version == "v1":
            found += [required("eventTime")] if obj.get("eventTime") is None else []
            found += _validate_series(obj.get("series"))
        return found

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        if context.resource.version != "v1" or not context.version.immutable_events:
            return []
        found: list[Cause] = []
        for name in _IMMUTABLE:
            found += immutable(new.get(name), old.get(name), _FIELD_NAMES.get(name, name))
        return [*found, *_validate_series(new.get("series"))]

    def to_storage(self, obj: Json) -> Json:
        out = {_CORE_OF.get(name, name): value for name, value in obj.items()}
        for name in ("reportingComponent", "reportingInstance"):
            out.setdefault(name, "")
        return {**out, "apiVersion": "v1"}

    def from_storage(self, obj: Json) -> Json:
        out = {_NEW_OF.get(name, name): value for name, value in obj.items()}
        for name in ("reportingController", "reportingInstance"):
            if not out.get(name):
                out.pop(name, None)
        return {**out, "apiVersion": "events.k8s.io/v1"}


_IMMUTABLE: Final = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
_FIELD_NAMES: Final = {"reportingComponent": "reportingController"}


def _validate_series(series: Json | None) -> list[Cause]:
    if series is None:
        return []
    found: list[Cause] = []
    if series.get("count", 0) < 2:
        found.append(invalid_value("series.count", '""', "should be at least 2"))
    if series.get("lastObservedTime") is None:
        found.append(required("series.lastObservedTime"))
    return found
