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
waits until the answer is known (`ksp.kube.write.settling` says how).

The pod's uid goes along. 1.36 refuses (409) when the name stands for another pod by then. 1.19 does not look at it:
there a pod that was deleted and made again under its name within the moment of the request is bound to the place of
its predecessor. The watch then shows it under its own uid, and kubelet's admission is the last net.

Where somebody else is asked to bind the pod (`Send`: an extender), what came of that is settled in the same way, but
nothing is sent again: others may do more than bind. He says how long he may be at it. Should he bind it even later, the
watch shows that, and no other binding of the pod can happen any more.

Sources: `pkg/registry/core/pod/storage` (BindingREST) of 1.19 and 1.36, and recorded answers of both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from ksp.kube.http.client import Client
from ksp.kube.http.paths import path_of
from ksp.kube.timers import Timers
from ksp.kube.write.patience import Patience
from ksp.kube.write.settling import Kind, Request, Sent, Settler
from ksp.model.info import PodInfo


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
        """It is not known yet whether the pod, or a volume of it, is bound; told for each attempt to find out that
        failed."""
        ...


Send = Callable[[PodInfo, str], Awaitable[Sent]]
"""Has the pod bound to the node by somebody else."""


class _Meta(msgspec.Struct, rename="camel"):
    uid: str
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Place(msgspec.Struct, rename="camel"):
    """What is read of the pod."""

    metadata: _Meta
    spec: _Spec


_PLACES: Final = msgspec.json.Decoder(_Place)


class _Answer(msgspec.Struct):
    kind: str = ""
    status: object = None


class Binder:
    """`client` is shared with other writes. `observer` hears of bindings that take longer."""

    def __init__(self, client: Client, timers: Timers, observer: BindingObserver, patience: Patience) -> None:
        self._settler = Settler(client, timers, patience)
        self._patience = patience
        self._observer = observer

    async def bind(self, pod: PodInfo, node: str, send: Send | None = None) -> Bound | NotBound:
        """Bind the pod, or have it bound, and return when it is certain what became of it."""
        request = self._request(pod, node)
        sent = await (self._settler.send(request) if send is None else send(pod, node))
        match sent.kind:
            case Kind.DONE:
                return Bound()
            case Kind.REFUSED | Kind.UNPROCESSED:
                return NotBound(sent.message, sent.gone, sent.unreached)
            case Kind.CONFLICT | Kind.UNKNOWN:
                return await self._settle(pod, node, request, sent, resend=send is None)

    async def _settle(
        self, pod: PodInfo, node: str, request: Request[_Place], sent: Sent, *, resend: bool
    ) -> Bound | NotBound:
        outcome: Bound | NotBound | Sent = await self._settler.settle(
            request,
            sent,
            lambda place: _verdict(place, pod, node),
            lambda why: self._observer.unsettled(pod, node, why),
            resend=resend,
        )
        if isinstance(outcome, Sent):
            return Bound() if outcome.kind is Kind.DONE else NotBound(outcome.message)
        return outcome

    def _request(self, pod: PodInfo, node: str) -> Request[_Place]:
        where = path_of("api", "v1", "namespaces", pod.namespace, "pods", pod.name)
        return Request(
            "POST", f"{where}/binding", _body(pod, node), self._patience.bind, _is_success, where, _PLACES.decode
        )  # fmt: skip


def _body(pod: PodInfo, node: str) -> bytes:
    metadata = {"namespace": pod.namespace, "name": pod.name}
    if pod.metadata.uid:
        metadata["uid"] = pod.metadata.uid
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})


def _is_success(body: bytes) -> bool:
    """Servers answer with a Status; their OpenAPI says that it is a Binding."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return answer.kind == "Binding" or (answer.kind == "Status" and answer.status == "Success")


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
