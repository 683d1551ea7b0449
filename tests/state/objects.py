"""Pods and nodes for tests of the core: as the API gives them, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ksp.core.node_order import ZONE
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod


def pod(
    uid: str,
    *,
    name: str = "",
    namespace: str = "default",
    priority: int = 0,
    cpu: str = "100m",
    labels: Mapping[str, str] | None = None,
    host_port: int = 0,
    terms: Sequence[str] = (),
    nominated: str = "",
) -> PodInfo:
    """A pod with one container. `terms` are the kinds of inter-pod terms that it has one of, see `_TERMS`."""
    container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    if host_port:
        container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
    affinity: dict[str, dict[str, Any]] = {}
    for kind in terms:
        group, field, term = _TERMS[kind]
        affinity.setdefault(group, {})[field] = [term]
    raw = {
        "metadata": {"name": name or uid, "namespace": namespace, "uid": uid, "labels": dict(labels or {})},
        "spec": {"containers": [container], "priority": priority, "affinity": affinity},
        "status": {"nominatedNodeName": nominated},
    }
    return PodInfo.of(convert(Pod, raw))


def node(name: str, *, zone: str = "", labels: Mapping[str, str] | None = None, cpu: str = "4") -> Node:
    """A node; in no zone if that is empty."""
    every = dict(labels or {}) | ({ZONE: zone} if zone else {})
    raw = {"metadata": {"name": name, "labels": every}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}
    return convert(Node, raw)


_TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
_WEIGHTED = {"weight": 1, "podAffinityTerm": _TERM}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS: dict[str, tuple[str, str, object]] = {
    "required_affinity": ("podAffinity", _REQUIRED, _TERM),
    "preferred_affinity": ("podAffinity", _PREFERRED, _WEIGHTED),
    "required_anti_affinity": ("podAntiAffinity", _REQUIRED, _TERM),
    "preferred_anti_affinity": ("podAntiAffinity", _PREFERRED, _WEIGHTED),
}
