"""Volumes, claims, classes and pods that use claims, for tests of the core: as the API gives them, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ksp.model.claims import BIND_COMPLETED
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

WAIT = "WaitForFirstConsumer"
SELECTED = "volume.kubernetes.io/selected-node"


def volume(
    name: str,
    *,
    size: str = "1Gi",
    nodes: Sequence[str] = (),
    of: str = "local",
    to: Mapping[str, str] | None = None,
    version: int = 1,
    uid: str = "",
    phase: str = "Available",
    **metadata: Any,
) -> PersistentVolume:
    """`nodes` reach it, by default all; `to` is its claimRef."""
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": list(nodes)}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}} if nodes else None
    raw = {
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version), **metadata},
        "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": of,
            "nodeAffinity": affinity, "claimRef": to,
        },
        "status": {"phase": phase},
    }  # fmt: skip
    return convert(PersistentVolume, raw)


def claim(
    name: str,
    *,
    size: str = "1Gi",
    of: str | None = "local",
    volume: str = "",
    selected: str = "",
    complete: bool = True,
    version: int = 1,
    uid: str = "",
    phase: str = "",
    **metadata: Any,
) -> PersistentVolumeClaim:
    """`volume` is what it is bound to, and `complete` says that the controller has done both sides; `selected` is the
    node for which a volume is to be made."""
    annotations = {SELECTED: selected} if selected else {}
    if volume and complete:
        annotations[BIND_COMPLETED] = "yes"
    raw = {
        "metadata": {
            "name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": str(version),
            "annotations": annotations, **metadata,
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": of, "volumeName": volume,
            "resources": {"requests": {"storage": size}},
        },
        "status": {"phase": phase},
    }  # fmt: skip
    return convert(PersistentVolumeClaim, raw)


def ref(name: str, uid: str = "") -> dict[str, str]:
    """A claimRef to the claim; without a uid it is one that a volume's owner wrote."""
    return {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid}


def storage_class(
    name: str, provisioner: str = "kubernetes.io/no-provisioner", mode: str | None = WAIT, hosts: Iterable[str] = ()
) -> StorageClass:
    """`hosts` are those for which it can make volumes, by default all."""
    terms = [{"matchLabelExpressions": [{"key": "host", "values": [host]}]} for host in hosts]
    raw = {
        "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, "allowedTopologies": terms,
    }  # fmt: skip
    return convert(StorageClass, raw)


def node(name: str) -> Node:
    raw = {
        "metadata": {"name": name, "labels": {"host": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    return convert(Node, raw)


def node_info(name: str) -> NodeInfo:
    return NodeInfo.of(node(name))


def pod(name: str, *claims: str, ephemeral: Iterable[str] = (), uid: str = "") -> PodInfo:
    """A pod with these claims, and with volumes of these names whose claims are made for it."""
    volumes: list[dict[str, Any]] = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}} for i, each in enumerate(claims)
    ]
    volumes += [{"name": each, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}} for each in ephemeral]
    raw = {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {"containers": [{"name": "c"}], "volumes": volumes},
    }
    return PodInfo.of(convert(Pod, raw))
