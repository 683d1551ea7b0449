"""What is said of nodes together with the pods that are nominated to them.

A pod has to leave room for those of the same or a higher priority that are nominated to a node. Where rules would see
these in views, they are put into the state for a while (`ksp.core.what_if`). Elsewhere rules are asked about a copy of
the node, and the answer is remembered while neither the node nor they nor what the rules make of the pod is another:
hundreds of pods may wait for their victims to go, and be asked about whenever one of these goes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Final

from cachetools import LRUCache

from ksp.core.alike import Reads
from ksp.core.bare_node import BareNode
from ksp.core.equivalence.present import Present
from ksp.core.filter import Nominated, Refused
from ksp.core.fits import Fits
from ksp.core.nominations import counting
from ksp.core.what_if import WhatIf
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import Profile

KINDS: Final = 64  # of pods for which answers are remembered
PODS: Final = 10_000  # whose kind is remembered

Pods = tuple[PodInfo, ...]
# By node: its number, and who was nominated to it, by uid; the answer, or nobody's if none of them counts.
Answers = dict[str, tuple[int, Mapping[str, PodInfo], "Refused | _Nobody | None"]]


class _Nobody:
    """In the place of an answer: nobody counts, so the node is judged once."""


NOBODY: Final = _Nobody()


class WithNominated:
    """What the rules of a profile say of nodes with nominated pods. These come as maps that are never changed: if other
    pods are nominated to a node there is another map."""

    def __init__(self, profile: Profile, present: Present, nominated: Nominated) -> None:
        self._profile = profile
        self._state = present.state
        self._tables = present.tables
        self._nominated = nominated
        self._answers: LRUCache[Hashable, Answers] = LRUCache(KINDS)
        self._kinds: LRUCache[str, tuple[PodInfo, tuple[int, ...], Hashable]] = LRUCache(PODS)
        self._objects = sorted({kind for active in profile.predicates for kind in active.footprint.objects})

    def verdicts(self, pod: PodInfo, nodes: Collection[NodeInfo] | None = None) -> dict[str, Refused | None]:
        """Those on the nodes, by default all, to which pods are nominated that count against the pod: with these pods
        there. The state is as before afterwards."""
        nominated = self._nominated()
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
        standing = (self._tables.terms_generation, *map(state.generation_of, self._objects))
        known = self._kinds.get(pod.uid)
        if known is not None and known[0] is pod and known[1] == standing:
            return known[2]
        fits = Fits(self._profile, self._tables, pod)
        kind = pod.priority, fits.kind()
        if not any(rule.tables for rule in fits.rules):
            self._kinds[pod.uid] = pod, standing, kind
        return kind

    def _asked(self, pod: PodInfo, nodes: Collection[NodeInfo], answers: Answers) -> dict[str, Refused | None]:
        """The answers that are not remembered; those in which views play no part are from now on."""
        nominated = self._nominated()
        reads: Reads | None = None
        found: dict[str, Refused | None] = {}
        seen: list[tuple[NodeInfo, Pods]] = []
        for node in nodes:
            there = nominated[node.name]
            others = counting(there, pod)
            answer: Refused | _Nobody | None = NOBODY
            if others:
                reads = reads or Reads(Fits(self._profile, self._tables, pod))
                if reads.would_see_any(others, node):
                    seen.append((node, others))
                    continue
                answer = found[node.name] = _judged(reads, node, others)
            if pod.uid not in there:
                answers[node.name] = node.generation, there, answer
        return found | self._in_the_state(reads.fits, seen) if reads is not None and seen else found

    def _in_the_state(self, fits: Fits, seen: Iterable[tuple[NodeInfo, Pods]]) -> dict[str, Refused | None]:
        """What the rules say of nodes whose nominated pods they see in views."""
        found: dict[str, Refused | None] = {}
        with WhatIf(self._state, fits) as trial:
            for node, others in seen:
                with trial.nested():
                    for pod in others:
                        trial.add(pod, node.name)
                    found[node.name] = fits.judged(node)
        return found


def _judged(reads: Reads, node: NodeInfo, others: Pods) -> Refused | None:
    """What the rules say of the node with these pods."""
    bare = BareNode(node)
    for pod in others:
        bare.add(pod)
    return reads.fits.judge(reads.fits.checks, bare.node)
