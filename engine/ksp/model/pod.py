"""Pods, as far as scheduling reads them.

Fields of newer APIs that no rule reads stand here too: that they are present must be known, so that a pod which asks
for what a policy does not look at can be told from one that does not.
"""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int, LabelSelector, ObjectMeta, ResourceList
from ksp.model.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from ksp.model.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimTemplate,
    RBDVolumeSource,
)

__all__ = [
    "Affinity", "Container", "ContainerPort", "ContainerStatus", "EphemeralVolumeSource", "NodeAffinity",
    "NodeSelector", "NodeSelectorRequirement", "NodeSelectorTerm", "PersistentVolumeClaimVolumeSource", "Pod",
    "PodAffinity", "PodAffinityTerm", "PodAntiAffinity", "PodCondition", "PodOS", "PodResourceClaim",
    "PodSchedulingGate", "PodSchedulingGroup", "PodSpec", "PodStatus", "PreferredSchedulingTerm", "ResourceClaim",
    "ResourceRequirements", "Toleration", "TopologySpreadConstraint", "Volume", "WeightedPodAffinityTerm",
    "WorkloadReference",
]  # fmt: skip


class ContainerPort(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A port of a container, and the port of the host that leads to it."""

    name: str = ""
    container_port: Int = 0
    host_port: Int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a container, or a pod, asks for and may not exceed."""

    limits: ResourceList = msgspec.field(default_factory=dict)
    requests: ResourceList = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class Container(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A container; among the init containers, one with `restart_policy` Always is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class PersistentVolumeClaimVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A claim that lives as long as the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A volume of a pod: one of its sources is set."""

    name: str = ""
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None


class PreferredSchedulingTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Nodes that the pod would rather have."""

    weight: Int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Nodes that the pod must have, and would rather have."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods to be near to, or away from."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods that the pod would rather be near to, or away from."""

    weight: Int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods to be near to."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods to be away from."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Where the pod must and would like to be."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Taints that do not keep the pod away."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int | None = None


class TopologySpreadConstraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How evenly like pods must spread."""

    max_skew: Int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A reason not to schedule the pod yet."""

    name: str = ""


class PodResourceClaim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A claim to devices that the pod's containers can use."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOS(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The operating system that the pod needs."""

    name: str = ""


class PodSchedulingGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The group that the pod is to be scheduled with."""

    pod_group_name: str | None = None


class WorkloadReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The older way to name the group that the pod is to be scheduled with."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What the pod runs, and what it asks of its place."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    priority: Int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    overhead: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    runtime_class_name: str | None = None
    host_network: bool = False
    os: PodOS | None = None
    restart_policy: str = ""
    service_account_name: str = ""
    termination_grace_period_seconds: Int | None = None


class PodCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One thing that is known of a pod's state."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a container was given, which differs from what it asks for while it is being resized."""

    name: str = ""
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What became of a pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Containers that run together on one node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
