"""When a trial is over, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.state import storage
from tests.unit.core.scheduling import FakeDice, default_profile, node, pod

from ksp.cli.live import Follower
from ksp.core.changes import Bind, BindVolumes, DeletePod, SetNode, SetObject, SetPod
from ksp.core.scheduler import Scheduler, Step
from ksp.model.info import PodInfo
from ksp.runtime.observer import Binding
from ksp.sim.outcome import Fate, PodRecord

LACKS_CLAIM: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}


@dataclass
class Audience:
    told: list[tuple[str, str]] = field(default_factory=list)

    def expect(self, pods: int) -> None:
        pass

    def tell(self, time: float, record: PodRecord) -> None:
        self.told.append((record.name, record.node))


class Scene:
    """A scheduler with one node of 2 CPUs, and who follows it. Time passes when a test says so."""

    def __init__(self) -> None:
        self.scheduler = Scheduler([default_profile()], FakeDice())
        self.audience = Audience()
        self.time = 0.0
        self.follower = Follower(self.audience, lambda: len(self.scheduler.state.nodes), lambda: self.time)
        self.scheduler.on(SetNode(node("n", cpu="2")), 0.0)

    def tries(self, name: str, cpu: str = "1", **spec: Any) -> Step:
        """The pod comes, and is decided for, a tenth of a second after the one before."""
        self.scheduler.on(SetPod(pod(name, requests={"cpu": cpu}, **spec)), self.time)
        return self.step()

    def step(self) -> Step:
        self.time += 0.1
        step = self.scheduler.step(self.time)
        assert isinstance(step, Step)
        self.follower.decided(step, 0.0)
        return step

    def bind(self, step: Step) -> None:
        """The server has the binding."""
        (effect,) = step.effects
        assert isinstance(effect, Bind)
        self.scheduler.bind_succeeded(step.pod.uid, self.time)
        self.follower.bound(Binding(step.pod, effect.node, step.attempt, 0.0, 0.0, 0.0), self.time)

    def show(self, name: str) -> None:
        """The watch shows the pod on the node."""
        self.scheduler.on(SetPod(pod(name, on="n")), self.time)

    def is_settled(self, *names: str) -> bool:
        return self.follower.is_settled(self.scheduler, names)


def test_a_trial_lasts_until_the_watch_shows_all_that_was_placed() -> None:
    scene = Scene()
    assert not scene.is_settled("a")
    step = scene.tries("a")
    assert not scene.is_settled("a")
    scene.bind(step)
    assert not scene.is_settled("a")
    scene.show("a")
    assert scene.is_settled("a")
    assert not scene.is_settled("a", "b")
    scene.scheduler.on(SetPod(pod("b")), scene.time)
    assert not scene.is_settled("a")


def test_a_pod_that_backs_off_is_waited_for_if_others_were_placed_since() -> None:
    scene = Scene()
    scene.tries("lacks", **LACKS_CLAIM)
    assert scene.is_settled("lacks")
    scene.bind(scene.tries("a"))
    scene.show("a")
    assert not scene.is_settled("lacks", "a")
    scene.time += 1.0
    assert scene.step().pod.name == "lacks"
    assert scene.is_settled("lacks", "a")


def test_a_pod_that_backs_off_for_ever_does_not_hold_up_the_end_for_others_that_nothing_wakes() -> None:
    scene = Scene()
    scene.tries("big", cpu="8")
    scene.bind(scene.tries("a"))
    scene.show("a")
    scene.tries("lacks", **LACKS_CLAIM)
    assert scene.scheduler.pending() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}
    assert scene.is_settled("big", "a", "lacks")


def test_what_came_of_it() -> None:
    scene = Scene()
    scene.scheduler.on(SetPod(pod("there-before", on="n", requests={"cpu": "500m"})), 0.0)
    scene.bind(scene.tries("a"))
    scene.show("a")
    scene.tries("big", cpu="8")
    outcome = scene.follower.outcome(scene.scheduler, {"a", "big"})
    assert {record.name: (record.fate, record.node) for record in outcome.records} == {
        "a": (Fate.PLACED, "n"),
        "big": (Fate.WAITING, ""),
    }
    assert outcome.running == 1
    assert outcome.decisions == 2
    assert outcome.now == pytest.approx(0.2)
    assert scene.audience.told == []
    scene.follower.tell()
    assert scene.audience.told == [("a", "n"), ("big", "")]
    assert outcome.records[1].reasons == {"Insufficient cpu": 1}


def test_a_binding_that_failed_puts_its_pod_among_those_that_wait() -> None:
    scene = Scene()
    step = scene.tries("a")
    scene.follower.not_bound(Binding(step.pod, "n", 1, 0.0, 0.0, 0.0), "refused", scene.time)
    scene.scheduler.bind_failed("a", scene.time)
    record = scene.follower.records["a"]
    assert (record.fate, record.node, record.message) == (Fate.WAITING, "", "refused")
    scene.scheduler.on(DeletePod("a"), scene.time)
    assert scene.is_settled("a")


def test_pods_that_have_to_go_for_another_have_no_place_any_more() -> None:
    scene = Scene()
    for name in ("low-1", "low-2"):
        scene.bind(scene.tries(name))
        scene.show(name)
    scene.tries("high", "2", priority=5)
    fates = {record.name: (record.fate, record.node, record.evicted_by) for record in scene.follower.records.values()}
    assert fates == {
        "low-1": (Fate.EVICTED, "", "default/high"),
        "low-2": (Fate.EVICTED, "", "default/high"),
        "high": (Fate.WAITING, "", ""),
    }
    assert not scene.is_settled("low-1", "low-2", "high")
    for record in list(scene.follower.records.values())[:2]:
        scene.scheduler.on(DeletePod(record.uid), scene.time)
    scene.time += 1.0
    scene.bind(scene.step())
    assert scene.follower.records[next(reversed(scene.follower.records))].fate is Fate.PLACED


def test_a_pod_that_has_to_go_before_it_is_bound_does_not_wait() -> None:
    scene = Scene()
    step = scene.tries("low")
    scene.tries("high", "2", priority=5)
    scene.follower.not_bound(Binding(step.pod, "n", 1, 0.0, 0.0, 0.0), "gone", scene.time)
    assert scene.follower.records["low"].fate is Fate.EVICTED


def waiting() -> tuple[Scene, PodInfo]:
    """A pod that has a node, for which a volume is being made."""
    scene = Scene()
    made = storage.storage_class("made", "example.com/disks")
    scene.scheduler.on(SetObject("storageClasses", "", "made", made), 0.0)
    scene.scheduler.on(SetObject("persistentVolumeClaims", "default", "c", storage.claim("c", of="made")), 0.0)
    step = scene.tries("waits", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    assert isinstance(step.effects[0], BindVolumes)
    scene.scheduler.volumes_written("waits", scene.time)
    return scene, step.pod


def test_a_pod_whose_volumes_are_bound_first_has_its_place_until_that_fails() -> None:
    scene, pod = waiting()
    fates = [scene.follower.records["waits"].fate]
    scene.follower.wait_failed(pod, "timed out")
    fates.append(scene.follower.records["waits"].fate)
    assert fates == [Fate.PLACED, Fate.WAITING]
    scene.scheduler.bind_failed("waits", scene.time)
    assert not scene.is_settled("waits")  # it is tried again


def test_a_pod_that_goes_while_it_waits_for_its_volumes_is_waited_for_no_more() -> None:
    """No outcome is told of it."""
    scene, _ = waiting()
    assert not scene.is_settled("waits")
    scene.scheduler.on(DeletePod("waits"), scene.time)
    assert scene.is_settled("waits")
    assert scene.follower.outcome(scene.scheduler, {"waits"}).running == 0
