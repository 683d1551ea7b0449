"""Extenders: what each is asked for a pod that is its business, and what its answers mean.

All of that is as in kube-scheduler: extenders are asked in order, those that may be left out last. One with a filter
verb is asked about the nodes that rules and the extenders before it have left, if there are any. What it refuses is
refused for this attempt only: why, nobody here knows, so nothing of it is remembered, and any event may help. Those
with a verb for priorities are asked together, and what they say is added to the scores of rules. One with a verb for
preemption may take nodes away from those on which victims were found, and victims from nodes. The first with a verb
for binding binds.

The functions here are generators: they give questions and get their answers. Answers that do not fit the questions
count as failures.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from ksp.compile.node_columns import IntArray
from ksp.compile.runtime import Denial
from ksp.core.filter import Refused
from ksp.core.questions import (
    MOST_PRIORITY,
    Answer,
    Failed,
    Filter,
    FilterAnswer,
    NodeVictims,
    Priorities,
    Prioritize,
    ProcessPreemption,
    Question,
    Victims,
    VictimUids,
)
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.int64 import wrap
from ksp.policy.extender import Extender

EXTENDER: Final = "(an extender)"
"""In the place of a rule that denied a pod: no rule, so any event may help."""
BEST: Final = 100
"""The best score of a rule; that of an extender is put to this scale."""
NO_ANSWER: Final = Failed("no answer")

A = TypeVar("A", FilterAnswer, Priorities, Victims)
R = TypeVar("R")
Asking = Generator[tuple[Question, ...], Sequence[Answer], R]


class Extenders:
    """All extenders, in the order in which they are asked."""

    def __init__(self, extenders: Iterable[Extender] = ()) -> None:
        self.all = tuple(sorted(extenders, key=lambda each: each.ignorable))

    def __bool__(self) -> bool:
        return bool(self.all)

    def interested(self, pod: PodInfo) -> tuple[Extender, ...]:
        """Those whose business the pod is."""
        return tuple([each for each in self.all if each.is_interested(pod.spec)])

    def deciding(self, pod: PodInfo) -> tuple[Extender, ...]:
        """Those that have to be asked for the pod before it is decided: all but those that only bind."""
        return tuple([each for each in self.interested(pod) if _decides(each)])

    def binder(self, pod: PodInfo) -> Extender | None:
        """The one that binds the pod; None if we do."""
        return next((each for each in self.all if each.bind_verb and each.is_interested(pod.spec)), None)


def _decides(extender: Extender) -> bool:
    return bool(extender.filter_verb or extender.prioritize_verb or extender.preempt_verb)


# ---- filter


@dataclass(slots=True)
class Left:
    """What extenders left of the nodes: `nodes`, by name, in order; why others were refused; those of them that no pod
    that leaves can help; `error` ends the attempt."""

    nodes: tuple[str, ...]
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unresolvable: set[str] = field(default_factory=set)
    error: str = ""

    def refused(self, node: str) -> Refused | None:
        """Why a node is not left; None if nobody said."""
        reasons = self.reasons.get(node)
        return None if reasons is None else Refused(EXTENDER, "", Denial(node in self.unresolvable, reasons))


def filtered(extenders: Sequence[Extender], nodes: Sequence[str]) -> Asking[Left]:
    """What these extenders leave of the nodes."""
    left = Left(tuple(nodes))
    for extender in extenders:
        if not left.nodes:
            break
        if not extender.filter_verb:
            continue
        answer = _fitting((yield (Filter(extender, left.nodes),)), FilterAnswer)
        if isinstance(answer, FilterAnswer) and (unknown := _unknown(answer.nodes, left.nodes)):
            answer = Failed(
                f'extender "{extender.name}" claims a filtered node "{unknown}" '
                "which is not found in the input node list"
            )
        if isinstance(answer, FilterAnswer):
            _leave(left, answer)
        elif not extender.ignorable:
            left.error = answer.message
            break
    return left


def _unknown(named: Iterable[str], asked: Sequence[str]) -> str | None:
    """The first of the nodes that was not asked about."""
    known = set(asked)
    return next((name for name in named if name not in known), None)


def _leave(left: Left, answer: FilterAnswer) -> None:
    asked = set(left.nodes)
    for refusals, final in ((answer.unresolvable, True), (answer.failed, False)):
        for name, reason in refusals.items():
            if name in asked and not (name in answer.unresolvable and not final):
                left.reasons[name] = (*left.reasons.get(name, ()), reason)
                left.unresolvable |= {name} if final else set()
    kept = set(answer.nodes)
    left.nodes = tuple(name for name in left.nodes if name in kept)


# ---- priorities


def prioritized(extenders: Sequence[Extender], nodes: Sequence[str]) -> Asking[IntArray | None]:
    """What these extenders add to the scores of the nodes, in order; None if none has anything to say. Who gives no
    answer adds nothing."""
    asked = [extender for extender in extenders if extender.prioritize_verb]
    if not asked:
        return None
    names = tuple(nodes)
    answers = yield tuple(Prioritize(extender, names) for extender in asked)
    total = np.zeros(len(names), dtype=np.int64)
    for place, extender in enumerate(asked):
        answer = _fitting(answers, Priorities, place, len(asked))
        if isinstance(answer, Priorities):
            scale = extender.weight * (BEST // MOST_PRIORITY)
            total += np.array([wrap(answer.scores.get(name, 0) * scale) for name in names], dtype=np.int64)
    return total


# ---- preemption


def processed(
    extenders: Sequence[Extender], pod: PodInfo, victims: Mapping[str, NodeVictims], nodes: Mapping[str, NodeInfo]
) -> Asking[Mapping[str, NodeVictims]]:
    """The nodes and victims that these extenders leave; none if one fails that must not."""
    for extender in extenders:
        if not victims:
            break
        if not extender.preempt_verb:
            continue
        answer = _fitting((yield (ProcessPreemption(extender, victims),)), Victims)
        left = _named(answer, pod, victims, nodes) if isinstance(answer, Victims) else None
        if left is not None:
            victims = left
        elif not extender.ignorable:
            return {}
    return victims


def _named(
    answer: Victims, pod: PodInfo, asked: Mapping[str, NodeVictims], nodes: Mapping[str, NodeInfo]
) -> Mapping[str, NodeVictims] | None:
    """The victims that the answer names, on nodes that were asked about; None if it names others, or nobody, or pods
    that the pod may not have evicted."""
    found = {}
    for name, said in answer.by_node.items():
        there = nodes[name].pods if name in asked else {}
        pods = [there.get(uid) for uid in said.uids]
        known = tuple([each for each in pods if each is not None and each.priority < pod.priority])
        if not known or len(known) != len(pods) or len(set(said.uids)) != len(pods):
            return None
        found[name] = NodeVictims(known, _violations(said))
    return found


def _violations(said: VictimUids) -> int:
    return max(0, min(said.violations, len(said.uids)))


def _fitting(answers: Sequence[Answer], kind: type[A], place: int = 0, questions: int = 1) -> A | Failed:
    """The answer at that place, if there are as many as questions, and it is of that kind."""
    if len(answers) != questions:
        return NO_ANSWER
    answer = answers[place]
    return answer if isinstance(answer, kind | Failed) else NO_ANSWER
