"""Which nodes can take a pod, as plainly as it can be said: rules are bound anew in each state, and asked by node.

A node that other pods of the same or a higher priority are nominated to is judged twice, with those pods on it and
without; it must pass both times. Nothing is remembered: what the core remembers is held against this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ksp.compile.tables import Tables
from ksp.core.filter import Check, Filtered, Nominated, Refused, judge, judge_by_all
from ksp.core.state import ClusterState
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import Profile


class PlainFilter:
    """Filters nodes for one profile, one node after the other. `nominated` gives the nodes with nominated pods, and
    those by uid."""

    def __init__(self, profile: Profile, state: ClusterState, tables: Tables, nominated: Nominated) -> None:
        self.profile = profile
        self.state = state
        self.tables = tables
        self.nominated = nominated
        self.judge = judge_by_all if profile.checks_all else judge

    def run(self, pod: PodInfo, nodes: Sequence[NodeInfo], enough: int | None = None) -> Filtered:
        """Judges nodes in order; stops once `enough` are feasible."""
        checks: list[Check] = []
        for active in self.profile.predicates:
            bound = active.predicate.bind(pod, self.tables)
            if bound.outcome is not None:
                return Filtered(before=Refused(active.name, active.plugin, bound.outcome))
            if bound.check is not None:
                checks.append((active, bound.check))
        with_nominated = self.with_nominated(pod, nodes)
        if with_nominated:
            checks = self._bound(pod)  # to the state as it is again
        judged: list[tuple[NodeInfo, Refused | None]] = []
        feasible = 0
        for node in nodes:
            refused = with_nominated.get(node.name) or self.judge(checks, node)
            judged.append((node, refused))
            feasible += refused is None
            if enough is not None and feasible >= enough:
                break
        return Filtered(examined=len(judged), judged=lambda: judged)

    def with_nominated(self, pod: PodInfo, nodes: Iterable[NodeInfo] | None = None) -> dict[str, Refused | None]:
        """The verdicts on those of the nodes, by default of all, to which pods are nominated that count against the
        pod: with these pods there. The state is as before afterwards."""
        nominated = self.nominated()
        if not nominated:
            return {}
        known = self.state.nodes
        asked = [known[name] for name in nominated if name in known] if nodes is None else nodes
        verdicts: dict[str, Refused | None] = {}
        for node in asked:
            there = nominated.get(node.name, {}).values()
            counting = [p for p in there if p.priority >= pod.priority and p.uid != pod.uid]
            if counting:
                verdicts[node.name] = self._with(pod, node, counting)
        return verdicts

    def _with(self, pod: PodInfo, node: NodeInfo, added: Sequence[PodInfo]) -> Refused | None:
        """The verdict with these pods on the node; the state is as before afterwards."""
        there: list[str] = []
        try:
            for other in added:
                self.state.add_pod(other, node.name)
                there.append(other.uid)
            return self.judge(self._bound(pod), node)
        finally:
            for uid in reversed(there):
                self.state.remove_pod(uid)

    def _bound(self, pod: PodInfo) -> list[Check]:
        """The rules bound anew, since the state has changed; what `prefilter` says stands already."""
        bound = ((active, active.predicate.bind(pod, self.tables)) for active in self.profile.predicates)
        return [(active, b.check) for active, b in bound if b.check is not None]
