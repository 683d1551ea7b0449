"""A node as it would be without some of its pods, or with others: a copy that nobody else sees.

It stands for the node before rules that read nothing but the node itself, and views in which none of these pods counts.
Where that is so it costs a tenth of a what-if (`ksp.core.what_if`), which changes the state.
"""

from __future__ import annotations

from copy import copy

from ksp.model.info import NodeInfo, PodInfo, accumulate


class BareNode:
    """`node` has all that the node has, and its sums over those pods that are here."""

    def __init__(self, node: NodeInfo) -> None:
        self.node = copy(node)
        self.node.requested = dict(node.requested)
        self.node.nonzero_requested = dict(node.nonzero_requested)
        self.node.pods = dict(node.pods)
        self._order = tuple(node.pods)

    def remove(self, pod: PodInfo) -> None:
        """Without a pod that is here."""
        del self.node.pods[pod.uid]
        self._count(pod, -1)

    def restore(self, pod: PodInfo) -> None:
        """With a pod again that was removed, in its place among the others."""
        there = self.node.pods
        there[pod.uid] = pod
        if pod.host_ports:
            here = [uid for uid in self._order if uid in there]
            added = [uid for uid in there if uid not in self._order]
            self.node.pods = {uid: there[uid] for uid in (*here, *added)}
        self._count(pod, 1)

    def add(self, pod: PodInfo) -> None:
        """With a pod of another place, as the last one."""
        self.node.pods[pod.uid] = pod
        self._count(pod, 1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        node = self.node
        node.pod_count += sign
        accumulate(node.requested, pod.requests, sign)
        accumulate(node.nonzero_requested, pod.nonzero_requests, sign)
        if pod.host_ports:
            node.host_ports = tuple(port for other in node.pods.values() for port in other.host_ports)
