"""Extenders that say what they please, and what follows from that, told as plainly as can be."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from tests.state.reference import scores

from ksp.compile.runtime import Denial
from ksp.compile.tables import Tables
from ksp.core.cycle import Decision
from ksp.core.extenders import EXTENDER
from ksp.core.filter import Filtered, Refused
from ksp.core.fit_error import fit_error
from ksp.core.preemption.eligibility import resolvable
from ksp.core.questions import (
    Answer,
    Ask,
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
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender

if TYPE_CHECKING:
    from tests.state.churn_checks import Anew

MOODS: Final = ("kind", "kind", "kind", "kind", "choosy", "choosy", "choosy", "harsh", "late", "mad")
Exchange = tuple[tuple[Question, ...], tuple[Answer, ...]]
Choices = dict[str, NodeVictims]


class Moody:
    """Answers questions by moods; a `kind` one admits everything. `exchanges` are those of the present attempt."""

    def __init__(self) -> None:
        self.random = Random(1)
        self.always_kind = False
        self.exchanges: list[Exchange] = []

    def answers(self, ask: Ask) -> tuple[Answer, ...]:
        found = tuple(self._answer(question, ask.pod) for question in ask.questions)
        self.exchanges.append((ask.questions, found))
        return found

    def _answer(self, question: Question, pod: PodInfo) -> Answer:
        mood = "kind" if self.always_kind else self.random.choice(MOODS)
        if mood == "late":
            return Failed("late")
        match question:
            case Filter(nodes=nodes):
                return self._filter(nodes, mood)
            case Prioritize(nodes=nodes):
                return Victims({}) if mood == "mad" else Priorities({name: self.random.randrange(11) for name in nodes})
            case ProcessPreemption(victims=victims):
                return self._victims(victims, mood)

    def _filter(self, nodes: Sequence[str], mood: str) -> Answer:
        if mood == "mad":
            return FilterAnswer((*nodes, "nowhere")) if self.random.random() < 0.5 else Priorities({})
        kept = [name for name in nodes if mood == "kind" or (mood == "choosy" and self.random.random() < 0.5)]
        gone = [name for name in nodes if name not in kept]
        return FilterAnswer(kept[::-1], dict.fromkeys(gone[::2], "not now"), dict.fromkeys(gone[1::3], "never"))

    def _victims(self, victims: object, mood: str) -> Answer:
        assert isinstance(victims, dict)
        if mood == "mad":
            return Victims({name: VictimUids(("nobody",)) for name in victims})
        named = {}
        for name, each in victims.items():
            uids = tuple(pod.uid for pod in each.pods)
            if mood == "kind":
                named[name] = VictimUids(uids, each.violations)
            elif mood == "choosy" and self.random.random() < 0.7:
                most = 1 + self.random.randrange(len(uids))
                named[name] = VictimUids(uids[:most], min(each.violations, most))
        return Victims(named)


@dataclass
class Expected:
    """What an attempt must come to: one of the `nodes`, or none for the reason in the message."""

    nodes: set[str]
    decision: Decision


class Replay:
    """The attempt once more, with the answers that were given. Each question has to be the one that was asked."""

    def __init__(self, anew: Anew, extenders: Sequence[Extender], exchanges: Sequence[Exchange], pod: PodInfo) -> None:
        ordered = [*(e for e in extenders if not e.ignorable), *(e for e in extenders if e.ignorable)]
        verbs = [e for e in ordered if e.filter_verb or e.prioritize_verb or e.preempt_verb]
        self.anew = anew
        self.pod = pod
        self.extenders = [extender for extender in verbs if extender.is_interested(pod.spec)]
        self.left = deque(exchanges)

    def _ask(self, *questions: Question) -> tuple[Answer, ...]:
        assert self.left, f"nobody was asked {questions}"
        asked, answers = self.left.popleft()
        assert [_said(each) for each in asked] == [_said(each) for each in questions]
        return answers

    def decision(self) -> Expected:
        plain = self.anew.decide(self.pod)
        feasible = plain.filtered.feasible if plain.filtered.failure() is None else []
        if not self.extenders or not feasible:
            return Expected({plain.node} - {""}, plain)
        left = [node.name for node in feasible]
        why: dict[str, list[str]] = {}
        final: set[str] = set()
        for extender in self.extenders:
            if not extender.filter_verb or not left:
                continue
            (answer,) = self._ask(Filter(extender, tuple(left)))
            error = _error(answer, left, extender)
            if error and not extender.ignorable:
                return Expected(set(), Decision(message=error, failed=True, filtered=plain.filtered))
            if not error:
                assert isinstance(answer, FilterAnswer)
                for name in left:
                    if name in answer.unresolvable:
                        final.add(name)
                        why.setdefault(name, []).append(answer.unresolvable[name])
                    elif name in answer.failed:
                        why.setdefault(name, []).append(answer.failed[name])
                left = [name for name in left if name in answer.nodes]
        gone = {
            node.name: Refused(EXTENDER, "", Denial(node.name in final, tuple(why[node.name])))
            if node.name in why else None
            for node in feasible if node.name not in left
        }  # fmt: skip
        return self._of_the_rest(left, plain.filtered.without(gone), bool(gone))

    def _of_the_rest(self, left: list[str], filtered: Filtered, refused: bool) -> Expected:
        if not left:
            answers = [each.answer for each in filtered.refused.values()]
            reasons = [reason for answer in answers if isinstance(answer, Denial) for reason in answer.reasons]
            rules = {each.rule for each in filtered.refused.values()} | ({EXTENDER} if refused else set())
            message = fit_error(len(self.anew.state.nodes), reasons)
            return Expected(set(), Decision(message=message, filtered=filtered, denied_by=frozenset(rules)))
        found = Decision(left[0], filtered=filtered)
        asked = [extender for extender in self.extenders if extender.prioritize_verb]
        if len(left) == 1:
            return Expected({left[0]}, found)
        total = dict.fromkeys(left, 0)
        if asked:
            answers_ = self._ask(*(Prioritize(extender, tuple(left)) for extender in asked))
            for extender, answer in zip(asked, answers_, strict=True):
                if isinstance(answer, Priorities):
                    for name in left:
                        total[name] += 10 * extender.weight * answer.scores[name]
        profile = self.anew.cycles[self.pod.scheduler_name].profile
        state = self.anew.state
        scored = scores(profile, Tables(state), self.pod, [state.nodes[name] for name in left])
        for name, score in zip(left, scored.total, strict=True):
            total[name] += score
        return Expected({name for name, score in total.items() if score == max(total.values())}, found)

    def victims(self, decision: Decision) -> dict[str, list[str]] | None:
        """What preemption may choose: nodes with their victims; None if extenders have no say."""
        if not self.extenders:
            return None
        options = self.anew.preemptions[self.pod.scheduler_name].search(self.pod).options(
            resolvable(decision.filtered, self.anew.state)
        )  # fmt: skip
        candidates = [option.candidate() for option in options]
        left = {each.node: NodeVictims(each.victims, each.violations) for each in candidates if each.victims}
        for extender in self.extenders:
            if extender.preempt_verb and left:
                (answer,) = self._ask(ProcessPreemption(extender, left))
                if isinstance(answer, Victims) and not any("nobody" in v.uids for v in answer.by_node.values()):
                    left = {name: _shrunk(left[name], said) for name, said in answer.by_node.items()}
                elif not extender.ignorable:
                    left = {}
        best = _best(left)
        return {name: [victim.uid for victim in each.pods] for name, each in best.items()}


def _said(question: Question) -> object:
    """Pods by their uids."""
    if not isinstance(question, ProcessPreemption):
        return question
    victims = {name: ([pod.uid for pod in each.pods], each.violations) for name, each in question.victims.items()}
    return question.extender, victims


def _error(answer: Answer, asked: Sequence[str], extender: Extender) -> str:
    if isinstance(answer, Failed):
        return answer.message
    if not isinstance(answer, FilterAnswer):
        return "no answer"
    if all(name in asked for name in answer.nodes):
        return ""
    return (
        f'extender "{extender.url_prefix}" claims a filtered node "nowhere" which is not found in the input node list'
    )


def _shrunk(victims: NodeVictims, said: VictimUids) -> NodeVictims:
    return NodeVictims(tuple(pod for uid in said.uids for pod in victims.pods if pod.uid == uid), said.violations)


def _best(left: Choices) -> Choices:
    """Criterion by criterion."""
    criteria = (
        lambda each: each.violations,
        lambda each: each.pods[0].priority,
        lambda each: sum(pod.priority + 2**31 for pod in each.pods),
        lambda each: len(each.pods),
    )
    for criterion in criteria:
        least = min(map(criterion, left.values()), default=0)
        left = {name: each for name, each in left.items() if criterion(each) == least}
    latest = max(map(_started, left.values()), default="")
    return {name: each for name, each in left.items() if _started(each) == latest}


def _started(each: NodeVictims) -> str:
    highest = max(pod.priority for pod in each.pods)
    return min(pod.status.start_time or "~" for pod in each.pods if pod.priority == highest)
