"""Which pods hold a claim on a node: those for whose sake other pods were evicted there.

A claim is made and withdrawn here, by preemption, and ended here, when the pod is assumed. The pod's
`status.nominatedNodeName` is *asked* to say so, and says it later: what was asked before may be shown after the claim
has moved on. So of a new status there are three kinds:

- it names the same node as before, or none as before: it says nothing;
- it says what was asked, perhaps a while ago: an echo, and the claim stays what it is here;
- else somebody else has written it: the claim follows.

(kube-scheduler follows each new status, and so goes back to an older claim until the next one is shown.)

Not all that was asked is shown: some writes fail, some are overtaken by the next. What is shown comes in order, so an
echo ends the waiting for all that was asked before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Final

from ksp.model.info import PodInfo

MOST_ASKED: Final = 8
"""So many echoes of a pod are waited for at most; of those that never come the oldest give way."""


class Nominations:
    """Pods by the node that they are nominated to. Operations cost what one node has of them. `changes`
    counts those that made a difference."""

    def __init__(self) -> None:
        self.changes = 0
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, PodInfo]] = {}
        self._asked: dict[str, deque[str]] = {}

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Nominate the pod to that node; its status is asked to say so."""
        self._ask(pod, node_name)
        self.put(pod, node_name)

    def withdraw(self, pod: PodInfo) -> None:
        """The pod has no claim any more, and its status is asked to name none."""
        self._ask(pod, "")
        self.remove(pod.uid)

    def put(self, pod: PodInfo, node_name: str) -> None:
        """Nominate the pod to that node, and to no other. On the same node it keeps its place."""
        if self._node_of.get(pod.uid, node_name) != node_name:
            self.remove(pod.uid)
        self.changes += 1
        self._node_of[pod.uid] = node_name
        self._pods_on[node_name] = {**self._pods_on.get(node_name, {}), pod.uid: pod}

    def put_if_claimed(self, pod: PodInfo) -> None:
        """Nominate the pod to the node that its status names, or was asked to name, unless it has a nomination."""
        if pod.uid not in self._node_of and (claim := self.said(pod)):
            self.put(pod, claim)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """The pod changed: follow its status if somebody else made it say something new, else keep what is known."""
        node_name: str | None = new.status.nominated_node_name
        if node_name == old.status.nominated_node_name or self._is_echo(new):
            node_name = self._node_of.get(new.uid)
        else:
            self._asked.pop(new.uid, None)
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

    def forget(self, uid: str) -> None:
        """The pod is gone, or waits no more."""
        self.remove(uid)
        self._asked.pop(uid, None)

    def _ask(self, pod: PodInfo, node_name: str) -> None:
        if node_name != self.said(pod):
            self._asked.setdefault(pod.uid, deque(maxlen=MOST_ASKED)).append(node_name)

    def _is_echo(self, pod: PodInfo) -> bool:
        """Whether the pod's status, which is new, says what it was asked to; if so, that is waited for no longer."""
        asked, shown = self._asked.get(pod.uid), pod.status.nominated_node_name
        if asked is None or shown not in asked:
            return False
        while asked.popleft() != shown:
            pass
        if not asked:
            del self._asked[pod.uid]
        return True

    def on(self, node_name: str) -> list[PodInfo]:
        """The pods nominated to a node, in the order in which they were."""
        return list(self._pods_on.get(node_name, {}).values())

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def said(self, pod: PodInfo) -> str:
        """What the pod's status says, once all that it was asked to say is shown; "" for no node."""
        asked = self._asked.get(pod.uid)
        return asked[-1] if asked else pod.status.nominated_node_name

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
