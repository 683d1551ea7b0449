"""An API server in memory, with what acts on it beside the scheduler, and watches that can be late.

It has one counter of versions and a stream of changes for each kind that is watched by itself. Within a stream order is
kept; between streams there is none. `Listed` in the stream of pods stands for a watch that broke: all that was not
shown by then is found in the list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace
from tests.state.churn_objects import (
    DELETED,
    KINDS,
    NAMESPACE,
    PROVISIONER,
    annotated,
    node,
    other,
    pod,
    with_metadata,
    with_spec,
    with_status,
)
from tests.state.templates import HOSTNAME

from ksp.core.changes import (
    BindVolumes,
    Change,
    DeleteNode,
    DeleteObject,
    DeletePod,
    SetNode,
    SetObject,
    SetPod,
)
from ksp.core.state import NAMESPACED_KINDS
from ksp.model.claims import BIND_COMPLETED, LOST, SELECTED_NODE, can_provision, class_name, is_bound
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.model.volumes import promised, reference_to

VOLUMES: Final = "persistentVolumes"
CLAIMS: Final = "persistentVolumeClaims"
STREAMS: Final = ("pods", "nodes", VOLUMES, CLAIMS, "others")
Key = tuple[str, str, str]
"""Kind, namespace and name of an object that is no pod and no node."""
Action = Callable[[], None]


@dataclass(frozen=True)
class Listed:
    """All pods at one time: those that are not here are gone."""

    began: float
    pods: tuple[Pod, ...]


class World:
    """What is so; `streams` have what the watches have not shown yet, oldest first."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.others: dict[Key, Any] = {}
        self.streams: dict[str, deque[Change | Listed]] = {stream: deque() for stream in STREAMS}
        self.serial = 0

    def _new(self, obj: Any) -> Any:
        """The next version."""
        self.serial += 1
        return with_metadata(obj, resource_version=str(self.serial))

    def new_uid(self, name: str) -> str:
        self.serial += 1
        return f"{name}.{self.serial}"

    # ---- pods

    def named(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods.values() if pod.metadata.name == name), None)

    def make_pod(self, name: str, template: int, rank: int, place: str = "") -> None:
        if self.named(name) is None:
            self.put_pod(pod(template, rank, name, self.new_uid(name), place))

    def put_pod(self, changed: Pod) -> None:
        shown = self.pods[changed.metadata.uid] = self._new(changed)
        self.streams["pods"].append(SetPod(shown))

    def drop_pod(self, uid: str) -> None:
        if self.pods.pop(uid, None) is not None:
            self.streams["pods"].append(DeletePod(uid))

    def rewrite(self, known: Pod, template: int) -> None:
        """Its user makes another of it, as far as the API lets him; room, claims and priority may change here."""
        wanted = pod(template, 0, known.metadata.name, known.metadata.uid, known.spec.node_name)
        spec = replace(
            wanted.spec, priority=known.spec.priority, preemption_policy=known.spec.preemption_policy
        )  # fmt: skip
        self.put_pod(replace(with_metadata(known, labels=wanted.metadata.labels), spec=spec))

    def bind(self, uid: str, place: str) -> bool:
        known = self.pods.get(uid)
        if known is None or known.spec.node_name or known.metadata.deletion_timestamp:
            return False
        self.put_pod(with_spec(known, node_name=place))
        return True

    def start(self, known: Pod) -> None:
        self.serial += 1
        self.put_pod(with_status(known, phase="Running", start_time=f"2020-01-01T00:{self.serial:05}Z"))

    def terminate(self, known: Pod) -> None:
        self.put_pod(with_metadata(known, deletion_timestamp=DELETED))

    def finish(self, known: Pod) -> None:
        self.put_pod(with_status(known, phase="Succeeded"))

    def nominate(self, uid: str, place: str) -> None:
        known = self.pods.get(uid)
        if known is not None and known.status.nominated_node_name != place:
            self.put_pod(with_status(known, nominated_node_name=place))

    def list_pods(self, now: float) -> None:
        self.streams["pods"].clear()
        self.streams["pods"].append(Listed(now, tuple(self.pods.values())))

    # ---- nodes

    def put_node(self, name: str, shape: int) -> None:
        shown = self.nodes[name] = self._new(node(name, shape))
        self.streams["nodes"].append(SetNode(shown))

    def drop_node(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self.streams["nodes"].append(DeleteNode(name))

    # ---- other objects

    def get(self, kind: str, name: str) -> Any:
        return self.others.get((kind, NAMESPACE if kind in NAMESPACED_KINDS else "", name))

    def put(self, kind: str, obj: Any) -> Any:
        who = obj.metadata
        shown = self.others[kind, who.namespace, who.name] = self._new(obj)
        self._stream(kind).append(SetObject(kind, who.namespace, who.name, shown))
        return shown

    def drop(self, kind: str, name: str) -> None:
        namespace = NAMESPACE if kind in NAMESPACED_KINDS else ""
        if self.others.pop((kind, namespace, name), None) is not None:
            self._stream(kind).append(DeleteObject(kind, namespace, name))

    def make(self, kind: str, name: str, shape: int) -> None:
        """It comes; or, if it can be changed in place, changes."""
        known = self.get(kind, name)
        if known is None:
            self.put(kind, other(kind, name, shape, self.new_uid(name)))
        elif kind not in (VOLUMES, CLAIMS):
            self.put(kind, other(kind, name, shape, known.metadata.uid))

    def _stream(self, kind: str) -> deque[Change | Listed]:
        return self.streams[kind if kind in self.streams else "others"]

    # ---- what the scheduler writes of volumes

    def write_volumes(self, effect: BindVolumes, most: int, wrote: Callable[[Any, Any], None]) -> bool:
        """So many objects are written, each if it is still the version that the scheduler knows or says so already;
        whether all are. `wrote` is told of each: as the scheduler knew it, and as it is now."""
        wishes: list[tuple[str, Any, Callable[[Any], Any]]] = [
            *((VOLUMES, volume, _promise(claim)) for volume, claim in effect.volumes.static),
            *((CLAIMS, claim, _select(effect.node)) for claim in effect.volumes.dynamic),
        ]
        for written, (kind, known, change) in enumerate(wishes):
            there = self.get(kind, known.metadata.name)
            if written == most or there is None or there.metadata.uid != known.metadata.uid:
                return False
            if change(known) == known:
                continue
            if change(there) == there:  # somebody else was as quick
                wrote(known, there)
            elif there.metadata.resource_version == known.metadata.resource_version:
                wrote(known, self.put(kind, change(there)))
            else:
                return False
        return True

    # ---- controllers

    def actions(self) -> Iterator[Action]:
        """What controllers of volumes have to do now, one object at a time."""
        for known in list(self.pods.values()):
            for volume in known.spec.volumes:
                if volume.ephemeral is not None and self.get(CLAIMS, f"{known.metadata.name}-{volume.name}") is None:
                    yield lambda known=known, name=volume.name: self._make_claim_for(known, name)  # type: ignore[misc]
        for (kind, _, _), obj in list(self.others.items()):
            if kind == VOLUMES and obj.spec.claim_ref is not None:
                yield from self._of_volume(obj)
            elif kind == CLAIMS:
                yield from self._of_claim(obj)

    def _make_claim_for(self, known: Pod, volume: str) -> None:
        owner = {"kind": "Pod", "name": known.metadata.name, "uid": known.metadata.uid, "controller": True}
        name = f"{known.metadata.name}-{volume}"
        metadata = {"name": name, "namespace": NAMESPACE, "uid": self.new_uid(name), "ownerReferences": [owner]}
        spec = {"storageClassName": "make", "resources": {"requests": {"storage": "1Gi"}}}
        made: PersistentVolumeClaim = convert(KINDS[CLAIMS], {"metadata": metadata, "spec": spec})
        self.put(CLAIMS, made)

    def _of_volume(self, volume: PersistentVolume) -> Iterator[Action]:
        ref = volume.spec.claim_ref
        assert ref is not None
        claim = self.get(CLAIMS, ref.name)
        if claim is None or ref.uid not in ("", claim.metadata.uid):
            if volume.status.phase != "Released" and ref.uid:
                yield lambda: self._set_phase(volume, "Released")
        elif ref.uid and claim.spec.volume_name == "":
            yield lambda: self._bind(claim, volume)
        elif claim.spec.volume_name == volume.metadata.name and volume.status.phase != "Bound":
            yield lambda: self._set_phase(volume, "Bound")
        elif claim.spec.volume_name not in ("", volume.metadata.name) and ref.uid:
            yield lambda: self._free(volume)  # it has another by now

    def _of_claim(self, claim: PersistentVolumeClaim) -> Iterator[Action]:
        owner = next(iter(claim.metadata.owner_references), None)
        if owner is not None and owner.uid not in self.pods:
            yield lambda: self.drop(CLAIMS, claim.metadata.name)
        elif SELECTED_NODE in claim.metadata.annotations and not claim.spec.volume_name:
            if not any(self._is_promised(claim)):
                yield lambda: self.provision(claim)
        elif claim.status.phase != LOST and self._has_lost_its_volume(claim):
            yield lambda: self._lose(claim)

    def _is_promised(self, claim: PersistentVolumeClaim) -> Iterator[bool]:
        for (kind, _, _), obj in self.others.items():
            if kind == VOLUMES and obj.spec.claim_ref is not None:
                yield obj.spec.claim_ref.uid == claim.metadata.uid

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        bound = with_status(with_spec(claim, volume_name=volume.metadata.name), phase="Bound")
        self.put(CLAIMS, annotated(bound, BIND_COMPLETED, "yes"))

    def _has_lost_its_volume(self, claim: PersistentVolumeClaim) -> bool:
        return claim.spec.volume_name != "" and self.get(VOLUMES, claim.spec.volume_name) is None

    def _lose(self, claim: PersistentVolumeClaim) -> None:
        self.put(CLAIMS, with_status(claim, phase=LOST))

    def _set_phase(self, volume: PersistentVolume, phase: str) -> None:
        self.put(VOLUMES, with_status(volume, phase=phase))

    def _free(self, volume: PersistentVolume) -> None:
        self.put(VOLUMES, with_status(with_spec(volume, claim_ref=None), phase="Available"))

    def provision(self, claim: PersistentVolumeClaim) -> None:
        """A volume is made for the claim on its node; if that cannot be, the node is taken back."""
        place = self.nodes.get(claim.metadata.annotations[SELECTED_NODE])
        of: StorageClass | None = self.get("storageClasses", class_name(claim))
        if place is None or of is None or not can_provision(of, place.metadata.labels):
            self.take_node_back(claim)
            return
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [place.metadata.name]}]}
        name = self.new_uid("pv")
        spec = {
            "capacity": {"storage": "1Gi"}, "storageClassName": class_name(claim),
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }  # fmt: skip
        made: PersistentVolume = convert(KINDS[VOLUMES], {"metadata": {"name": name, "uid": name}, "spec": spec})
        self.put(VOLUMES, with_status(with_spec(made, claim_ref=reference_to(claim)), phase="Bound"))

    def take_node_back(self, claim: PersistentVolumeClaim) -> None:
        self.put(CLAIMS, annotated(claim, SELECTED_NODE, None))

    def waiting_for_provisioner(self) -> list[PersistentVolumeClaim]:
        """Claims that have a node, and no volume."""
        return [
            obj
            for (kind, _, _), obj in self.others.items()
            if kind == CLAIMS and SELECTED_NODE in obj.metadata.annotations and not is_bound(obj)
        ]


def _promise(claim: PersistentVolumeClaim) -> Callable[[Any], Any]:
    return lambda volume: promised(volume, reference_to(claim))


def _select(place: str) -> Callable[[Any], Any]:
    return lambda claim: annotated(claim, SELECTED_NODE, place)
