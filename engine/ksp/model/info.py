"""Pods and nodes with what scheduling derives from them.

`PodInfo` is what policies know as a Pod: the object, what it asks for, its affinity terms. `NodeInfo` is what they know
as a Node: the object and the sums over the pods on it, kept as pods come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ksp.model.affinity import AffinityTerm, affinity_term_matches, affinity_terms_of
from ksp.model.affinity import AffinityTerms as _AffinityTerms
from ksp.model.claims import claim_names_of
from ksp.model.int64 import MAX, MIN, wrap
from ksp.model.meta import Int, ObjectMeta
from ksp.model.node import Node, NodeSpec, NodeStatus
from ksp.model.pod import Pod, PodSpec, PodStatus
from ksp.model.ports import HostPort, host_ports_of
from ksp.model.quantity import QuantityError
from ksp.model.requests import BASIC, amounts, is_counted_resource, requests_of

__all__ = ["EMPTY_NODE", "EMPTY_POD", "AffinityTerm", "HostPort", "NodeInfo", "PodInfo", "affinity_term_matches"]

DEFAULT_SCHEDULER: Final = "default-scheduler"


def _basic() -> dict[str, int]:
    return dict.fromkeys(BASIC, 0)


def _no_pods() -> dict[str, int]:
    return {**_basic(), "pods": 0}


class NodeInfo(msgspec.Struct, kw_only=True, eq=False, rename="camel"):
    """A node and the pods on it. Amounts are in base units: cpu in milli, all else in whole units.

    `allocatable` always has cpu, memory, ephemeral-storage and pods, the sums the first three; another resource is in
    the sums while its amount is not 0. `images` has the size under each name of an image, `pods` the pods by uid, in
    the order in which they came. `generation` grows with every change. `error` says why the node's quantities cannot
    be read, else "".
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, int] = msgspec.field(default_factory=_no_pods)
    requested: dict[str, int] = msgspec.field(default_factory=_basic)
    nonzero_requested: dict[str, int] = msgspec.field(default_factory=_basic)
    pod_count: Int = 0
    host_ports: tuple[HostPort, ...] = ()
    images: dict[str, int] = msgspec.field(default_factory=dict)
    pods: dict[str, PodInfo] = msgspec.field(default_factory=dict)
    generation: int = 0
    error: str = ""

    @staticmethod
    def of(node: Node) -> NodeInfo:
        """The node with no pods on it."""
        info = NodeInfo()
        info.set_node(node)
        return info

    def set_node(self, node: Node) -> None:
        """Take the node's new state; its pods stay."""
        self.metadata, self.spec, self.status = node.metadata, node.spec, node.status
        self.name, self.uid = node.metadata.name, node.metadata.uid
        self.labels, self.annotations = node.metadata.labels, node.metadata.annotations
        self.allocatable, self.error = _allocatable(node.status)
        self.images = _images(node.status)
        self.generation += 1

    def add_pod(self, pod: PodInfo) -> None:
        """Put a pod on the node. A pod of the same uid must not be there."""
        if pod.uid in self.pods:
            raise ValueError(f"pod {pod.uid} is on node {self.name} already")
        self.pods[pod.uid] = pod
        pod.node = self
        self.pod_count += 1
        self._count(pod, 1)
        if pod.host_ports:
            self.host_ports += pod.host_ports

    def remove_pod(self, pod: PodInfo) -> None:
        """Take a pod away that was put there. What it counted for is what leaves."""
        self._must_have(pod)
        del self.pods[pod.uid]
        pod.node = EMPTY_NODE
        self.pod_count -= 1
        self._count(pod, -1)
        if pod.host_ports:
            self._collect_ports()

    def replace_pod(self, old: PodInfo, new: PodInfo) -> None:
        """Put a pod in place of the one with the same uid that is there."""
        self._must_have(old)
        self.pods[new.uid] = new
        old.node = EMPTY_NODE
        new.node = self
        if old.requests != new.requests or old.nonzero_requests != new.nonzero_requests:
            self._count(old, -1)
            self._count(new, 1)
        if old.host_ports != new.host_ports:
            self._collect_ports()
        self.generation += 1

    def arrange(self, order: Mapping[str, int]) -> None:
        """Bring the pod that came last to its place among the others. `order` has a rank for each, and is sorted."""
        newest_first = reversed(self.pods)
        last, next_to_last = next(newest_first), next(newest_first, None)
        if next_to_last is None or order[next_to_last] < order[last]:
            return
        ports = self.pods[last].host_ports
        self.pods = {uid: self.pods[uid] for uid in order if uid in self.pods}
        if ports:
            self._collect_ports()

    def __repr__(self) -> str:
        return f"<node {self.name}>"

    def _must_have(self, pod: PodInfo) -> None:
        if self.pods.get(pod.uid) is not pod:
            raise ValueError(f"pod {pod.uid} is not on node {self.name}")

    def _count(self, pod: PodInfo, sign: int) -> None:
        accumulate(self.requested, pod.requests, sign)
        accumulate(self.nonzero_requested, pod.nonzero_requests, sign)
        self.generation += 1

    def _collect_ports(self) -> None:
        self.host_ports = tuple(port for pod in self.pods.values() for port in pod.host_ports)


class PodInfo(msgspec.Struct, kw_only=True, eq=False, rename="camel"):
    """A pod and what it asks for. Amounts are in base units: cpu in milli, all else in whole units.

    `requests` and `nonzero_requests` are sorted by resource and always have cpu, memory and ephemeral-storage.
    `claim_names` are those of its claims, in the order of its volumes. Terms of a list with a malformed selector are
    left out, and `affinity_error` says why. `node` is where it runs, `EMPTY_NODE` while it has no place. `error` says
    why its quantities cannot be read, else "".
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    requests: dict[str, int] = msgspec.field(default_factory=_basic)
    nonzero_requests: dict[str, int] = msgspec.field(default_factory=_basic)
    host_ports: tuple[HostPort, ...] = ()
    claim_names: tuple[str, ...] = ()
    required_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
    affinity_error: str = ""
    terminating: bool = False
    node: NodeInfo = msgspec.field(default_factory=lambda: EMPTY_NODE)
    error: str = ""
    priority: Int = 0
    scheduler_name: str = DEFAULT_SCHEDULER

    @staticmethod
    def of(pod: Pod, before: PodInfo | None = None) -> PodInfo:
        """Derive everything once. A pod without a uid is known by its namespace and name. Terms that the pod had
        `before` stay the same objects, with the selectors that are compiled already."""
        meta, spec = pod.metadata, pod.spec
        requests = requests_of(spec, pod.status)
        terms = _same_terms(pod, before) or affinity_terms_of(pod)
        return PodInfo(
            metadata=meta,
            spec=spec,
            status=pod.status,
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid or f"{meta.namespace}/{meta.name}",
            labels=meta.labels,
            annotations=meta.annotations,
            requests=requests.stated,
            nonzero_requests=requests.nonzero,
            host_ports=host_ports_of(spec),
            claim_names=claim_names_of(meta, spec) if spec.volumes else (),
            required_affinity=terms.required,
            preferred_affinity=terms.preferred,
            required_anti_affinity=terms.required_anti,
            preferred_anti_affinity=terms.preferred_anti,
            affinity_error=terms.error,
            terminating=meta.deletion_timestamp is not None,
            error=requests.error,
            priority=spec.priority or 0,
            scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        )

    def __repr__(self) -> str:
        return f"<pod {self.namespace}/{self.name}>"


def _same_terms(pod: Pod, before: PodInfo | None) -> _AffinityTerms | None:
    """The terms of before, if they have not changed since."""
    if (
        before is None
        or pod.spec.affinity is None
        or before.spec.affinity != pod.spec.affinity
        or before.namespace != pod.metadata.namespace
    ):
        return None
    return _AffinityTerms(
        required=before.required_affinity,
        preferred=before.preferred_affinity,
        required_anti=before.required_anti_affinity,
        preferred_anti=before.preferred_anti_affinity,
        error=before.affinity_error,
    )


# What a pod without a place, and a row that does not exist, read as. They are never changed.
EMPTY_NODE: Final[NodeInfo] = NodeInfo()
EMPTY_POD: Final[PodInfo] = PodInfo()


def accumulate(sums: dict[str, int], counted: dict[str, int], sign: int) -> None:
    """Add or take away. The sums depend on what is counted now, not on what came and went."""
    for name, n in counted.items():
        if n:
            total = sums.get(name, 0) + sign * n
            if not MIN <= total <= MAX:
                total = wrap(total)
            if total or name in BASIC:
                sums[name] = total
            else:
                sums.pop(name, None)


def _allocatable(status: NodeStatus) -> tuple[dict[str, int], str]:
    """The amounts, and why they cannot be read; a node that states none has none."""
    try:
        stated = amounts("status.allocatable", status.allocatable)
    except QuantityError as error:
        return _no_pods(), str(error)
    return {
        **_no_pods(),
        **{name: n for name, n in sorted(stated.items()) if name == "pods" or is_counted_resource(name)},
    }, ""


def _images(status: NodeStatus) -> dict[str, int]:
    """Sizes in bytes by name. Of two images with one name the first counts."""
    sizes: dict[str, int] = {}
    for image in status.images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes
