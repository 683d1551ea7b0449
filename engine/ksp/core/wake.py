"""Which events a change is, in kube-scheduler's names, and whom they may help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ksp.compile.footprint import NODE_ADD, NODE_DELETE, OBJECT_EVENTS, POD_ADD, POD_DELETE, POD_UPDATE
from ksp.core.cycle import ITSELF
from ksp.core.queue import QueuedPod
from ksp.model.info import NodeInfo
from ksp.model.node import Node
from ksp.policy.profile import Profile

__all__ = ["NODE_ADD", "NODE_DELETE", "POD_ADD", "POD_DELETE", "POD_UPDATE", "Wake", "node_events", "object_event"]


def node_events(old: NodeInfo, new: Node) -> frozenset[str]:
    """What of a node changed."""
    events = set()
    if old.labels != new.metadata.labels:
        events.add("NodeLabel")
    if old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable:
        events.add("NodeTaint")
    if old.status.allocatable != new.status.allocatable:
        events.add("NodeAllocatable")
    if old.status.images != new.status.images or old.annotations != new.metadata.annotations:
        events.add("NodeUpdate")
    return frozenset(events)


def object_event(kind: str, verb: str) -> str:
    """`PersistentVolumeAdd` for an added one of `persistentVolumes`."""
    return OBJECT_EVENTS[kind] + verb


class Wake:
    """Knows, rule by rule, which events can help a pod that the rule denied."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._by_rule: Mapping[str, frozenset[str]] = {ITSELF: frozenset()} | {
            active.name: active.footprint.events for profile in profiles for active in profile.predicates
        }

    def may_help(self, pod: QueuedPod, events: frozenset[str]) -> bool:
        """One of the rules that denied the pod may admit it after one of the events. Nothing known means yes."""
        if not pod.unschedulable_by:
            return True
        return any(events & self._by_rule.get(rule, events) for rule in pod.unschedulable_by)
