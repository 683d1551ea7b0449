"""The invariants of `tests.state.test_wake_machine` in stories made for them: few nodes, full of pods of any priority.

Pods differ in what lets one keep another away: requests, a port, affinity to others and spreading over hosts or zones,
tolerations. They preempt, claim nodes, lose claims to others, are relabelled; nodes come, go and get taints; bindings
and evictions end late, or fail. Each seed is a story of its own, so one that fails can be told again.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, Final

import pytest
from tests.state.reference import PlainCycle
from tests.state.twins import SeededDice
from tests.unit.core.scheduling import REQUIRED, default_profile, node, pod

from ksp.core.changes import Bind, ClearNomination, DeleteNode, DeletePod, Effect, Report, SetNode, SetPod
from ksp.core.cycle import EMPTINESS, ITSELF
from ksp.core.node_order import ZONE
from ksp.core.preemption import Preempted, Preemption
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step

SEEDS: Final = 2_000 if os.environ.get("KSP_HYPOTHESIS") == "thorough" else 60
PART: Final = 20  # seeds of one test
EVENTS: Final = 45
FOREVER: Final = 1e9
HOSTNAME: Final = "kubernetes.io/hostname"
PLACES: Final = "abc"
APPS: Final = ("web", "db")
TAINT: Final = {"key": "gpu", "effect": "NoSchedule"}
GOING: Final = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
WEB: Final = {"matchLabels": {"app": "web"}}
Fields = dict[str, Any]


def needs(dice: Random) -> Fields:
    """What a pod asks of a node."""
    spec: Fields = {"priority": dice.choice([0, 0, 5, 10, 20])}
    topology = dice.choice([HOSTNAME, ZONE])
    term = {"topologyKey": topology, "labelSelector": WEB}
    constraint = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    near, apart = ({"affinity": {kind: {REQUIRED: [term]}}} for kind in ("podAffinity", "podAntiAffinity"))
    spec |= dice.choice([{}, {}, {}, near, apart, {"topologySpreadConstraints": [constraint]}])
    if dice.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists"}]
    if dice.random() < 0.15:
        spec["preemptionPolicy"] = "Never"
    ports = [{"containerPort": 80, "hostPort": 80}] if dice.random() < 0.25 else []
    requests = {"cpu": str(dice.choice([0, 1, 1, 2, 2, 3, 4]))}
    return spec | {"containers": [{"name": "main", "ports": ports, "resources": {"requests": requests}}]}


class Story:
    """One cluster and what happens in it. `pods` are as the API has them; `asked` is what their status is to name,
    `open` are bindings that have not ended."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.now = 0.0
        self.serial = 0
        self.pods: dict[str, Fields] = {}
        self.nodes: set[str] = set()
        self.asked: dict[str, str] = {}
        self.open: dict[str, str] = {}
        self.is_slow = self.dice.random() < 0.5
        profile = default_profile()
        self.scheduler = core = Scheduler([profile], SeededDice())
        core.queue.patience = FOREVER  # nothing but events may wake a pod
        unread = core.unread.by[profile.scheduler_name]
        self.plain = PlainCycle(profile, core.state, core.queue.nominations.nodes, SeededDice(), unread)
        self.preemption = Preemption(profile, core.present, core.queue.nominations, SeededDice())
        for place in PLACES[: self.dice.randint(1, len(PLACES))]:
            self.node_comes_or_changes(place)

    def show(self, name: str, **fields: Any) -> None:
        """The pod is so from now on."""
        self.pods[name] |= fields
        self.scheduler.on(SetPod(pod(name, **self.pods[name])), self.now)

    def goes(self, name: str) -> None:
        del self.pods[name]
        self.scheduler.on(DeletePod(name), self.now)

    def comes(self, on: str = "") -> None:
        self.serial += 1
        labels = self.dice.choice([{}, {"app": "web"}, {"app": "db"}])
        self.pods[f"p{self.serial}"] = {"labels": labels, **needs(self.dice)}
        self.show(f"p{self.serial}", on=on)

    def some(self, *, placed: bool) -> list[str]:
        """One of the pods, if there is one."""
        names = [name for name, fields in self.pods.items() if bool(fields["on"]) == placed]
        return [self.dice.choice(names)] if names else []

    # ---- events

    def happens(self) -> None:
        events = {
            self.pod_comes: 22, self.pod_runs: 16, self.running_pod_goes: 12, self.waiting_pod_goes: 3,
            self.pod_terminates: 4, self.node_changes: 6, self.node_goes: 3, self.pod_is_relabelled: 4,
            self.victims_go: 10, self.evictions_fail: 3, self.statuses_are_written: 4, self.others_nominate: 1,
            self.bindings_end: 5, self.one_is_decided: 7, self.time_passes: 4,
        }  # fmt: skip
        self.dice.choices(list(events), list(events.values()))[0]()

    def pod_comes(self) -> None:
        if len(self.scheduler.queue) < 4:
            self.comes()
            self.all_are_decided()

    def pod_runs(self) -> None:
        if len(self.pods) < 11:
            self.comes(on=self.dice.choice(PLACES))

    def running_pod_goes(self) -> None:
        for name in self.some(placed=True):
            self.goes(name)

    def waiting_pod_goes(self) -> None:
        for name in self.some(placed=False):
            self.goes(name)

    def pod_terminates(self) -> None:
        for name in self.some(placed=True):
            self.show(name, metadata=GOING)

    def node_changes(self) -> None:
        self.node_comes_or_changes(self.dice.choice(PLACES))

    def node_comes_or_changes(self, name: str) -> None:
        self.nodes.add(name)
        taints = [TAINT] if self.dice.random() < 0.25 else []
        cpu, zone = str(self.dice.choice([2, 3, 4])), self.dice.choice("xy")
        self.scheduler.on(SetNode(node(name, cpu=cpu, labels={HOSTNAME: name}, zone=zone, taints=taints)), self.now)

    def node_goes(self) -> None:
        name = self.dice.choice(PLACES)
        self.nodes.discard(name)
        self.scheduler.on(DeleteNode(name), self.now)

    def pod_is_relabelled(self) -> None:
        for name in self.some(placed=self.dice.random() < 0.5):
            self.show(name, labels={"app": self.dice.choice(APPS)})

    def victims_go(self) -> None:
        for name in sorted(self.scheduler.evictions.victims)[: self.dice.choice([1, 9])]:
            if self.dice.random() < 0.3:
                self.show(name, metadata=GOING)
            else:
                self.goes(name)

    def evictions_fail(self) -> None:
        for queued in list(self.scheduler.queue):
            node = self.scheduler.evictions.node_of(queued.uid)
            if node is not None:
                self.scheduler.evictions_ended(queued.uid, node, self.now, done=False)

    def statuses_are_written(self) -> None:
        for name, claim in self.asked.items():
            if name in self.pods and not self.pods[name]["on"]:
                self.show(name, nominated=claim)
        self.asked.clear()

    def others_nominate(self) -> None:
        for name in self.some(placed=False):
            self.show(name, nominated=self.dice.choice(["", *PLACES]))

    def bindings_end(self) -> None:
        for name, place in self.open.items():
            if name not in self.pods or self.pods[name]["on"] or self.dice.random() < 0.4:
                self.scheduler.bind_failed(name, self.now)
            else:
                self.bound(name, place)
        self.open.clear()

    def bound(self, name: str, place: str) -> None:
        self.scheduler.bind_succeeded(name, self.now)
        self.show(name, on=place)

    # ---- decisions

    def time_passes(self) -> None:
        self.now += self.dice.choice([0.5, 15.0])
        self.all_are_decided()

    def one_is_decided(self) -> bool:
        step = self.scheduler.step(self.now)
        for effect in (*(step.effects if isinstance(step, Step) else ()), *self.scheduler.effects()):
            self.act(effect)
        return step is not None

    def all_are_decided(self) -> None:
        for _ in range(100):
            if not self.one_is_decided() and not self.scheduler.queue.sleepers.owing:
                return
        raise AssertionError("it never ends")

    def act(self, effect: Effect) -> None:
        match effect:
            case Bind(pod=pod, node=place) if self.is_slow:
                self.open[pod.name] = place
            case Bind(pod=pod, node=place):
                self.bound(pod.name, place)
            case Report(pod=pod, nominated_node=str(place)):
                self.asked[pod.name] = place
            case ClearNomination(pod=pod):
                self.asked[pod.name] = ""

    # ---- what holds always

    def check(self) -> None:
        self.nothing_is_left_of_pods_that_are_gone()
        sleepers = self.scheduler.queue.sleepers
        if sleepers.owing or self.scheduler.cache.assumed_count:  # a neighbour is one when the watch shows it
            return
        waited_for = {uid for group in sleepers._held.values() for uid in group.pods}
        for queued in self.scheduler.queue:
            if queued.place is not Place.UNSCHEDULABLE or queued.uid in waited_for:
                continue
            decision = self.plain.decide(queued.info)
            assert not decision.node, (queued.uid, queued.unschedulable_by, decision.node)
            if decision.denied_by.isdisjoint({ITSELF, EMPTINESS}):
                preempted = self.preemption.attempt(queued.info, decision.filtered, self.scheduler.evictions.victims)
                assert not isinstance(preempted, Preempted), (queued.uid, queued.unschedulable_by, preempted)

    def nothing_is_left_of_pods_that_are_gone(self) -> None:
        queue, evictions = self.scheduler.queue, self.scheduler.evictions
        for known in (
            evictions._victims, evictions._preemptors, queue.nominations._node_of, queue.nominations._asked,
            queue.sleepers._due, queue.sleepers._held, queue.sleepers._group_of,
        ):  # fmt: skip
            assert known.keys() <= self.pods.keys()


@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_nobody_sleeps_who_could_be_placed_or_have_others_evicted(first: int) -> None:
    for seed in range(first, first + PART):
        story = Story(seed)
        for event in range(EVENTS):
            story.happens()
            try:
                story.check()
            except AssertionError as error:
                error.add_note(f"seed {seed}, event {event}")
                raise
