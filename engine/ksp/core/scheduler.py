"""The scheduler without its surroundings: changes and the time go in, effects come out.

    on(change, now)            the cluster changed
    step(now)                  the next pod is decided: a Step; an Ask if extenders have a say; None if none is due
    answer(answers, now)       what extenders say: a Step, or the next Ask
    effects()                  what is to be done beside: ask after each of the others
    bind_succeeded / bind_failed / volumes_written(uid, now), evictions_ended(uid, node, now, done=...)
    wrote(chosen, stored, now) a volume or a claim was written
    next_deadline(now)         when a pod becomes due by itself
    prepare / adopt            another policy decides from now on (`ksp.core.generation`)

A pod that gets a node is assumed to be there at once, so that the next decision counts it, while the driver binds it
and, before, its volumes (`ksp.core.bindings`). For a pod that fits nowhere others may have to go: their eviction is
asked for, and the pod is nominated to the node and waits until they are gone (`ksp.core.preemption`).
While extenders are asked the attempt stands still (`asked`), and with it the state in which it decides: what comes in
waits, in order, until there is an answer.
Names are unique at any time: a pod that comes under the name of another proves that the other is gone. To be told the
same again, be it under another version, changes nothing. It does no I/O, has no clock and no dice of its own: a
recording of what went in gives the same decisions again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ksp.compile.tables import Tables
from ksp.core.attempts import Attempts, Step
from ksp.core.bindings import Bindings
from ksp.core.cache import SchedulerCache
from ksp.core.changes import Change, Effect
from ksp.core.cycle import MOST_CLASSES, Cycle
from ksp.core.equivalence.present import Present
from ksp.core.errors import StateError
from ksp.core.event_handlers import EventHandlers
from ksp.core.evictions import Evictions
from ksp.core.generation import Generation, Lasting, Preparation
from ksp.core.outcomes import Outcomes
from ksp.core.preemption import Preemption
from ksp.core.probation import Probation, Standing, Terms
from ksp.core.questions import Answer, Ask
from ksp.core.queue import Place, SchedulingQueue
from ksp.core.state import ClusterState
from ksp.core.unread_pods import UnreadPods
from ksp.core.volume_binder import VolumeBinder
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile
from ksp.policy.unread import UnreadFields
from ksp.ports import Dice

__all__ = ["POLICY_RELOAD", "Adopted", "Scheduler", "Step"]

POLICY_RELOAD: Final = "PolicyReload"
"""Why pods come to a place of the queue: another policy decides."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What another policy changed at once: the pods that `left`, as no profile decides for them any more; the names of
    schedulers that have a profile now and had none before (`came`), whose pods are to be told of again; and how many
    unschedulable pods `moved`."""

    left: tuple[PodInfo, ...]
    came: frozenset[str]
    moved: int


class Scheduler:
    """Schedules the pods that name one of its profiles. `extenders` have a say.

    For metrics: `pending`, `cache_size`, `queue.incoming` (how often pods came to a place of the queue, and why),
    `queue.sleepers` (questions about unschedulable pods), `unread.counts` (pods with fields that the policy does not
    read), and of each cycle its `classes`. Without `equivalence_classes` nobody is asked about unschedulable pods.
    """

    def __init__(
        self, profiles: Sequence[Profile], dice: Dice, *, queue: SchedulingQueue | None = None,
        assumed_ttl: float | None = None, unread_fields: UnreadFields = UnreadFields.REFUSE,
        equivalence_classes: int = MOST_CLASSES, columns: bool = True, extenders: Sequence[Extender] = (),
    ) -> None:  # fmt: skip
        self.state = ClusterState()
        self.cache = SchedulerCache(self.state, assumed_ttl)
        self.queue = SchedulingQueue() if queue is None else queue
        self.volumes = VolumeBinder(self.state)
        self.bindings = Bindings(self.cache, self.volumes)
        self.evictions = Evictions()
        self._lasting = Lasting(
            Present.of(self.state), self.queue, self.evictions, dice, unread_fields, equivalence_classes, columns
        )
        generation = Generation.of(1, profiles, extenders, self._lasting)
        self.unread = UnreadPods(generation.unread_by, generation.running)
        self.outcomes = Outcomes(
            self.cache, self.queue, self.bindings, self.evictions, generation.wake, generation.cycles
        )
        self.handlers = EventHandlers(self.state, self.outcomes, self.unread)
        self.attempts = Attempts(generation, self.state, self.outcomes, self.unread)
        self._late: list[Callable[[], object]] = []
        self._faults: list[Exception] = []
        self._decide_by(generation)

    # ---- what decides

    @property
    def generation(self) -> Generation:
        """What decides now: its number, profiles and extenders."""
        return self.attempts.generation

    @property
    def present(self) -> Present:
        return self.generation.present

    @property
    def tables(self) -> Tables:
        return self.generation.present.tables

    @property
    def cycles(self) -> dict[str, Cycle]:
        return self.generation.cycles

    @property
    def preemptions(self) -> Mapping[str, Preemption]:
        return self.generation.preemptions

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

    @property
    def asked(self) -> Ask | None:
        """The questions to extenders that have to be answered before anything else happens."""
        return self.attempts.asked

    def step(self, now: float) -> Step | Ask | None:
        """Decide for the next pod that is due; None while a question is open."""
        if self.attempts.asked is not None:
            return None
        if self._faults:
            faults, self._faults = self._faults, []
            raise ExceptionGroup("taking in what came while extenders were asked", faults)
        self.outcomes.expire(now)
        queued = self.queue.pop(now)
        return None if queued is None else self.attempts.begin(queued, now)

    def answer(self, answers: Sequence[Answer], now: float) -> Step | Ask:
        """Go on with the attempt that waits: one answer for each of its questions, in order. Raises StateError if none
        waits. Once it has ended, what came in meanwhile is taken in; a fault in that is raised by the next `step`."""
        try:
            return self.attempts.resume(answers, now)
        finally:
            if self.attempts.asked is None:
                self._catch_up()

    def next_deadline(self, now: float) -> float | None:
        """When a pod that waits becomes due, or an assumption expires, or waiting for volumes ends; None if nothing
        waits for time."""
        if self.outcomes.effects or self._faults:
            return now
        if self.attempts.asked is not None:
            return None
        due = (self.queue.next_deadline(now), self.cache.next_deadline(), self.bindings.next_deadline())
        return min((d for d in due if d is not None), default=None)

    # ---- another policy

    def prepare(self, profiles: Sequence[Profile], extenders: Iterable[Extender]) -> Preparation:
        """A generation for these profiles, to be prepared in slices beside all else, and then adopted."""
        waiting = (queued.info for queued in self.queue)
        return Preparation(Generation(0, extenders, self._lasting), profiles, waiting, self.attempts.lately)

    def adopt(self, generation: Generation, now: float, terms: Terms | None = None) -> Adopted:
        """From now on this generation decides, under the next number; on probation if there are `terms`. All
        unschedulable pods are tried again, once they have backed off. Pods without a profile leave, those in flight if
        they come back; those that have one now and had none are to be told of again. Nominations stay, and bindings go
        on. Raises StateError while a question is open."""
        if self.attempts.asked is not None:
            raise StateError("another policy cannot be adopted while extenders are asked")
        before, held = self.attempts.generation, self._held()
        proven = self._proven(now)
        generation.number = before.number + 1
        self._decide_by(generation)
        self.attempts.probation = None
        if terms is not None:
            proven.rest()
            self.attempts.probation = Probation(proven, generation, self.queue.nominations, terms, now)
        self._free_others(held)
        left = self._without_profile()
        for pod in left:
            self.outcomes.leave(pod)
        moved = self.queue.move_all(now, POLICY_RELOAD)
        return Adopted(left, frozenset(generation.cycles.keys() - before.cycles.keys()), moved)

    @property
    def probation(self) -> Probation | None:
        """While the policy is on probation: how it stands."""
        return self.attempts.probation

    def end_probation(self) -> None:
        """The policy stays. Nothing is kept any more of the one before."""
        held = self._held()
        self.attempts.probation = None
        self._free_others(held)

    def go_back(self, now: float) -> Adopted:
        """The policy is not what it should be: the generation before decides again, under the next number. Raises
        StateError if there is none, or while a question is open."""
        probation = self.attempts.probation
        if probation is None:
            raise StateError("there is no policy to go back to")
        adopted = self.adopt(probation.before, now)
        probation.before.resume()
        return adopted

    def _proven(self, now: float) -> Generation:
        """The last generation of which it is not in doubt that it can decide."""
        probation = self.attempts.probation
        if probation is None or probation.verdict(now).standing is Standing.PASSED:
            return self.attempts.generation
        return probation.before

    def _held(self) -> list[Generation]:
        """Those that decide, or may again."""
        probation = self.attempts.probation
        return [self.attempts.generation, *([probation.before] if probation is not None else [])]

    def _free_others(self, held: Iterable[Generation]) -> None:
        still = self._held()
        for each in held:
            if each not in still:
                each.free()

    def _decide_by(self, generation: Generation) -> None:
        self.attempts.generation = generation
        self.outcomes.wake, self.outcomes.ours = generation.wake, generation.cycles
        self.unread.by, self.unread.running = generation.unread_by, generation.running
        if self._lasting.equivalence_classes:
            self.queue.sleepers.denied_by = generation.prospects.denied_by
            self.queue.sleepers.kind_of = generation.kind_of

    def _without_profile(self) -> tuple[PodInfo, ...]:
        """The pods that wait, or are gated, and that nobody decides for."""
        waiting = [queued.info for queued in self.queue if queued.place is not Place.IN_FLIGHT]
        ours = self.generation.cycles
        return tuple([pod for pod in (*waiting, *self.queue.gated()) if pod.scheduler_name not in ours])

    # ---- what comes from outside

    def on(self, change: Change, now: float) -> None:
        """Take a change in."""
        if self.attempts.asked is None:
            self.handlers.on(change, now)
        else:
            self._late.append(partial(self.handlers.on, change, now))

    def bind_succeeded(self, uid: str, now: float) -> None:
        """The pod is bound; the watch will show it."""
        self._take_in(partial(self.outcomes.bind_succeeded, uid, now))

    def bind_failed(self, uid: str, now: float) -> None:
        """The pod is not bound: it leaves the node, and is tried again after its backoff."""
        self._take_in(partial(self.outcomes.bind_failed, uid, now))

    def wrote(
        self, chosen: PersistentVolume | PersistentVolumeClaim, stored: PersistentVolume | PersistentVolumeClaim,
        now: float,
    ) -> None:  # fmt: skip
        """The API has `stored`, which was `chosen` for a pod, perhaps before a watch shows it."""
        self._take_in(partial(self.handlers.wrote, chosen, stored, now))

    def volumes_written(self, uid: str, now: float) -> None:
        """The API was asked to bind the pod's claims; once the watch shows that they are bound, there is a Bind."""
        self._take_in(partial(self.outcomes.volumes_written, uid, now))

    def evictions_ended(self, uid: str, node: str, now: float, *, done: bool) -> None:
        """The pods that had to go from the node for that pod's sake are deleted; or, if not `done`, some are not."""
        self._take_in(partial(self.outcomes.evictions_ended, uid, node, now, done=done))

    def relisted(self, began: float, now: float) -> None:
        """A list of all pods that was asked for at `began` has been told."""
        self._take_in(partial(self.outcomes.relisted, began, now))

    def _take_in(self, what: Callable[[], object]) -> None:
        """Now, or once the open question is answered."""
        if self.attempts.asked is None:
            what()
        else:
            self._late.append(what)

    def _catch_up(self) -> None:
        """Take in what came while a question was open, each at the time at which it came."""
        late, self._late = self._late, []
        for what in late:
            try:
                what()
            except Exception as fault:  # noqa: BLE001 - the others are taken in all the same
                self._faults.append(fault)
