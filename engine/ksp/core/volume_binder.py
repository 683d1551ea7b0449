"""Volumes of pods in flight: what has to be done for a pod's claims on its node, and what rules see meanwhile.

    find      which volumes the pod's open claims get on a node, and which are to be made there
    assume    rules see it from now on: volumes that are promised, claims with a selected node
    progress  whether the watch shows that all of it has come to pass, or that it cannot any more
    revert    the pod is bound, or will not be: what nobody has written is undone

An open claim gets an existing volume (its `claimRef` then names the claim, and the volume controller binds both), or a
volume is made for it (its annotation then names the node, and a provisioner acts). Rules see the same: a promised
volume is nobody else's, and its claim, which still waits, finds it again; a claim with a node can be used only there.
So the next pod can share the claim, or cannot take the volume.

What is assumed stays over newer versions from the API until one of them shows it, or shows something in its place: the
volume is another claim's, the claim has a volume, or another node. It ends as well if the volume or the claim goes, and
if the claim gets another volume. Pods may share claims: what one of them gives up, others keep.

The API is told with the versions of the objects that `find` gave as preconditions. So after that has succeeded, a newer
version which does not show what was written has lost it again.

Sources: `pkg/scheduler/framework/plugins/volumebinding` of Kubernetes: binder.go (FindPodVolumes, AssumePodVolumes,
checkBindings, RevertAssumedPodVolumes), with the texts of its errors. It differs in what it keeps of assumptions, see
`ksp.core.assume_cache`; in that a claim which a pod names twice gets one volume; in that all that a pod waits for is
looked at, not only up to the first claim which is not bound yet; and in that the volume of a promised claim has to be
usable on the node even if the claim has got another than the promised one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from msgspec.structs import replace

from ksp.core.assume_cache import NO_EVENTS, AssumeCache, Events, Key
from ksp.core.changes import PodVolumes
from ksp.core.errors import StateError
from ksp.core.state import ClusterState
from ksp.model.claims import SELECTED_NODE, WAITS_FOR_POD, can_provision, class_name, is_bound
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.reach import is_reached
from ksp.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.model.volumes import is_promised, matching, promised, reference_to

VOLUMES: Final = "persistentVolumes"
CLAIMS: Final = "persistentVolumeClaims"

NODE_CONFLICT: Final = "node(s) had volume node affinity conflict"
NOTHING_FOUND: Final = "node(s) didn't find available persistent volumes to bind"
NOT_WAITING: Final = "pod has unbound immediate PersistentVolumeClaims"


class VolumeError(Exception):
    """The pod's claims cannot be used on the node; the text is kube-scheduler's."""


class Progress(Enum):
    """How far a pod's claims are."""

    WAITING = "waiting"
    BOUND = "bound"


@dataclass(frozen=True, slots=True)
class Promise:
    """Of a volume: that it is a claim's. The version of the claim in the reference makes no difference."""

    namespace: str
    name: str
    uid: str
    claim: ObjectReference = field(compare=False, repr=False)

    @staticmethod
    def to(claim: PersistentVolumeClaim) -> Promise:
        who = claim.metadata
        return Promise(who.namespace, who.name, who.uid, reference_to(claim))

    def over(self, obj: PersistentVolume) -> PersistentVolume:
        return promised(obj, self.claim)

    def is_settled_by(self, obj: PersistentVolume) -> bool:
        """Its owner may have promised it to the claim by name alone; that is no more than it was."""
        ref = obj.spec.claim_ref
        return ref is not None and (ref.uid == self.uid or not is_promised(obj, self.claim))


@dataclass(frozen=True, slots=True)
class Selected:
    """Of a claim: the node for which a volume is to be made."""

    node: str

    def over(self, obj: PersistentVolumeClaim) -> PersistentVolumeClaim:
        annotations = obj.metadata.annotations | {SELECTED_NODE: self.node}
        return replace(obj, metadata=replace(obj.metadata, annotations=annotations))

    def is_settled_by(self, obj: PersistentVolumeClaim) -> bool:
        return SELECTED_NODE in obj.metadata.annotations or obj.spec.volume_name != ""


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A pod that waits for its volumes. They are as the API had them when they were found."""

    node: str
    volumes: PodVolumes


class VolumeBinder:
    """All that is assumed of volumes and claims in a `ClusterState`, into which it alone puts these."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._volumes: AssumeCache[PersistentVolume, Promise] = AssumeCache(state, VOLUMES)
        self._claims: AssumeCache[PersistentVolumeClaim, Selected] = AssumeCache(state, CLAIMS)
        self._pods: dict[str, _InFlight] = {}

    # ---- from the watch

    def version_of(self, kind: str, namespace: str, name: str) -> str | None:
        """The resource version of the API's object, as far as it is known here; None if there is none."""
        found = self._volumes.api(("", name)) if kind == VOLUMES else self._claims.api((namespace, name))
        return None if found is None else found.metadata.resource_version

    def set(self, kind: str, namespace: str, name: str, value: Any) -> Events:
        """The API has this volume or claim. The events that it is: none if rules see no difference."""
        if kind == VOLUMES:
            return self._volumes.set(("", name), value)
        key = (namespace, name)
        was = self._claims.api(key)
        events = self._claims.set(key, value)
        if was is not None and _has(was) != _has(value):
            events |= self._end_promises(key, value)
        return events

    def remove(self, kind: str, namespace: str, name: str) -> Events:
        """The API has no such volume or claim any more."""
        if kind == VOLUMES:
            return self._volumes.remove(("", name))
        key = (namespace, name)
        return self._claims.remove(key) | self._end_promises(key, None)

    def _end_promises(self, key: Key, claim: PersistentVolumeClaim | None) -> Events:
        """Volumes that were promised to a claim which is gone, or has another, are free again."""
        void = [
            volume
            for volume, promise in self._volumes.assumed()
            if (promise.namespace, promise.name) == key
            and (claim is None or claim.metadata.uid != promise.uid or claim.spec.volume_name not in ("", volume[1]))
        ]
        return NO_EVENTS.union(*map(self._volumes.undo, void))

    # ---- what a pod needs

    def find(self, pod: PodInfo, node: NodeInfo) -> PodVolumes:
        """What has to be done for the pod's claims on the node; nothing if all are bound. Judges as the shipped rule
        CheckVolumeBinding does, by what rules see. Raises VolumeError if the claims cannot be used there."""
        claims = [self._claim(pod, name) for name in pod.claim_names]
        waiting = [claim for claim in claims if not is_bound(claim)]
        self._check_classes(waiting)
        volumes = [self._volume_of(claim) for claim in claims if is_bound(claim)]
        reachable = all(is_reached(volume, node.labels) for volume in volumes)
        found = self._find_for(waiting, node)
        if not reachable or found is None:
            reasons = [NODE_CONFLICT] * (not reachable) + [NOTHING_FOUND] * (found is None)
            raise VolumeError(", ".join(reasons))
        return found

    def _claim(self, pod: PodInfo, name: str) -> PersistentVolumeClaim:
        claim: PersistentVolumeClaim | None = self.state.objects[CLAIMS].get(pod.namespace, {}).get(name)
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        return claim

    def _volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        name = claim.spec.volume_name
        volume: PersistentVolume | None = self.state.objects[VOLUMES].get(name)
        if volume is None:
            raise VolumeError(f'could not find v1.PersistentVolume "{name}"')
        return volume

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        found: StorageClass | None = self.state.objects["storageClasses"].get(class_name(claim))
        return found

    def _check_classes(self, claims: Iterable[PersistentVolumeClaim]) -> None:
        """Claims that are open have to be of a class that waits for pods, and to have no volume in view."""
        immediate = False
        for claim in claims:
            of = self._class_of(claim)
            if of is not None and of.volume_binding_mode is None:
                raise VolumeError(f'VolumeBindingMode not set for StorageClass "{class_name(claim)}"')
            immediate |= claim.spec.volume_name != "" or of is None or of.volume_binding_mode != WAITS_FOR_POD
        if immediate:
            raise VolumeError(NOT_WAITING)

    def _find_for(self, claims: list[PersistentVolumeClaim], node: NodeInfo) -> PodVolumes | None:
        """Volumes for claims that wait for the pod; None if there are none on the node, nor can be made."""
        chosen = [claim for claim in claims if SELECTED_NODE in claim.metadata.annotations]
        if any(claim.metadata.annotations[SELECTED_NODE] != node.name for claim in chosen):
            return None
        others = [claim for claim in claims if SELECTED_NODE not in claim.metadata.annotations]
        found = matching(self.state.objects[VOLUMES], others, node.labels)
        to_make = (*chosen, *found.unmatched)
        for claim in to_make:
            of = self._class_of(claim)
            if of is None or not can_provision(of, node.labels):
                return None
        return self._as_known(found.pairs, to_make)

    def _as_known(
        self,
        pairs: Iterable[tuple[PersistentVolume, PersistentVolumeClaim]],
        to_make: Iterable[PersistentVolumeClaim],
    ) -> PodVolumes:
        """The same in the API's versions, and each claim once: a pod can name one twice."""
        static: dict[Key, tuple[PersistentVolume, PersistentVolumeClaim]] = {}
        for volume, claim in pairs:
            known = self._volumes.known(("", volume.metadata.name)), self._claims.known(_key(claim))
            static.setdefault(_key(claim), known)
        dynamic = {_key(claim): self._claims.known(_key(claim)) for claim in to_make if _key(claim) not in static}
        return PodVolumes(tuple(static.values()), tuple(dynamic.values()))

    # ---- pods in flight

    def assume(self, pod: PodInfo, node: str, volumes: PodVolumes) -> None:
        """The pod is to be bound on the node, and its claims before. Raises StateError if that is assumed already."""
        if pod.uid in self._pods:
            raise StateError(f"volumes of pod {pod.uid} are assumed already, on node {self._pods[pod.uid].node}")
        self._pods[pod.uid] = _InFlight(node, volumes)
        for volume, claim in volumes.static:
            self._volumes.assume(("", volume.metadata.name), Promise.to(claim), pod.uid)
        for claim in volumes.dynamic:
            self._claims.assume(_key(claim), Selected(node), pod.uid)

    def revert(self, uid: str) -> Events:
        """The pod is not in flight any more: what is assumed for it alone, and was not shown, is undone. The events
        that this is; none if its `progress` was BOUND, as then all of it was shown."""
        self._pods.pop(uid, None)
        return self._volumes.release(uid) | self._claims.release(uid)

    def progress(self, uid: str) -> Progress | str:
        """How far the pod's claims are, by the API's versions; an error if they will not be bound for that node. Once
        the API was told of what `find` gave: what no version shows yet is waited for, but not over a version that came
        after those and does not show it. BOUND of a pod that waits for nothing."""
        pod = self._pods.get(uid)
        if pod is None:
            return Progress.BOUND
        node = self.state.nodes.get(pod.node)
        if node is None:
            return f'failed to get node "{pod.node}": node "{pod.node}" not found'
        stages = [
            *(self._promise_progress(uid, volume, claim, node) for volume, claim in pod.volumes.static),
            *(self._selected_progress(uid, claim, node) for claim in pod.volumes.dynamic),
        ]
        error = next((stage for stage in stages if isinstance(stage, str)), None)
        if error is not None:
            return error
        return Progress.WAITING if Progress.WAITING in stages else Progress.BOUND

    def _promise_progress(
        self, uid: str, volume: PersistentVolume, claim: PersistentVolumeClaim, node: NodeInfo
    ) -> Progress | str:
        key, name = ("", volume.metadata.name), volume.metadata.name
        now, owner = self._volumes.api(key), self._claims.api(_key(claim))
        if now is None or now.metadata.uid != volume.metadata.uid:
            return f'failed to check binding: could not find v1.PersistentVolume "{name}"'
        if owner is None or owner.metadata.uid != claim.metadata.uid:
            return f'failed to check binding: could not find v1.PersistentVolumeClaim "{"/".join(_key(claim))}"'
        if self._volumes.is_held(key, uid) and _same_version(now, volume):
            return Progress.WAITING
        if not is_reached(now, node.labels):
            return _out_of_reach(now, node)
        ref = now.spec.claim_ref
        if ref is None or ref.uid != claim.metadata.uid:
            return f'ClaimRef got reset for pv "{name}"'
        return self._claim_progress(owner, node)

    def _selected_progress(self, uid: str, claim: PersistentVolumeClaim, node: NodeInfo) -> Progress | str:
        key, name = _key(claim), claim.metadata.name
        now = self._claims.api(key)
        if now is None or now.metadata.uid != claim.metadata.uid:
            return f'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "{"/".join(key)}"'
        if self._claims.is_held(key, uid) and _same_version(now, claim):
            return Progress.WAITING
        if not now.metadata.annotations:
            return f'selectedNode annotation reset for PVC "{name}"'
        if now.metadata.annotations.get(SELECTED_NODE) != node.name:
            return f'provisioning failed for PVC "{name}"'
        return self._claim_progress(now, node)

    def _claim_progress(self, claim: PersistentVolumeClaim, node: NodeInfo) -> Progress | str:
        """A volume that is made for the claim may be shown after the claim which names it."""
        if claim.spec.volume_name:
            volume = self._volumes.api(("", claim.spec.volume_name))
            if volume is None:
                return Progress.WAITING
            if not is_reached(volume, node.labels):
                return _out_of_reach(volume, node)
        return Progress.BOUND if is_bound(claim) else Progress.WAITING


def _key(claim: PersistentVolumeClaim) -> Key:
    return claim.metadata.namespace, claim.metadata.name


def _has(claim: PersistentVolumeClaim) -> tuple[str, str]:
    """Which claim it is, and which volume it has."""
    return claim.metadata.uid, claim.spec.volume_name


def _same_version(
    one: PersistentVolume | PersistentVolumeClaim, other: PersistentVolume | PersistentVolumeClaim
) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version


def _out_of_reach(volume: PersistentVolume, node: NodeInfo) -> str:
    name = volume.metadata.name
    return f'pv "{name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
