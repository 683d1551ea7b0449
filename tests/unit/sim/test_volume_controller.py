"""What the volume controller, provisioners and the garbage collector do, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from ksp.core.changes import Change, DeleteObject, PodVolumes, SetNode, SetObject
from ksp.model.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from ksp.model.decode import convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.sim.volume_controller import VolumeController

ZONE = "topology.kubernetes.io/zone"
RACK = "example.com/rack"
DRIVER = "disk.example.com"
KINDS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "pv": ("persistentVolumes", PersistentVolume), "pvc": ("persistentVolumeClaims", PersistentVolumeClaim),
    "class": ("storageClasses", StorageClass), "csiNode": ("csiNodes", CSINode),
}  # fmt: skip


def made(kind: str, name: str, metadata: dict[str, Any] | None = None, **value: Any) -> SetObject:
    of, struct = KINDS[kind]
    namespace = "default" if kind == "pvc" else ""
    whole = {"name": name, "uid": f"uid/{name}", "namespace": namespace} | (metadata or {})
    return SetObject(of, namespace, name, convert(struct, {"metadata": whole, **value}))


def claim(name: str, of: str | None = None, size: str = "1Gi", **spec: Any) -> SetObject:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return made("pvc", name, spec=asked if of is None else asked | {"storageClassName": of})


def volume(name: str, of: str = "", size: str = "5Gi", phase: str = "Available", **spec: Any) -> SetObject:
    what = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": of, **spec}
    return made("pv", name, spec=what, status={"phase": phase})


def storage_class(name: str, provisioner: str = DRIVER, **more: Any) -> SetObject:
    return made("class", name, provisioner=provisioner, **more)


WAITS: Any = {"volumeBindingMode": "WaitForFirstConsumer"}


def nodes() -> list[Change]:
    """n1 in zone a, n2 in zone b, each in a rack of its own."""
    labels = [{ZONE: "a", RACK: "1"}, {ZONE: "b", RACK: "2"}]
    return [SetNode(convert(Node, {"metadata": {"name": f"n{i}", "labels": each}})) for i, each in enumerate(labels, 1)]


class World:
    """All that the watch has shown."""

    def __init__(self, *changes: Change) -> None:
        self.controller = VolumeController([*nodes(), *changes])
        self.objects: dict[tuple[str, str], Any] = {}
        self.take(change for change in changes)
        self.take(self.controller.start())

    def take(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, SetObject):
                self.objects[change.kind, change.name] = change.value
            elif isinstance(change, DeleteObject):
                del self.objects[change.kind, change.name]

    def claim(self, name: str) -> PersistentVolumeClaim:
        found: PersistentVolumeClaim = self.objects["persistentVolumeClaims", name]
        return found

    def volume(self, name: str) -> PersistentVolume:
        found: PersistentVolume = self.objects["persistentVolumes", name]
        return found

    def provision(self, name: str, node: str) -> PersistentVolume:
        """As the scheduler asks for it."""
        self.take(self.controller.bound(node, PodVolumes(dynamic=(self.claim(name),))))
        return self.volume(self.claim(name).spec.volume_name)


def topology(of: PersistentVolume) -> dict[str, tuple[str, ...]]:
    if of.spec.node_affinity is None:
        return {}
    assert of.spec.node_affinity.required is not None
    (term,) = of.spec.node_affinity.required.node_selector_terms
    assert {each.operator for each in term.match_expressions} == {"In"}
    return {each.key: each.values for each in term.match_expressions}


def test_a_static_volume_and_its_claim_name_each_other() -> None:
    world = World(
        storage_class("local", "kubernetes.io/no-provisioner", **WAITS), volume("v", "local"), claim("c", "local")
    )
    pairs = ((world.volume("v"), world.claim("c")),)
    world.take(world.controller.bound("n1", PodVolumes(static=pairs)))
    bound, taken = world.claim("c"), world.volume("v")
    assert (bound.spec.volume_name, bound.status.phase, bound.status.capacity) == ("v", "Bound", {"storage": "5Gi"})
    assert bound.metadata.annotations == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert taken.spec.claim_ref is not None
    assert (taken.spec.claim_ref.namespace, taken.spec.claim_ref.name) == ("default", "c")
    assert taken.spec.claim_ref.uid == "uid/c"
    assert (taken.status.phase, taken.metadata.annotations) == ("Bound", {BOUND_BY_CONTROLLER: "yes"})


def test_a_volume_that_is_made_is_what_the_claim_asked_for() -> None:
    world = World(storage_class("fast", **WAITS), claim("c", "fast", "3Gi", volumeMode="Block"))
    found = world.provision("c", "n2")
    assert found.spec.capacity == {"storage": "3Gi"}
    assert (found.spec.access_modes, found.spec.volume_mode) == (("ReadWriteOnce",), "Block")
    assert found.spec.storage_class_name == "fast"
    assert found.spec.csi is not None
    assert (found.spec.csi.driver, found.spec.csi.volume_handle) == (DRIVER, found.metadata.name)
    assert world.claim("c").metadata.annotations[SELECTED_NODE] == "n2"


def test_the_topology_of_the_driver_on_the_node_comes_first() -> None:
    driver = made("csiNode", "n2", spec={"drivers": [{"name": "other"}, {"name": DRIVER, "topologyKeys": [RACK]}]})
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    world = World(storage_class("fast", allowedTopologies=allowed, **WAITS), driver, claim("c", "fast"))
    assert topology(world.provision("c", "n2")) == {RACK: ("2",)}


def test_else_it_is_what_the_class_allows() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
    world = World(storage_class("fast", allowedTopologies=allowed, **WAITS), claim("c", "fast"))
    assert topology(world.provision("c", "n2")) == {ZONE: ("b",)}


def test_else_all_nodes_reach_it() -> None:
    world = World(storage_class("fast", **WAITS), claim("c", "fast"))
    assert topology(world.provision("c", "n2")) == {}


@pytest.mark.parametrize(
    ("provisioner", "field"),
    [
        ("kubernetes.io/aws-ebs", "aws_elastic_block_store"),
        ("kubernetes.io/gce-pd", "gce_persistent_disk"),
        ("kubernetes.io/azure-disk", "azure_disk"),
        ("kubernetes.io/cinder", "cinder"),
    ],
)
def test_disks_of_clouds_are_in_the_zone_of_their_node(provisioner: str, field: str) -> None:
    world = World(storage_class("disk", provisioner, **WAITS), claim("c", "disk"))
    found = world.provision("c", "n1")
    assert topology(found) == {ZONE: ("a",)}
    assert getattr(found.spec, field) is not None
    assert found.spec.csi is None


# ---- at the start


def test_volumes_without_a_phase_are_available() -> None:
    world = World(volume("v", phase=""), volume("w", phase="Released"))
    assert [world.volume(name).status.phase for name in "vw"] == ["Available", "Released"]


def test_a_claim_that_does_not_wait_gets_the_smallest_volume_that_fits_wherever_it_is() -> None:
    host = {"key": ZONE, "operator": "In", "values": ["elsewhere"]}
    far = {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}
    volumes = [
        volume("small", "now", "1Gi"),
        volume("fits", "now", "2Gi", nodeAffinity=far),
        volume("big", "now", "9Gi"),
    ]
    world = World(storage_class("now", volumeBindingMode="Immediate"), *volumes, claim("c", "now", "2Gi"))
    assert world.claim("c").spec.volume_name == "fits"
    assert topology(world.volume("fits")) == {ZONE: ("elsewhere",)}


def test_or_one_that_is_made_where_the_class_allows_it() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    world = World(storage_class("now", allowedTopologies=allowed), claim("c", "now"))
    assert topology(world.volume(world.claim("c").spec.volume_name)) == {ZONE: ("b",)}


@pytest.mark.parametrize(
    "of",
    [
        storage_class("k", **WAITS),
        storage_class("k", "kubernetes.io/no-provisioner"),
        storage_class("k", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["c"]}]}]),
        storage_class("another"),
    ],
)
def test_or_none(of: SetObject) -> None:
    world = World(of, claim("c", "k"))
    assert world.claim("c").spec.volume_name == ""
    assert ("persistentVolumes", "pvc-uid-c") not in world.objects


def test_a_claim_that_names_its_volume_gets_that_one() -> None:
    promised: Any = {"claimRef": {"namespace": "default", "name": "c"}}
    world = World(storage_class("k", **WAITS), volume("v", "k", **promised), claim("c", "k", volumeName="v"))
    assert world.claim("c").metadata.annotations == {BIND_COMPLETED: "yes"}
    assert world.volume("v").metadata.annotations == {}
    taken: Any = {"claimRef": {"namespace": "default", "name": "another"}}
    world = World(storage_class("k"), volume("v", "k", **taken), claim("c", "k", volumeName="v"))
    assert BIND_COMPLETED not in world.claim("c").metadata.annotations


def test_bound_claims_are_left_as_they_are() -> None:
    done = made("pvc", "c", {"annotations": {BIND_COMPLETED: "yes"}}, spec={"volumeName": "v", "storageClassName": "k"})
    assert list(VolumeController([storage_class("k"), volume("v"), done]).start()) == []


def test_the_default_class() -> None:
    """The newest that is marked counts, and of these the first by name."""
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        made("class", name, {"annotations": mark, "creationTimestamp": when}, provisioner=DRIVER, **WAITS)
        for name, when in (
            ("older", "2026-01-01T00:00:00Z"),
            ("z", "2026-02-01T00:00:00Z"),
            ("b", "2026-02-01T00:00:00Z"),
        )
    ]
    unmarked = storage_class("a", **WAITS)
    world = World(unmarked, *classes, claim("c"), claim("d", ""), claim("e", "a"))
    assert [world.claim(name).spec.storage_class_name for name in "cde"] == ["b", "", "a"]


# ---- ephemeral volumes


def owner(name: str = "p") -> Pod:
    template = {
        "metadata": {"labels": {"kind": "scratch"}},
        "spec": {"storageClassName": "now", "accessModes": ["ReadWriteOnce"]},
    }
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "w"}]
    return convert(
        Pod, {"metadata": {"name": name, "namespace": "default", "uid": f"uid/{name}"}, "spec": {"volumes": volumes}}
    )


def test_a_claim_is_made_for_an_ephemeral_volume_and_goes_with_its_pod() -> None:
    world = World(storage_class("now"))
    world.take(world.controller.pod_came(owner()))
    made_for = world.claim("p-v")
    assert made_for.metadata.labels == {"kind": "scratch"}
    (reference,) = made_for.metadata.owner_references
    assert (reference.kind, reference.name, reference.uid, reference.controller) == ("Pod", "p", "uid/p", True)
    assert ("persistentVolumes", made_for.spec.volume_name) in world.objects
    world.take(world.controller.pod_left(owner()))
    assert {kind for kind, _ in world.objects} == {"storageClasses"}


def test_a_claim_of_that_name_that_is_another_pods_stays() -> None:
    world = World(storage_class("wait", **WAITS), claim("p-v", "wait"))
    world.take(world.controller.pod_came(owner()))
    assert world.claim("p-v").metadata.owner_references == ()
    world.take(world.controller.pod_left(owner()))
    assert ("persistentVolumeClaims", "p-v") in world.objects


def test_a_volume_that_was_there_before_is_released() -> None:
    world = World(storage_class("now"), volume("old", "now"))
    world.take(world.controller.pod_came(owner()))
    assert world.claim("p-v").spec.volume_name == "old"
    world.take(world.controller.pod_left(owner()))
    assert world.volume("old").status.phase == "Released"
    world.take(world.controller.pod_came(owner("q")))
    assert world.claim("q-v").spec.volume_name != "old"
