"""What selects pods: Services and the controllers that make them."""

from __future__ import annotations

import msgspec

from ksp.model.meta import LabelSelector, ObjectMeta


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A selector that is None selects nothing, an empty one every pod of the namespace."""

    selector: dict[str, str] | None = None
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    type: str = ""


class Service(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Pods behind one address."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A selector that is None selects nothing."""

    selector: dict[str, str] | None = None


class ReplicationController(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The oldest controller of like pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Which pods are its own."""

    selector: LabelSelector | None = None


class ReplicaSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A controller of like pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Which pods are its own."""

    selector: LabelSelector | None = None
    service_name: str = ""


class StatefulSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A controller of pods with names and volumes of their own."""

    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
