"""Which events a change is, in the words of footprints, and whom they may help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from ksp.compile.events import (
    ALLOCATABLE_LESS,
    ALLOCATABLE_MORE,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_UPDATE,
    OBJECT_EVENTS,
    POD_ADD,
    POD_DELETE,
    POD_LABELS,
    POD_SPEC,
    POD_STATUS,
    POD_TERMINATING,
    POD_UPDATE,
    PORTS_LESS,
    PORTS_MORE,
    REQUESTS_LESS,
    REQUESTS_MORE,
    TAINTS_LESS,
    TAINTS_MORE,
)
from ksp.core.cycle import EMPTINESS, ITSELF
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node, NodeSpec, NodeStatus
from ksp.model.pod import PodSpec
from ksp.policy.profile import Profile

__all__ = [
    "CLAIM",
    "NODE_ADD",
    "NODE_GONE",
    "NODE_GONE_WITH_PODS",
    "ROOM",
    "Wake",
    "cause_of",
    "differs",
    "node_events",
    "object_differs",
    "object_event",
    "pod_came",
    "pod_events",
    "pod_gone",
]

Events = frozenset[str]

NODE_GONE: Final = frozenset({NODE_DELETE})
NODE_GONE_WITH_PODS: Final = frozenset({NODE_DELETE, POD_DELETE})
ROOM: Final = frozenset({POD_DELETE, REQUESTS_LESS, PORTS_LESS})
"""Whatever a pod may leave behind: one that is not known any more, or that had only a claim."""
CLAIM: Final = "(its claim on a node)"
"""In the place of a rule: a pod that may evict no more before those are gone that it had evicted, or its node is out of
the question."""
OF_CLAIM: Final = frozenset(
    {POD_DELETE, NODE_DELETE, NODE_LABEL, NODE_UPDATE, TAINTS_MORE, TAINTS_LESS, ALLOCATABLE_MORE, ALLOCATABLE_LESS}
)


# ---- nodes


def node_events(old: NodeInfo, new: Node) -> Events:
    """What of a node changed; versions do not count."""
    events = set()
    if old.labels != new.metadata.labels:
        events.add(NODE_LABEL)
    if old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable:
        events |= _taints(old.spec, new.spec)
    if old.status.allocatable != new.status.allocatable:
        events |= _allocatable(old, new)
    if _others(old.metadata, old.spec, old.status) != _others(new.metadata, new.spec, new.status):
        events.add(NODE_UPDATE)
    return frozenset(events)


def _taints(old: NodeSpec, new: NodeSpec) -> Events:
    more = new.unschedulable > old.unschedulable or _has_more(new.taints, old.taints)
    less = old.unschedulable > new.unschedulable or _has_more(old.taints, new.taints)
    return _directed(TAINTS_MORE, TAINTS_LESS, more=more, less=less)


def _allocatable(old: NodeInfo, new: Node) -> Events:
    """Of the amounts, and of the entries as the API writes them: both can be read."""
    amounts = NodeInfo.of(new).allocatable
    was, now = old.status.allocatable, new.status.allocatable
    more = _grew(old.allocatable, amounts) or not now.keys() <= was.keys()
    less = _grew(amounts, old.allocatable) or not was.keys() <= now.keys()
    return _directed(ALLOCATABLE_MORE, ALLOCATABLE_LESS, more=more, less=less)


def _grew(old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """An amount is larger, or an entry is new."""
    return any(name not in old or amount > old[name] for name, amount in new.items()) or any(
        amount < 0 and name not in new for name, amount in old.items()
    )


def _has_more(some: Sequence[object], others: Sequence[object]) -> bool:
    """An element stands in the one more often than in the other."""
    return any(some.count(each) > others.count(each) for each in some)


def _directed(up: str, down: str, *, more: bool, less: bool) -> Events:
    """The events of a change that is known to be one; where it went neither way, as of an order, it may be either."""
    return frozenset({up, down}) if more == less else frozenset({up if more else down})


def _others(metadata: ObjectMeta, spec: NodeSpec, status: NodeStatus) -> tuple[ObjectMeta, NodeSpec, NodeStatus]:
    """What has no event of its own."""
    return (
        replace(metadata, labels={}, resource_version="", generation=0),
        replace(spec, taints=(), unschedulable=False),
        replace(status, allocatable={}),
    )


# ---- pods


def pod_came(pod: PodInfo) -> Events:
    """A pod is on a node that was not there."""
    return _CAME[bool(pod.host_ports), _asks_below_zero(pod)]


def pod_gone(pod: PodInfo) -> Events:
    """A pod is not on its node any more."""
    return _GONE[bool(pod.host_ports), _asks_below_zero(pod)]


def _asks_below_zero(pod: PodInfo) -> bool:
    return min(pod.requests.values(), default=0) < 0 or min(pod.nonzero_requests.values(), default=0) < 0


def _by_ports_and_sign(rows: str, requests: str, ports: str, other_requests: str) -> dict[tuple[bool, bool], Events]:
    plain = frozenset({rows, requests})
    return {
        (False, False): plain,
        (True, False): plain | {ports},
        (False, True): plain | {other_requests},
        (True, True): plain | {ports, other_requests},
    }


_CAME: Final = _by_ports_and_sign(POD_ADD, REQUESTS_MORE, PORTS_MORE, REQUESTS_LESS)
_GONE: Final = _by_ports_and_sign(POD_DELETE, REQUESTS_LESS, PORTS_LESS, REQUESTS_MORE)


def pod_events(old: PodInfo, new: PodInfo) -> Events:
    """What of a pod that has its place changed."""
    events: set[str] = set()
    was, now = old.metadata, new.metadata
    if was.labels != now.labels:
        events.add(POD_LABELS)
    if was.deletion_timestamp != now.deletion_timestamp:
        events.add(POD_TERMINATING)
    if _unmarked(was) != _unmarked(now):
        events.add(POD_UPDATE)
    if _specs_differ(old.spec, new.spec):
        events.add(POD_SPEC)
    if old.requests != new.requests or old.nonzero_requests != new.nonzero_requests:  # a resize shows in the status
        events |= _requests(old, new)
    if old.host_ports != new.host_ports:
        more, less = _has_more(new.host_ports, old.host_ports), _has_more(old.host_ports, new.host_ports)
        events |= _directed(PORTS_MORE, PORTS_LESS, more=more, less=less)
    if old.status != new.status:
        events.add(POD_STATUS)
    if (old.namespace, old.name) != (new.namespace, new.name):  # the API does not do that: it is as another pod
        events |= pod_gone(old) | pod_came(new)
    return frozenset(events)


def _requests(old: PodInfo, new: PodInfo) -> Events:
    more = _grew(old.requests, new.requests) or _grew(old.nonzero_requests, new.nonzero_requests)
    less = _grew(new.requests, old.requests) or _grew(new.nonzero_requests, old.nonzero_requests)
    return _directed(REQUESTS_MORE, REQUESTS_LESS, more=more, less=less)


def _specs_differ(old: PodSpec, new: PodSpec) -> bool:
    """Where a pod is is no part of this: it is on a node, or comes and goes."""
    return old != new and replace(old, node_name="") != replace(new, node_name="")


def _unmarked(metadata: ObjectMeta) -> ObjectMeta:
    """What has no event of its own."""
    return replace(metadata, labels={}, deletion_timestamp=None, resource_version="", generation=0)


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


# ---- names

# What a change is called where its causes are counted: kube-scheduler 1.19's names, of several events the first.
_CAUSES: Final = {
    NODE_ADD: NODE_ADD, ALLOCATABLE_MORE: "NodeAllocatableChange", ALLOCATABLE_LESS: "NodeAllocatableChange",
    NODE_LABEL: "NodeLabelChange", TAINTS_MORE: "NodeTaintChange", TAINTS_LESS: "NodeTaintChange",
    NODE_UPDATE: NODE_UPDATE, NODE_DELETE: NODE_DELETE, POD_DELETE: POD_DELETE, POD_ADD: POD_ADD,
} | dict.fromkeys(
    [POD_UPDATE, POD_SPEC, POD_LABELS, POD_TERMINATING, POD_STATUS, REQUESTS_MORE, REQUESTS_LESS, PORTS_MORE,
     PORTS_LESS], POD_UPDATE,
)  # fmt: skip
_SHORT: Final = (("PersistentVolumeClaim", "Pvc"), ("PersistentVolume", "Pv"))


def cause_of(events: Events) -> str:
    """The name under which kube-scheduler counts pods that such a change woke."""
    known = next((cause for event, cause in _CAUSES.items() if event in events), None)
    if known is not None:
        return known
    event = min(events)
    return next((event.replace(long, short) for long, short in _SHORT if event.startswith(long)), event)


UNNOTICED: Final[Events] = frozenset({POD_STATUS})
"""What changes all the time, where nobody knows what was read: what kubelets, and ksp itself, say of pods."""


class Wake:
    """Knows, rule by rule, which events can help pods that the rule denied; of what is no rule, all but `UNNOTICED`."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._by_rule: dict[str, Events] = {
            ITSELF: frozenset(), EMPTINESS: frozenset({NODE_ADD}), CLAIM: OF_CLAIM,
        }  # fmt: skip
        for profile in profiles:
            for active in profile.predicates:
                self._by_rule[active.name] = self._by_rule.get(active.name, frozenset()) | active.footprint.events

    def may_help(self, rules: frozenset[str], events: Events) -> bool:
        """One of the rules, which denied a pod, may admit it after one of the events. Nothing known means yes."""
        if not rules:
            return True
        unknown = events - UNNOTICED
        return any(not events.isdisjoint(self._by_rule.get(rule, unknown)) for rule in rules)
