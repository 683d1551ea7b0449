"""Which events a change is, in kube-scheduler's names, and whom they may help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ksp.compile.footprint import (
    NODE_ADD,
    NODE_DELETE,
    NODE_UPDATE,
    OBJECT_EVENTS,
    POD_ADD,
    POD_DELETE,
    POD_STATUS,
    POD_UPDATE,
)
from ksp.core.cycle import EMPTINESS, ITSELF
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node, NodeSpec, NodeStatus
from ksp.policy.profile import Profile

__all__ = [
    "NODE_ADD",
    "NODE_DELETE",
    "POD_ADD",
    "POD_DELETE",
    "Wake",
    "cause_of",
    "differs",
    "node_events",
    "object_differs",
    "object_event",
    "pod_events",
]


def node_events(old: NodeInfo, new: Node) -> frozenset[str]:
    """What of a node changed; versions do not count."""
    events = set()
    if old.labels != new.metadata.labels:
        events.add("NodeLabel")
    if old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable:
        events.add("NodeTaint")
    if old.status.allocatable != new.status.allocatable:
        events.add("NodeAllocatable")
    if _others(old.metadata, old.spec, old.status) != _others(new.metadata, new.spec, new.status):
        events.add(NODE_UPDATE)
    return frozenset(events)


def _others(metadata: ObjectMeta, spec: NodeSpec, status: NodeStatus) -> tuple[ObjectMeta, NodeSpec, NodeStatus]:
    """What has no event of its own."""
    return (
        replace(metadata, labels={}, resource_version="", generation=0),
        replace(spec, taints=(), unschedulable=False),
        replace(status, allocatable={}),
    )


def pod_events(old: PodInfo, new: PodInfo) -> frozenset[str]:
    """What of a pod that has its place changed."""
    events = set()
    if differs(old, new) or old.requests != new.requests:  # a resize shows in the status
        events.add(POD_UPDATE)
    if old.status != new.status:
        events.add(POD_STATUS)
    return frozenset(events)


def differs(old: PodInfo, new: PodInfo) -> bool:
    """More than the status and versions differs."""
    return old.spec != new.spec or _unversioned(old.metadata) != _unversioned(new.metadata)


def object_differs(old: Any, new: Any) -> bool:
    """More than the versions of two objects of another kind differs."""
    return bool(replace(old, metadata=_unversioned(old.metadata)) != replace(new, metadata=_unversioned(new.metadata)))


def _unversioned(metadata: ObjectMeta) -> ObjectMeta:
    return replace(metadata, resource_version="", generation=0)


def object_event(kind: str, verb: str) -> str:
    """`PersistentVolumeAdd` for an added one of `persistentVolumes`."""
    return OBJECT_EVENTS[kind] + verb


# What a change is called where its causes are counted: kube-scheduler 1.19's names, of several events the first.
_CAUSES: Final = {
    NODE_ADD: NODE_ADD, "NodeAllocatable": "NodeAllocatableChange", "NodeLabel": "NodeLabelChange",
    "NodeTaint": "NodeTaintChange", NODE_UPDATE: NODE_UPDATE, NODE_DELETE: NODE_DELETE, POD_DELETE: POD_DELETE,
    POD_ADD: POD_ADD, POD_UPDATE: POD_UPDATE, POD_STATUS: POD_UPDATE,
}  # fmt: skip
_SHORT: Final = (("PersistentVolumeClaim", "Pvc"), ("PersistentVolume", "Pv"))


def cause_of(events: frozenset[str]) -> str:
    """The name under which kube-scheduler counts pods that such a change woke."""
    known = next((cause for event, cause in _CAUSES.items() if event in events), None)
    if known is not None:
        return known
    event = min(events)
    return next((event.replace(long, short) for long, short in _SHORT if event.startswith(long)), event)


class Wake:
    """Knows, rule by rule, which events can help pods that the rule denied."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._by_rule: Mapping[str, frozenset[str]] = {ITSELF: frozenset(), EMPTINESS: frozenset({NODE_ADD})} | {
            active.name: active.footprint.events for profile in profiles for active in profile.predicates
        }

    def may_help(self, rules: frozenset[str], events: frozenset[str]) -> bool:
        """One of the rules, which denied a pod, may admit it after one of the events. Nothing known means yes."""
        return not rules or any(events & self._by_rule.get(rule, events) for rule in rules)
