"""The scheduler without its surroundings: changes and the time go in, effects come out.

    on(change, now)            the cluster changed
    step(now) -> Step | None   the next pod is decided; None if none is due
    bind_succeeded / bind_failed(uid, now)
    next_deadline(now)         when a pod becomes due by itself

A pod that gets a node is assumed to be there at once, so that the next decision counts it, while the driver binds it.
Names are unique at any time: a pod that comes under the name of another proves that the other is gone. To be told the
same again, be it under another version, changes nothing. It does no I/O, has no clock and no dice of its own: a
recording of what went in gives the same decisions again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ksp.core.cache import SchedulerCache
from ksp.core.changes import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    Bind,
    Change,
    DeleteNode,
    DeleteObject,
    DeletePod,
    Effect,
    Report,
    SetNode,
    SetObject,
    SetPod,
)
from ksp.core.cycle import MOST_CLASSES, Cycle, Decision
from ksp.core.equivalence.present import Present
from ksp.core.pod_kinds import PodKinds
from ksp.core.queue import Place, QueuedPod, SchedulingQueue
from ksp.core.state import ClusterState
from ksp.core.unread_pods import UnreadPods
from ksp.core.wake import (
    NODE_ADD,
    NODE_GONE,
    NODE_GONE_WITH_PODS,
    ROOM,
    Wake,
    cause_of,
    differs,
    node_events,
    object_differs,
    object_event,
    pod_came,
    pod_events,
    pod_gone,
)
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.policy.profile import Profile
from ksp.policy.unread import NOTHING, UnreadFields
from ksp.ports import Dice

FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt: the pod, what was decided, and what is to be done now: a Bind or Report of the pod first, then
    warnings, if any."""

    pod: PodInfo
    attempt: int
    decision: Decision
    effects: tuple[Effect, ...]


class Scheduler:
    """Schedules the pods that name one of its profiles.

    For metrics: `pending`, `cache_size`, `queue.incoming` (how often pods came to a place of the queue, and why),
    `queue.sleepers` (questions about unschedulable pods), `unread.counts` (pods with fields that the policy does not
    read), and of each cycle its `classes`. Without `equivalence_classes` nobody is asked about unschedulable pods.
    """

    def __init__(
        self, profiles: Sequence[Profile], dice: Dice, *, queue: SchedulingQueue | None = None,
        assumed_ttl: float | None = None, unread_fields: UnreadFields = UnreadFields.REFUSE,
        equivalence_classes: int = MOST_CLASSES, columns: bool = True,
    ) -> None:  # fmt: skip
        self.state = ClusterState()
        self.cache = SchedulerCache(self.state, assumed_ttl)
        self.queue = SchedulingQueue() if queue is None else queue
        self.present = Present.of(self.state)
        self.tables = self.present.tables
        self.wake = Wake(profiles)
        self.unread = UnreadPods(profiles, unread_fields)
        self.cycles = {
            profile.scheduler_name: Cycle(
                profile, self.present, self.queue.nominations.nodes, dice, self.unread.by[profile.scheduler_name],
                equivalence_classes=equivalence_classes, columns=columns,
            )
            for profile in profiles
        }  # fmt: skip
        if equivalence_classes:
            self.queue.sleepers.denied_by = self._denied_by
            self.queue.sleepers.kind_of = PodKinds(profiles).of

    def _denied_by(self, pod: PodInfo) -> frozenset[str] | None:
        return self.cycles[pod.scheduler_name].denied_by(pod)

    # ---- sizes

    def pending(self) -> dict[str, int]:
        """How many pods wait, by queue: active, backoff, unschedulable, gated."""
        return self.queue.pending()

    def cache_size(self) -> dict[str, int]:
        """How many nodes there are, pods placed on any node (assumed ones included), and assumed pods."""
        return {
            "nodes": len(self.state.nodes),
            "pods": len(self.cache),
            "assumed_pods": self.cache.assumed_count,
        }

    # ---- decisions

    def step(self, now: float) -> Step | None:
        """Decide for the next pod that is due."""
        self._expire(now)
        queued = self.queue.pop(now)
        if queued is None:
            return None
        pod, claim = queued.info, self.queue.nominations.node_of(queued.uid)
        decision = self.cycles[pod.scheduler_name].decide(pod)
        if decision.unread is not NOTHING:
            self.unread.decided(pod, decision.unread)
        if decision.node:
            self.cache.assume(pod, decision.node)
            self.queue.clear_nomination(pod.uid)
            self._release(pod.uid, claim, now)
            effect: Effect = Bind(pod, decision.node)
        else:
            effect = self._refused(queued, decision, now)
        return Step(pod, queued.attempts, decision, (effect, *self.unread.said()))

    def _expire(self, now: float) -> None:
        """Pods that were bound long ago, and that the watch never showed, give their place back and are tried again."""
        for pod in self.cache.expire(now):
            queued = self.queue.get(pod.uid)
            if queued is not None:
                self.queue.retry(queued, now)
            self._move(pod_gone(pod), now)

    def _refused(self, queued: QueuedPod, decision: Decision, now: float) -> Report:
        if decision.failed:
            self.queue.retry(queued, now)
        else:
            self.queue.fail(queued, now, decision.denied_by)
        return Report(queued.info, SCHEDULER_ERROR if decision.failed else UNSCHEDULABLE, decision.message)

    def bind_succeeded(self, uid: str, now: float) -> None:
        """The pod is bound; the watch will show it."""
        self.cache.finish_binding(uid, now)

    def bind_failed(self, uid: str, now: float) -> None:
        """The pod is not bound: it leaves the node, and is tried again after its backoff. If it went away and came back
        meanwhile, it waits for another attempt already."""
        forgotten = self.cache.forget(uid)
        if forgotten is not None:
            self._move(pod_gone(forgotten), now)
        queued = self.queue.get(uid)
        if queued is not None and queued.place is Place.IN_FLIGHT:
            self.queue.retry(queued, now)

    def next_deadline(self, now: float) -> float | None:
        """When a pod that waits becomes due, or an assumption expires; None if nothing waits for time."""
        deadlines = [d for d in (self.queue.next_deadline(now), self.cache.next_deadline()) if d is not None]
        return min(deadlines, default=None)

    # ---- changes

    def on(self, change: Change, now: float) -> None:
        """Take a change in."""
        match change:
            case SetPod(pod=pod):
                self._set_pod(pod, now)
            case DeletePod(uid=uid):
                self._delete_pod(uid, now)
            case SetNode(node=node):
                known = self.state.nodes.get(node.metadata.name)
                events = frozenset({NODE_ADD}) if known is None else node_events(known, node)
                if events:
                    self.state.set_node(node)
                    self._move(events, now)
            case DeleteNode(name=name):
                self._delete_node(name, now)
            case SetObject(kind=kind, namespace=namespace, name=name, value=value):
                was = self._object(kind, namespace, name)
                if was is None or object_differs(was, value):
                    self.state.set_object(kind, namespace, name, value)
                    self._move(frozenset({object_event(kind, "Add" if was is None else "Update")}), now)
            case DeleteObject(kind=kind, namespace=namespace, name=name):
                if self._object(kind, namespace, name) is not None:
                    self.state.remove_object(kind, namespace, name)
                    self._move(frozenset({object_event(kind, "Delete")}), now)

    def _delete_node(self, name: str, now: float) -> None:
        """A node goes, and with it its pods are out of sight."""
        if name in self.state.nodes:
            events = NODE_GONE_WITH_PODS if self.state.nodes[name].pods else NODE_GONE
            self.state.remove_node(name)
            self._move(events, now)

    def _object(self, kind: str, namespace: str, name: str) -> object | None:
        objects = self.state.objects[kind]
        return (objects.get(namespace, {}) if namespace else objects).get(name)

    def _move(self, events: frozenset[str], now: float) -> None:
        if events:
            self.queue.move(lambda rules: self.wake.may_help(rules, events), now, cause_of(events))

    def _set_pod(self, pod: Pod, now: float) -> None:
        info = PodInfo.of(pod, self.cache.get(pod.metadata.uid))
        for gone in (self.cache.namesake(info), self.queue.namesake(info)):
            if gone is not None:
                self._delete_pod(gone, now)
        claim = self.queue.nominations.node_of(info.uid)
        if pod.status.phase in FINISHED:
            self._delete_pod(info.uid, now)
        elif pod.spec.node_name:
            self._set_assigned(info, pod.spec.node_name, now)
        else:
            self._set_pending(info, now)
        self._release(info.uid, claim, now)

    def _set_assigned(self, info: PodInfo, node: str, now: float) -> None:
        self.queue.delete(info.uid)
        self.queue.clear_nomination(info.uid)
        events = self._assigned_events(info, node)
        if events:
            self.cache.confirm(info, node)
            self.unread.runs(info)
            self._move(events, now)

    def _assigned_events(self, info: PodInfo, node: str) -> frozenset[str]:
        """What it is to others that a pod is shown on a node: new there, changed, or gone from where it was."""
        known, before = self.cache.get(info.uid), self.cache.node_name_of(info.uid)
        if known is None:
            return pod_came(info)
        if before != node:
            return pod_came(info) | pod_gone(known)
        changed = pod_events(known, info)
        return changed | pod_came(info) if self.cache.is_assumed(info.uid) else changed

    def _set_pending(self, info: PodInfo, now: float) -> None:
        """A pod without a node: it waits, if it is ours, ungated and not on its way out."""
        placed = self.cache.get(info.uid)
        events = pod_events(placed, info) if placed is not None else frozenset()
        if events:
            self.cache.update(info)
            self._move(events, now)
        if info.scheduler_name not in self.cycles or info.terminating:
            self.queue.delete(info.uid)
            return
        if info.spec.scheduling_gates:
            self.queue.gate(info)
            return
        queued = self.queue.get(info.uid)
        if queued is not None:
            self.queue.update(info, changed=differs(queued.info, info))
            if info.uid in self.cache:
                self.queue.clear_nomination(info.uid)  # it has its place; a status of before claims no other
        elif info.uid not in self.cache:
            self.queue.add(info, now)

    def _delete_pod(self, uid: str, now: float) -> None:
        claim = self.queue.nominations.node_of(uid)
        self.queue.delete(uid)
        self.unread.forget(uid)
        gone = self.cache.remove(uid)
        if gone is not None:
            self._move(pod_gone(gone), now)
        self._release(uid, claim, now)

    def _release(self, uid: str, claim: str | None, now: float) -> None:
        """If the pod was nominated to a node, and is not any more nor has its place there, others may take it."""
        if claim is not None and claim not in (self.queue.nominations.node_of(uid), self.cache.node_name_of(uid)):
            self._move(ROOM, now)
