"""Schedulers that are told the same and must decide the same, whatever they remember between decisions.

The first has the plain cycle of `tests.state.reference`. The others keep equivalence classes, many or hardly any, judge
by columns, or do both, or neither.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.state.reference import PlainCycle, total_of

from ksp.core.changes import Change
from ksp.core.cycle import Decision
from ksp.core.filter import Filtered, Refused
from ksp.core.pod_kinds import PodKinds
from ksp.core.questions import Ask
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.model.info import PodInfo
from ksp.policy.profile import Profile

KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "classes and columns": {"equivalence_classes": 1000, "columns": True},
    "classes": {"equivalence_classes": 1000, "columns": False},
    "one class, columns": {"equivalence_classes": 1, "columns": True},
    "two classes": {"equivalence_classes": 2, "columns": False},
    "columns": {"equivalence_classes": 0, "columns": True},
    "neither": {"equivalence_classes": 0, "columns": False},
}


class SeededDice:
    """`sides` is of how many nodes one was to be chosen."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.sides: list[int] = []

    def below(self, n: int) -> int:
        self.sides.append(n)
        return self.random.randrange(n)


@dataclass(frozen=True)
class Judged:
    """What a decision said of nodes, without the nodes themselves."""

    before: Refused | None
    feasible: Sequence[str]
    refused: Mapping[str, Refused]
    examined: int

    @staticmethod
    def of(filtered: Filtered) -> Judged:
        return Judged(
            filtered.before, [node.name for node in filtered.feasible], dict(filtered.refused), filtered.examined
        )


def said(decision: Decision) -> tuple[object, ...]:
    """What everybody is told."""
    return decision.node, decision.message, decision.failed, decision.denied_by, decision.unread


class Twins:
    """Tells all of them, and compares. `kept` are decisions of which it is not asked yet what they said of nodes."""

    def __init__(self, profile: Profile, kinds: Sequence[str] = tuple(KINDS)) -> None:
        self.dice = {kind: SeededDice() for kind in ("plain", *kinds)}
        self.plain = Scheduler([profile], self.dice["plain"], equivalence_classes=0, columns=False)
        self.others = {kind: Scheduler([profile], self.dice[kind], **KINDS[kind]) for kind in kinds}
        self.kept: tuple[Judged, dict[str, Decision]] | None = None
        self.steps = self.probes = 0
        name, state, queue = profile.scheduler_name, self.plain.state, self.plain.queue
        unread = self.plain.unread.by[name]
        self.reference = PlainCycle(profile, state, queue.nominations.nodes, self.dice["plain"], unread)
        self.plain.cycles[name] = self.reference  # type: ignore[assignment]
        for scheduler in self.all():  # who waits does not depend on what is remembered, so that queues can be compared
            scheduler.queue.sleepers.denied_by = scheduler.cycles[name].denied_by
            scheduler.queue.sleepers.kind_of = PodKinds([profile]).of

    def all(self) -> list[Scheduler]:
        return [self.plain, *self.others.values()]

    # ---- the same to all

    def on(self, change: Change, now: float) -> None:
        for scheduler in self.all():
            scheduler.on(change, now)
        self.ask_the_kept()

    def bind_succeeded(self, uid: str, now: float) -> None:
        for scheduler in self.all():
            scheduler.bind_succeeded(uid, now)

    def bind_failed(self, uid: str, now: float) -> None:
        for scheduler in self.all():
            scheduler.bind_failed(uid, now)
        self.ask_the_kept()

    def nominate(self, uid: str, place: str) -> None:
        """As preemption does it: a pod that failed claims a node."""
        for scheduler in self.all():
            queued = scheduler.queue.get(uid)
            if queued is not None and queued.place is not Place.IN_FLIGHT:
                scheduler.queue.nominate(queued.info, place)

    # ---- decisions

    def step(self, now: float) -> Step | None:
        """All decide for the next pod, and say the same."""
        step = self.plain.step(now)
        assert not isinstance(step, Ask)
        found = {kind: scheduler.step(now) for kind, scheduler in self.others.items()}
        self.steps += 1
        if step is None:
            assert not any(found.values()), {kind: other and other.pod for kind, other in found.items()}
            return None
        decisions: dict[str, Decision] = {}
        for kind, other in found.items():
            assert isinstance(other, Step), f"{kind}: {step.pod} is not tried"
            assert _effects(other) == _effects(step), kind
            decisions[kind] = other.decision
        self._compare(step.decision, decisions, at_once=self.steps % 2 == 0)
        return step

    def probe(self, pod: PodInfo) -> Decision:
        """What all would decide for a pod that nobody waits for; now and then with the scores, too."""
        self.probes += 1
        decision = self._probed(pod, keep_scores=False)
        return self._probed(pod, keep_scores=True) if self.probes % 3 else decision

    def _probed(self, pod: PodInfo, *, keep_scores: bool) -> Decision:
        decision = self.reference.decide(pod)
        found = {}
        for kind, other in self.others.items():
            cycle = other.cycles[pod.scheduler_name]
            cycle.keep_scores = keep_scores
            found[kind] = cycle.decide(pod)
            cycle.keep_scores = False
            if keep_scores:
                assert total_of(found[kind].scored) == total_of(decision.scored), kind
        self._compare(decision, found, at_once=True)
        return decision

    def _compare(self, decision: Decision, found: dict[str, Decision], *, at_once: bool) -> None:
        """What a decision said of nodes has to be the same later, when the cluster is another one."""
        for kind, other in found.items():
            assert said(other) == said(decision), kind
            assert self.dice[kind].sides == self.dice["plain"].sides, kind
        self.ask_the_kept()
        self.kept = Judged.of(decision.filtered), found
        if at_once:
            self.ask_the_kept()
        for dice in self.dice.values():
            dice.sides.clear()

    def ask_the_kept(self) -> None:
        if self.kept is not None:
            judged, found = self.kept
            self.kept = None
            for kind, other in found.items():
                assert Judged.of(other.filtered) == judged, kind

    # ---- what must be the same at any time

    def compare_queues(self) -> None:
        picture = waiting(self.plain)
        for kind, other in self.others.items():
            assert waiting(other) == picture, kind

    def nobody_sleeps_in_vain(self) -> None:
        """No unschedulable pod would find a node now, but for those whose turn comes after another of their kind. A pod
        that was decided helps others when the watch shows it."""
        queue = self.plain.queue
        if self.plain.cache.assumed_count:
            return
        kind_of = queue.sleepers.kind_of
        awake = {kind_of(queued.info) for queued in queue if queued.place is not Place.UNSCHEDULABLE}
        for queued in queue:
            if queued.place is Place.UNSCHEDULABLE and kind_of(queued.info) not in awake:
                assert self.reference.denied_by(queued.info) != frozenset(), f"{queued} sleeps"


def _effects(step: Step) -> object:
    return step.pod.uid, step.attempt, [(type(effect).__name__, _fields(effect)) for effect in step.effects]


def _fields(effect: Any) -> object:
    return {name: _plain(getattr(effect, name)) for name in effect.__dataclass_fields__}


def _plain(value: Any) -> object:
    """Each scheduler has pods of its own."""
    match value:
        case PodInfo():
            return value.uid
        case tuple():
            return tuple(map(_plain, value))
    return value


def waiting(scheduler: Scheduler) -> object:
    """Who waits where, since when, and for what."""
    queue = scheduler.queue
    pods = [(q.uid, q.place, q.added, q.attempts, q.unschedulable_by) for q in queue]
    claims = {name: list(there) for name, there in queue.nominations.nodes().items()}
    return pods, claims, scheduler.pending(), scheduler.cache_size()
