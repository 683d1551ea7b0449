"""Drives a scheduler as the runtime does, and checks all that it asks for: what it is told the model is told, too.

Effects are carried out on the world by whoever drives the machine, and end when and how he likes: `binds`, `writes` (of
volumes), `evicts` and `nominations` (to be written into the status of pods) are those that have not ended. `tried` has
how much had `happened` when a pod was tried last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tests.state.churn_checks import Anew, check_agreement, check_decision, check_place, check_same
from tests.state.churn_extenders import Moody
from tests.state.churn_model import OURS, Given, Model, Phase
from tests.state.churn_objects import PLAIN, RANKS, pod
from tests.state.churn_parts import Binding, Eviction, LateScheduler, SeededDice, Writing
from tests.state.churn_policies import policies
from tests.state.churn_reload import Reloads
from tests.state.churn_world import CLAIMS, VOLUMES, Listed, World

from ksp.core.changes import (
    SCHEDULER_ERROR,
    Bind,
    BindVolumes,
    Change,
    ClearNomination,
    DeleteNode,
    DeletePod,
    Effect,
    Evict,
    Report,
    SetObject,
    SetPod,
    Warn,
)
from ksp.core.queue import Place, SchedulingQueue
from ksp.core.scheduler import Step
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume

FOR_EVER: Final = 1e9
"""Seconds of patience with which no pod that slept in vain is ever woken by the net."""
PROBED: Final = 8
"""Of so many checks one also asks what would be decided now."""
STEPS: Final = 200
"""Attempts, or calls that ask about pods, after which nothing should be due any more."""


class Driver:
    """A scheduler, what it is told, and what it asks for."""

    def __init__(self, ttl: float | None, patience: float) -> None:
        (profile,) = policies()[0].profiles
        queue = SchedulingQueue(patience=patience)
        self.scheduler = LateScheduler([profile], SeededDice(), queue=queue, assumed_ttl=ttl)
        self.world = World()
        self.model = Model(ttl, profile.bind_timeout or 0.0)
        self.reloads = Reloads(self)
        self.extenders = Moody()
        self.shown: set[str] = set()
        self.now = 0.0
        self.binds: dict[str, Binding] = {}
        self.writes: dict[str, Writing] = {}
        self.evicts: list[Eviction] = []
        self.nominations: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.warned: set[tuple[str, str]] = set()
        self.happened = 0
        self.tried: dict[str, int] = {}
        self.checks = 0

    # ---- the watch

    def show(self, stream: str, most: int = 1_000) -> None:
        """The watch shows what is next in the stream."""
        pending = self.world.streams[stream]
        for _ in range(min(most, len(pending))):
            match pending.popleft():
                case Listed(began=began, pods=pods):
                    self._listed(began, [pod.metadata.uid for pod in pods], [SetPod(pod) for pod in pods])
                case change:
                    self.tell(change)

    def tell(self, change: Change) -> None:
        match change:
            case SetPod(pod=pod):
                self.shown.add(pod.metadata.uid)
            case DeletePod(uid=uid):
                self.shown.discard(uid)
        self.happened += 1
        self.scheduler.on(change, self.now)
        self.then(self._told, change)

    def _told(self, change: Change) -> None:
        self.model.told(change)
        self.take_effects()
        if isinstance(change, DeleteNode):
            assert change.name not in self.model.nominations(), "a claim on a node that is gone"

    def then(self, what: Callable[..., object], *args: Any) -> None:
        """Follow what the scheduler was told: at once, or once it takes that in, when the open question is answered."""
        self.scheduler.follow(partial(what, *args))

    def _listed(self, began: float, there: list[str], shown: list[SetPod]) -> None:
        for change in shown:
            self.tell(change)
        for uid in sorted(self.shown - set(there)):
            self.tell(DeletePod(uid))
        self.scheduler.relisted(began, self.now)
        self.then(self._relisted, began)

    def _relisted(self, began: float) -> None:
        self.model.relisted(began)
        self.take_effects()

    # ---- decisions

    def step(self, *, answered: bool = True) -> bool:
        """Whether a pod was due. Questions are `answered` at once, or later."""
        if self.scheduler.asked is not None:
            assert self.scheduler.step(self.now) is None
            assert self.scheduler.next_deadline(self.now) is None
            return False
        queue = self.scheduler.queue
        first = max((queued.info.priority for queued in queue if queued.place is Place.ACTIVE), default=None)
        step = self.scheduler.step(self.now)
        self.model.expire(self.now)
        self.take_effects()
        assert not self.model.overdue(self.now), "pods wait for claims for too long"
        if step is None:
            assert first is None
            return False
        assert first is None or step.pod.priority >= first, "a pod of lower priority is first"
        if isinstance(step, Step):
            self._decided(step)
        elif answered:
            self.answer_all()
        return True

    def answer_all(self) -> None:
        """All open questions, if there are any."""
        while self.answer():
            pass

    def answer(self) -> bool:
        """Whether the next question was open. When the attempt has ended, what came in meanwhile follows."""
        ask = self.scheduler.asked
        if ask is None:
            return False
        made = self.scheduler.answer(self.extenders.answers(ask), self.now)
        if isinstance(made, Step):
            self._decided(made)
            self.take_effects()
            self.scheduler.catch_up()
            self.take_effects()
        return True

    def _decided(self, step: Step) -> None:
        self._check(step)
        self.tried[step.pod.uid] = self.happened

    def _check(self, step: Step) -> None:
        uid = step.pod.uid
        assert self.model.waits(uid), "a pod that does not wait"
        assert uid not in self.model.given, "placed twice"
        policy = self.reloads.policy
        anew = Anew(self.model, policy.profiles, self.scheduler)
        exchanges, self.extenders.exchanges = self.extenders.exchanges, []
        check_decision(step, anew, policy.extenders, exchanges)
        self.reloads.decided(step, anew)
        effect, *more = step.effects
        warnings = [each for each in more if isinstance(each, Warn)]
        for warning in warnings:
            self._warn(warning)
        if isinstance(effect, Report):
            self._unfit(step, effect, [each for each in more if not isinstance(each, Warn)])
            return
        assert isinstance(effect, Bind | BindVolumes)
        assert len(step.effects) == 1 + len(warnings)
        assert effect.node == step.decision.node
        check_place(effect, anew)
        self._place(effect)

    def _warn(self, warning: Warn) -> None:
        assert warning.fields
        for path in warning.fields:
            assert (warning.pod.uid, path) not in self.warned, "told twice"
            self.warned.add((warning.pod.uid, path))

    def _place(self, effect: Bind | BindVolumes) -> None:
        uid, model = effect.pod.uid, self.model
        self.happened += 1
        self.reasons.pop(uid, None)
        model.nominated.pop(uid, None)
        model.evicting.pop(uid, None)
        if isinstance(effect, Bind):
            model.given[uid] = Given(effect.node, Phase.BINDING, self.now)
            self._bind(effect)
        else:
            model.given[uid] = Given(effect.node, Phase.VOLUMES, self.now, effect.pod.claim_names)
            model.assume(uid, effect.node, effect.volumes)
            assert uid not in self.writes, "volumes are written twice at a time"
            self.writes[uid] = Writing(effect)

    def _bind(self, effect: Bind) -> None:
        assert effect.pod.uid not in self.binds, "two bindings at a time"
        self.binds[effect.pod.uid] = Binding(effect)

    def _unfit(self, step: Step, report: Report, more: list[Effect]) -> None:
        """A pod that fits nowhere: it is said why, and others go for its sake, or nobody."""
        pod, model, preempted = step.pod, self.model, step.preempted
        self._report(report)
        if preempted is not None:
            self.happened += 1
            there = model.nominations().get(preempted.node, ())
            lower = [other for other in there if PodInfo.of(model.pods[other]).priority < pod.priority]
            assert report.nominated_node == preempted.node
            assert [each.pod.uid for each in more if isinstance(each, ClearNomination)] == lower
            evicts = [each for each in more if isinstance(each, Evict)]
            assert len(evicts) == bool(preempted.victims)
            assert len(more) == len(lower) + len(evicts)
            model.evicting.pop(pod.uid, None)
            for uid in lower:
                self._clear(uid)
            for effect in evicts:
                self._evict(effect, pod, preempted.node, [victim.uid for victim in preempted.victims])
            model.nominate(pod.uid, preempted.node)
            return
        assert not more
        if report.nominated_node is None:  # an error, or it waits for pods that are on their way out
            model.follow_status(pod.uid)
        else:
            assert report.nominated_node == ""
            model.nominated.pop(pod.uid, None)

    def _evict(self, effect: Evict, pod: PodInfo, place: str, victims: list[str]) -> None:
        assert (effect.preemptor.uid, effect.node) == (pod.uid, place)
        assert [victim.uid for victim in effect.victims] == victims
        assert all(uid in self.model.pods for uid in victims)
        self.evicts.append(Eviction(effect, victims))
        self.model.evicting[pod.uid] = set(victims)
        self.model.evicting_on[pod.uid] = place

    # ---- effects

    def take_effects(self, losing: str = "") -> None:
        """Effects that no attempt led to. Only that pod loses its claim on a node that is there."""
        for effect in self.scheduler.effects():
            self.happened += 1
            uid = effect.pod.uid if not isinstance(effect, Evict) else ""
            assert uid in self.model.pods, "an effect for a pod that is gone"
            match effect:
                case Bind(node=place):
                    given = self.model.given[uid]
                    assert (given.node, given.phase) == (place, Phase.CLAIMS)
                    assert self.model.has_its_claims(uid), "the pod is bound before its claims"
                    given.phase = Phase.BINDING
                    self._bind(effect)
                case Report(reason=reason):
                    assert reason == SCHEDULER_ERROR
                    assert self.model.given[uid].phase is Phase.CLAIMS
                    self._report(effect)
                    self.model.ended(uid)
                case Warn(reason="ProfileRemoved"):
                    assert not self.model.leaving.pop(uid), "its status still names a node"
                case ClearNomination() if uid in self.model.leaving:
                    assert self.model.leaving[uid]
                    self.model.leaving[uid] = self.nominations[uid] = ""
                case ClearNomination():
                    assert uid == losing or self.model.nominated[uid] not in self.model.nodes
                    self._clear(uid)
                case _:
                    raise AssertionError(effect)
        assert self.scheduler.effects() == ()
        assert not self.model.leaving, "pods left, and nobody told them"

    def _report(self, report: Report) -> None:
        assert report.message
        self.reasons[report.pod.uid] = report.message
        if report.nominated_node is not None:
            self.model.ask(report.pod.uid, report.nominated_node)
            self.nominations[report.pod.uid] = report.nominated_node

    def _clear(self, uid: str) -> None:
        self.model.nominated.pop(uid)
        self.model.ask(uid, "")
        self.nominations[uid] = ""

    # ---- outcomes

    def bound(self, uid: str) -> None:
        """The binding is known to have succeeded."""
        del self.binds[uid]
        self.scheduler.bind_succeeded(uid, self.now)
        self.then(self._goes_on, uid, Phase.BOUND, self.now)

    def _goes_on(self, uid: str, phase: Phase, now: float) -> None:
        given = self.model.given.get(uid)
        if given is not None:
            given.phase, given.since = phase, now
        self.take_effects()

    def not_bound(self, uid: str) -> None:
        self.happened += 1
        self.binds.pop(uid, None)
        self.writes.pop(uid, None)
        self.scheduler.bind_failed(uid, self.now)
        self.then(self._ended, uid)

    def _ended(self, uid: str) -> None:
        self.model.ended(uid)
        self.take_effects()

    def write(self, writing: Writing, most: int = 1_000) -> bool:
        """The API is told of so many objects; whether that are all, and all is well."""
        return writing.done or self.world.write_volumes(writing.effect, most, self._wrote)

    def _wrote(self, known: Any, stored: Any) -> None:
        """The scheduler need not wait for a watch to see what was written."""
        self.happened += 1
        self.scheduler.wrote(known, stored, self.now)
        self.then(self._written_to, known, stored)

    def _written_to(self, known: Any, stored: Any) -> None:
        who, kind = stored.metadata, VOLUMES if isinstance(stored, PersistentVolume) else CLAIMS
        there = self.model.others.get((kind, who.namespace, who.name))
        if there is not None and there.metadata.resource_version == known.metadata.resource_version:
            self.model.told(SetObject(kind, who.namespace, who.name, stored))
        self.take_effects()

    def written(self, uid: str) -> None:
        """The API has been told which volumes the pod's claims get."""
        del self.writes[uid]
        self.scheduler.volumes_written(uid, self.now)
        self.then(self._goes_on, uid, Phase.CLAIMS, self.now)

    def evicted(self, eviction: Eviction, *, done: bool) -> None:
        self.evicts.remove(eviction)
        uid, place = eviction.effect.preemptor.uid, eviction.effect.node
        self.scheduler.evictions_ended(uid, place, self.now, done=done)
        self.then(self._evicted, uid, "" if done else place)

    def _evicted(self, uid: str, failed: str) -> None:
        """Without a node all is well."""
        if failed and self.model.evicting_on.get(uid) == failed:
            self.model.evicting.pop(uid, None)
        claim = self.model.nominated.get(uid)
        self.take_effects(losing=uid if claim == failed else "")
        assert self.model.nominated.get(uid) == (None if claim == failed else claim)

    # ---- time

    def wait(self, seconds: float) -> None:
        """Nothing is due before the scheduler has said it would be."""
        due, happened = self.scheduler.next_deadline(self.now), self.happened
        self.now += seconds
        if due is None or due > self.now:
            assert not self.step(), "a pod was due of which nobody knew"
            assert self.happened == happened, "something was due of which nobody knew"

    def step_until_nothing_is_due(self) -> int:
        """How many attempts there were."""
        attempts = 0
        self.answer_all()
        for _ in range(STEPS):
            due = self.scheduler.next_deadline(self.now)
            if due is None or due > self.now:
                assert self.scheduler.pending()["active"] == 0
                return attempts
            attempts += self.step()
        raise AssertionError("something is always due, and nothing comes of it")

    def check(self) -> None:
        """What has to hold at any time."""
        anew = Anew(self.model, self.reloads.policy.profiles, self.scheduler)
        self.reloads.check()
        check_agreement(self.scheduler, self.model, anew)
        for queued in self.scheduler.queue:
            if queued.place is Place.UNSCHEDULABLE:
                assert self.reasons.get(queued.uid), "nobody was told why the pod waits"
        ends, due = self.model.next_end(), self.scheduler.next_deadline(self.now)
        asked = self.scheduler.asked is not None
        assert asked or ends is None or (due is not None and due <= max(ends, self.now)), "nobody looks then"
        self.checks += 1
        if self.checks % PROBED == 0:
            self._probe(self.checks // PROBED, anew)

    def _probe(self, number: int, anew: Anew) -> None:
        """What would be said now of a pod that nobody waits for: of another one each time."""
        probe = PodInfo.of(pod(PLAIN[number % len(PLAIN)], number % len(RANKS), "probe", f"probe.{number}"))
        if OURS in anew.cycles:
            check_same(self.scheduler.cycles[OURS].decide(probe), anew.decide(probe))
