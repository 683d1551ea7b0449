"""Which pods hold a claim on a node: those for whose sake other pods were evicted there.

A claim is made here, by preemption, and ended here, when the pod is assumed; the API shows it in the pod's
`status.nominatedNodeName` later. So an update whose status names the same node as before, or none as before, says
nothing of the claim; one that names another node moves it, and one that names none any more ends it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ksp.model.info import PodInfo


class Nominations:
    """Pods by the node that they are nominated to. Operations cost what one node has of them. `changes`
    counts those that made a difference."""

    def __init__(self) -> None:
        self.changes = 0
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, PodInfo]] = {}

    def put(self, pod: PodInfo, node_name: str) -> None:
        """Nominate the pod to that node, and to no other. On the same node it keeps its place."""
        if self._node_of.get(pod.uid, node_name) != node_name:
            self.remove(pod.uid)
        self.changes += 1
        self._node_of[pod.uid] = node_name
        self._pods_on[node_name] = {**self._pods_on.get(node_name, {}), pod.uid: pod}

    def put_if_claimed(self, pod: PodInfo) -> None:
        """Nominate the pod to the node that its status names, unless it has a nomination."""
        if pod.uid not in self._node_of and (claim := _claim(pod)):
            self.put(pod, claim)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """The pod changed: follow its status if that says something new, else keep what is known here."""
        claim = _claim(new)
        node_name = claim if claim != _claim(old) else self._node_of.get(new.uid)
        if node_name:
            self.put(new, node_name)
        else:
            self.remove(new.uid)

    def remove(self, uid: str) -> None:
        """The pod has no claim any more, if it had one."""
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        self.changes += 1
        pods = {other: pod for other, pod in self._pods_on[node_name].items() if other != uid}
        if pods:
            self._pods_on[node_name] = pods
        else:
            del self._pods_on[node_name]

    def on(self, node_name: str) -> list[PodInfo]:
        """The pods nominated to a node, in the order in which they were."""
        return list(self._pods_on.get(node_name, {}).values())

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def uids(self) -> Collection[str]:
        """The nominated pods."""
        return self._node_of.keys()

    def nodes(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """The nodes with nominated pods; nothing else has an entry. Where other pods come to be nominated to a node, or
        a pod is another, it has another map: by that it can be told that nothing changed."""
        return self._pods_on


def counting(there: Mapping[str, PodInfo], pod: PodInfo) -> tuple[PodInfo, ...]:
    """Those of the pods nominated to a node that a pod has to leave room for."""
    return tuple([other for other in there.values() if other.priority >= pod.priority and other.uid != pod.uid])


def _claim(pod: PodInfo) -> str:
    """The node that the pod's status names; "" for none."""
    return pod.status.nominated_node_name
