"""Nodes, as far as scheduling reads them."""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int, ObjectMeta, OwnerReference, ResourceList


class Taint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Keeps away pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What is decided about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One thing that a node says of its health."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerImage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An image that the node holds, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int = 0


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a node has to give."""

    capacity: ResourceList = msgspec.field(default_factory=dict)
    allocatable: ResourceList = msgspec.field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A machine that runs pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PodSignature(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The pods of one controller."""

    pod_controller: OwnerReference | None = None


class PreferAvoidPodsEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One controller whose pods should go elsewhere."""

    pod_signature: PodSignature = PodSignature()


class AvoidPods(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a node's annotation scheduler.alpha.kubernetes.io/preferAvoidPods holds, as JSON."""

    prefer_avoid_pods: tuple[PreferAvoidPodsEntry, ...] = ()
