"""The scheduler without its surroundings: changes and the time go in, effects come out.

    on(change, now)            the cluster changed
    step(now) -> Step | None   the next pod is decided; None if none is due
    bind_succeeded / bind_failed(uid, now)
    next_deadline(now)         when a pod becomes due by itself

A pod that gets a node is assumed to be there at once, so that the next decision counts it, while the driver binds it.
It does no I/O, has no clock and no dice of its own: a recording of what went in gives the same decisions again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ksp.compile.tables import Tables
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
from ksp.core.cycle import Cycle, Decision
from ksp.core.filter import Filter
from ksp.core.queue import QueuedPod, SchedulingQueue
from ksp.core.state import ClusterState
from ksp.core.wake import (
    NODE_ADD,
    NODE_DELETE,
    POD_ADD,
    POD_DELETE,
    Wake,
    differs,
    node_events,
    object_event,
    pod_events,
)
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.policy.profile import Profile
from ksp.ports import Dice

FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt: the pod, what was decided, and what is to be done now."""

    pod: PodInfo
    attempt: int
    decision: Decision
    effects: tuple[Effect, ...]


class Scheduler:
    """Schedules the pods that name one of its profiles."""

    def __init__(
        self, profiles: Sequence[Profile], dice: Dice, *, queue: SchedulingQueue | None = None,
        assumed_ttl: float | None = None,
    ) -> None:  # fmt: skip
        self.state = ClusterState()
        self.cache = SchedulerCache(self.state, assumed_ttl)
        self.queue = SchedulingQueue() if queue is None else queue
        self.tables = Tables(self.state)
        self.wake = Wake(profiles)
        self.cycles = {
            profile.scheduler_name: Cycle(
                profile, self.state, Filter(profile, self.state, self.tables, self.queue.nominated_on), dice
            )
            for profile in profiles
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
        if not decision.node:
            return self._refused(queued, decision, now)
        self.cache.assume(pod, decision.node)
        self.queue.clear_nomination(pod.uid)
        self._release(pod.uid, claim, now)
        return Step(pod, queued.attempts, decision, (Bind(pod, decision.node),))

    def _expire(self, now: float) -> None:
        """Pods that were bound long ago, and that the watch never showed, give their place back and are tried again."""
        for pod in self.cache.expire(now):
            queued = self.queue.get(pod.uid)
            if queued is not None:
                self.queue.retry(queued, now)
            self._move(frozenset({POD_DELETE}), now)

    def _refused(self, queued: QueuedPod, decision: Decision, now: float) -> Step:
        if decision.failed:
            self.queue.retry(queued, now)
        else:
            self.queue.fail(queued, now, decision.denied_by)
        reason = SCHEDULER_ERROR if decision.failed else UNSCHEDULABLE
        report = Report(queued.info, reason, decision.message)
        return Step(queued.info, queued.attempts, decision, (report,))

    def bind_succeeded(self, uid: str, now: float) -> None:
        """The pod is bound; the watch will show it."""
        self.cache.finish_binding(uid, now)

    def bind_failed(self, uid: str, now: float) -> None:
        """The pod is not bound: it leaves the node, and is tried again after its backoff."""
        if self.cache.forget(uid) is not None:
            self._move(frozenset({POD_DELETE}), now)
        queued = self.queue.get(uid)
        if queued is not None:
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
                self.state.set_node(node)
                self._move(events, now)
            case DeleteNode(name=name):
                self._delete_node(name, now)
            case SetObject(kind=kind, namespace=namespace, name=name, value=value):
                verb = "Update" if self._has_object(kind, namespace, name) else "Add"
                self.state.set_object(kind, namespace, name, value)
                self._move(frozenset({object_event(kind, verb)}), now)
            case DeleteObject(kind=kind, namespace=namespace, name=name):
                if self._has_object(kind, namespace, name):
                    self.state.remove_object(kind, namespace, name)
                    self._move(frozenset({object_event(kind, "Delete")}), now)

    def _delete_node(self, name: str, now: float) -> None:
        """A node goes, and with it its pods are out of sight."""
        if name in self.state.nodes:
            events = {NODE_DELETE, POD_DELETE} if self.state.nodes[name].pods else {NODE_DELETE}
            self.state.remove_node(name)
            self._move(frozenset(events), now)

    def _has_object(self, kind: str, namespace: str, name: str) -> bool:
        objects = self.state.objects[kind]
        return name in (objects.get(namespace, {}) if namespace else objects)

    def _move(self, events: frozenset[str], now: float) -> None:
        if events:
            self.queue.move(lambda queued: self.wake.may_help(queued, events), now)

    def _set_pod(self, pod: Pod, now: float) -> None:
        info = PodInfo.of(pod)
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
        self.cache.confirm(info, node)
        self._move(events, now)

    def _assigned_events(self, info: PodInfo, node: str) -> frozenset[str]:
        """What it is to others that a pod is shown on a node: new there, changed, or gone from where it was."""
        known, before = self.cache.get(info.uid), self.cache.node_name_of(info.uid)
        if known is not None and before == node and not self.cache.is_assumed(info.uid):
            return pod_events(known, info)
        gone = before not in (None, node) or self.cache.namesake(info) is not None
        return frozenset({POD_ADD, POD_DELETE}) if gone else frozenset({POD_ADD})

    def _set_pending(self, info: PodInfo, now: float) -> None:
        """A pod without a node: it waits, if it is ours, ungated and not on its way out."""
        if info.uid in self.cache:
            self.cache.update(info)
        wanted = info.scheduler_name in self.cycles and not info.terminating and not info.spec.scheduling_gates
        if not wanted:
            self.queue.delete(info.uid)
            return
        queued = self.queue.get(info.uid)
        if queued is not None:
            self.queue.update(info, changed=differs(queued.info, info))
            if info.uid in self.cache:
                self.queue.clear_nomination(info.uid)  # it has its place; a status of before claims no other
        elif info.uid not in self.cache:
            self.queue.add(info, now)
        if info.status.nominated_node_name and info.uid not in self.cache:
            self.queue.nominate(info, info.status.nominated_node_name)

    def _delete_pod(self, uid: str, now: float) -> None:
        claim = self.queue.nominations.node_of(uid)
        self.queue.delete(uid)
        self.queue.clear_nomination(uid)
        if uid in self.cache:
            self.cache.remove(uid)
            self._move(frozenset({POD_DELETE}), now)
        self._release(uid, claim, now)

    def _release(self, uid: str, claim: str | None, now: float) -> None:
        """If the pod was nominated to a node, and is not any more nor has its place there, others may take it."""
        if claim is not None and claim not in (self.queue.nominations.node_of(uid), self.cache.node_name_of(uid)):
            self._move(frozenset({POD_DELETE}), now)
