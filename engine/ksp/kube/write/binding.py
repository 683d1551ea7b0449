"""Binds a pod to a node, and never leaves open whether it happened.

    POST …/pods/NAME/binding ─▶ 2xx                         Bound
                             ─▶ 400 401 403 404 422 429     NotBound: the server says that it did nothing
                             ─▶ nothing was processed       NotBound
                             ─▶ 409                         read the pod
                             ─▶ lost, late, 5xx, garbage    read the pod

    read the pod ─▶ it is gone, or another of its name      NotBound, gone
                 ─▶ on our node                             Bound: an earlier request of ours did it
                 ─▶ on another node                         NotBound
                 ─▶ on none, and it is being deleted        NotBound: no request can bind it any more
                 ─▶ on none, and 409 was all that we heard  NotBound: for instance it has a scheduling gate
                 ─▶ on none                                 a request may still be under way: send it again
                 ─▶ no answer                               wait, read again, for as long as it takes

Sending the same binding again decides nothing anew: at most one of the requests can take effect, and each has the
same effect. So a pod is never bound twice; and it is not lost, because the caller, who keeps its place on the node,
waits until the answer is known, however long the server is away. Cancelling the call is the way to stop waiting.

After `MOST_POSTS` requests, or when one that was sent again is refused, it only reads. Once `DEAD_AFTER` seconds have
passed since the last request without an answer, the server has given that up too (its `--request-timeout` is 60 s), and
a pod without a node is not bound.

The pod's uid goes along. 1.36 refuses (409) when the name stands for another pod by then. 1.19 does not look at it:
there a pod that was deleted and made again under its name within the moment of the request is bound to the place of
its predecessor. The watch then shows it under its own uid, and kubelet's admission is the last net.

Sources: `pkg/registry/core/pod/storage` (BindingREST) of 1.19 and 1.36, and recorded answers of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

import msgspec

from ksp.kube.errors import ApiError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.client import Client, Response
from ksp.kube.http.forbidden import explained
from ksp.kube.http.paths import path_of
from ksp.kube.timers import Timers
from ksp.kube.write.patience import Patience
from ksp.model.info import PodInfo

MOST_POSTS: Final = 5
DEAD_AFTER: Final = 75.0
LONGEST_PAUSE: Final = 30.0


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is on the node."""


@dataclass(frozen=True, slots=True)
class NotBound:
    """The pod is not on the node, and no request is under way that could put it there.

    `gone`: the pod is no more. `elsewhere`: somebody else has put it on a node. `unreached`: there was no connection to
    the server at all.
    """

    message: str
    gone: bool = False
    unreached: bool = False
    elsewhere: bool = False


class BindingObserver(Protocol):
    """Hears of bindings that take longer."""

    def unsettled(self, pod: PodInfo, node: str, why: str) -> None:
        """It is not known yet whether the pod is bound; told for each attempt to find out that failed."""
        ...


class _Kind(Enum):
    DONE = "2xx"
    REFUSED = "the server will not do it"
    CONFLICT = "the pod is bound already, or is not as we know it"
    UNPROCESSED = "this request changed nothing"
    UNKNOWN = "it may have happened, or happen yet"


@dataclass(frozen=True, slots=True)
class _Posted:
    kind: _Kind
    message: str = ""
    gone: bool = False
    unreached: bool = False


class _Meta(msgspec.Struct, rename="camel"):
    uid: str
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Place(msgspec.Struct, rename="camel"):
    """What is read of the pod."""

    metadata: _Meta
    spec: _Spec


class _Answer(msgspec.Struct):
    kind: str = ""
    status: object = None


class Binder:
    """`client` is shared with other writes. `observer` hears of bindings that take longer."""

    def __init__(self, client: Client, timers: Timers, observer: BindingObserver, patience: Patience) -> None:
        self._client = client
        self._patience = patience
        self._timers = timers
        self._observer = observer

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound:
        """Bind the pod, and return when it is certain what became of it."""
        posted = await self._post(pod, node)
        match posted.kind:
            case _Kind.DONE:
                return Bound()
            case _Kind.REFUSED | _Kind.UNPROCESSED:
                return NotBound(posted.message, posted.gone, posted.unreached)
            case _Kind.CONFLICT | _Kind.UNKNOWN:
                return await self._settle(pod, node, posted)

    async def _settle(self, pod: PodInfo, node: str, posted: _Posted) -> Bound | NotBound:
        backoff = self._backoff()
        posts, dead_at = 1, self._dead_at(posted)
        if posted.kind is _Kind.UNKNOWN:
            self._observer.unsettled(pod, node, posted.message)
        while True:
            verdict = _verdict(await self._read(pod, node), pod, node)
            if verdict is not None:
                return verdict
            enough = posted.kind in {_Kind.CONFLICT, _Kind.REFUSED} or posts >= MOST_POSTS
            if enough and self._timers.now() >= dead_at:
                return NotBound(posted.message)
            await self._timers.sleep(backoff.next())
            if not enough:
                posted = await self._post(pod, node)
                posts, dead_at = posts + 1, max(dead_at, self._dead_at(posted))
                if posted.kind is _Kind.DONE:
                    return Bound()
                self._observer.unsettled(pod, node, posted.message)

    def _dead_at(self, posted: _Posted) -> float:
        """When that request, just sent, can have no effect any more."""
        return self._timers.now() + (DEAD_AFTER if posted.kind is _Kind.UNKNOWN else 0.0)

    async def _post(self, pod: PodInfo, node: str) -> _Posted:
        path = path_of("api", "v1", "namespaces", pod.namespace, "pods", pod.name, "binding")
        try:
            response = await self._client.request("POST", path, body=_body(pod, node), timeout=self._patience.bind)
        except UnreachableError as error:
            return _Posted(_Kind.UNPROCESSED, str(error), unreached=True)
        except OutcomeUnknownError as error:
            return _Posted(_Kind.UNKNOWN, str(error))
        except ApiError as error:
            return _refusal(error)
        if _is_success(response):
            return _Posted(_Kind.DONE)
        return _Posted(_Kind.UNKNOWN, f"the answer ({response.status}) is not a Status of the API")

    async def _read(self, pod: PodInfo, node: str) -> _Place | None:
        """The pod of that name as etcd has it now; None if there is none. Waits as long as it takes."""
        backoff = self._backoff()
        path = path_of("api", "v1", "namespaces", pod.namespace, "pods", pod.name)
        while True:
            pause = 0.0
            try:
                response = await self._client.request("GET", path, timeout=self._patience.read, retry=False)
                return msgspec.json.decode(response.body, type=_Place)
            except ApiError as error:
                if error.status == 404 and error.reason == "NotFound":
                    return None
                why, pause = explained(error), min(error.retry_after or 0.0, LONGEST_PAUSE)
            except (UnreachableError, OutcomeUnknownError) as error:
                why = str(error)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                why = f"the answer is not a pod: {error}"
            self._observer.unsettled(pod, node, why)
            await self._timers.sleep(max(backoff.next(), pause))

    def _backoff(self) -> Backoff:
        """Short enough that a binding is settled soon after the server's return."""
        return Backoff(self._timers, initial=0.25, maximum=2.0)


def _body(pod: PodInfo, node: str) -> bytes:
    metadata = {"namespace": pod.namespace, "name": pod.name}
    if pod.metadata.uid:
        metadata["uid"] = pod.metadata.uid
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})


def _is_success(response: Response) -> bool:
    """Servers answer with a Status; their OpenAPI says that it is a Binding."""
    try:
        answer = msgspec.json.decode(response.body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return answer.kind == "Binding" or (answer.kind == "Status" and answer.status == "Success")


def _refusal(error: ApiError) -> _Posted:
    match error.status:
        case 409:
            return _Posted(_Kind.CONFLICT, error.message)
        case 404 if error.reason == "NotFound":
            return _Posted(_Kind.REFUSED, error.message, gone=True)
        case 400 | 403 | 405 | 413 | 415 | 422:
            return _Posted(_Kind.REFUSED, explained(error))
        case status if status in {401, 429} or status < 400:
            return _Posted(_Kind.UNPROCESSED, str(error))
        case _:
            return _Posted(_Kind.UNKNOWN, str(error))


def _verdict(place: _Place | None, pod: PodInfo, node: str) -> Bound | NotBound | None:
    """What the pod's state says of our requests; None if it is on no node and could yet be bound."""
    if place is None:
        return NotBound("the pod was deleted", gone=True)
    if pod.metadata.uid and place.metadata.uid != pod.metadata.uid:
        return NotBound("the pod was deleted, and another has its name", gone=True)
    if place.spec.node_name == node:
        return Bound()
    if place.spec.node_name:
        return NotBound(f"the pod is on node {place.spec.node_name} already", elsewhere=True)
    if place.metadata.deletion_timestamp is not None:
        return NotBound("the pod is being deleted")
    return None
