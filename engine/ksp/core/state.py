"""The cluster as rules see it: nodes with their pods, and objects of other kinds. State lives here, once.

A pod that is placed on a node which exists is *visible*: it counts in the node's sums, stands in the indexes and
in `pods`. A pod placed on a node which does not exist is kept aside until the node appears; when a node is removed
its pods go aside.

Orders are kept where rules can see them: nodes as kube-scheduler lists them (`ksp.core.node_order`), a node's pods in
the order in which they arrived. An update keeps a pod's place. Adding a pod and then removing it leaves everything as
it was, save the numbers of changes: that is what assuming and forgetting rest on. Indexes over the whole cluster are
sets: no rule sees their order, and a pod that is put back to its place on a node is the last in them.

Views (in `ksp.compile.tables`) follow the journal. They remember what each row contributed, and for each change take
exactly that out and put in what the row contributes now:

- ("pod", uid): the pod came, left or changed; if it is in `pods`, its row is what stands there. The change names the
  node, and which of its sums differ: none if the pod asks for what it asked for, as when a binding is confirmed.
- ("node", name): the node came, left or changed, in the parts that the change names. If it exists, so have the rows of
  its pods, since they can name the node's labels: the follower asks `nodes[name].pods`, as they are not journalled.
  If a node is removed, or appears before pods that waited for it, those pods are journalled one by one.
- (kind, (namespace, name)): an object of another kind came, left or changed.

`generation` counts the changes, `generation_of` a kind is the number of its last, and each node bears the number of the
last that touched it or one of its pods.
Numbers are never used twice, so a node that goes and comes back is not taken for what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ksp.compile.node_parts import (
    EVERYTHING,
    HOST_PORTS,
    NONZERO_REQUESTED,
    REQUESTED,
    SUMS,
    SUMS_WITHOUT_PORTS,
    changed_parts,
    snapshot,
)
from ksp.core.errors import StateError
from ksp.core.journal import DEFAULT_CAPACITY, NO_PARTS, Change, Journal
from ksp.core.label_index import LabelIndex
from ksp.core.node_order import NodeOrder, zone_key
from ksp.model.info import EMPTY_NODE, NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.volumes import VolumeMap

# Other kinds of objects, by the names that policies use. Maps of the first are {namespace: {name: object}}, of the
# second {name: object}.
NAMESPACED_KINDS: Final = frozenset(
    {
        "services", "replicationControllers", "replicaSets", "statefulSets", "persistentVolumeClaims",
        "podDisruptionBudgets",
    }
)  # fmt: skip
CLUSTER_KINDS: Final = frozenset({"persistentVolumes", "storageClasses", "csiNodes", "priorityClasses", "namespaces"})

# The lists of a pod by which visible pods are indexed.
INDEXED_FIELDS: Final = (
    "required_affinity",
    "required_anti_affinity",
    "preferred_affinity",
    "preferred_anti_affinity",
)

_NO_PODS: Final[Mapping[str, PodInfo]] = {}


class ClusterState:
    """What is in the cluster now. Maps that it gives out are its own: to be read, and not kept across changes."""

    def __init__(self, journal_capacity: int = DEFAULT_CAPACITY) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.pods: dict[str, PodInfo] = {}
        self.objects: dict[str, dict[str, Any]] = {kind: {} for kind in sorted(NAMESPACED_KINDS | CLUSTER_KINDS)}
        self.objects["persistentVolumes"] = VolumeMap()
        self._journal = Journal(journal_capacity)
        self._order = NodeOrder()
        self._node_list: list[NodeInfo] | None = None
        self._node_name_of: dict[str, str] = {}
        self._aside: dict[str, dict[str, PodInfo]] = {}
        self._by_namespace: dict[str, dict[str, PodInfo]] = {}
        self._by_label = LabelIndex()
        self._by_field: dict[str, dict[str, PodInfo]] = {field: {} for field in INDEXED_FIELDS}
        self._priorities: dict[int, int] = {}  # of visible pods: how many have each

    # ---- changes

    @property
    def generation(self) -> int:
        """The number of the last change."""
        return self._journal.generation

    def changes_since(self, generation: int) -> list[Change] | None:
        """The changes after that number, oldest first; None if they are no longer kept: start from the whole again."""
        return self._journal.since(generation)

    def generation_of(self, kind: str) -> int:
        """The number of the last change of "pod", "node" or a kind of other objects; 0 if there was none."""
        return self._journal.generation_of(kind)

    def begin_trial(self) -> None:
        """What changes from now on will be taken back: `ksp.core.what_if`, which alone makes changes until the end."""
        self._journal.begin_trial()

    def end_trial(self, *, undone: bool) -> None:
        """If all is as it was, what changed meanwhile is told to nobody; else it is kept like other changes."""
        self._journal.end_trial(undone=undone)

    # ---- nodes

    def node_list(self) -> list[NodeInfo]:
        """The nodes in kube-scheduler's order: the same list until it has other nodes, or another order."""
        if self._node_list is None:
            self._node_list = [self.nodes[name] for name in self._order]
        return self._node_list

    def set_node(self, node: Node | NodeInfo) -> None:
        """Add a node, or change the one of that name, whose pods stay on it.

        A Node changes the NodeInfo that is there; a NodeInfo, which must have no pods, takes its place.
        """
        known = self.nodes.get(node.name if isinstance(node, NodeInfo) else node.metadata.name)
        before = None if known is None else snapshot(known)
        if isinstance(node, NodeInfo):
            info = self._successor(node)
        else:
            info = known or NodeInfo()
            info.set_node(node)
        self.nodes[info.name] = info
        if self._order.put(info.name, zone_key(info.labels)) or info is not known:
            self._node_list = None
        parts = EVERYTHING if before is None else changed_parts(before, snapshot(info))
        info.generation = self._journal.append("node", info.name, info.name, parts)
        if known is None:
            for pod in self._aside.pop(info.name, {}).values():
                self._show(pod, info)

    def remove_node(self, name: str) -> None:
        """Take a node away; its pods go aside."""
        node = self.nodes.pop(name, None)
        if node is None:
            raise StateError(f"there is no node {name}")
        self._order.remove(name)
        self._node_list = None
        if node.pods:
            self._aside[name] = dict(node.pods)
        for pod in node.pods.values():
            self._unindex(pod)
            pod.node = EMPTY_NODE
            self._journal.append("pod", pod.uid, name, _sums_of(pod))
        self._journal.append("node", name, name, EVERYTHING)

    def _successor(self, node: NodeInfo) -> NodeInfo:
        """The node with the pods of the one that it replaces."""
        if node.pods:
            raise StateError(f"node {node.name} comes with pods of its own")
        old = self.nodes.get(node.name)
        for pod in old.pods.values() if old is not None else ():
            node.add_pod(pod)
        return node

    # ---- pods

    def node_name_of(self, uid: str) -> str | None:
        """Where a pod is placed, be it visible or not; None if it is not placed."""
        return self._node_name_of.get(uid)

    def invisible_pods(self) -> list[PodInfo]:
        """The pods placed on nodes that do not exist."""
        return [pod for pods in self._aside.values() for pod in pods.values()]

    def pods_in_namespace(self, namespace: str) -> Mapping[str, PodInfo]:
        """The visible pods of a namespace by uid."""
        return self._by_namespace.get(namespace, _NO_PODS)

    def pods_labelled(self, namespace: str, key: str, value: str) -> Mapping[str, PodInfo]:
        """The visible pods of a namespace by uid that have the label with this value."""
        return self._by_label.pods(namespace, key, value)

    def pods_with(self, field: str) -> Mapping[str, PodInfo]:
        """The visible pods by uid whose list of that name, one of INDEXED_FIELDS, is not empty."""
        return self._by_field[field]

    def lowest_priority(self) -> int | None:
        """Of the visible pods; None if there are none."""
        return min(self._priorities, default=None)

    def add_pod(self, pod: PodInfo, node_name: str) -> None:
        """Place a pod that is not placed yet."""
        if pod.uid in self._node_name_of:
            raise StateError(f"pod {pod.uid} is placed already, on node {self._node_name_of[pod.uid]}")
        self._node_name_of[pod.uid] = node_name
        node = self.nodes.get(node_name)
        if node is None:
            self._aside.setdefault(node_name, {})[pod.uid] = pod
        else:
            self._show(pod, node)

    def put_back(self, pod: PodInfo, node_name: str, order: Mapping[str, int]) -> None:
        """Place a pod on a node that exists, not as the last one there but by its rank: `order` has that of all pods on
        the node, and is sorted."""
        self.add_pod(pod, node_name)
        self.nodes[node_name].arrange(order)

    def remove_pod(self, uid: str) -> PodInfo:
        """Take a pod away; the pod as it was."""
        node_name = self._node_name_of.pop(uid, None)
        if node_name is None:
            raise StateError(f"pod {uid} is not placed")
        node = self.nodes.get(node_name)
        return self._remove_aside(uid, node_name) if node is None else self._hide(uid, node)

    def update_pod(self, pod: PodInfo) -> None:
        """Put the pod in place of the one with the same uid, on the same node and in the same places."""
        node_name = self._node_name_of.get(pod.uid)
        if node_name is None:
            raise StateError(f"pod {pod.uid} is not placed")
        node = self.nodes.get(node_name)
        if node is None:
            self._aside[node_name][pod.uid] = pod
        else:
            self._replace(pod, node)

    def _show(self, pod: PodInfo, node: NodeInfo) -> None:
        node.add_pod(pod)
        self._index(pod)
        node.generation = self._journal.append("pod", pod.uid, node.name, _sums_of(pod))

    def _hide(self, uid: str, node: NodeInfo) -> PodInfo:
        pod = node.pods[uid]
        node.remove_pod(pod)
        self._unindex(pod)
        node.generation = self._journal.append("pod", uid, node.name, _sums_of(pod))
        return pod

    def _remove_aside(self, uid: str, node_name: str) -> PodInfo:
        pods = self._aside[node_name]
        pod = pods.pop(uid)
        if not pods:
            del self._aside[node_name]
        return pod

    def _replace(self, pod: PodInfo, node: NodeInfo) -> None:
        old = node.pods[pod.uid]
        parts = _sums_between(old, pod)
        node.replace_pod(old, pod)
        self._index(pod)
        node.generation = self._journal.append("pod", pod.uid, node.name, parts)

    def _index(self, pod: PodInfo) -> None:
        """Enter a visible pod in the indexes, or its successor: whoever is there already keeps the place."""
        old = self.pods.get(pod.uid)
        if old is not None and old.namespace != pod.namespace:  # no API server does that
            self._unindex(old)
            old = None
        self._by_label.put(pod, old)
        if old is not None:
            self._count_priority(old, -1)
        self._count_priority(pod, 1)
        self.pods[pod.uid] = pod
        self._by_namespace.setdefault(pod.namespace, {})[pod.uid] = pod
        for field, pods in self._by_field.items():
            if getattr(pod, field):
                pods[pod.uid] = pod
            else:
                pods.pop(pod.uid, None)

    def _unindex(self, pod: PodInfo) -> None:
        del self.pods[pod.uid]
        self._count_priority(pod, -1)
        self._by_label.remove(pod)
        same_namespace = self._by_namespace[pod.namespace]
        del same_namespace[pod.uid]
        if not same_namespace:
            del self._by_namespace[pod.namespace]
        for pods in self._by_field.values():
            pods.pop(pod.uid, None)

    def _count_priority(self, pod: PodInfo, sign: int) -> None:
        count = self._priorities.get(pod.priority, 0) + sign
        if count:
            self._priorities[pod.priority] = count
        else:
            del self._priorities[pod.priority]

    # ---- objects of other kinds

    def set_object(self, kind: str, namespace: str, name: str, obj: object) -> None:
        """Add or replace an object. The namespace of a kind that has none is not looked at."""
        if kind in NAMESPACED_KINDS:
            self.objects[kind].setdefault(namespace, {})[name] = obj
        else:
            self._objects(kind)[name] = obj
        self._journal.append(kind, _object_key(kind, namespace, name))

    def remove_object(self, kind: str, namespace: str, name: str) -> None:
        """Take an object away. A namespace without objects of the kind has no map."""
        objects = self._objects(kind)
        found = objects.get(namespace, {}) if kind in NAMESPACED_KINDS else objects
        if name not in found:
            raise StateError(f"there is no {name} among {kind} in namespace {namespace!r}")
        del found[name]
        if kind in NAMESPACED_KINDS and not found:
            del objects[namespace]
        self._journal.append(kind, _object_key(kind, namespace, name))

    def _objects(self, kind: str) -> dict[str, Any]:
        if kind not in self.objects:
            raise StateError(f"no objects of kind {kind} are kept")
        return self.objects[kind]


def _object_key(kind: str, namespace: str, name: str) -> tuple[str, str]:
    return (namespace if kind in NAMESPACED_KINDS else "", name)


def _sums_of(pod: PodInfo) -> frozenset[str]:
    """Which sums of its node the pod counts in."""
    return SUMS if pod.host_ports else SUMS_WITHOUT_PORTS


def _sums_between(old: PodInfo, new: PodInfo) -> frozenset[str]:
    """Which sums of its node differ if the one takes the other's place."""
    parts = NO_PARTS
    if old.requests != new.requests:
        parts |= {REQUESTED}
    if old.nonzero_requests != new.nonzero_requests:
        parts |= {NONZERO_REQUESTED}
    if old.host_ports != new.host_ports:
        parts |= {HOST_PORTS}
    return parts
