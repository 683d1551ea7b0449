"""Tells the API which volumes a pod's claims get, before the pod is bound.

    static   PATCH …/persistentvolumes/NAME        spec.claimRef names the claim; annotation bound-by-controller
    dynamic  PATCH …/persistentvolumeclaims/NAME   annotation selected-node: a volume is to be made for that node

The rest is done by others: the controller of volumes binds the claim to the volume that names it, a provisioner makes
a volume. First all volumes, then all claims; the first that fails ends it. What has been written by then stays: a
volume that is promised to a claim, or a node that is chosen for one, is what the pod's next attempt finds.

Each patch bears the uid and the version of the object that was chosen, so it takes effect at most once, and only on
what was decided about. After a conflict or a lost answer the object is read:

    it says what we want                        done, by us or by a pod with the same claim
    it is gone, or of another uid               NotBound
    it has another version                      NotBound: somebody changed it, and no request of ours can take effect
    it has the version that was chosen          a request may be under way: sent again (`ksp.kube.write.settling`)

What says so already is not written. Who asks is told of each object as it is after the write, whatever becomes of the
others: an attempt that fails half-way has to be known to the next one, even if the watch is late.

Source: `bindAPIUpdate` of kube-scheduler's volume binder, which sends whole objects under the same preconditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ksp.kube.http.client import Client
from ksp.kube.http.paths import path_of
from ksp.kube.timers import Timers
from ksp.kube.write.binding import BindingObserver, NotBound
from ksp.kube.write.patience import Patience
from ksp.kube.write.settling import UNREADABLE, Kind, Request, Sent, Settler, Told
from ksp.model.claims import SELECTED_NODE
from ksp.model.decode import decode
from ksp.model.info import PodInfo
from ksp.model.meta import ObjectMeta
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.model.volumes import promised, reference_to

VolumeOrClaim = PersistentVolume | PersistentVolumeClaim
Wrote = Callable[[VolumeOrClaim, VolumeOrClaim], None]
"""Is told of an object as it was chosen, and as it is after the write."""


@dataclass(frozen=True, slots=True)
class VolumesWritten:
    """The API has all of it. That the claims are bound is for the watch to show."""


@dataclass(frozen=True, slots=True)
class _Change:
    """`what` is the object, in words; `done` knows a version in which it says what we want."""

    what: str
    where: str
    chosen: VolumeOrClaim
    patch: dict[str, Any]
    done: Callable[[VolumeOrClaim], bool]

    def read(self, body: bytes) -> VolumeOrClaim:
        return decode(type(self.chosen), body)

    def is_answer(self, body: bytes) -> bool:
        try:
            return self.done(self.read(body))
        except UNREADABLE:
            return False


class VolumeWriter:
    """`client` is shared with other writes. `observer` hears of writes that take longer."""

    def __init__(self, client: Client, timers: Timers, observer: BindingObserver, patience: Patience) -> None:
        self._settler = Settler(client, timers, patience)
        self._patience = patience
        self._observer = observer

    async def bind(
        self, pod: PodInfo, node: str, static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
        dynamic: Sequence[PersistentVolumeClaim], wrote: Wrote,
    ) -> VolumesWritten | NotBound:  # fmt: skip
        """Promise each volume to its claim, and choose the node for the others; returns when it is certain."""
        for change in _changes(node, static, dynamic):
            stored = await self._write(change, lambda why: self._observer.unsettled(pod, node, why))
            if isinstance(stored, NotBound):
                return stored
            wrote(change.chosen, stored)
        return VolumesWritten()

    async def _write(self, change: _Change, told: Told) -> VolumeOrClaim | NotBound:
        """The object after the write."""
        request = Request(
            "PATCH", change.where, msgspec.json.encode(change.patch), self._patience.patch, change.is_answer,
            change.where, change.read, "application/merge-patch+json",
        )  # fmt: skip
        sent = await self._settler.send(request)
        if sent.kind in {Kind.CONFLICT, Kind.UNKNOWN}:
            outcome: VolumeOrClaim | NotBound | Sent = await self._settler.settle(
                request, sent, lambda now: _verdict(now, change), told
            )
            if not isinstance(outcome, Sent):
                return outcome
            sent = outcome
        if sent.kind is Kind.DONE:
            return change.read(sent.body)
        return NotBound(f"{change.what}: {sent.message}", unreached=sent.unreached)


def _verdict(now: VolumeOrClaim | None, change: _Change) -> VolumeOrClaim | NotBound | None:
    """What the object says of our requests; None if one could yet take effect."""
    chosen = change.chosen.metadata
    if now is None:
        return NotBound(f"{change.what} was deleted")
    if chosen.uid and now.metadata.uid != chosen.uid:
        return NotBound(f"{change.what} was deleted, and another has its name")
    if change.done(now):
        return now
    if now.metadata.resource_version != chosen.resource_version:
        return NotBound(f"{change.what} has changed since it was chosen")
    return None


# ---- what is to be changed


def _changes(
    node: str,
    static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
    dynamic: Sequence[PersistentVolumeClaim],
) -> Iterator[_Change]:
    for volume, claim in static:
        wanted = promised(volume, reference_to(claim))
        if wanted is not volume:
            yield _promise(volume, wanted)
    for claim in dynamic:
        if claim.metadata.annotations.get(SELECTED_NODE) != node:
            yield _selection(claim, node)


def _promise(volume: PersistentVolume, wanted: PersistentVolume) -> _Change:
    name, to = volume.metadata.name, wanted.spec.claim_ref
    assert to is not None
    metadata, before = _preconditions(volume.metadata), volume.metadata.annotations
    marks = {key: value for key, value in wanted.metadata.annotations.items() if key not in before}
    if marks:
        metadata["annotations"] = marks

    def done(found: VolumeOrClaim) -> bool:
        ref = found.spec.claim_ref if isinstance(found, PersistentVolume) else None
        return ref is not None and (ref.namespace, ref.name, ref.uid) == (to.namespace, to.name, to.uid)

    patch = {"metadata": metadata, "spec": {"claimRef": msgspec.to_builtins(to)}}
    where = path_of("api", "v1", "persistentvolumes", name)
    return _Change(f'persistentvolume "{name}"', where, volume, patch, done)


def _selection(claim: PersistentVolumeClaim, node: str) -> _Change:
    namespace, name = claim.metadata.namespace, claim.metadata.name

    def done(found: VolumeOrClaim) -> bool:
        return found.metadata.annotations.get(SELECTED_NODE) == node

    patch = {"metadata": {**_preconditions(claim.metadata), "annotations": {SELECTED_NODE: node}}}
    where = path_of("api", "v1", "namespaces", namespace, "persistentvolumeclaims", name)
    return _Change(f'persistentvolumeclaim "{name}"', where, claim, patch, done)


def _preconditions(chosen: ObjectMeta) -> dict[str, Any]:
    wanted = {"uid": chosen.uid, "resourceVersion": chosen.resource_version}
    return {key: value for key, value in wanted.items() if value}
