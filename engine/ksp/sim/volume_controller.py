"""Claims and volumes in virtual time: what a cluster's volume controller, provisioners and garbage collector do.

- A claim whose class does not wait for a pod is bound at the start: to the smallest volume that fits, else to one that
  its class makes.
- What the scheduler decides for other claims is done at once.
- A volume is made for a node if its class has a provisioner: within the topology that the driver has on that node
  (CSINode), else that which the class allows, else, for the drivers of clouds that are part of Kubernetes, the node's
  zone. If none of these says anything, all nodes reach it.
- A pod's generic ephemeral volumes have claims, which come and go with the pod. A volume that was made here goes with
  its claim; another one is Released, and nobody gets it.

The names of annotations and phases are those of Kubernetes' volume controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ksp.core.changes import Change, DeleteObject, PodVolumes, SetNode, SetObject
from ksp.model.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CLASS,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAITS_FOR_POD,
    can_provision,
    class_name,
    is_bound,
    is_made_for,
)
from ksp.model.meta import ObjectMeta, OwnerReference
from ksp.model.pod import Pod
from ksp.model.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from ksp.model.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    CSINode,
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimTemplate,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from ksp.model.volumes import matching

CLAIMS: Final = "persistentVolumeClaims"
VOLUMES: Final = "persistentVolumes"
ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
AVAILABLE, BOUND, RELEASED = "Available", "Bound", "Released"

Claim = PersistentVolumeClaim
Volume = PersistentVolume
Key = tuple[str, str]


class VolumeController:
    """Knows claims and volumes as the API has them. Methods give what the watch shows then."""

    def __init__(self, cluster: Iterable[Change]) -> None:
        self._claims: dict[Key, Claim] = {}
        self._volumes: dict[str, Volume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._drivers: dict[str, CSINode] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._made: set[str] = set()
        self._version = 0
        for change in cluster:
            self._learn(change)
        self._default = _default_of(self._classes.values())

    def _learn(self, change: Change) -> None:
        match change:
            case SetNode(node=node):
                self._labels[node.metadata.name] = node.metadata.labels
            case SetObject(value=Claim() as claim):
                self._claims[_key(claim)] = claim
            case SetObject(value=Volume() as volume):
                self._volumes[volume.metadata.name] = volume
            case SetObject(value=StorageClass() as found):
                self._classes[found.metadata.name] = found
            case SetObject(value=CSINode() as found):
                self._drivers[found.metadata.name] = found
            case _:
                pass

    # ---- what happens when

    def start(self) -> Iterator[SetObject]:
        """Volumes get their phase, claims their class, and those that wait for no pod a volume."""
        for volume in list(self._volumes.values()):
            if not volume.status.phase:
                yield self._put_volume(replace(volume, status=PersistentVolumeStatus(phase=AVAILABLE)))
        for claim in list(self._claims.values()):
            classed = self._classed(claim)
            if classed is not claim:
                yield self._put_claim(classed)
            yield from self._bound_at_once(classed)

    def pod_came(self, pod: Pod) -> Iterator[SetObject]:
        """The claims of its ephemeral volumes, unless there are claims of these names."""
        for volume in pod.spec.volumes:
            if volume.ephemeral is None or volume.ephemeral.volume_claim_template is None:
                continue
            name = f"{pod.metadata.name}-{volume.name}"
            if (pod.metadata.namespace, name) not in self._claims:
                claim = self._classed(_claim_for(pod.metadata, name, volume.ephemeral.volume_claim_template))
                yield self._put_claim(claim)
                yield from self._bound_at_once(claim)

    def pod_left(self, pod: Pod) -> Iterator[SetObject | DeleteObject]:
        """The claims that were made for it go."""
        for volume in pod.spec.volumes:
            claim = self._claims.get((pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}"))
            if volume.ephemeral is not None and claim is not None and is_made_for(claim, pod.metadata):
                del self._claims[_key(claim)]
                yield DeleteObject(CLAIMS, *_key(claim))
                yield from self._released(claim.spec.volume_name)

    def bound(self, node: str, volumes: PodVolumes) -> Iterator[SetObject]:
        """What the scheduler has decided for the claims of a pod that goes to the node."""
        for volume, claim in volumes.static:
            yield from self._bind(self._claims[_key(claim)], self._volumes[volume.metadata.name])
        for wanted in volumes.dynamic:
            claim = self._claims[_key(wanted)]
            annotations = claim.metadata.annotations | {SELECTED_NODE: node}
            selected = replace(claim, metadata=replace(claim.metadata, annotations=annotations))
            yield from self._bind(selected, self._provisioned(selected, self._classes[class_name(claim)], node))

    # ---- steps

    def _classed(self, claim: Claim) -> Claim:
        """A claim that names no class, not even none, gets the default one."""
        if self._default is None or claim.spec.storage_class_name is not None or CLASS in claim.metadata.annotations:
            return claim
        if claim.spec.volume_name:
            return claim
        return replace(claim, spec=replace(claim.spec, storage_class_name=self._default))

    def _bound_at_once(self, claim: Claim) -> Iterator[SetObject]:
        if is_bound(claim) or claim.metadata.deletion_timestamp is not None:
            return
        storage_class = self._classes.get(class_name(claim))
        volume = self._asked_for(claim)
        if volume is None and not claim.spec.volume_name and not _waits(storage_class):
            volume = self._found(claim) or self._made_for(claim, storage_class)
        if volume is not None:
            yield from self._bind(claim, volume)

    def _asked_for(self, claim: Claim) -> Volume | None:
        """The volume that the claim names, if that is free or promised to it."""
        volume = self._volumes.get(claim.spec.volume_name)
        to = None if volume is None else volume.spec.claim_ref
        free = to is None or (to.namespace, to.name) == _key(claim)
        return volume if free else None

    def _found(self, claim: Claim) -> Volume | None:
        """The volume that fits the claim best. On which nodes it is does not matter."""
        everywhere = {name: _everywhere(volume) for name, volume in self._volumes.items()}
        pairs = matching(everywhere, [claim], {}).pairs
        return self._volumes[pairs[0][0].metadata.name] if pairs else None

    def _made_for(self, claim: Claim, storage_class: StorageClass | None) -> Volume | None:
        """A volume of the class, for the first node that the class allows."""
        if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
            return None
        near = next((name for name, labels in self._labels.items() if can_provision(storage_class, labels)), None)
        return None if near is None else self._provisioned(claim, storage_class, near)

    def _provisioned(self, claim: Claim, storage_class: StorageClass, node: str) -> Volume:
        name = "pvc-" + claim.metadata.uid.replace("/", "-")
        provisioner = storage_class.provisioner
        self._made.add(name)
        metadata = ObjectMeta(name=name, uid=name, annotations={PROVISIONED_BY: provisioner})
        spec = PersistentVolumeSpec(
            capacity={"storage": claim.spec.resources.requests.get("storage", 0)},
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class.metadata.name,
            volume_mode=claim.spec.volume_mode,
            node_affinity=_within(self._topology(storage_class, node)),
            **_source(provisioner, name),
        )
        return Volume(metadata=metadata, spec=spec, status=PersistentVolumeStatus(phase=AVAILABLE))

    def _topology(self, storage_class: StorageClass, node: str) -> dict[str, str]:
        """The labels of the nodes that reach a volume which is made for this one."""
        provisioner, labels = storage_class.provisioner, self._labels[node]
        csi_node = self._drivers.get(node)
        drivers = csi_node.spec.drivers if csi_node is not None else ()
        keys = [key for driver in drivers if driver.name == provisioner for key in driver.topology_keys]
        if not keys:
            terms = storage_class.allowed_topologies
            keys = [each.key for term in terms for each in term.match_label_expressions]
        if not keys and provisioner in _IN_TREE:
            keys = [key for key in ZONE_LABELS if key in labels][:1]
        return {key: labels[key] for key in keys if key in labels}

    def _bind(self, claim: Claim, volume: Volume) -> Iterator[SetObject]:
        """Both sides name each other, and the claim says that this is complete."""
        yield self._put_volume(_promised(volume, claim))
        marks = {BIND_COMPLETED: "yes"} | ({} if claim.spec.volume_name else {BOUND_BY_CONTROLLER: "yes"})
        yield self._put_claim(
            replace(
                claim,
                metadata=replace(claim.metadata, annotations=claim.metadata.annotations | marks),
                spec=replace(claim.spec, volume_name=volume.metadata.name),
                status=PersistentVolumeClaimStatus(phase=BOUND, capacity=volume.spec.capacity),
            )
        )

    def _released(self, name: str) -> Iterator[SetObject | DeleteObject]:
        if name in self._made:
            del self._volumes[name]
            yield DeleteObject(VOLUMES, "", name)
        elif name in self._volumes:
            yield self._put_volume(replace(self._volumes[name], status=PersistentVolumeStatus(phase=RELEASED)))

    def _put_claim(self, claim: Claim) -> SetObject:
        stored = replace(claim, metadata=self._next(claim.metadata))
        self._claims[_key(stored)] = stored
        return SetObject(CLAIMS, *_key(stored), stored)

    def _put_volume(self, volume: Volume) -> SetObject:
        stored = replace(volume, metadata=self._next(volume.metadata))
        self._volumes[stored.metadata.name] = stored
        return SetObject(VOLUMES, "", stored.metadata.name, stored)

    def _next(self, metadata: ObjectMeta) -> ObjectMeta:
        """The metadata of the object's next version."""
        self._version += 1
        return replace(metadata, resource_version=f"virtual-{self._version}")


def _key(claim: Claim) -> Key:
    return claim.metadata.namespace, claim.metadata.name


def _default_of(classes: Iterable[StorageClass]) -> str | None:
    """The class of claims that name none. Of several default classes it is the newest, then the first by name."""
    named = sorted((each.metadata for each in classes), key=lambda metadata: metadata.name)
    marked = [each for each in named if any(each.annotations.get(name) == "true" for name in DEFAULT_CLASS)]
    newest = max(marked, key=lambda metadata: metadata.creation_timestamp or "", default=None)
    return None if newest is None else newest.name


def _waits(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == WAITS_FOR_POD


def _claim_for(pod: ObjectMeta, name: str, template: PersistentVolumeClaimTemplate) -> Claim:
    """The claim of an ephemeral volume, which belongs to the pod."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    metadata = replace(
        template.metadata, name=name, namespace=pod.namespace, uid=f"{pod.uid}.{name}", owner_references=(owner,)
    )
    return Claim(metadata=metadata, spec=template.spec, status=PersistentVolumeClaimStatus(phase="Pending"))


def _promised(volume: Volume, claim: Claim) -> Volume:
    to = ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace=claim.metadata.namespace, name=claim.metadata.name,
        uid=claim.metadata.uid,
    )  # fmt: skip
    marks = {} if volume.spec.claim_ref is not None else {BOUND_BY_CONTROLLER: "yes"}
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=volume.metadata.annotations | marks),
        spec=replace(volume.spec, claim_ref=to),
        status=PersistentVolumeStatus(phase=BOUND),
    )


def _everywhere(volume: Volume) -> Volume:
    return replace(volume, spec=replace(volume.spec, node_affinity=None)) if volume.spec.node_affinity else volume


def _within(topology: Mapping[str, str]) -> VolumeNodeAffinity | None:
    if not topology:
        return None
    each = (NodeSelectorRequirement(key=key, operator="In", values=(value,)) for key, value in topology.items())
    term = NodeSelectorTerm(match_expressions=tuple(each))
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))


# What the provisioners make that are part of Kubernetes.
_IN_TREE: Final[Mapping[str, Any]] = {
    "kubernetes.io/aws-ebs": lambda name: {"aws_elastic_block_store": AWSElasticBlockStoreVolumeSource(volume_id=name)},
    "kubernetes.io/gce-pd": lambda name: {"gce_persistent_disk": GCEPersistentDiskVolumeSource(pd_name=name)},
    "kubernetes.io/azure-disk": lambda name: {"azure_disk": AzureDiskVolumeSource(disk_name=name)},
    "kubernetes.io/cinder": lambda name: {"cinder": CinderVolumeSource(volume_id=name)},
}


def _source(provisioner: str, name: str) -> dict[str, Any]:
    """What a volume is that this provisioner makes."""
    if provisioner in _IN_TREE:
        made: dict[str, Any] = _IN_TREE[provisioner](name)
        return made
    return {"csi": CSIPersistentVolumeSource(driver=provisioner, volume_handle=name)}
