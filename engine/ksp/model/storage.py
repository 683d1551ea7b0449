"""Volumes: where their data lies, and the objects that stand between a pod and its data."""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int, LabelSelector, ObjectMeta, ResourceList
from ksp.model.selector import NodeSelector


class GCEPersistentDiskVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A disk of Google Compute Engine."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume of AWS EBS."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class AzureDiskVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A disk of Azure."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    read_only: bool = False


class CinderVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume of OpenStack Cinder."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A disk behind iSCSI."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int = 0
    read_only: bool = False


class RBDVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An image in a Ceph pool."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class CSIVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume that a driver makes for the life of one pod."""

    driver: str = ""
    read_only: bool = False


class CSIPersistentVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume of a storage driver."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class VolumeResourceRequirements(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How much a claim asks for."""

    limits: ResourceList = msgspec.field(default_factory=dict)
    requests: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What volume a claim wants, and which it got."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeClaimStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What became of a claim."""

    phase: str = ""
    capacity: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A wish for a volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PersistentVolumeClaimTemplate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The claim that is made for a pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class VolumeNodeAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The nodes that reach a volume; None is all."""

    required: NodeSelector | None = None


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Another object, by name."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class PersistentVolumeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a volume is, who has it, and where it can be used."""

    capacity: ResourceList = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None


class PersistentVolumeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Whether a volume is taken."""

    phase: str = ""


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A piece of storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A label that must have one of some values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Where volumes of a class can be made."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How volumes of a kind are made, and when they are bound."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many volumes of a driver a node can hold; None is no limit."""

    count: Int | None = None


class CSINodeDriver(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A storage driver on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The storage drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What the storage drivers say about a node of the same name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()
