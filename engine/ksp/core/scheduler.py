"""The scheduler without its surroundings: changes and the time go in, effects come out.

    on(change, now)            the cluster changed
    step(now) -> Step | None   the next pod is decided; None if none is due
    effects()                  what is to be done beside: ask after each of the others
    bind_succeeded / bind_failed / volumes_written(uid, now), evictions_ended(uid, now, done=...)
    wrote(chosen, stored, now) a volume or a claim was written
    next_deadline(now)         when a pod becomes due by itself

A pod that gets a node is assumed to be there at once, so that the next decision counts it, while the driver binds it
and, before, its volumes (`ksp.core.bindings`). For a pod that fits nowhere others may have to go: their eviction is
asked for, and the pod is nominated to the node and waits until they are gone (`ksp.core.preemption`).
Names are unique at any time: a pod that comes under the name of another proves that the other is gone. To be told the
same again, be it under another version, changes nothing. It does no I/O, has no clock and no dice of its own: a
recording of what went in gives the same decisions again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ksp.core.bindings import Bindings
from ksp.core.cache import SchedulerCache
from ksp.core.changes import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    Bind,
    BindVolumes,
    Change,
    ClearNomination,
    Effect,
    Evict,
    PodVolumes,
    Report,
)
from ksp.core.cycle import EMPTINESS, ITSELF, MOST_CLASSES, Cycle, Decision
from ksp.core.equivalence.present import Present
from ksp.core.event_handlers import EventHandlers
from ksp.core.evictions import Evictions
from ksp.core.outcomes import Outcomes
from ksp.core.pod_kinds import PodKinds
from ksp.core.preemption import NotEligible, Preempted, Preemption
from ksp.core.prospects import Prospects
from ksp.core.queue import QueuedPod, SchedulingQueue
from ksp.core.state import ClusterState
from ksp.core.unread_pods import UnreadPods
from ksp.core.volume_binder import VolumeBinder, VolumeError
from ksp.core.wake import Wake
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.policy.profile import Profile
from ksp.policy.unread import NOTHING, UnreadFields
from ksp.ports import Dice

NO_VOLUMES = PodVolumes()


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


class Scheduler:
    """Schedules the pods that name one of its profiles.

    For metrics: `pending`, `cache_size`, `queue.incoming` (how often pods came to a place of the queue, and why),
    `queue.sleepers` (questions about unschedulable pods), `unread.counts` (pods with fields that the policy does not
    read), and of each cycle its `classes`. Without `equivalence_classes` nobody is asked about unschedulable pods.
    """

    def __init__(
        self, profiles: Sequence[Profile], dice: Dice, *, queue: SchedulingQueue | None = None,
        assumed_ttl: float | None = None, unread_fields: UnreadFields = UnreadFields.REFUSE,
        equivalence_classes: int = MOST_CLASSES, columns: bool = True,
    ) -> None:  # fmt: skip
        self.state = ClusterState()
        self.cache = SchedulerCache(self.state, assumed_ttl)
        self.queue = SchedulingQueue() if queue is None else queue
        self.present = Present.of(self.state)
        self.tables = self.present.tables
        self.volumes = VolumeBinder(self.state)
        self.bindings = Bindings(self.cache, self.volumes)
        self.evictions = Evictions()
        self.wake = Wake(profiles)
        self.unread = UnreadPods(profiles, unread_fields)
        self.cycles = {
            profile.scheduler_name: Cycle(
                profile, self.present, self.queue.nominations.nodes, dice, self.unread.by[profile.scheduler_name],
                equivalence_classes=equivalence_classes, columns=columns,
            )
            for profile in profiles
        }  # fmt: skip
        self.preemptions = {
            profile.scheduler_name: Preemption(profile, self.present, self.queue.nominations, dice)
            for profile in profiles
        }
        self.outcomes = Outcomes(self.cache, self.queue, self.bindings, self.evictions, self.wake)
        self.handlers = EventHandlers(self.state, self.outcomes, self.unread, self.cycles)
        self.prospects = Prospects(
            self.state, self.cycles, self.preemptions, self.queue.nominations, self.evictions,
            self.queue.sleepers.spend,
        )  # fmt: skip
        if equivalence_classes:
            self.queue.sleepers.denied_by = self.prospects.denied_by
            self.queue.sleepers.kind_of = PodKinds(profiles).of

    # ---- sizes

    def pending(self) -> dict[str, int]:
        """How many pods wait, by queue: active, backoff, unschedulable, gated."""
        return self.queue.pending()

    def cache_size(self) -> dict[str, int]:
        """How many nodes there are, pods placed on any node (assumed ones included), and assumed pods."""
        return {
            "nodes": len(self.state.nodes),
            "pods": len(self.cache),
            "assumed_pods": self.cache.assumed_count,
        }

    # ---- decisions

    def effects(self) -> tuple[Effect, ...]:
        """What is to be done, each once, because of changes, outcomes and time: not for an attempt, whose effects are
        in its Step."""
        made = tuple(self.outcomes.effects)
        self.outcomes.effects.clear()
        return made

    def step(self, now: float) -> Step | None:
        """Decide for the next pod that is due."""
        self.outcomes.expire(now)
        queued = self.queue.pop(now)
        if queued is None:
            return None
        decision = self.cycles[queued.info.scheduler_name].decide(queued.info)
        if decision.unread is not NOTHING:
            self.unread.decided(queued.info, decision.unread)
        preempted = None
        if decision.node and (volumes := self._volumes(queued.info, decision)) is not None:
            effects: tuple[Effect, ...] = (self._place(queued.info, decision.node, volumes, now),)
        elif decision.failed:
            self.queue.retry(queued, now)
            effects = (Report(queued.info, SCHEDULER_ERROR, decision.message),)
        else:
            try:
                preempted, effects = self._unfit(queued, decision, now)
            except Exception:  # then nobody is told to evict, and the pod must not wait for it
                self.evictions.give_up(queued.uid)
                raise
        return Step(queued.info, queued.attempts, decision, (*effects, *self.unread.said()), preempted)

    def _volumes(self, pod: PodInfo, decision: Decision) -> PodVolumes | None:
        """What has to be done for the pod's claims on its node. None, and the decision is an error, if that cannot be
        done: the rule for volumes would have to have denied the node."""
        timeout = self.cycles[pod.scheduler_name].profile.bind_timeout
        if timeout is None or not pod.claim_names:
            return NO_VOLUMES
        try:
            return self.volumes.find(pod, self.state.nodes[decision.node])
        except VolumeError as error:
            decision.node, decision.failed, decision.message = "", True, str(error)
            return None

    def _place(self, pod: PodInfo, node: str, volumes: PodVolumes, now: float) -> Bind | BindVolumes:
        claim = self.queue.nominations.node_of(pod.uid)
        timeout = self.cycles[pod.scheduler_name].profile.bind_timeout
        effect = self.bindings.begin(pod, node, volumes, timeout or 0.0)
        self.evictions.give_up(pod.uid)
        self.queue.clear_nomination(pod.uid)
        self.outcomes.release(pod.uid, claim, now)
        return effect

    def _unfit(self, queued: QueuedPod, decision: Decision, now: float) -> tuple[Preempted | None, tuple[Effect, ...]]:
        """No node fits the pod. Others go for its sake, if that helps; else it claims no node any more, unless it waits
        for pods that are on their way out."""
        pod, outcome = queued.info, self._preempt(queued.info, decision)
        if isinstance(outcome, NotEligible):
            self._sleep(queued, decision, now)
            return None, (Report(pod, UNSCHEDULABLE, decision.message),)
        claim = self.queue.nominations.node_of(pod.uid)
        if outcome is None:
            self._sleep(queued, decision, now)
            self.queue.withdraw_nomination(pod)
            self.outcomes.release(pod.uid, claim, now)
            return None, (Report(pod, UNSCHEDULABLE, decision.message, nominated_node=""),)
        for other in outcome.cleared:
            self.queue.withdraw_nomination(other)
            self.queue.activate(other.uid, now)  # it has to find another node
        self.evictions.begin(pod.uid, (victim.uid for victim in outcome.victims))
        self.queue.nominate(pod, outcome.node)
        self._sleep(queued, decision, now)
        for uid, node in ((pod.uid, claim), *((other.uid, outcome.node) for other in outcome.cleared)):
            self.outcomes.release(uid, node, now)
        report = Report(pod, UNSCHEDULABLE, decision.message, nominated_node=outcome.node)
        effects: tuple[Effect, ...] = (report, *map(ClearNomination, outcome.cleared))
        if not outcome.victims:  # nothing will happen that could wake the pod
            self.queue.activate(pod.uid, now)
            return outcome, effects
        return outcome, (*effects, Evict(pod, outcome.node, outcome.victims, outcome.violations), *outcome.warnings)

    def _sleep(self, queued: QueuedPod, decision: Decision, now: float) -> None:
        self.queue.fail(queued, now, self.prospects.sleeps_by(queued.info, decision.denied_by))

    def _preempt(self, pod: PodInfo, decision: Decision) -> Preempted | NotEligible | None:
        if not decision.denied_by.isdisjoint({ITSELF, EMPTINESS}):
            return None
        preemption = self.preemptions[pod.scheduler_name]
        return preemption.attempt(pod, decision.filtered, self.evictions.victims)

    def next_deadline(self, now: float) -> float | None:
        """When a pod that waits becomes due, or an assumption expires, or waiting for volumes ends; None if nothing
        waits for time."""
        if self.outcomes.effects:
            return now
        due = (self.queue.next_deadline(now), self.cache.next_deadline(), self.bindings.next_deadline())
        return min((d for d in due if d is not None), default=None)

    # ---- what comes from outside

    def on(self, change: Change, now: float) -> None:
        """Take a change in."""
        self.handlers.on(change, now)

    def bind_succeeded(self, uid: str, now: float) -> None:
        """The pod is bound; the watch will show it."""
        self.outcomes.bind_succeeded(uid, now)

    def bind_failed(self, uid: str, now: float) -> None:
        """The pod is not bound: it leaves the node, and is tried again after its backoff."""
        self.outcomes.bind_failed(uid, now)

    def wrote(
        self, chosen: PersistentVolume | PersistentVolumeClaim, stored: PersistentVolume | PersistentVolumeClaim,
        now: float,
    ) -> None:  # fmt: skip
        """The API has `stored`, which was `chosen` for a pod, perhaps before a watch shows it."""
        self.handlers.wrote(chosen, stored, now)

    def volumes_written(self, uid: str, now: float) -> None:
        """The API was asked to bind the pod's claims; once the watch shows that they are bound, there is a Bind."""
        self.outcomes.volumes_written(uid, now)

    def evictions_ended(self, uid: str, now: float, *, done: bool) -> None:
        """The pods that had to go for that pod's sake are deleted; or, if not `done`, some are not."""
        self.outcomes.evictions_ended(uid, now, done=done)

    def relisted(self, began: float, now: float) -> None:
        """A list of all pods that was asked for at `began` has been told."""
        self.outcomes.relisted(began, now)
