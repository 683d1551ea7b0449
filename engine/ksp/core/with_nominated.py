"""What is said of nodes together with the pods that are nominated to them.

A pod has to leave room for those of the same or a higher priority that are nominated to a node. Where rules would see
these in views, the state is changed and the rules are asked anew (`ksp.core.filter`). Elsewhere they are asked about a
copy of the node, and the answer is remembered while neither the node nor they nor what the rules make of the pod is
another: hundreds of pods may wait for their victims to go, and be asked about whenever one of these goes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Final

from cachetools import LRUCache

from ksp.core.alike import Reads
from ksp.core.bare_node import BareNode
from ksp.core.filter import Filter, Refused, judge
from ksp.core.fits import Fits
from ksp.core.nominations import counting
from ksp.model.info import NodeInfo, PodInfo

KINDS: Final = 64  # of pods for which answers are remembered
PODS: Final = 10_000  # whose kind is remembered

Pods = tuple[PodInfo, ...]
Nominated = Mapping[str, PodInfo]  # to one node, by uid
# By node: its number, and who was nominated to it; the answer, or nobody's if none of them counts.
Answers = dict[str, tuple[int, Nominated, "Refused | _Nobody | None"]]


class _Nobody:
    """In the place of an answer: nobody counts, so the node is judged once."""


NOBODY: Final = _Nobody()


class WithNominated:
    """The verdicts of a profile's filter on nodes with nominated pods. These come as maps that are never changed: if
    other pods are nominated to a node there is another map."""

    def __init__(self, filter_: Filter) -> None:
        self._filter = filter_
        self._state = filter_.state
        self._answers: LRUCache[Hashable, Answers] = LRUCache(KINDS)
        self._kinds: LRUCache[str, tuple[PodInfo, tuple[int, ...], Hashable]] = LRUCache(PODS)
        predicates = filter_.profile.predicates
        self._objects = sorted({kind for active in predicates for kind in active.footprint.objects})

    def verdicts(self, pod: PodInfo, nodes: Collection[NodeInfo] | None = None) -> dict[str, Refused | None]:
        """As `Filter.with_nominated`."""
        nominated = self._filter.nominated()
        if not nominated:
            return {}
        known = self._state.nodes
        asked = [known[name] for name in nominated if name in known] if nodes is None else nodes
        answers = self._answers_for(pod)
        found: dict[str, Refused | None] = {}
        unknown: list[NodeInfo] = []
        for node in asked:
            there = nominated.get(node.name)
            if there is None:
                continue
            answer = answers.get(node.name)
            if answer is None or answer[0] != node.generation or answer[1] is not there or pod.uid in there:
                unknown.append(node)
            elif not isinstance(answer[2], _Nobody):
                found[node.name] = answer[2]
        return found | self._asked(pod, unknown, answers) if unknown else found

    def _answers_for(self, pod: PodInfo) -> Answers:
        """What the rules said for pods of which they make the same."""
        kind = self._kind(pod)
        answers = self._answers.get(kind)
        if answers is None or len(answers) > 2 * len(self._state.nodes):
            answers = self._answers[kind] = {}
        return answers

    def _kind(self, pod: PodInfo) -> Hashable:
        """Of pods for which no view is asked it is the same while the objects are that rules find by the pod, and the
        terms of others that match it."""
        state = self._state
        standing = (self._filter.tables.terms_generation, *map(state.generation_of, self._objects))
        known = self._kinds.get(pod.uid)
        if known is not None and known[0] is pod and known[1] == standing:
            return known[2]
        fits = Fits(self._filter.profile, self._filter.tables, pod)
        kind = pod.priority, fits.kind()
        if not any(rule.tables for rule in fits.rules):
            self._kinds[pod.uid] = pod, standing, kind
        return kind

    def _asked(self, pod: PodInfo, nodes: Collection[NodeInfo], answers: Answers) -> dict[str, Refused | None]:
        """The answers that are not remembered; those in which views play no part are from now on."""
        nominated = self._filter.nominated()
        reads: Reads | None = None
        found: dict[str, Refused | None] = {}
        seen: list[NodeInfo] = []
        for node in nodes:
            there = nominated[node.name]
            others = counting(there, pod)
            answer: Refused | _Nobody | None = NOBODY
            if others:
                reads = reads or Reads(Fits(self._filter.profile, self._filter.tables, pod))
                if reads.would_see_any(others, node):
                    seen.append(node)
                    continue
                answer = found[node.name] = _judged(reads, node, others)
            if pod.uid not in there:
                answers[node.name] = node.generation, there, answer
        return found | self._filter.with_nominated(pod, seen) if seen else found


def _judged(reads: Reads, node: NodeInfo, others: Pods) -> Refused | None:
    """What the rules say of the node with these pods."""
    bare = BareNode(node)
    for pod in others:
        bare.add(pod)
    return judge(reads.fits.checks, bare.node)
