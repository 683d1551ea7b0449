from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest
from tests.unit.core.scheduling import node, pod
from tests.unit.kube.timers import settle
from tests.unit.runtime.driving import Stopwatch, World, running

from ksp.core.cache import CachePhase
from ksp.core.changes import DeleteNode, DeletePod, SetNode, SetPod
from ksp.core.errors import InternalError
from ksp.kube.write.writes import Bound, NotBound
from ksp.runtime.reports import SENDERS

UNREACHED = NotBound("no connection", unreached=True)


async def test_pods_are_bound_in_order_of_priority_and_age() -> None:
    world = World()
    world.loop.deliver(SetNode(node("n1")))
    for name, priority in (("a", 0), ("b", 0), ("c", 7)):
        world.loop.deliver(SetPod(pod(name, priority=priority)))
    async with running(world):
        await world.writer.until(lambda w: len(w.binds) == 3)
        await settle()
    assert world.writer.binds == [("c", "n1"), ("a", "n1"), ("b", "n1")]
    assert [binding.pod.name for binding in world.seen.bindings] == ["c", "a", "b"]
    assert world.recorder.events[0] == ("c", "Scheduled", "n1")


async def test_the_loop_sleeps_until_a_change_comes() -> None:
    world = World()
    async with running(world):
        await settle()
        assert world.timers.slept == []
        world.loop.deliver(SetNode(node("n1")))
        world.loop.deliver(SetPod(pod("a")))
        await world.writer.until(lambda w: w.binds == [("a", "n1")])


async def test_the_next_pod_is_decided_while_a_binding_is_on_its_way() -> None:
    world = World()
    world.writer.held = True
    world.loop.deliver(SetNode(node("n1", cpu="2")))
    for name in ("a", "b", "c"):
        world.loop.deliver(SetPod(pod(name)))
    async with running(world):
        await world.writer.until(lambda w: len(w.open) == 2)
        assert world.seen.decisions == [("a", "n1"), ("b", "n1"), ("c", "")]


async def test_no_more_is_decided_while_as_many_bindings_as_allowed_are_on_their_way() -> None:
    world = World(limit=2)
    world.writer.held = True
    world.loop.deliver(SetNode(node("n1")))
    for name in ("a", "b", "c", "d"):
        world.loop.deliver(SetPod(pod(name)))
    async with running(world):
        await world.writer.until(lambda w: len(w.open) == 2)
        world.loop.deliver(SetNode(node("n2")))
        await settle()
        assert [name for name, _ in world.seen.decisions] == ["a", "b"]
        world.writer.open["a"].set_result(Bound())
        await world.writer.until(lambda w: "c" in w.open)
        await settle()
        assert [name for name, _ in world.seen.decisions] == ["a", "b", "c"]


async def test_a_slice_of_decisions_ends_so_that_others_have_their_turn() -> None:
    world = World(stopwatch=Stopwatch(step=0.001))
    world.loop.deliver(SetNode(node("n1", cpu="100")))
    for i in range(30):
        world.loop.deliver(SetPod(pod(f"p{i}")))
    async with running(world):
        decided = [0]
        while decided[-1] < 30:
            await asyncio.sleep(0)
            decided.append(len(world.seen.decisions))
    assert max(after - before for before, after in pairwise(decided)) <= 3


async def test_a_pod_without_a_node_is_reported_and_found_again_when_room_is_made() -> None:
    world = World()
    world.loop.deliver(SetNode(node("n1", cpu="1")))
    world.loop.deliver(SetPod(pod("big", requests={"cpu": "2"})))
    message = "0/1 nodes are available: 1 Insufficient cpu."
    async with running(world):
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.writer.conditions == [("big", "Unschedulable", message)]
        assert world.recorder.events == [("big", "FailedScheduling", message)]
        await world.timers.advance(2)
        world.loop.deliver(SetNode(node("n2", cpu="4")))
        await world.writer.until(lambda w: w.binds == [("big", "n2")])


async def test_the_loop_wakes_when_patience_ends() -> None:
    world = World()
    world.loop.deliver(SetNode(node("n1", cpu="1")))
    world.loop.deliver(SetPod(pod("big", requests={"cpu": "2"})))
    async with running(world):
        await world.timers.asleep()
        await world.timers.advance(59.9)
        assert len(world.seen.decisions) == 1
        await world.timers.advance(0.2)
        assert len(world.seen.decisions) == 2


async def test_a_refused_binding_gives_the_place_back_and_is_tried_again_after_the_backoff() -> None:
    world = World()
    world.writer.outcome = NotBound("the admission webhook says no")
    world.loop.deliver(SetNode(node("n1", cpu="1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.scheduler.state.nodes["n1"].pod_count == 0
        assert world.writer.conditions == [("a", "SchedulerError", "Binding rejected: the admission webhook says no")]
        assert world.seen.failures == [("a", "the admission webhook says no")]
        world.writer.outcome = Bound()
        await world.timers.advance(0.9)
        assert len(world.writer.binds) == 1
        await world.timers.advance(0.2)
        assert len(world.writer.binds) == 2
        assert world.seen.bindings[0].attempt == 2


async def test_a_pod_that_went_away_before_it_was_bound_is_no_error_to_its_user() -> None:
    world = World()
    world.writer.outcome = NotBound("the pod was deleted", gone=True)
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.binds))
        await settle()
        world.loop.deliver(DeletePod("a"))
        await world.timers.advance(20)
    assert world.recorder.events == []
    assert world.writer.conditions == []
    assert len(world.scheduler.queue) == 0


async def test_a_binding_waits_for_an_api_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    world = World(limit=1)
    world.writer.outcome = UNREACHED
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    world.loop.deliver(SetPod(pod("b")))
    async with running(world):
        for _ in range(12):  # 9.6 s
            await world.timers.next()
        assert [name for name, _ in world.seen.decisions] == ["a"]
        world.writer.outcome = Bound()
        passed = await world.timers.next()
        assert passed < 2
        await world.writer.until(lambda w: ("b", "n1") in w.binds)
        await settle()
    assert [(each.pod.name, each.attempt) for each in world.seen.bindings] == [("a", 1), ("b", 1)]
    assert world.seen.failures == []
    said = [record.getMessage() for record in caplog.records]
    assert said == ['cannot bind: no connection waiting=1 error="no connection"'] * 2


@pytest.mark.parametrize("change", [DeletePod("a"), DeleteNode("n1")])
async def test_a_waiting_binding_whose_pod_or_node_went_away_is_not_tried_again(
    change: DeletePod | DeleteNode,
) -> None:
    world = World()
    world.writer.outcome = UNREACHED
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.timers.asleep()
        world.loop.deliver(change)
        await world.timers.next()
        await settle()
        assert len(world.loop.effects.binds) == 0
        assert world.seen.failures == [("a", "no connection")]
        still_there = isinstance(change, DeleteNode)
        assert world.recorder.events == [("a", "FailedScheduling", "Binding rejected: no connection")] * still_there
        world.writer.outcome = Bound()
        await world.timers.advance(30)
        assert len(world.writer.binds) <= 2


async def test_stopping_decides_for_nobody_else_and_lets_bindings_finish() -> None:
    world = World(limit=2)
    world.writer.held = True
    world.loop.deliver(SetNode(node("n1")))
    for name in ("a", "b", "c"):
        world.loop.deliver(SetPod(pod(name)))
    async with running(world):
        await world.writer.until(lambda w: len(w.open) == 2)
        world.loop.stop()
        drained = asyncio.create_task(world.loop.drain(10))
        for name in ("a", "b"):
            await settle()
            world.writer.open[name].set_result(Bound())
        assert await drained == 0
    assert world.writer.binds == [("a", "n1"), ("b", "n1")]
    assert len(world.seen.bindings) == 2


async def test_a_binding_that_does_not_end_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.writer.held = True
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.open))
        world.loop.stop()
        drained = asyncio.create_task(world.loop.drain(10))
        await world.timers.asleep()
        await world.timers.advance(10)
        assert await drained == 1
    assert "gave up waiting for a binding; it may have happened pod=default/a node=n1" in caplog.messages


# ---- faults


class Loaded:
    """Dice that break."""

    def __init__(self, error: Exception, often: int) -> None:
        self.error = error
        self.often = often

    def below(self, n: int) -> int:
        self.often -= 1
        if self.often >= 0:
            raise self.error
        return 0


async def test_a_fault_with_one_pod_is_loud_and_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    world = World(dice=Loaded(InternalError("the dice broke"), often=1))
    for name in ("n1", "n2"):
        world.loop.deliver(SetNode(node(name)))
    world.loop.deliver(SetPod(pod("first")))
    world.loop.deliver(SetPod(pod("second")))
    async with running(world):
        await world.writer.until(lambda w: len(w.binds) == 1)
        assert world.writer.binds[0][0] == "second"
        assert world.seen.faults == [("deciding", "first")]
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.binds) == 2)
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert record.getMessage() == (
        'internal error doing=deciding pod=default/first error="InternalError: the dice broke"'
    )
    assert record.exc_info is not None


async def test_a_fault_with_one_pod_leaves_one_alone_that_is_bound_and_not_shown_yet() -> None:
    dice = Loaded(InternalError("the dice broke"), often=0)
    world = World(dice=dice)
    for name in ("n1", "n2", "n3"):
        world.loop.deliver(SetNode(node(name)))
    world.loop.deliver(SetPod(pod("bound")))
    async with running(world):
        await world.writer.until(lambda w: len(w.binds) == 1)
        await settle()
        dice.often = 1
        world.loop.deliver(SetPod(pod("other")))
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.binds) == 2)
    assert world.seen.faults == [("deciding", "other")]
    assert world.scheduler.cache.phase("bound") is CachePhase.BOUND


async def test_a_fault_that_comes_again_and_again_is_not_turned_in_a_circle(caplog: pytest.LogCaptureFixture) -> None:
    world = World(dice=Loaded(InternalError("the dice broke"), often=1000))
    for name in ("n1", "n2"):
        world.loop.deliver(SetNode(node(name)))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.timers.asleep()
        await world.timers.advance(100)
    assert 8 <= len(world.seen.faults) <= 15
    with_traceback = [record for record in caplog.records if record.exc_info]
    assert len(with_traceback) == 1


async def test_a_fault_that_no_pod_is_responsible_for_makes_the_loop_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def broken(now: float) -> None:
        raise InternalError("no pod did this")

    monkeypatch.setattr(world.scheduler, "step", broken)
    async with running(world):
        await world.timers.asleep()
        await world.timers.advance(10)
    assert 10 <= len(world.seen.faults) <= 12


async def test_a_fault_while_a_change_is_taken_in_does_not_reach_the_informer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()

    def broken(*_: object) -> None:
        raise InternalError("what a change")

    monkeypatch.setattr(world.scheduler, "on", broken)
    world.loop.deliver(SetNode(node("n1")))
    assert world.seen.faults == [("taking in SetNode", "")]
    assert "what a change" in caplog.text


async def test_a_fault_while_binding_counts_as_not_bound() -> None:
    world = World()
    world.writer.outcome = ValueError("a bug")
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.seen.faults == [("binding", "a")]
        assert world.seen.failures == [("a", "internal error: ValueError, see the scheduler's log")]
        assert world.scheduler.state.nodes["n1"].pod_count == 0


async def test_a_pod_that_comes_back_while_its_binding_is_open_is_not_bound_twice_at_a_time() -> None:
    world = World()
    world.writer.held = True
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.open))
        world.loop.deliver(DeletePod("a"))
        world.loop.deliver(SetPod(pod("a")))
        await settle()
        assert len(world.writer.binds) == 1
        world.writer.open["a"].set_result(NotBound("conflict"))
        await world.timers.advance(3)
        assert len(world.writer.binds) == 2
        assert world.seen.faults == []


async def test_a_pod_that_is_shown_on_a_node_while_it_is_bound_hears_nothing_of_a_binding_that_failed() -> None:
    """Another scheduler was quicker."""
    world = World()
    world.writer.held = True
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetNode(node("n2")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.open))
        world.loop.deliver(SetPod(pod("a", on="n2")))
        world.writer.open["a"].set_result(NotBound("the pod is on node n2 already"))
        await settle()
        assert len(world.loop.effects.binds) == 0
    assert (world.recorder.events, world.writer.conditions) == ([], [])
    assert world.scheduler.cache.node_name_of("a") == "n2"


async def test_a_pod_that_another_scheduler_bound_is_told_of_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Its user sees a pod that runs; that two schedulers serve one name is for whoever runs them."""
    world = World()
    world.writer.outcome = NotBound("the pod is on node n2 already", elsewhere=True)
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.binds))
        await settle()
        assert world.seen.failures == [("a", "the pod is on node n2 already")]
    assert (world.recorder.events, world.writer.conditions) == ([], [])
    assert "another scheduler has bound the pod" in caplog.text


async def test_no_report_is_written_while_the_pod_is_being_bound() -> None:
    """It would come after the binding, and say for ever that a pod which runs has no node."""
    world = World()
    world.writer.held = True
    world.writer.may_write.clear()
    world.loop.deliver(SetNode(node("n1", cpu="1")))
    names = [f"p{i}" for i in range(SENDERS + 1)]
    for name in names:
        world.loop.deliver(SetPod(pod(name, requests={"cpu": "2"})))
    async with running(world):
        await world.writer.until(lambda w: len(w.conditions) == SENDERS)
        last = names[-1]
        assert last not in [name for name, *_ in world.writer.conditions]
        world.loop.deliver(SetPod(pod(last, requests={"cpu": "1"})))
        await world.writer.until(lambda w: last in w.open)
        world.writer.may_write.set()
        await settle()
        assert last not in [name for name, *_ in world.writer.conditions]
        assert len(world.loop.effects.reports) == 0


async def test_a_fault_while_an_event_is_told_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def broken(*_: object) -> None:
        raise InternalError("no event")

    monkeypatch.setattr(world.recorder, "failed_scheduling", broken)
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("big", requests={"cpu": "8"}, priority=1)))
    world.loop.deliver(SetPod(pod("a")))
    async with running(world):
        await world.writer.until(lambda w: w.binds == [("a", "n1")])
    assert world.seen.faults == [("deciding", "big")]


async def test_a_fault_while_the_end_of_a_binding_is_told_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(limit=1)

    def broken(*_: object) -> None:
        raise InternalError("no event")

    monkeypatch.setattr(world.recorder, "scheduled", broken)
    world.loop.deliver(SetNode(node("n1")))
    for name in ("a", "b"):
        world.loop.deliver(SetPod(pod(name)))
    async with running(world):
        await world.writer.until(lambda w: len(w.binds) == 2)
        await settle()
    assert [pod for _, pod in world.seen.faults] == ["a", "b"]


# ---- fields that the policy does not read


async def test_a_demand_that_is_not_read_keeps_its_pod_waiting_with_a_reason() -> None:
    world = World()
    world.loop.deliver(SetNode(node("n1")))
    world.loop.deliver(SetPod(pod("a", schedulingGroup={"podGroupName": "g"})))
    async with running(world):
        await world.writer.until(lambda w: bool(w.conditions))
    assert world.writer.binds == []
    ((name, reason, message),) = world.recorder.events
    assert (name, reason) == ("a", "FailedScheduling")
    assert "spec.schedulingGroup" in message
    assert world.writer.conditions == [("a", "Unschedulable", message)]


async def test_a_wish_that_is_not_read_is_told_to_the_pods_user() -> None:
    world = World()
    world.loop.deliver(SetNode(node("n1")))
    wish = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"}
    world.loop.deliver(SetPod(pod("a", topologySpreadConstraints=[wish])))
    async with running(world):
        await world.writer.until(lambda w: w.binds == [("a", "n1")])
        await settle()
    warnings = [message for _, reason, message in world.recorder.events if reason == "UnreadField"]
    assert len(warnings) == 1
    assert "nodeTaintsPolicy" in warnings[0]
    assert ("a", "Scheduled", "n1") in world.recorder.events
