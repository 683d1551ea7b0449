"""What tests of the volume binder share: a small cluster, what the API tells, and pods in flight."""

from __future__ import annotations

from typing import Any

import pytest
from tests.state import storage

from ksp.core.assume_cache import NO_EVENTS
from ksp.core.changes import PodVolumes
from ksp.core.state import ClusterState
from ksp.core.volume_binder import VolumeBinder, VolumeError
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

Object = PersistentVolume | PersistentVolumeClaim | StorageClass

P, Q = storage.pod("p", "c"), storage.pod("q", "c")
"""Two pods with one claim."""
MADE = storage.storage_class("made", "example.com/disks")


def binder(*objects: Object) -> VolumeBinder:
    """With the nodes a and b, and the class `local`."""
    state = ClusterState()
    for name in ("a", "b"):
        state.set_node(storage.node(name))
    state.set_object("storageClasses", "", "local", storage.storage_class("local"))
    subject = VolumeBinder(state)
    tell(subject, *objects)
    return subject


def tell(subject: VolumeBinder, *objects: Object) -> frozenset[str]:
    """What the API has now; the events that this is."""
    events = NO_EVENTS
    for each in objects:
        name = each.metadata.name
        match each:
            case PersistentVolume():
                events |= subject.set("persistentVolumes", "", name, each)
            case PersistentVolumeClaim():
                events |= subject.set("persistentVolumeClaims", "default", name, each)
            case StorageClass():
                subject.state.set_object("storageClasses", "", name, each)
    return events


def find(subject: VolumeBinder, pod: PodInfo, node: str = "a") -> PodVolumes:
    return subject.find(pod, subject.state.nodes[node])


def why_not(subject: VolumeBinder, pod: PodInfo, node: str = "a") -> str:
    with pytest.raises(VolumeError) as caught:
        find(subject, pod, node)
    return str(caught.value)


def place(subject: VolumeBinder, pod: PodInfo, node: str = "a") -> PodVolumes:
    """The pod is in flight to the node."""
    found = find(subject, pod, node)
    subject.assume(pod, node, found)
    return found


def names(found: PodVolumes) -> tuple[dict[str, str], list[str]]:
    """Claims by volume, and claims for which a volume is to be made."""
    static = {v.metadata.name: c.metadata.name for v, c in found.static}
    return static, [c.metadata.name for c in found.dynamic]


def promised_to(subject: VolumeBinder, name: str) -> str | None:
    """The uid of the claim whose volume it is, as rules see it."""
    ref = subject.state.objects["persistentVolumes"][name].spec.claim_ref
    return None if ref is None else str(ref.uid)


def selected(subject: VolumeBinder, name: str) -> str | None:
    """The node for which the claim is to get a volume, as rules see it."""
    claim: PersistentVolumeClaim = subject.state.objects["persistentVolumeClaims"]["default"][name]
    return claim.metadata.annotations.get(storage.SELECTED)


def to_c(version: int = 2, uid: str = "uid-c", **more: Any) -> PersistentVolume:
    """The volume v, promised to the claim c, as the API shows it."""
    return storage.volume("v", to=storage.ref("c", uid), version=version, **more)
