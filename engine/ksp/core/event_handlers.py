"""What a change of the cluster is to the scheduler: who counts where from now on, and whom it may help.

Names are unique at any time: a pod that comes under the name of another proves that the other is gone. To be told the
same again, be it under another version, changes nothing. `docs/events.md` has the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ksp.core.cache import CachePhase
from ksp.core.changes import Change, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.core.outcomes import Outcomes
from ksp.core.queue import Place
from ksp.core.state import ClusterState
from ksp.core.unread_pods import UnreadPods
from ksp.core.volume_binder import CLAIMS, VOLUMES
from ksp.core.wake import (
    NODE_ADD,
    NODE_GONE,
    NODE_GONE_WITH_PODS,
    differs,
    node_events,
    object_differs,
    object_event,
    pod_came,
    pod_events,
    pod_gone,
)
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

VolumeOrClaim = PersistentVolume | PersistentVolumeClaim
FINISHED: Final = frozenset({"Succeeded", "Failed"})
ASSUMED_KINDS: Final = frozenset({VOLUMES, CLAIMS})
"""Kinds whose objects can be assumed to be bound before the API shows it."""


class EventHandlers:
    """Takes changes in."""

    def __init__(self, state: ClusterState, outcomes: Outcomes, unread: UnreadPods) -> None:
        self.state = state
        self.outcomes = outcomes
        self.cache = outcomes.cache
        self.queue = outcomes.queue
        self.bindings = outcomes.bindings
        self.volumes = outcomes.bindings.volumes
        self.evictions = outcomes.evictions
        self.unread = unread

    def on(self, change: Change, now: float) -> None:
        """Take a change in."""
        match change:
            case SetPod(pod=pod):
                self._set_pod(pod, now)
            case DeletePod(uid=uid):
                self._delete_pod(uid, now)
            case SetNode(node=node):
                self._set_node(node, now)
            case DeleteNode(name=name):
                self._delete_node(name, now)
            case SetObject(kind=kind, namespace=namespace, name=name, value=value):
                self._set_object(kind, namespace, name, value, now)
            case DeleteObject(kind=kind, namespace=namespace, name=name):
                self._delete_object(kind, namespace, name, now)

    def wrote(self, chosen: VolumeOrClaim, stored: VolumeOrClaim, now: float) -> None:
        """We have written a volume or a claim. That is a change like those that watches show, if none has shown a later
        version yet than that which was chosen: as the write took effect on that one, whatever a watch still shows of
        the time between has what was written. So an attempt that fails half-way is known to the next one."""
        kind = VOLUMES if isinstance(stored, PersistentVolume) else CLAIMS
        namespace, name = stored.metadata.namespace, stored.metadata.name
        if self.volumes.version_of(kind, namespace, name) == chosen.metadata.resource_version:
            self._set_object(kind, namespace, name, stored, now)

    # ---- nodes and other objects

    def _set_node(self, node: Node, now: float) -> None:
        known = self.state.nodes.get(node.metadata.name)
        events = frozenset({NODE_ADD}) if known is None else node_events(known, node)
        if events:
            self.state.set_node(node)
            self.outcomes.waited(self.bindings.node_changed(node.metadata.name), now)
            self.outcomes.move(events, now)

    def _delete_node(self, name: str, now: float) -> None:
        """A node goes, and with it its pods are out of sight."""
        if name in self.state.nodes:
            events = NODE_GONE_WITH_PODS if self.state.nodes[name].pods else NODE_GONE
            self.state.remove_node(name)
            self.outcomes.waited(self.bindings.node_changed(name), now)
            self.outcomes.move(events, now)
            for pod in self.queue.nominated_on(name):
                self.outcomes.lose_node(pod.uid, now)

    def _set_object(self, kind: str, namespace: str, name: str, value: Any, now: float) -> None:
        was = self._object(kind, namespace, name)
        if kind in ASSUMED_KINDS:
            events = self.volumes.set(kind, namespace, name, value)
        elif was is None or object_differs(was, value):
            self.state.set_object(kind, namespace, name, value)
            events = frozenset({object_event(kind, "Add" if was is None else "Update")})
        else:
            return
        self._volumes_changed(kind, namespace, name, (was, value), now)
        self.outcomes.move(events, now)

    def _delete_object(self, kind: str, namespace: str, name: str, now: float) -> None:
        was = self._object(kind, namespace, name)
        if was is None:
            return
        if kind in ASSUMED_KINDS:
            events = self.volumes.remove(kind, namespace, name)
        else:
            self.state.remove_object(kind, namespace, name)
            events = frozenset({object_event(kind, "Delete")})
        self._volumes_changed(kind, namespace, name, (was,), now)
        self.outcomes.move(events, now)

    def _volumes_changed(self, kind: str, namespace: str, name: str, versions: Sequence[Any], now: float) -> None:
        """Pods may wait for the claim, or for the volume's claim."""
        if kind == CLAIMS:
            self.outcomes.waited(self.bindings.claim_changed(namespace, name), now)
        elif kind == VOLUMES:
            self.outcomes.waited(self.bindings.volume_changed(*versions), now)

    def _object(self, kind: str, namespace: str, name: str) -> Any:
        objects = self.state.objects[kind]
        return (objects.get(namespace, {}) if namespace else objects).get(name)

    # ---- pods

    def _set_pod(self, pod: Pod, now: float) -> None:
        info = PodInfo.of(pod, self.cache.get(pod.metadata.uid))
        for gone in (self.cache.namesake(info), self.queue.namesake(info)):
            if gone is not None:
                self._delete_pod(gone, now)
        claim = self.queue.nominations.node_of(info.uid)
        if info.terminating:
            self.evictions.shown(info.uid)
        if pod.status.phase in FINISHED:
            self._delete_pod(info.uid, now)
        elif pod.spec.node_name:
            self._set_assigned(info, pod.spec.node_name, now)
        else:
            self._set_pending(info, now)
        self.outcomes.release(info.uid, claim, now)

    def _set_assigned(self, info: PodInfo, node: str, now: float) -> None:
        self.queue.delete(info.uid)
        self.queue.clear_nomination(info.uid)
        self.evictions.give_up(info.uid)
        events = self._assigned_events(info, node)
        if events:
            events |= self.bindings.end(info.uid)
            self.cache.confirm(info, node)
            self.unread.runs(info)
            self.outcomes.move(events, now)

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
        if self.cache.phase(info.uid) is CachePhase.ADDED:
            self._has_lost_its_node(info.uid, now)
        placed = self.cache.get(info.uid)
        events = pod_events(placed, info) if placed is not None else frozenset()
        if events:
            self.cache.update(info)
            self.outcomes.move(events, now)
        ours = info.scheduler_name in self.outcomes.ours or self._is_being_bound(info.uid)
        if not ours or info.terminating:
            self.queue.delete(info.uid)
            return
        if info.spec.scheduling_gates:
            self.queue.gate(info)
            return
        queued = self.queue.get(info.uid)
        if queued is not None:
            self._update_queued(queued.info, info, now)
        elif info.uid not in self.cache:
            self.queue.add(info, now)

    def _is_being_bound(self, uid: str) -> bool:
        """The pod is in flight, though its profile may be gone: should it come back, that will be seen then."""
        queued = self.queue.get(uid)
        return queued is not None and queued.place is Place.IN_FLIGHT

    def _update_queued(self, old: PodInfo, new: PodInfo, now: float) -> None:
        self.queue.update(new, changed=differs(old, new))
        if new.uid in self.cache:
            self.queue.clear_nomination(new.uid)  # it has its place; a status of before claims no other
        elif self.queue.nominations.node_of(new.uid) is not None:
            self.outcomes.move(pod_events(old, new), now)  # others leave room for it as for one that is there

    def _has_lost_its_node(self, uid: str, now: float) -> None:
        """The pod was shown on a node, and is not now: the server was restored from a backup."""
        gone = self.cache.remove(uid)
        if gone is not None:
            self.outcomes.move(pod_gone(gone), now)

    def _delete_pod(self, uid: str, now: float) -> None:
        claim = self.queue.nominations.node_of(uid)
        self.queue.delete(uid)
        self.unread.forget(uid)
        self.evictions.shown(uid)
        self.evictions.give_up(uid)
        gone = self.cache.remove(uid)
        if gone is not None:
            self.outcomes.move(pod_gone(gone) | self.bindings.end(uid), now)
        self.outcomes.release(uid, claim, now)
