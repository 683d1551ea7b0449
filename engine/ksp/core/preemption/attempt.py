"""An attempt to find room for a pod by evicting others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ksp.core.alike import Alike, Reads, Signatures
from ksp.core.changes import UNREADABLE_BUDGET, Warn
from ksp.core.equivalence.present import Present
from ksp.core.extenders import Asking, processed
from ksp.core.filter import Filtered
from ksp.core.fits import Fits
from ksp.core.nominations import Nominations
from ksp.core.preemption.budgets import Budgets
from ksp.core.preemption.eligibility import final, may_preempt, resolvable, waits_on
from ksp.core.preemption.recent import Recent
from ksp.core.preemption.search import Candidate, Memory, Option, Search, best_of
from ksp.core.questions import NodeVictims
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile
from ksp.ports import Dice

MOST_OUTCOMES: Final = 200_000  # 0.4 KB each
MOST_SIGNATURES: Final = 500_000  # 0.1 to 0.3 KB each

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Preempted:
    """The victims have to leave the node, in this order, so that the pod finds room there; none have to if it fits by
    now. `cleared` are pods of lower priority that are nominated to the node: they lose that claim. The eviction of the
    first `violations` victims violates a disruption budget. `warnings` are for users of victims that are in a namespace
    with a budget that cannot be read, which might have been to protect them."""

    node: str
    victims: tuple[PodInfo, ...]
    cleared: tuple[PodInfo, ...]
    violations: int = 0
    warnings: tuple[Warn, ...] = ()


class NotEligible:
    """The pod may have nobody evicted now: never, or since it waits for pods that are on their way out of its node."""


NOT_ELIGIBLE: Final = NotEligible()


class Preemption:
    """Preemption for the pods of one profile; none unless it `preempts`. Remembers, between attempts, what is equal of
    nodes that did not change."""

    def __init__(self, profile: Profile, present: Present, nominations: Nominations, dice: Dice) -> None:
        self.profile = profile
        self.preempts = profile.preempts
        self.state = present.state
        self.tables = present.tables
        self.nominations = nominations
        self.dice = dice
        self._alike = Alike()
        self._budgets = Budgets(self.state)
        self._coverage = self._budgets.coverage
        self._outcomes = Recent(MOST_OUTCOMES)
        self._signatures = Recent(MOST_SIGNATURES)

    def attempt(
        self, pod: PodInfo, filtered: Filtered, evicting: Collection[str] = ()
    ) -> Preempted | NotEligible | None:
        """What has to happen for a pod that fits nowhere, as `filtered` says in the present state; None if nothing
        helps. `evicting` are the uids of pods whose eviction was asked for and not seen yet."""
        nodes = self._nodes(pod, filtered, evicting)
        if isinstance(nodes, NotEligible):
            return nodes
        options = self._options(pod, nodes) if nodes else []
        return self._preempted(pod, self._one_of(options).candidate()) if options else None

    def deliberate(
        self, pod: PodInfo, filtered: Filtered, extenders: Sequence[Extender], evicting: Collection[str] = ()
    ) -> Asking[Preempted | NotEligible | None]:
        """As `attempt`, where these extenders have a say. The candidates are shown to them, but none without victims:
        that an extender refused such a node no departure can change."""
        nodes = self._nodes(pod, filtered, evicting)
        if isinstance(nodes, NotEligible):
            return nodes
        search, some = self.search(pod), self._some(nodes)
        options = search.options(nodes) if some is None else search.options_of_some(*some)
        candidates = [candidate for option in options if (candidate := option.candidate()).victims]
        asked = {each.node: NodeVictims(each.victims, each.violations) for each in candidates}
        left = yield from processed(extenders, pod, asked, self.state.nodes)
        best = best_of([Candidate(name, each.pods, each.violations) for name, each in left.items()])
        return self._preempted(pod, self._one_of(best)) if best else None

    def _nodes(self, pod: PodInfo, filtered: Filtered, evicting: Collection[str]) -> list[NodeInfo] | NotEligible:
        """Where the departure of pods may help."""
        if self.preempts and may_preempt(pod) and not self._lower_pods(pod):
            return []
        return resolvable(filtered, self.state) if self.eligible(pod, filtered, evicting) else NOT_ELIGIBLE

    def _one_of(self, best: Sequence[T]) -> T:
        return best[self.dice.below(len(best))] if len(best) > 1 else best[0]

    def eligible(self, pod: PodInfo, filtered: Filtered, evicting: Collection[str] = ()) -> bool:
        """Whether the pod may have others evicted now. Who is nominated to a node waits for pods that leave it, unless
        the node is out of the question by now."""
        if not self.preempts or not may_preempt(pod):
            return False
        claim = self._claim(pod)
        if not claim or not waits_on(self.state.nodes.get(claim), pod, evicting):
            return True
        return final(filtered.before or filtered.refused.get(claim))

    def would_help(self, pod: PodInfo, evicting: Collection[str] = ()) -> bool:
        """Whether an attempt may end in a preemption now. Yes if there are victims on any node, though rules may have
        refused it for good. Cheap while no pod has a lower priority; else it costs what an attempt costs."""
        if not self.preempts or not may_preempt(pod) or not self._lower_pods(pod):
            return False
        search = self.search(pod)
        node = self.state.nodes.get(self._claim(pod))
        if node is not None and waits_on(node, pod, evicting) and not final(search.refusal(node)):
            return False
        return search.any(self.state.node_list())

    def search(self, pod: PodInfo) -> Search:
        """A search for victims: good while nothing changes."""
        reads = Reads(Fits(self.profile, self.tables, pod))
        budgets = self._current_budgets()
        return Search(self.state, reads, self._alike, budgets, self.nominations.nodes(), self._memory(reads))

    def _options(self, pod: PodInfo, nodes: list[NodeInfo]) -> list[Option]:
        """Those between which only the dice can decide."""
        search, some = self.search(pod), self._some(nodes)
        return search.best(nodes) if some is None else search.best_of_some(*some)

    def _some(self, nodes: list[NodeInfo]) -> tuple[list[NodeInfo], int] | None:
        """If not all candidates are wanted: the nodes, from one on that the dice choose, and how many are enough."""
        candidates = self.profile.candidates
        if candidates is None or (enough := candidates.of(len(nodes))) >= len(nodes):
            return None
        start = self.dice.below(len(nodes))
        return [*nodes[start:], *nodes[:start]], enough

    def forget(self) -> None:
        """Remember nothing of what was found."""
        self._outcomes.clear()
        self._signatures.clear()

    def _current_budgets(self) -> Budgets:
        """What is remembered is remembered while they cover the same pods."""
        budgets = self._budgets
        budgets.follow()
        if budgets.coverage != self._coverage:
            self._coverage = budgets.coverage
            self._outcomes.clear()
            self._signatures.clear()
        return budgets

    def _memory(self, reads: Reads) -> Memory:
        signatures: Signatures = self._signatures.of((reads.fits.pod.priority, reads.fits.kind()))
        if len(signatures) > 2 * len(self.state.nodes):
            signatures.clear()  # most of them are of nodes that are gone
        return Memory(self._outcomes.of(reads.kind()), signatures)

    def _preempted(self, pod: PodInfo, candidate: Candidate) -> Preempted:
        """What has to happen on the node that was chosen."""
        nominated = self.nominations.on(candidate.node)
        cleared = tuple(other for other in nominated if other.priority < pod.priority)
        warnings = tuple(
            Warn(victim, UNREADABLE_BUDGET, (), text)
            for victim in candidate.victims
            for text in self._budgets.unreadable(victim.namespace)
        )
        return Preempted(candidate.node, candidate.victims, cleared, candidate.violations, warnings)

    def _claim(self, pod: PodInfo) -> str:
        """The node that the pod is nominated to."""
        return self.nominations.node_of(pod.uid) or self.nominations.said(pod)

    def _lower_pods(self, pod: PodInfo) -> bool:
        """Whether there are pods of lower priority at all."""
        lowest = self.state.lowest_priority()
        return lowest is not None and lowest < pod.priority
