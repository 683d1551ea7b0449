"""Deletes a pod that has to go for another's sake, if it is still the pod that was meant.

    PATCH  …/pods/NAME/status   condition DisruptionTarget: says that the pod does not go for a fault of its own
    DELETE …/pods/NAME          with preconditions.uid, and the pod's own grace period

    2xx                                    the next request; after the last one: Evicted
    404, or the name is another pod's      Gone
    409                                    the pod is read: Gone, or sent again
    lost, late, 5xx, garbage               sent again, at most `TRIES` times in all
    403, 422, 429 for long, no connection  Failed

To send a request again can harm nobody: by the uid it means one pod, which is to go anyway. It is not sent for ever:
when a server has been away for long, somebody has to think anew who has to go.

A pod that is being deleted already is left alone: to delete it again could only shorten the time that it was given. No
turn is taken among the pod's other writes (`ksp.kube.write.writes`): the condition is one of its own, which a patch of
another does not touch, and whether a binding that is under way comes before or after the DELETE, the pod goes.

Sources: `PrepareCandidate` of kube-scheduler's preemption, 1.19 and 1.36. The condition came with 1.26 (KEP-3329); the
precondition is ours: kube-scheduler deletes whatever has the name.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.client import Client
from ksp.kube.http.forbidden import explained
from ksp.kube.http.paths import path_of
from ksp.kube.printable import printable
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import WallClock, whole_seconds
from ksp.kube.write.conditions import MESSAGE_LIMIT
from ksp.kube.write.patience import Patience
from ksp.kube.write.refusals import is_gone, names_another
from ksp.model.info import PodInfo

DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"
SINCE: Final = (1, 26)
"""The first version of the API server in whose cluster somebody reads the condition."""
TRIES: Final = 6


@dataclass(frozen=True, slots=True)
class Evicted:
    """The server deletes the pod because it was asked to."""


@dataclass(frozen=True, slots=True)
class Gone:
    """There was nothing to do: the pod is gone, or on its way out."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The pod stays, or it is not known: the server refuses, or cannot be asked. `message` is a sentence."""

    message: str


class EvictionObserver(Protocol):
    """Hears of evictions."""

    def eviction(self, victim: PodInfo, outcome: Evicted | Gone | Failed) -> None:
        """Told once for each pod that was to go."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    body: bytes
    content_type: str
    timeout: float


class _Meta(msgspec.Struct):
    uid: str = ""


class _Answer(msgspec.Struct):
    """What is read of the pod, or of the Status that says that it was deleted."""

    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class Evictor:
    """`client` is shared with other writes. `marks` says whether pods get the condition before they are deleted."""

    def __init__(
        self, client: Client, timers: Timers, clock: WallClock, observer: EvictionObserver, patience: Patience, *,
        marks: bool,
    ) -> None:  # fmt: skip
        self._client = client
        self._timers = timers
        self._clock = clock
        self._observer = observer
        self._patience = patience
        self._marks = marks

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed:
        """Delete the victim. Nothing is raised for what the server does; the observer is told the outcome too."""
        outcome = await self._evict(victim, preemptor)
        self._observer.eviction(victim, outcome)
        return outcome

    async def _evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed:
        if victim.terminating:
            return Gone()
        condition = disruption_target(victim, preemptor, self._clock.wall()) if self._marks else None
        if condition is not None:
            marked = await self._carry_out(victim, self._patch(victim, condition))
            if not isinstance(marked, Evicted):
                return marked
        return await self._carry_out(victim, self._deletion(victim))

    def _patch(self, victim: PodInfo, condition: dict[str, Any]) -> _Request:
        body = {"metadata": _uid(victim), "status": {"conditions": [condition]}}
        content_type = "application/strategic-merge-patch+json"
        return _Request("PATCH", _path(victim, "status"), msgspec.json.encode(body), content_type, self._patience.patch)

    def _deletion(self, victim: PodInfo) -> _Request:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": _uid(victim)}
        return _Request("DELETE", _path(victim), msgspec.json.encode(body), "application/json", self._patience.delete)

    async def _carry_out(self, victim: PodInfo, request: _Request) -> Evicted | Gone | Failed:
        """Evicted: the request was carried out, now or by one whose answer was lost."""
        backoff = Backoff(self._timers, initial=0.25, maximum=2.0)
        why, perhaps_done = "", False
        for attempt in range(TRIES):
            if attempt:
                await self._timers.sleep(backoff.next())
            try:
                await self._send(request)
            except UnreachableError as error:  # the client has tried ten times
                return Failed(str(error))
            except OutcomeUnknownError as error:
                why, perhaps_done = str(error), True
            except ApiError as error:
                if is_gone(error) or names_another(error) or (error.status == 409 and not await self._is_there(victim)):
                    return Evicted() if perhaps_done else Gone()
                if error.status < 500 and error.status not in {404, 409}:
                    return Failed(explained(error))
                why, perhaps_done = str(error), perhaps_done or error.status >= 500
            else:
                return Evicted()
        return Failed(why)

    async def _send(self, request: _Request) -> None:
        response = await self._client.request(
            request.method, request.path, body=request.body, content_type=request.content_type, timeout=request.timeout
        )
        try:
            kind = msgspec.json.decode(response.body, type=_Answer).kind
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OutcomeUnknownError(f"the answer to {request.method} {request.path} is no object: {error}") from error
        if kind not in {"Pod", "Status"}:
            raise OutcomeUnknownError(f"the answer to {request.method} {request.path} is of kind {kind[:60]!r}")

    async def _is_there(self, victim: PodInfo) -> bool:
        """Whether the name still stands for the victim; yes where that cannot be found out."""
        try:
            response = await self._client.request("GET", _path(victim), timeout=self._patience.read)
            return msgspec.json.decode(response.body, type=_Answer).metadata.uid == victim.metadata.uid
        except ApiError as error:
            return not is_gone(error)
        except (KubeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True


def disruption_target(victim: PodInfo, preemptor: PodInfo, now: dt.datetime) -> dict[str, Any] | None:
    """The condition that the victim gets; None if it says so already."""
    name = preemptor.scheduler_name
    message = printable(f"{name}: preempting to accommodate a higher priority pod", MESSAGE_LIMIT)
    condition = {"type": DISRUPTION_TARGET, "status": "True", "reason": BY_SCHEDULER, "message": message}
    known = next((each for each in victim.status.conditions if each.type == DISRUPTION_TARGET), None)
    if known is None or known.status != "True":
        return {**condition, "lastProbeTime": None, "lastTransitionTime": whole_seconds(now)}
    return None if (known.reason, known.message) == (BY_SCHEDULER, message) else condition


def _path(pod: PodInfo, *below: str) -> str:
    return path_of("api", "v1", "namespaces", pod.namespace, "pods", pod.name, *below)


def _uid(pod: PodInfo) -> dict[str, str]:
    return {"uid": pod.metadata.uid} if pod.metadata.uid else {}
