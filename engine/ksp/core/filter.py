"""Which nodes can take a pod.

A node that other pods of the same or a higher priority are nominated to is judged twice, with those pods on it and
without; it must pass both times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

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


Judged = Sequence[tuple[NodeInfo, Refused | None]]


class Filtered:
    """What came of filtering: `before` if a `prefilter` decided for all nodes; else the feasible nodes, in the order in
    which they were looked at, and for the others the first rule that refused them. `examined` is how many nodes were
    looked at. `judged` gives them with what was said of them: it is called when somebody asks."""

    __slots__ = ("_feasible", "_judged", "_refused", "before", "examined")

    def __init__(
        self, before: Refused | None = None, examined: int = 0, judged: Callable[[], Judged] | None = None
    ) -> None:
        self.before = before
        self.examined = examined
        self._judged = judged
        self._feasible: list[NodeInfo] = []
        self._refused: dict[str, Refused] = {}

    @property
    def feasible(self) -> list[NodeInfo]:
        self._make()
        return self._feasible

    @property
    def refused(self) -> dict[str, Refused]:
        """By the names of the nodes."""
        self._make()
        return self._refused

    def failure(self) -> Refused | None:
        """The first failure, which ends the attempt, if there is one."""
        if self.before is not None:
            return self.before if isinstance(self.before.answer, Failure) else None
        return next((r for r in self.refused.values() if isinstance(r.answer, Failure)), None)

    def _make(self) -> None:
        if self._judged is not None:
            judged, self._judged = self._judged, None
            for node, refused in judged():
                if refused is None:
                    self._feasible.append(node)
                else:
                    self._refused[node.name] = refused


class Filter:
    """Filters nodes for one profile, one node after the other. `nominated` gives the nodes with nominated pods, and
    those by uid."""

    def __init__(self, profile: Profile, state: ClusterState, tables: Tables, nominated: Nominated) -> None:
        self.profile = profile
        self.state = state
        self.tables = tables
        self.nominated = nominated

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
            refused = with_nominated.get(node.name) or judge(checks, node)
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
            return judge(self._bound(pod), node)
        finally:
            for uid in reversed(there):
                self.state.remove_pod(uid)

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
