"""No pod sleeps that could be placed, or have others evicted: the scheduler against one that retries all pods after
each event.

The shipped rules decide for few pods on few nodes, both of many shapes. Nodes, pods and Services come, change and go;
at times all that is due is decided, and bound at once; victims go a while later. Whenever no question is owed and
nothing is under way, each pod that is left to sleep is tried again on every node, by rules that know nothing of what
was remembered.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace as replaced
from tests.state.reference import PlainCycle
from tests.state.templates import EVERY_OBJECT, NODES, PODS, node, object_change, pod
from tests.state.twins import SeededDice
from tests.unit.core.scheduling import default_profile

from ksp.core.changes import Bind, DeleteNode, DeletePod, SetNode, SetPod
from ksp.core.cycle import EMPTINESS, ITSELF
from ksp.core.preemption import Preempted, Preemption
from ksp.core.queue import Place, QueuedPod
from ksp.core.scheduler import Scheduler, Step

WAITING = tuple(f"p{i}" for i in range(8))
RUNNING = tuple(f"r{i}" for i in range(5))
NODE_NAMES = ("n0", "n1", "n2")
FOREVER = 1e9
LONG = 15.0  # more than any backoff

waiting, running = st.sampled_from(WAITING), st.sampled_from(RUNNING)
node_names = st.sampled_from(NODE_NAMES)
CAST = 5  # templates of one story: few, so that pods meet others that matter to them
templates = st.integers(0, CAST - 1)
node_shapes = st.integers(0, len(NODES) - 1)
priorities = st.sampled_from([None, None, 5, 10, 20])
seldom = st.sampled_from([True, False, False, False])


@dataclass(frozen=True)
class Shown:
    """A pod as the watch showed it last. `node` is "" while it has none; `claim` is the node it is nominated to; `app`
    takes the place of its labels, `priority` that of its own."""

    uid: str
    name: str
    template: int
    node: str = ""
    terminating: bool = False
    claim: str = ""
    app: str = ""
    priority: int | None = None


class WakeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler([default_profile()], SeededDice())
        self.scheduler.queue.patience = FOREVER  # nothing but events may wake a pod
        nominated, unread = self.scheduler.queue.nominations.nodes, self.scheduler.unread.by["default-scheduler"]
        self.plain = PlainCycle(default_profile(), self.scheduler.state, nominated, SeededDice(), unread)
        self.preemption = Preemption(
            default_profile(), self.scheduler.present, self.scheduler.queue.nominations, SeededDice()
        )
        self.now = 0.0
        self.serial = 0
        self.cast: list[int] = []
        self.shown: dict[str, Shown] = {}

    @initialize(
        cast=st.lists(st.integers(0, len(PODS) - 1), min_size=CAST, max_size=CAST),
        nodes=st.lists(node_shapes, min_size=1, max_size=len(NODE_NAMES)),
        running=st.lists(st.tuples(templates, node_names), max_size=len(RUNNING)),
        objects=st.lists(st.sampled_from(EVERY_OBJECT), max_size=8),
    )
    def begin(
        self, cast: list[int], nodes: list[int], running: list[tuple[int, str]], objects: list[tuple[str, str, int]]
    ) -> None:
        self.cast = cast
        for change in objects:
            self.object_comes_or_goes(change)
        for name, shape in zip(NODE_NAMES, nodes, strict=False):
            self.node_comes_or_changes(name, shape)
        for name, (template, place) in zip(RUNNING, running, strict=False):
            self.pod_runs(name, template, place)

    def show(self, shown: Shown) -> None:
        self.shown[shown.name] = shown
        told = pod(
            self.cast[shown.template], shown.name, shown.uid, place=shown.node, terminating=shown.terminating,
            nominatedNodeName=shown.claim,
        )  # fmt: skip
        if shown.app:
            told = replaced(told, metadata=replaced(told.metadata, labels={"app": shown.app}))
        if shown.priority is not None:
            told = replaced(told, spec=replaced(told.spec, priority=shown.priority))
        self.scheduler.on(SetPod(told), self.now)

    # ---- the cluster

    @rule(name=node_names, shape=node_shapes)
    def node_comes_or_changes(self, name: str, shape: int) -> None:
        self.scheduler.on(SetNode(node(name, shape)), self.now)

    @rule(name=node_names)
    def node_goes(self, name: str) -> None:
        self.scheduler.on(DeleteNode(name), self.now)

    @rule(template=templates, many=st.integers(1, 3), priority=priorities)
    def pods_of_a_template_come(self, template: int, many: int, priority: int | None) -> None:
        free = [name for name in WAITING if name not in self.shown]
        for name in free[:many]:
            self.serial += 1
            self.show(Shown(f"{name}.{self.serial}", name, template, priority=priority))
        self.all_that_is_due_is_decided(LONG)

    @rule(name=running, template=templates, place=node_names, priority=priorities)
    def pod_runs(self, name: str, template: int, place: str, priority: int | None = None) -> None:
        """A new one, or one that runs already is not what it was: its labels, terms, ports or requests are others."""
        known = self.shown.get(name)
        self.serial += known is None
        if known is None:
            self.show(Shown(f"{name}.{self.serial}", name, template, place, priority=priority))
        elif self.namespace(template) == self.namespace(known.template):
            self.show(replace(known, template=template))

    def namespace(self, template: int) -> object:
        return PODS[self.cast[template]][1].get("namespace")

    @rule(name=waiting | running, app=st.sampled_from(["web", "db"]))
    def pod_gets_another_label(self, name: str, app: str) -> None:
        if name in self.shown:
            self.show(replace(self.shown[name], app=app))

    @rule(name=running)
    def running_pod_terminates(self, name: str) -> None:
        if name in self.shown:
            self.show(replace(self.shown[name], terminating=True))

    @rule(name=waiting | running)
    def pod_goes(self, name: str) -> None:
        known = self.shown.pop(name, None)
        if known is not None:
            self.scheduler.on(DeletePod(known.uid), self.now)

    @rule(all_of_them=st.booleans())
    def victims_go(self, all_of_them: bool) -> None:
        """Or the first of them does."""
        victims = sorted(self.scheduler.evictions.victims)
        for name in [name for name, known in self.shown.items() if known.uid in victims][: None if all_of_them else 1]:
            self.pod_goes(name)

    @rule()
    def evictions_fail(self) -> None:
        for queued in list(self.scheduler.queue):
            node = self.scheduler.evictions.node_of(queued.uid)
            if node is not None:
                self.scheduler.evictions_ended(queued.uid, node, self.now, done=False)

    @rule(change=st.sampled_from(EVERY_OBJECT))
    def object_comes_or_goes(self, change: tuple[str, str, int]) -> None:
        self.scheduler.on(object_change(*change), self.now)

    @rule(name=waiting, place=node_names, really=seldom)
    def sleeping_pod_is_nominated(self, name: str, place: str, really: bool) -> None:
        queued = self.queued(name)
        if really and queued is not None and queued.place is Place.UNSCHEDULABLE:
            self.scheduler.queue.nominate(queued.info, place)

    @rule(name=waiting, really=seldom)
    def claim_begins(self, name: str, really: bool) -> None:
        """By the pod's status."""
        known = self.shown.get(name)
        if really and known is not None and not known.node:
            self.show(replace(known, claim=NODE_NAMES[0]))

    @rule()
    def claims_end(self) -> None:
        for known in list(self.shown.values()):
            if known.claim and not known.node:
                self.show(replace(known, claim=""))

    def queued(self, name: str) -> QueuedPod | None:
        known = self.shown.get(name)
        return self.scheduler.queue.get(known.uid) if known is not None else None

    # ---- decisions

    @rule(seconds=st.sampled_from([0.0, 0.5, LONG]))
    def all_that_is_due_is_decided(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(4 * len(WAITING)):
            step = self.scheduler.step(self.now)
            if step is None and not self.scheduler.queue.sleepers.owing:
                return
            if isinstance(step, Step):
                self.bind(step.effects[0])
        raise AssertionError("it never ends")

    @rule()
    def one_is_decided(self) -> None:
        step = self.scheduler.step(self.now)
        if isinstance(step, Step):
            self.bind(step.effects[0])

    def bind(self, effect: object) -> None:
        """A bind is shown at once."""
        if isinstance(effect, Bind):
            self.scheduler.bind_succeeded(effect.pod.uid, self.now)
            self.show(replace(self.shown[effect.pod.name], node=effect.node))

    # ---- what holds always

    @invariant()
    def nobody_sleeps_who_could_be_placed(self) -> None:
        sleepers = self.scheduler.queue.sleepers
        if sleepers.owing:
            assert self.scheduler.next_deadline(self.now) == self.now
            return
        waited_for = {uid for group in sleepers._held.values() for uid in group.pods}
        kept = [
            queued
            for queued in self.scheduler.queue
            if queued.place is Place.UNSCHEDULABLE and queued.uid not in waited_for
        ]
        for queued in kept:
            decision = self.plain.decide(queued.info)
            assert not decision.node, (queued.uid, queued.unschedulable_by, decision.node)
            if decision.denied_by.isdisjoint({ITSELF, EMPTINESS}):
                preempted = self.preemption.attempt(queued.info, decision.filtered, self.scheduler.evictions.victims)
                assert not isinstance(preempted, Preempted), (queued.uid, queued.unschedulable_by, preempted)

    @invariant()
    def who_is_waited_for_is_awake(self) -> None:
        for uid in self.scheduler.queue.sleepers._held:
            queued = self.scheduler.queue.get(uid)
            assert queued is not None
            assert queued.place in (Place.ACTIVE, Place.BACKOFF)


# To make a failing example small takes minutes: it is left to the thorough run.
THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
WakeMachine.TestCase.settings = settings(
    max_examples=2000 if THOROUGH else 200,
    stateful_step_count=40,
    phases=tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate),
)
TestWake = WakeMachine.TestCase
