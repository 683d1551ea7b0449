"""The victims on each node.

On a node all pods of lower priority are taken away. If the pod fits then, they are put back one by one where it still
fits with them: first those whose eviction would violate a disruption budget, then the others, each in order of
importance (`ksp.core.shapes`). Who cannot be put back is a victim.

A node that pods of the same or a higher priority are nominated to has to take the pod with them and without.

Of nodes that are alike one is judged (`ksp.core.alike`): on a copy, and what comes of it is remembered for other pods
of which the rules make the same. Only where rules would see the pods come and go in views they do so in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from ksp.core.alike import HOPELESS, Alike, Alone, Nominated, Reads, Signature, Signatures, Together
from ksp.core.bare_node import BareNode
from ksp.core.filter import Refused, judge
from ksp.core.fits import Fits
from ksp.core.nominations import counting
from ksp.core.preemption.budgets import Budgets
from ksp.core.preemption.choice import Rank, earliest, rank, started
from ksp.core.shapes import Shape
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.info import NodeInfo, PodInfo

TOGETHER: Final = 100
"""Nodes that are looked at together, where the search may end before it has seen all."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that would take the pod without the victims: in the order of their eviction, of which the first so many
    violate disruption budgets."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int


def best_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those of the candidates, of which each has victims, between which only the dice can decide, in order."""
    ranks = [(rank(each.victims, each.violations), earliest(each.victims)) for each in candidates]
    least = min((by_rank for by_rank, _ in ranks), default=())
    latest = max((start for by_rank, start in ranks if by_rank == least), default="")
    return [each for each, ranked in zip(candidates, ranks, strict=True) if ranked == (least, latest)]


@dataclass(frozen=True, slots=True)
class Victims:
    """Which of a node's pods of lower priority, by their places in order of importance, have to go: first those, so
    many, that violate budgets. `rank` is the same on all nodes that are alike. The one that would be spared first is
    the last pod but so many of all on the node; 0 without victims."""

    places: tuple[int, ...]
    violations: int
    rank: Rank
    from_last: int


Group = tuple[Victims, list[NodeInfo]]


@dataclass(frozen=True, slots=True)
class Option:
    """A node with its victims."""

    shape: Shape
    victims: Victims
    priority: int

    @property
    def node(self) -> str:
        return self.shape.node.name

    def candidate(self) -> Candidate:
        lower = self.shape.below(self.priority)
        return Candidate(self.node, tuple(lower[place] for place in self.victims.places), self.victims.violations)

    def started(self) -> str:
        """When the victim that would be spared first started: of those with the highest priority the earliest."""
        from_last = self.victims.from_last
        return started(self.shape.pods[-from_last]) if from_last else ""


Outcomes = MutableMapping[Signature, tuple[Victims | None, int]]  # and which version of the budgets they are of


@dataclass(frozen=True, slots=True)
class Memory:
    """What came of earlier searches: `outcomes` where the rules that read sums make the same of the pod (`Reads.kind`),
    `signatures` of nodes where all rules do, and the priority is the same."""

    outcomes: Outcomes
    signatures: Signatures


class Search:
    """Looks for victims for one pod, while nothing else changes."""

    def __init__(
        self, state: ClusterState, reads: Reads, alike: Alike, budgets: Budgets, nominated: Nominated, memory: Memory
    ) -> None:
        self.state = state
        self.reads = reads
        self.fits: Fits = reads.fits
        self.pod = reads.fits.pod
        self.alike = alike
        self.budgets = budgets
        self.nominated = nominated
        self.memory = memory

    def options(self, nodes: Iterable[NodeInfo]) -> list[Option]:
        """The nodes that victims would help, in order."""
        nodes = list(nodes)
        return _in_order(self._options(list(self._groups(nodes))), nodes)

    def best(self, nodes: Iterable[NodeInfo]) -> list[Option]:
        """Those between which only the dice can decide, in the order of the nodes."""
        nodes = list(nodes)
        return self._best(self._groups(nodes), nodes)

    def best_of_some(self, nodes: Sequence[NodeInfo], enough: int) -> list[Option]:
        """As `best`, of the first so many candidates: the search goes on, though, until one of them violates no budget.
        Candidates beyond the number that violate some are left out, as in kube-scheduler."""
        return self._best(self._some(nodes, enough), nodes)

    def options_of_some(self, nodes: Sequence[NodeInfo], enough: int) -> list[Option]:
        """As `options`, of the first so many candidates, as for `best_of_some`."""
        return _in_order(self._options(self._some(nodes, enough)), nodes)

    def any(self, nodes: Iterable[NodeInfo]) -> bool:
        """Whether there is an option among the nodes."""
        with closing(self._groups(list(nodes))) as groups:
            return next(groups, None) is not None

    def refusal(self, node: NodeInfo) -> Refused | None:
        """What is said of the node as it is now."""
        with WhatIf(self.state, self.fits) as trial:
            return _InTheState(self, trial, node).refusal()

    # ---- groups of nodes

    def _best(self, groups: Iterable[Group], nodes: Sequence[NodeInfo]) -> list[Option]:
        least: Rank | None = None
        best: list[Group] = []
        for victims, group in groups:
            if least is None or victims.rank < least:
                least, best = victims.rank, []
            if victims.rank == least:
                best.append((victims, group))
        return _in_order(_latest(self._options(best)), nodes)

    def _some(self, nodes: Sequence[NodeInfo], enough: int) -> list[Group]:
        found: list[Group] = []
        spotless = False
        for start in range(0, len(nodes), TOGETHER):
            for victims, node in self._candidates(nodes[start : start + TOGETHER]):
                if not victims.violations or len(found) < enough:
                    found.append((victims, [node]))
                spotless = spotless or not victims.violations
                if spotless and len(found) >= enough:
                    return found
        return found

    def _candidates(self, nodes: Sequence[NodeInfo]) -> Iterator[tuple[Victims, NodeInfo]]:
        """The nodes where victims help, in order."""
        found = {node.name: victims for victims, group in self._groups(nodes) for node in group}
        return ((found[node.name], node) for node in nodes if node.name in found)

    def _options(self, groups: Iterable[Group]) -> list[Option]:
        """Each node of the groups. No trial is under way."""
        return [Option(self._shape(node), victims, self.pod.priority) for victims, group in groups for node in group]

    def _groups(self, nodes: Sequence[NodeInfo]) -> Generator[Group]:
        """The nodes where victims help, each group with its victims. Between two of them a trial may be under way."""
        alone: list[Shape] = []
        for signature, group in self._alike(nodes).items():
            if isinstance(signature, Alone):
                alone += map(self._shape, group)
            elif signature != HOPELESS:
                victims = self._on_copy(signature, group[0])
                if victims is not None:
                    yield victims, group
        if alone:
            with WhatIf(self.state, self.fits) as trial:
                for shape in alone:
                    victims = self._in_the_state(trial, shape)
                    if victims is not None:
                        yield victims, [shape.node]

    def _shape(self, node: NodeInfo) -> Shape:
        return self.alike.shape(node, self.reads)

    def _alike(self, nodes: Sequence[NodeInfo]) -> dict[Signature, list[NodeInfo]]:
        covered = self.budgets.covering if self.budgets else None
        signatures = self.memory.signatures
        return self.alike.groups(self.reads, nodes, nominated=self.nominated, covered=covered, signatures=signatures)

    def counting(self, node: NodeInfo) -> tuple[PodInfo, ...]:
        """The nominated pods that the pod has to leave room for there."""
        there = self.nominated.get(node.name)
        return counting(there, self.pod) if there else ()

    # ---- one node

    def _on_copy(self, signature: Signature, node: NodeInfo) -> Victims | None:
        known = self.memory.outcomes.get(signature)
        covered = signature.covered if isinstance(signature, Together) else ()
        if known is not None and self.budgets.stand(covered, known[1]):
            return known[0]
        victims = self._victims(_OnCopy(self, node), self._shape(node))
        self.memory.outcomes[signature] = victims, self.budgets.version
        return victims

    def _in_the_state(self, trial: WhatIf, shape: Shape) -> Victims | None:
        with trial.nested():
            return self._victims(_InTheState(self, trial, shape.node), shape)

    def _victims(self, place: _OnCopy | _InTheState, shape: Shape) -> Victims | None:
        """The victims on the node; None if it does not take the pod even without all of lower priority."""
        lower = shape.below(self.pod.priority)
        for pod in lower:
            place.remove(pod)
        if place.refusal() is not None:
            return None
        violating, others = self.budgets.split(lower)
        first = _not_spared(place, lower, violating)
        places = (*first, *_not_spared(place, lower, others))
        from_last = len(lower) - min(places) if places else 0
        return Victims(places, len(first), rank([lower[i] for i in places], len(first)), from_last)


def _not_spared(place: _OnCopy | _InTheState, lower: Sequence[PodInfo], among: Iterable[int]) -> list[int]:
    """Those of the pods, by their places, that cannot be put back; the others are back."""
    found: list[int] = []
    for i in among:
        place.restore(lower[i])
        if place.refusal() is not None:
            place.remove(lower[i])
            found.append(i)
    return found


class _OnCopy:
    """A copy of a node on which victims are looked for."""

    def __init__(self, search: Search, node: NodeInfo) -> None:
        bare = BareNode(node)
        self._bare = bare
        self._checks = search.reads.checks
        self._nominated = search.counting(node)
        self.remove: Callable[[PodInfo], object] = bare.remove
        self.restore: Callable[[PodInfo], object] = bare.restore

    def refusal(self) -> Refused | None:
        """Why the pod does not fit."""
        if self._nominated:
            for pod in self._nominated:
                self._bare.add(pod)
            refused = judge(self._checks, self._bare.node)
            for pod in reversed(self._nominated):
                self._bare.remove(pod)
            if refused is not None:
                return refused
        return judge(self._checks, self._bare.node)


class _InTheState:
    """A node of the state on which victims are looked for."""

    def __init__(self, search: Search, trial: WhatIf, node: NodeInfo) -> None:
        self._trial = trial
        self._node = node
        self._fits = search.fits
        self._nominated = search.counting(node)

    def remove(self, pod: PodInfo) -> None:
        self._trial.remove(pod.uid)

    def restore(self, pod: PodInfo) -> None:
        self._trial.restore(pod.uid)

    def refusal(self) -> Refused | None:
        """Why the pod does not fit."""
        if self._nominated:
            with self._trial.nested():
                for pod in self._nominated:
                    self._trial.add(pod, self._node.name)
                refused = self._fits.judged(self._node)
            if refused is not None:
                return refused
        return self._fits(self._node)


def _latest(options: list[Option]) -> list[Option]:
    """Those whose victims started the latest."""
    if len(options) < 2:
        return options
    starts = [option.started() for option in options]
    latest = max(starts)
    return [option for option, start in zip(options, starts, strict=True) if start == latest]


def _in_order(options: list[Option], nodes: Iterable[NodeInfo]) -> list[Option]:
    if len(options) < 2:
        return options
    by_name = {option.node: option for option in options}
    return [by_name[node.name] for node in nodes if node.name in by_name]
