"""May a pod have others evicted now, and on which nodes could that help?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ksp.core.filter import Filtered, Refused
from ksp.core.state import ClusterState
from ksp.model.info import NodeInfo, PodInfo

NEVER: Final = "Never"


def may_preempt(pod: PodInfo) -> bool:
    """Whether the pod's own policy lets it."""
    return pod.spec.preemption_policy != NEVER


def waits_on(node: NodeInfo | None, pod: PodInfo, evicting: Collection[str]) -> bool:
    """Whether pods of lower priority are on their way out of the node that the pod is nominated to. Those whose
    eviction was asked for, by uid, are, before the watch shows it."""
    if node is None:
        return False
    there = node.pods.items()
    return any(p.priority < pod.priority and (p.terminating or uid in evicting) for uid, p in there)


def final(refused: Refused | None) -> bool:
    """No pod that leaves can change this answer, says a rule that gave it."""
    return refused is not None and refused.is_final


def resolvable(filtered: Filtered, state: ClusterState) -> list[NodeInfo]:
    """The nodes on which the departure of pods may help, in order: all that were not refused for good. One of which
    nothing was said is among them, as in kube-scheduler."""
    if filtered.before is not None:
        return [] if final(filtered.before) else state.node_list()
    refused = filtered.refused
    lost = {name for name, each in refused.items() if each.is_final}
    nodes = state.node_list()
    return [node for node in nodes if node.name not in lost] if lost else nodes
