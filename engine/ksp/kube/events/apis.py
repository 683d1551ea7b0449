"""The three APIs that keep events, the same events in each, and which of them a server has.

    events.k8s.io/v1       1.19 and later
    events.k8s.io/v1beta1  up to 1.24; the same fields
    v1                     always; older fields, and the only one in which a count is just counted

Facts on times: MicroTime has exactly six digits. Facts on `series`: its count is at least 2.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from ksp.kube.events.objects import Occurrence
from ksp.kube.events.series import EventApi, Pace, Series
from ksp.kube.wall_clock import microseconds, whole_seconds

# As client-go's tools/events, except that a series is refreshed every 5 minutes, not every 30: as often as the spam
# filter admits in the long run, so that `kubectl describe` is not half an hour late.
SERIES_PACE: Final = Pace(refresh=300.0, quiet=360.0)

# As client-go's tools/record: each repetition is written, as far as the spam filter admits. A server keeps an event for
# an hour.
COUNT_PACE: Final = Pace(refresh=0.0, quiet=3600.0)


class Serves(Protocol):
    """What the server's discovery says."""

    def serves(self, group: str, version: str, resource: str) -> bool: ...

    async def refresh(self) -> None:
        """Asks the server anew. Raises KubeError."""
        ...


def best_api(discovery: Serves) -> EventApi:
    """The newest that the server has; core/v1 where discovery knows of none."""
    for api in APIS[:-1]:
        if discovery.serves(api.group, api.version, "events"):
            return api
    return APIS[-1]


def _metadata(series: Series) -> dict[str, str]:
    return {"namespace": series.namespace, "name": series.name}


def _related(said: Occurrence) -> dict[str, Any]:
    return {} if said.related is None else {"related": msgspec.to_builtins(said.related)}


def _new_event(series: Series, host: str) -> dict[str, Any]:
    said = series.said
    event: dict[str, Any] = {
        "kind": "Event",
        "metadata": _metadata(series),
        "eventTime": microseconds(said.at),
        "reportingController": said.source,
        "reportingInstance": f"{said.source}-{host}"[:128],
        "action": said.action,
        "reason": said.reason,
        "regarding": msgspec.to_builtins(said.regarding),
        "note": said.note,
        "type": said.type,
        **_related(said),
    }
    if series.count > 1:
        event |= _new_patch(series)
    return event


def _new_patch(series: Series) -> dict[str, Any]:
    return {"series": {"count": series.count, "lastObservedTime": microseconds(series.last)}}


def _core_event(series: Series, host: str) -> dict[str, Any]:
    said = series.said
    return {
        "kind": "Event",
        "metadata": _metadata(series),
        "involvedObject": msgspec.to_builtins(said.regarding),
        "reason": said.reason,
        "source": {"component": said.source},
        "firstTimestamp": whole_seconds(said.at),
        "type": said.type,
        **_related(said),
        **_core_patch(series),
    }


def _core_patch(series: Series) -> dict[str, Any]:
    return {"count": series.count, "lastTimestamp": whole_seconds(series.last), "message": series.note}


APIS: Final = (
    EventApi("events.k8s.io", "v1", SERIES_PACE, combines=False, create=_new_event, patch=_new_patch),
    EventApi("events.k8s.io", "v1beta1", SERIES_PACE, combines=False, create=_new_event, patch=_new_patch),
    EventApi("", "v1", COUNT_PACE, combines=True, create=_core_event, patch=_core_patch),
)
