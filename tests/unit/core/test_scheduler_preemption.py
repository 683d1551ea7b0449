"""Preemption as the scheduler's driver sees it: others are evicted, the pod is nominated, and is bound in the end."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.core.scheduling import node, pod, scheduler, stepped

from ksp.core.changes import Bind, ClearNomination, DeleteNode, DeletePod, Evict, Report, SetNode, SetPod
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.model.pod import Pod

BIG = {"cpu": "3"}
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def crowded() -> Scheduler:
    """A node of 4 cpu, of which pods of low priority have 3."""
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(low(on="n")), 0.0)
    return subject


def low(name: str = "low", **fields: object) -> Pod:
    return pod(name, requests=BIG, priority=1, **fields)  # type: ignore[arg-type]


def high(name: str = "high", **fields: object) -> Pod:
    return pod(name, requests=BIG, priority=10, **fields)  # type: ignore[arg-type]


def preempts(subject: Scheduler, now: float = 0.0) -> Step:
    subject.on(SetPod(high()), now)
    return stepped(subject, now)


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


def test_a_pod_that_fits_nowhere_has_others_evicted_and_is_nominated() -> None:
    subject = crowded()
    step = preempts(subject)
    victim = subject.state.pods["low"]
    message = "0/1 nodes are available: 1 Insufficient cpu."
    report = Report(step.pod, "Unschedulable", message, nominated_node="n")
    assert step.effects == (report, Evict(step.pod, "n", (victim,)))
    assert [each.uid for each in subject.queue.nominated_on("n")] == ["high"]
    assert place_of(subject, "high") is Place.UNSCHEDULABLE
    assert "low" in subject.state.pods  # it leaves when the watch shows it


def test_it_is_bound_once_the_watch_has_shown_that_they_are_gone() -> None:
    subject = crowded()
    preempts(subject)
    subject.evictions_ended("high", "n", 0.1, done=True)
    subject.on(SetPod(low(on="n", metadata=GOING)), 0.2)
    assert subject.step(30.0) is None  # it counts while it is there
    subject.on(DeletePod("low"), 31.0)
    step = stepped(subject, 31.0)
    assert step.effects == (Bind(step.pod, "n"),)
    assert not subject.queue.nominated_on("n")


def test_nobody_else_is_evicted_while_victims_are_on_their_way_out() -> None:
    subject = crowded()
    subject.on(SetNode(node("m")), 0.0)
    subject.on(SetPod(low("other", on="m")), 0.0)
    first = preempts(subject)
    target = first.preempted
    assert target is not None
    subject.queue.move_all(70.0)  # before the watch has shown anything of the eviction
    again = stepped(subject, 70.0)
    assert again.preempted is None
    assert again.effects == (Report(again.pod, "Unschedulable", again.decision.message),)
    assert [each.uid for each in subject.queue.nominated_on(target.node)] == ["high"]


def test_an_eviction_that_fails_ends_the_claim_and_the_pod_is_tried_again() -> None:
    subject = crowded()
    step = preempts(subject)
    subject.evictions_ended("high", "n", 0.5, done=False)
    assert subject.effects() == (ClearNomination(step.pod),)
    assert subject.effects() == ()
    assert not subject.queue.nominated_on("n")
    assert place_of(subject, "high") is Place.BACKOFF  # at once would be a circle
    assert stepped(subject, 1.0).preempted is not None


def test_an_eviction_that_fails_elsewhere_leaves_the_claim_of_now() -> None:
    """The pod was nominated to another node meanwhile, and has others evicted there."""
    subject = crowded()
    preempts(subject)
    subject.on(SetNode(node("m")), 0.1)
    subject.on(SetPod(low("low-m", on="m")), 0.1)
    closed = node("n")
    subject.on(SetNode(replace(closed, spec=replace(closed.spec, unschedulable=True))), 1.0)
    again = stepped(subject, 70.0)
    assert again.preempted is not None
    assert again.preempted.node == "m"
    subject.evictions_ended("high", "n", 70.5, done=False)
    assert subject.effects() == ()
    assert [each.uid for each in subject.queue.nominated_on("m")] == ["high"]
    assert set(subject.evictions.victims) == {"low-m"}


def test_a_node_that_goes_takes_its_nominations_along() -> None:
    subject = crowded()
    preempts(subject)
    subject.on(SetNode(node("m", cpu="8")), 0.1)
    subject.on(DeleteNode("n"), 5.0)
    assert not subject.queue.nominated_on("n")
    assert stepped(subject, 5.0).decision.node == "m"


def test_a_nominated_pod_whose_node_goes_is_tried_again_at_once_though_nothing_else_helps() -> None:
    subject = crowded()
    step = preempts(subject)
    subject.on(DeleteNode("n"), 5.0)
    assert subject.next_deadline(5.0) == 5.0
    assert subject.effects() == (ClearNomination(step.pod),)
    again = stepped(subject, 5.0)
    assert again.effects == (
        Report(again.pod, "Unschedulable", "no nodes available to schedule pods", nominated_node=""),
    )


def test_a_higher_pod_takes_over_the_node_and_the_lower_one_loses_its_claim() -> None:
    subject = crowded()
    preempts(subject)
    subject.on(SetPod(pod("highest", requests=BIG, priority=100)), 1.0)
    step = stepped(subject, 1.0)
    loser = subject.queue.get("high")
    assert loser is not None
    victim = subject.state.pods["low"]
    assert step.effects[1:] == (ClearNomination(loser.info), Evict(step.pod, "n", (victim,)))
    assert [each.uid for each in subject.queue.nominated_on("n")] == ["highest"]


def test_a_pod_that_must_not_preempt_waits() -> None:
    subject = crowded()
    subject.on(SetPod(high(preemptionPolicy="Never")), 0.0)
    step = stepped(subject)
    assert step.preempted is None
    assert [type(effect) for effect in step.effects] == [Report]


def test_the_end_of_a_preemptor_ends_its_claim_and_lets_others_in() -> None:
    subject = crowded()
    preempts(subject)
    subject.on(SetPod(pod("meek", requests=BIG, priority=5)), 0.1)
    assert stepped(subject, 0.1).preempted is None  # the claim of the higher one counts
    subject.on(DeletePod("low"), 2.0)
    subject.on(DeletePod("high"), 2.0)
    step = stepped(subject, 2.0)
    assert (step.pod.name, step.decision.node) == ("meek", "n")


def test_the_claim_in_the_status_of_a_pod_is_kept_over_a_restart() -> None:
    subject = crowded()
    subject.on(SetPod(low(on="n", metadata=GOING)), 0.0)
    subject.on(SetPod(high(nominated="n")), 0.0)
    step = stepped(subject)
    assert step.preempted is None  # it waits for the one that is on its way out
    assert [each.uid for each in subject.queue.nominated_on("n")] == ["high"]


def test_a_claim_that_is_of_no_use_ends() -> None:
    subject = crowded()
    subject.on(SetPod(replace(low(on="n"), spec=high(on="n").spec)), 0.0)
    subject.on(SetPod(high("second", nominated="n")), 0.0)
    step = stepped(subject)
    assert step.effects == (Report(step.pod, "Unschedulable", step.decision.message, nominated_node=""),)
    assert not subject.queue.nominated_on("n")


def test_a_fault_before_anybody_is_told_to_evict_leaves_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = crowded()
    with monkeypatch.context() as broken:
        broken.setattr(subject.queue, "fail", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            preempts(subject)
    subject.bind_failed("high", 0.0)  # as a driver does with what a fault has left in flight
    assert not subject.evictions.victims
    assert stepped(subject, 5.0).preempted is not None
