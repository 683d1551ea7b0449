"""Templates of pods and nodes: the API's JSON, decoded anew for each object, so that no two share a part, as if a watch
had brought them.

The templates of pods are those of scheduler_perf (kubernetes, test/integration/scheduler_perf/templates), with what an
API server fills in: a scheduler's name, a priority, and tolerations of a node that is lost for five minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ksp.model.decode import decode
from ksp.model.node import Node
from ksp.model.pod import Pod

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_SCHEDULER: Final = "default-scheduler"
BEFORE, MEASURED = "sched-0", "sched-1"
"""Namespaces of the pods that run already, and of those that are measured, where affinity is between them."""

_NUMBER: Final = "@NUMBER@"
_NODE: Final = "@NODE@"
_PLAIN: Final = {"cpu": "100m", "memory": "500Mi"}
_TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Pods that differ in their number: in name and uid, and wherever else `number()` stands in the text. `pending` is
    the JSON of a pod that waits, `bound` that of one with a node."""

    pending: str
    bound: str

    def pod(self, number: int) -> Pod:
        """One that waits for a node."""
        return decode(Pod, self.pending.replace(_NUMBER, str(number)).encode())

    def running(self, number: int, node: str) -> Pod:
        """The same pod, once it is bound and its containers run."""
        return decode(Pod, self.bound.replace(_NUMBER, str(number)).replace(_NODE, node).encode())


def number() -> str:
    """Stands for the pod's number in a template."""
    return _NUMBER


def pod_template(
    name: str, *, namespace: str = "default", labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None, requests: Mapping[str, str] | None = None,
    scheduler: str = DEFAULT_SCHEDULER, owner: tuple[str, str, str] | None = None, **spec: Any,
) -> PodTemplate:  # fmt: skip
    """Pods called NAME-NUMBER with one container; 100m of cpu and 500Mi of memory unless `requests` says else.
    `owner` is apiVersion, kind and name of the controller; `spec` are further fields of the spec, in camel case."""
    called = f"{name}-{_NUMBER}"
    metadata: dict[str, Any] = {
        "name": called, "namespace": namespace, "uid": f"{namespace}.{called}", "resourceVersion": f"1{_NUMBER}",
        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }  # fmt: skip
    if owner is not None:
        version, kind, of = owner
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": of, "uid": f"{kind}.{of}", "controller": True}
        ]
    container = {
        "name": "pause", "image": "registry.k8s.io/pause:3.10", "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": dict(requests or _PLAIN), "limits": dict(requests or _PLAIN)},
    }  # fmt: skip
    filled = {"schedulerName": scheduler, "priority": 0, "tolerations": _TOLERATIONS, "containers": [container], **spec}
    pending = {"metadata": metadata, "spec": filled, "status": {"phase": "Pending"}}
    bound = {
        "metadata": {**metadata, "resourceVersion": f"2{_NUMBER}"},
        "spec": {**filled, "nodeName": _NODE},
        "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }
    return PodTemplate(*(msgspec.json.encode(each).decode() for each in (pending, bound)))


def node(name: str, labels: Mapping[str, str] | None = None, *, pods: int = 110, cpu: str = "4") -> Node:
    """A node of 4 cpu and 32Gi that takes so many pods, as scheduler_perf has them."""
    amounts = {"cpu": cpu, "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": str(pods)}
    known = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(labels or {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    text = {
        "metadata": {"name": name, "uid": f"node.{name}", "resourceVersion": "1", "labels": known},
        "spec": {"providerID": f"bench://{name}"},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }
    return decode(Node, msgspec.json.encode(text))


def nodes(count: int, zones: Sequence[str] = ()) -> list[Node]:
    """`node-0`, `node-1`, …; in turn in the zones, if there are any."""
    return [node(f"node-{i}", {ZONE: zones[i % len(zones)]} if zones else None) for i in range(count)]
