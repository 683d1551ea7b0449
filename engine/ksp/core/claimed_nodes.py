"""Do nodes that would take a pod as they are take it with the pods that are nominated to them, too?

The answer is asked for again and again while many pods wait for their victims to go: each pod that leaves a node makes
the node feasible for all of them, but for the claim of the one. For pods that rules cannot tell apart
(`ksp.core.pod_kinds`) the answer is the same on every node but the one that a pod claims itself, so it is remembered
for them while nothing changes. Their class is not enough: it has of a pod's labels what placed pods look at, and
nominated ones may look at others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ksp.compile.runtime import Denial
from ksp.core.equivalence.classes import PodClass
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.verdicts import reasons_in
from ksp.core.filter import Nominated, Refused
from ksp.core.nominations import Nominations
from ksp.core.pod_kinds import PodKinds
from ksp.core.with_nominated import WithNominated
from ksp.model.info import NodeInfo, PodInfo

Rules = frozenset[str]


@dataclass(slots=True)
class _About:
    """What is known of the nodes that are feasible for a kind of pods, nominated pods aside. `unasked` are those of
    which nothing is known with these, `open` those that are feasible with them, too. `rules` are those that deny the
    other nodes, with or without them; `fails` if one of them fails."""

    nodes: dict[str, NodeInfo]
    unasked: set[str]
    rules: set[str]
    open: set[str] = field(default_factory=set)
    fails: bool = False

    def learn(self, said: Iterable[tuple[str, Refused | None]]) -> None:
        for name, refused in said:
            self.unasked.discard(name)
            if refused is None:
                self.open.add(name)
            elif isinstance(refused.answer, Denial):
                self.rules.add(refused.rule)
                if refused.others:
                    self.rules.update(each.rule for each in refused.others)
            else:
                self.fails = True


class ClaimedNodes:
    """Answers for pods of which some node would take one, were it not for nominated pods."""

    def __init__(self, present: Present, nominated: Nominated, with_nominated: WithNominated, kinds: PodKinds) -> None:
        self._present = present
        self._kinds = kinds
        self._nominated = nominated
        self._with_nominated = with_nominated
        self._known: dict[Hashable, _About] = {}
        self._stamp = (-1, -1)

    def denied_by(self, pod: PodInfo, pods: PodClass, nominations: Nominations | None) -> Rules | None:
        """The rules that keep the pod, whose class that is, from all nodes; none if one takes it, None if a rule fails.
        There may be one more, that keeps others of the kind from the node which this one claims. Without
        `nominations`, which hold the nominated pods, nothing is remembered."""
        if pods.verdicts.feasible > len(self._nominated()):
            return frozenset()
        about = self._about(pod, pods, nominations)
        own = self._claim(pod, about, nominations)
        refused = None if own is None else self._said(pod, [own])[0][1]
        if own is not None and refused is None:
            return frozenset()
        claim = "" if own is None else own.name
        asked = [about.nodes[name] for name in about.unasked if name != claim]
        if asked:
            about.learn(self._said(pod, asked))
        if nominations is not None:
            self._stamp = self._now(nominations)  # pods that came to see, and went, changed nothing
        if not about.open <= {claim}:
            return frozenset()
        if about.fails or (refused is not None and not isinstance(refused.answer, Denial)):
            return None
        return frozenset(about.rules.union(() if refused is None else (each.rule for each in refused.each())))

    def _claim(self, pod: PodInfo, about: _About, nominations: Nominations | None) -> NodeInfo | None:
        """Of these nodes the one that the pod is nominated to itself."""
        if nominations is not None:
            return about.nodes.get(nominations.node_of(pod.uid) or "")
        nominated = self._nominated()
        return next((node for name, node in about.nodes.items() if pod.uid in nominated.get(name, ())), None)

    def _said(self, pod: PodInfo, nodes: list[NodeInfo]) -> list[tuple[str, Refused | None]]:
        found = self._with_nominated.verdicts(pod, nodes)
        return [(node.name, found.get(node.name)) for node in nodes]

    def _about(self, pod: PodInfo, pods: PodClass, nominations: Nominations | None) -> _About:
        if nominations is None or self._stamp != self._now(nominations):
            self._known.clear()
        kind = self._kinds.of(pod)
        about = self._known.get(kind)
        if about is None:
            feasible = [self._present.columns.nodes[slot] for slot in pods.verdicts.slots()]
            nodes = {node.name: node for node in feasible}
            about = _About(nodes, set(nodes), set(reasons_in(pods.verdicts.counts())[1]))
            self._known[kind] = about
        return about

    def _now(self, nominations: Nominations) -> tuple[int, int]:
        return self._present.state.generation, nominations.changes
