"""Attempts: a pod is decided, and what is to be done follows.

Where extenders have a say, an attempt stops with questions, and goes on with their answers. Nothing else may change
meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ksp.core.changes import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    Bind,
    BindVolumes,
    ClearNomination,
    Effect,
    Evict,
    PodVolumes,
    Report,
)
from ksp.core.cycle import EMPTINESS, ITSELF, Decision
from ksp.core.errors import StateError
from ksp.core.extenders import Asking
from ksp.core.generation import Generation
from ksp.core.outcomes import Outcomes
from ksp.core.preemption import NotEligible, Preempted
from ksp.core.probation import Probation
from ksp.core.questions import Answer, Ask
from ksp.core.queue import QueuedPod
from ksp.core.state import ClusterState
from ksp.core.unread_pods import UnreadPods
from ksp.core.volume_binder import VolumeError
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender
from ksp.policy.unread import NOTHING

NO_VOLUMES: Final = PodVolumes()
LATELY: Final = 64
"""So many of the pods that were decided last are remembered."""

Preemption = Preempted | NotEligible | None


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt: the pod, what was decided, and what is to be done now: a Bind, BindVolumes or Report of the pod
    first, then what its preemption leads to, then warnings, if any. `preempted` says for which node others have to go.
    """

    pod: PodInfo
    attempt: int
    decision: Decision
    effects: tuple[Effect, ...]
    preempted: Preempted | None = None


@dataclass(slots=True)
class _Open:
    """An attempt that waits for answers to what was asked last."""

    queued: QueuedPod
    deliberation: Asking[tuple[Decision, Preemption]]
    asked: Ask


class Attempts:
    """Tries pods. `generation` is what decides; `probation` is there while that is held against the one before. `asked`
    is there while an attempt waits for answers; `lately` are pods that were tried last."""

    def __init__(self, generation: Generation, state: ClusterState, outcomes: Outcomes, unread: UnreadPods) -> None:
        self.generation = generation
        self.probation: Probation | None = None
        self.lately: deque[PodInfo] = deque(maxlen=LATELY)
        self.state = state
        self.outcomes = outcomes
        self.unread = unread
        self.queue = outcomes.queue
        self.bindings = outcomes.bindings
        self.evictions = outcomes.evictions
        self._open: _Open | None = None

    @property
    def asked(self) -> Ask | None:
        return None if self._open is None else self._open.asked

    # ---- decisions

    def begin(self, queued: QueuedPod, now: float) -> Step | Ask:
        """Try a pod that was popped."""
        pod, generation = queued.info, self.generation
        self.lately.append(pod)
        deciding = generation.extenders.deciding(pod) if generation.extenders else ()
        if deciding:
            return self._go_on(queued, self._deliberated(pod, deciding), None, now)
        decision = generation.cycles[pod.scheduler_name].decide(pod)
        preemption = None if decision.node or decision.failed else self._preemption(pod, decision)
        return self._end(queued, decision, preemption, now)

    def resume(self, answers: Sequence[Answer], now: float) -> Step | Ask:
        """Go on with these answers."""
        if self._open is None:
            raise StateError("there are answers, and no question")
        waiting, self._open = self._open, None
        return self._go_on(waiting.queued, waiting.deliberation, answers, now)

    def _go_on(
        self, queued: QueuedPod, deliberation: Asking[tuple[Decision, Preemption]], answers: Sequence[Answer] | None,
        now: float,
    ) -> Step | Ask:  # fmt: skip
        try:
            questions = next(deliberation) if answers is None else deliberation.send(answers)
        except StopIteration as ended:
            decision, preemption = ended.value
            return self._end(queued, decision, preemption, now)
        self._open = _Open(queued, deliberation, Ask(queued.info, questions))
        return self._open.asked

    def _deliberated(self, pod: PodInfo, extenders: Sequence[Extender]) -> Asking[tuple[Decision, Preemption]]:
        """The decision, and what helps if no node fits, where these extenders have a say."""
        decision = yield from self.generation.cycles[pod.scheduler_name].deliberate(pod, extenders)
        if decision.node or decision.failed or not _is_of_nodes(decision):
            return decision, None
        preemption = self.generation.preemptions[pod.scheduler_name]
        victims = self.evictions.victims
        return decision, (yield from preemption.deliberate(pod, decision.filtered, extenders, victims))

    def _preemption(self, pod: PodInfo, decision: Decision) -> Preemption:
        """What helps a pod that fits on no node."""
        if not _is_of_nodes(decision):
            return None
        preemption = self.generation.preemptions[pod.scheduler_name]
        return preemption.attempt(pod, decision.filtered, self.evictions.victims)

    # ---- what follows

    def _end(self, queued: QueuedPod, decision: Decision, preemption: Preemption, now: float) -> Step:
        pod, preempted = queued.info, None
        if self.probation is not None:
            self.probation.decided(pod, decision)
        if decision.unread is not NOTHING:
            self.unread.decided(pod, decision.unread)
        if decision.node and (volumes := self._volumes(pod, decision)) is not None:
            effects: tuple[Effect, ...] = (self._place(pod, decision.node, volumes, now),)
        elif decision.failed:
            self.queue.retry(queued, now)
            effects = (Report(pod, SCHEDULER_ERROR, decision.message),)
        else:
            preempted = preemption if isinstance(preemption, Preempted) else None
            try:
                effects = self._unfit(queued, decision, preemption, now)
            except Exception:  # then nobody is told to evict, and the pod must not wait for it
                self.evictions.give_up(queued.uid)
                raise
        return Step(pod, queued.attempts, decision, (*effects, *self.unread.said()), preempted)

    def _volumes(self, pod: PodInfo, decision: Decision) -> PodVolumes | None:
        """What has to be done for the pod's claims on its node. None, and the decision is an error, if that cannot be
        done: the rule for volumes would have to have denied the node."""
        if self._bind_timeout(pod) is None or not pod.claim_names:
            return NO_VOLUMES
        try:
            return self.bindings.volumes.find(pod, self.state.nodes[decision.node])
        except VolumeError as error:
            decision.node, decision.failed, decision.message = "", True, str(error)
            return None

    def _bind_timeout(self, pod: PodInfo) -> float | None:
        return self.generation.cycles[pod.scheduler_name].profile.bind_timeout

    def _place(self, pod: PodInfo, node: str, volumes: PodVolumes, now: float) -> Bind | BindVolumes:
        claim, extenders = self.queue.nominations.node_of(pod.uid), self.generation.extenders
        binder = extenders.binder(pod) if extenders else None
        effect = self.bindings.begin(pod, node, volumes, self._bind_timeout(pod) or 0.0, binder)
        self.evictions.give_up(pod.uid)
        self.queue.clear_nomination(pod.uid)
        self.outcomes.release(pod.uid, claim, now)
        return effect

    def _unfit(self, queued: QueuedPod, decision: Decision, preemption: Preemption, now: float) -> tuple[Effect, ...]:
        """No node fits the pod. Others go for its sake, if that helps; else it claims no node any more, unless it waits
        for pods that are on their way out."""
        pod = queued.info
        if isinstance(preemption, NotEligible):
            self._sleep(queued, decision, now)
            return (Report(pod, UNSCHEDULABLE, decision.message),)
        claim = self.queue.nominations.node_of(pod.uid)
        if preemption is None:
            self._sleep(queued, decision, now)
            self.queue.withdraw_nomination(pod)
            self.outcomes.release(pod.uid, claim, now)
            return (Report(pod, UNSCHEDULABLE, decision.message, nominated_node=""),)
        for other in preemption.cleared:
            self.queue.withdraw_nomination(other)
            self.queue.activate(other.uid, now)  # it has to find another node
        self.evictions.begin(pod.uid, preemption.node, (victim.uid for victim in preemption.victims))
        self.queue.nominate(pod, preemption.node)
        self._sleep(queued, decision, now)
        for uid, node in ((pod.uid, claim), *((other.uid, preemption.node) for other in preemption.cleared)):
            self.outcomes.release(uid, node, now)
        report = Report(pod, UNSCHEDULABLE, decision.message, nominated_node=preemption.node)
        effects: tuple[Effect, ...] = (report, *map(ClearNomination, preemption.cleared))
        if not preemption.victims:  # nothing will happen that could wake the pod
            self.queue.activate(pod.uid, now)
            return effects
        evict = Evict(pod, preemption.node, preemption.victims, preemption.violations)
        return (*effects, evict, *preemption.warnings)

    def _sleep(self, queued: QueuedPod, decision: Decision, now: float) -> None:
        prospects = self.generation.prospects
        self.queue.fail(queued, now, prospects.sleeps_by(queued.info, decision.denied_by))


def _is_of_nodes(decision: Decision) -> bool:
    """Nodes denied the pod, so that others may be in its way there."""
    return decision.denied_by.isdisjoint({ITSELF, EMPTINESS})
