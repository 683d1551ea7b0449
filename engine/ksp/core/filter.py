"""Which nodes can take a pod.

A node that other pods of the same or a higher priority are nominated to is judged twice, with those pods on it and
without; it must pass both times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import ActivePredicate, Profile

Check = tuple[ActivePredicate, Callable[[NodeInfo], Denial | Failure | None]]
Nominated = Callable[[], Mapping[str, Mapping[str, PodInfo]]]


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule's answer for a node, or for all nodes: a denial, or a failure of the attempt."""

    rule: str
    plugin: str
    answer: Denial | Failure


@dataclass(slots=True)
class Filtered:
    """What came of filtering: `before` if a `prefilter` decided for all nodes; else the feasible nodes, in the order in
    which they were looked at, and for the others the first rule that refused them."""

    before: Refused | None = None
    feasible: list[NodeInfo] = field(default_factory=list)
    refused: dict[str, Refused] = field(default_factory=dict)
    examined: int = 0

    def failure(self) -> Refused | None:
        """The first failure, which ends the attempt, if there is one."""
        if self.before is not None:
            return self.before if isinstance(self.before.answer, Failure) else None
        return next((r for r in self.refused.values() if isinstance(r.answer, Failure)), None)


class Filter:
    """Filters nodes for one profile. `nominated` gives the nodes with nominated pods, and those by uid."""

    def __init__(self, profile: Profile, state: ClusterState, tables: Tables, nominated: Nominated) -> None:
        self.profile = profile
        self.state = state
        self.tables = tables
        self.nominated = nominated

    def run(self, pod: PodInfo, nodes: Sequence[NodeInfo], enough: int | None = None) -> Filtered:
        """Judges nodes in order; stops once `enough` are feasible."""
        result = Filtered()
        checks: list[Check] = []
        for active in self.profile.predicates:
            bound = active.predicate.bind(pod, self.tables)
            if bound.outcome is not None:
                result.before = Refused(active.name, active.plugin, bound.outcome)
                return result
            if bound.check is not None:
                checks.append((active, bound.check))
        with_nominated = self._with_nominated(pod, nodes)
        if with_nominated:
            checks = self._bound(pod)  # to the state as it is again
        for node in nodes:
            refused = with_nominated.get(node.name) or judge(checks, node)
            result.examined += 1
            if refused is not None:
                result.refused[node.name] = refused
                continue
            result.feasible.append(node)
            if enough is not None and len(result.feasible) >= enough:
                break
        return result

    def _with_nominated(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, Refused | None]:
        """The verdict on the nodes with nominated pods that count against the pod, as if those were there."""
        verdicts: dict[str, Refused | None] = {}
        nominated = self.nominated()
        if nominated:
            for node in nodes:
                there = nominated.get(node.name, {}).values()
                counting = [p for p in there if p.priority >= pod.priority and p.uid != pod.uid]
                if counting:
                    verdicts[node.name] = self._with(pod, node, counting)
        return verdicts

    def _with(self, pod: PodInfo, node: NodeInfo, added: Sequence[PodInfo]) -> Refused | None:
        """The verdict with these pods on the node; the state is as before afterwards."""
        for other in added:
            self.state.add_pod(other, node.name)
        try:
            return judge(self._bound(pod), node)
        finally:
            for other in reversed(added):
                self.state.remove_pod(other.uid)

    def _bound(self, pod: PodInfo) -> list[Check]:
        """The rules bound anew, since the state has changed; what `prefilter` says stands already."""
        bound = ((active, active.predicate.bind(pod, self.tables)) for active in self.profile.predicates)
        return [(active, b.check) for active, b in bound if b.check is not None]


def judge(checks: Iterable[Check], node: NodeInfo) -> Refused | None:
    """The first rule that refuses the node."""
    for active, check in checks:
        answer = check(node)
        if answer is not None:
            return Refused(active.name, active.plugin, answer)
    return None
