"""Writes one event: creates it, or patches its count.

    patch  ─▶ 404                      the server has forgotten it (an hour, by default): create it anew
    create ─▶ 409, and an earlier      that one did it
              try may have done it
           ─▶ 409 otherwise            the name is taken: another name
           ─▶ 404 that names nothing   this version of the API is not served (any more): given up, and told
    any    ─▶ no connection, lost,     again after 10 s, or when the server says; 12 times in all
              429 502 503 504
           ─▶ other errors             given up: client-go's "will not retry"

Source of the figures: client-go `tools/record/event.go`, `tools/events/event_broadcaster.go`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from ksp.kube.errors import ApiError, OutcomeUnknownError, UnreachableError
from ksp.kube.events.series import Series
from ksp.kube.http.client import Client
from ksp.kube.http.forbidden import explained
from ksp.kube.http.paths import path_of
from ksp.kube.timers import Timers
from ksp.ports import Dice

TRIES: Final = 12
PAUSE: Final = 10.0
LONGEST_PAUSE: Final = 60.0
NAME_LIMIT: Final = 253
TRANSIENT: Final = frozenset({429, 502, 503, 504})

Verb = Literal["create", "patch"]


@dataclass(frozen=True, slots=True)
class Written:
    """The server has `count` occurrences of it now."""

    count: int
    verb: Verb


@dataclass(frozen=True, slots=True)
class _Again:
    """To be tried again after `pause` seconds. `perhaps_created`: an earlier request may have created the Event."""

    pause: float = 0.0
    why: str = ""
    perhaps_created: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """It was given up."""

    reason: Literal["rejected", "unreachable"]
    message: str
    unserved: bool = False
    """The server does not have this version of the API."""


class EventNames:
    """As client-go names events: the object's name, a point, the time in nanoseconds, hexadecimal. Never one twice.

    The time of day is known to the microsecond; the rest is thrown with `dice`, so that two schedulers differ.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._last = 0

    def name(self, object: str, at: dt.datetime) -> str:
        elapsed = at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        micros = elapsed // dt.timedelta(microseconds=1)
        self._last = max(self._last + 1, micros * 1000 + self._dice.below(1000))
        ending = f".{self._last:x}"
        return object[: NAME_LIMIT - len(ending)].rstrip(".-") + ending


class EventSender:
    """`host` is where this scheduler runs."""

    def __init__(self, client: Client, timers: Timers, names: EventNames, host: str) -> None:
        self._client = client
        self._timers = timers
        self._names = names
        self._host = host

    async def send(self, series: Series) -> Written | Failed:
        """Write what is known of the series when the request is sent. Raises nothing for what the server does."""
        again = _Again()
        for tried in range(TRIES):
            if tried:
                await self._timers.sleep(again.pause)
            outcome = await self._try(series, again.perhaps_created)
            if not isinstance(outcome, _Again):
                return outcome
            again = outcome
        return Failed("unreachable", again.why)

    async def _try(self, series: Series, perhaps_created: bool) -> Written | Failed | _Again:
        count = series.count
        verb: Verb = "patch" if series.exists else "create"
        try:
            await (self._patch(series) if verb == "patch" else self._create(series))
        except ApiError as error:
            return self._refused(series, verb, error, perhaps_created)
        except UnreachableError as error:
            return _Again(self._pause(), str(error), perhaps_created)
        except OutcomeUnknownError as error:
            return _Again(self._pause(), str(error), perhaps_created or verb == "create")
        return Written(count, verb)

    def _refused(self, series: Series, verb: Verb, error: ApiError, perhaps_created: bool) -> Written | Failed | _Again:
        match verb, error.status:
            case "patch", 404:
                series.exists = False
                return _Again(why=str(error))
            case "create", 409 if perhaps_created:
                series.exists = True
                return Written(1, "create") if series.count == 1 else _Again(why=str(error))
            case "create", 409:
                series.name = ""
                return _Again(why=str(error))
            case _, status if status in TRANSIENT:
                pause = max(self._pause(), min(error.retry_after or 0.0, LONGEST_PAUSE))
                return _Again(pause, str(error), perhaps_created or (verb == "create" and status != 429))
            case "create", 404 if "name" not in error.details:  # a namespace that is gone is named
                message = f"events of {series.api.group_version} are not served, other versions are looked for: {error}"
                return Failed("rejected", message, unserved=True)
        return Failed("rejected", explained(error))

    def _pause(self) -> float:
        """About ten seconds: many schedulers must not come back at the same time."""
        return PAUSE * (0.5 + self._timers.jitter())

    async def _create(self, series: Series) -> None:
        if not series.name:
            series.name = self._names.name(series.said.regarding.name, series.said.at)
        body = series.api.create(series, self._host)
        await self._request("POST", series, (), body, "application/json")

    async def _patch(self, series: Series) -> None:
        body = series.api.patch(series)
        await self._request("PATCH", series, (series.name,), body, "application/strategic-merge-patch+json")

    async def _request(
        self, method: str, series: Series, name: tuple[str, ...], body: dict[str, Any], content_type: str
    ) -> None:
        path = path_of(*series.api.prefix, "namespaces", series.namespace, "events", *name)
        if method == "POST":
            body = {"apiVersion": series.api.group_version, **body}
        await self._client.request(method, path, body=msgspec.json.encode(body), content_type=content_type, retry=False)
