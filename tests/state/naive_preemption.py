"""Preemption as it is described, step by step, without a thought for speed: for every question a cluster is built from
nothing, and the filter asked about one node of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.state.plain_filter import PlainFilter

from ksp.compile.runtime import Denial
from ksp.compile.tables import Tables
from ksp.core.filter import Filtered
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.policy.profile import Profile

Found = tuple[list[str], int]  # the uids of the victims, in order, and how many of them violate budgets


def bare(pod: PodInfo) -> Pod:
    return Pod(metadata=pod.metadata, spec=pod.spec, status=pod.status)


@dataclass
class Naive:
    """A cluster, written down, and who decides. `nominated` are pods by the node that they are nominated to."""

    profile: Profile
    nodes: Sequence[Node]
    pods: Mapping[str, Sequence[Pod]]
    nominated: Mapping[str, Sequence[Pod]]
    budgets: Sequence[PodDisruptionBudget]

    @staticmethod
    def of(
        profile: Profile,
        state: ClusterState,
        nominated: Mapping[str, Mapping[str, PodInfo]],
        budgets: Sequence[PodDisruptionBudget],
    ) -> Naive:
        return Naive(
            profile,
            [Node(metadata=node.metadata, spec=node.spec, status=node.status) for node in state.node_list()],
            {node.name: list(map(bare, node.pods.values())) for node in state.nodes.values()},
            {name: list(map(bare, there.values())) for name, there in nominated.items()},
            budgets,
        )

    # ---- the filter

    def filtered(self, pod: Pod, only: str = "", without: frozenset[str] = frozenset()) -> Filtered:
        """What is said of all nodes, or of one, if these pods were not there."""
        state = ClusterState()
        for node in self.nodes:
            state.set_node(node)
        for name, pods in self.pods.items():
            for other in pods:
                if other.metadata.uid not in without:
                    state.add_pod(PodInfo.of(other), name)
        nominated = {
            name: {other.metadata.uid: PodInfo.of(other) for other in there} for name, there in self.nominated.items()
        }
        nodes = [state.nodes[only]] if only else state.node_list()
        return PlainFilter(self.profile, state, Tables(state), lambda: nominated).run(PodInfo.of(pod), nodes)

    def fits(self, pod: Pod, name: str, without: frozenset[str]) -> bool:
        return bool(self.filtered(pod, name, without).feasible)

    # ---- preemption

    def eligible(self, pod: Pod, claim: str, evicting: frozenset[str]) -> bool:
        if pod.spec.preemption_policy == "Never":
            return False
        if claim not in self.pods or self.final(pod, claim):
            return True
        leaving = [p for p in self.pods[claim] if p.metadata.deletion_timestamp or p.metadata.uid in evicting]
        return not any(priority(other) < priority(pod) for other in leaving)

    def final(self, pod: Pod, name: str) -> bool:
        filtered = self.filtered(pod)
        refused = filtered.before or filtered.refused[name]
        return isinstance(refused.answer, Denial) and refused.answer.unresolvable

    def candidates(self, pod: Pod, *, final: bool = False) -> dict[str, Found]:
        """The victims on each node where there are some; with `final` on those, too, that are refused for good."""
        found = {node.metadata.name: self.victims(pod, node.metadata.name) for node in self.nodes}
        return {
            name: victims
            for name, victims in found.items()
            if victims is not None and (final or not self.final(pod, name))
        }

    def victims(self, pod: Pod, name: str) -> Found | None:
        lower = [other for other in self.pods[name] if priority(other) < priority(pod)]
        gone = frozenset(other.metadata.uid for other in lower)
        if not lower or not self.fits(pod, name, gone):
            return None
        lower.sort(key=lambda other: other.status.start_time or "now")  # "n" comes after all digits
        lower.sort(key=priority, reverse=True)
        allowed = [budget.status.disruptions_allowed for budget in self.budgets]
        violating: list[str] = []
        others: list[str] = []
        for other in lower:
            violates = False
            for i, budget in enumerate(self.budgets):
                if protects(budget, other):
                    allowed[i] -= 1
                    violates = violates or allowed[i] < 0
            (violating if violates else others).append(other.metadata.uid)
        victims = []
        for uid in violating + others:
            if self.fits(pod, name, gone - {uid}):
                gone -= {uid}
            else:
                victims.append(uid)
        return victims, len(set(victims) & set(violating))

    def possible(self, candidates: Mapping[str, Found]) -> set[str]:
        """The nodes that may be chosen."""
        left = list(candidates)
        if any(not candidates[name][0] for name in left):
            return {name for name in left if not candidates[name][0]}
        by_uid = {pod.metadata.uid: pod for pods in self.pods.values() for pod in pods}

        def victims(name: str) -> list[Pod]:
            return [by_uid[uid] for uid in candidates[name][0]]

        def earliest(name: str) -> str:
            top = max(map(priority, victims(name)))
            return min(pod.status.start_time or "now" for pod in victims(name) if priority(pod) == top)

        keys: list[Callable[[str], int]] = [
            lambda name: candidates[name][1],
            lambda name: priority(victims(name)[0]),
            lambda name: sum(priority(pod) + 2**31 for pod in victims(name)),
            lambda name: len(victims(name)),
        ]
        for key in keys:
            least = min(map(key, left), default=0)
            left = [name for name in left if key(name) == least]
        latest = max(map(earliest, left), default="")
        return {name for name in left if earliest(name) == latest}


def priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    if selector is None or selector.error or budget.metadata.namespace != pod.metadata.namespace:
        return False
    if not pod.metadata.labels or pod.metadata.name in budget.status.disrupted_pods:
        return False
    return selector.matcher(pod.metadata.labels)
