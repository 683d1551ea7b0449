"""Sends the patches of pods' conditions: the latest wins, and there is never a pile of them.

At most one is in flight for a pod and at most one waits; over all pods at most `IN_FLIGHT` are in flight. A patch says
the same however often it is sent, so one whose outcome is unknown is sent again, `TRIES` times at most, unless a later
one waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final, Protocol

import msgspec
from cachetools import LRUCache

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.client import Client
from ksp.kube.http.forbidden import explained
from ksp.kube.http.paths import path_of
from ksp.kube.resource_versions import is_older
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import WallClock
from ksp.kube.write.conditions import Unscheduled, known, patch, wanted
from ksp.kube.write.latest_only import LatestOnly
from ksp.kube.write.patience import Patience
from ksp.kube.write.refusals import is_gone, names_another
from ksp.model.info import PodInfo

IN_FLIGHT: Final = 16
TRIES: Final = 4
REMEMBERED: Final = 4 * 1024 * 1024  # bytes of messages, and as much as a short message for each pod


class Patched(Enum):
    """What became of a patch."""

    SENT = "sent"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"
    GONE = "gone"
    FAILED = "failed"


class ConditionObserver(Protocol):
    """Hears of each patch."""

    def condition(self, pod: PodInfo, outcome: Patched, why: str) -> None:
        """`why` is a sentence where the outcome is GONE or FAILED, else empty."""
        ...


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    """What the server has after a patch of ours, and the version that it has it in."""

    resource_version: str
    unscheduled: Unscheduled


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta


class StatusPatches:
    """`turns` are the pods' turns to be written, by uid; who else writes a pod takes them as well."""

    def __init__(
        self, client: Client, timers: Timers, clock: WallClock, observer: ConditionObserver, turns: LatestOnly,
        patience: Patience,
    ) -> None:  # fmt: skip
        self._client = client
        self._timers = timers
        self._clock = clock
        self._observer = observer
        self._turns = turns
        self._patience = patience
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)
        self._stored: LRUCache[str, _Stored] = LRUCache(
            REMEMBERED, lambda stored: 256 + len(stored.unscheduled.message)
        )

    async def set_condition(self, pod: PodInfo, reason: str, message: str, nominated_node: str | None) -> Patched:
        """Make the pod say so. Nothing is raised for what the server does; the outcome is also told to the observer."""
        return await self._tell(pod, lambda before: wanted(before, reason, message, nominated_node))

    async def clear_nomination(self, pod: PodInfo) -> Patched:
        """Make the pod name no node that it waits for, whatever else it says. Outcomes as of `set_condition`."""
        return await self._tell(pod, lambda before: replace(before, nominated_node=""))

    async def _tell(self, pod: PodInfo, change: Callable[[Unscheduled], Unscheduled]) -> Patched:
        outcome, why = Patched.SUPERSEDED, ""
        if await self._turns.enter(pod.uid):
            try:
                outcome, why = await self._write(pod, change)
            finally:
                self._turns.leave(pod.uid)
        self._observer.condition(pod, outcome, why)
        return outcome

    async def _write(self, pod: PodInfo, change: Callable[[Unscheduled], Unscheduled]) -> tuple[Patched, str]:
        before = self._before(pod)
        after = change(before)
        body = patch(pod.metadata.uid, before, after, self._clock.wall())
        if body is None:
            return Patched.UNCHANGED, ""
        async with self._in_flight:
            return await self._send(pod, after, msgspec.json.encode(body))

    def _before(self, pod: PodInfo) -> Unscheduled:
        """What the server has: the pod's version may be from before our last patch."""
        stored = self._stored.get(pod.uid)
        if stored is not None and is_older(pod.metadata.resource_version, stored.resource_version):
            return stored.unscheduled
        return known(pod)

    async def _send(self, pod: PodInfo, after: Unscheduled, body: bytes) -> tuple[Patched, str]:
        backoff = Backoff(self._timers, initial=0.25, maximum=2.0)
        failure: KubeError | None = None
        for _ in range(TRIES):
            if failure is not None:
                await self._timers.sleep(backoff.next())
            if self._turns.contested(pod.uid):
                return Patched.SUPERSEDED, ""
            try:
                await self._request(pod, after, body)
            except ApiError as error:
                if error.status < 500:
                    return _refused(error)
                failure = error
            except OutcomeUnknownError as error:
                failure = error
            except UnreachableError as error:  # the client has tried ten times
                return Patched.FAILED, str(error)
            else:
                return Patched.SENT, ""
        return Patched.FAILED, str(failure)

    async def _request(self, pod: PodInfo, after: Unscheduled, body: bytes) -> None:
        path = path_of("api", "v1", "namespaces", pod.namespace, "pods", pod.name, "status")
        content_type = "application/strategic-merge-patch+json"
        response = await self._client.request(
            "PATCH", path, body=body, content_type=content_type, timeout=self._patience.patch
        )
        try:
            version = msgspec.json.decode(response.body, type=_Answer).metadata.resource_version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OutcomeUnknownError(
                f"the answer to a patch of {pod.namespace}/{pod.name} is no pod: {error}"
            ) from error
        self._stored[pod.uid] = _Stored(version, after)


def _refused(error: ApiError) -> tuple[Patched, str]:
    if error.status == 409 or is_gone(error):
        return Patched.GONE, error.message
    if names_another(error):
        return Patched.GONE, "the pod was deleted, and another has its name"
    return Patched.FAILED, explained(error)
