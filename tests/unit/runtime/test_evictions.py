"""Preemption as the loop carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.core.scheduling import node, pod
from tests.unit.kube.timers import settle
from tests.unit.runtime.driving import World, running

from ksp.core.changes import DeleteNode, DeletePod, SetNode, SetObject, SetPod
from ksp.core.errors import InternalError
from ksp.kube.write.writes import Bound, Evicted, Failed, Gone, NotBound
from ksp.model.decode import convert
from ksp.model.policy import PodDisruptionBudget
from ksp.runtime.effects import NAMED
from ksp.runtime.evictions import AT_A_TIME

MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."


def crowded(*names: str, nodes: int = 1, held: bool = False) -> World:
    """Nodes of 4 cpu, each with pods of 1 cpu, which are of low priority; `n0` has these names. `held`: writes end when
    the test says."""
    world = World()
    world.writer.held = held
    for i in range(nodes):
        world.loop.deliver(SetNode(node(f"n{i}")))
        for name in names or ("a", "b", "c", "d"):
            world.loop.deliver(SetPod(pod(name if i == 0 else f"{name}{i}", on=f"n{i}")))
    return world


def wants(world: World, cpu: str, name: str = "high", priority: int = 10) -> None:
    world.loop.deliver(SetPod(pod(name, requests={"cpu": cpu}, priority=priority)))


def events(world: World, reason: str) -> list[tuple[str, str]]:
    return [(name, note) for name, found, note in world.recorder.events if found == reason]


async def evictions(world: World, count: int) -> None:
    """Until so many have been asked for."""
    await world.writer.until(lambda w: len(w.evicted) == count)


def ends(world: World, index: int, outcome: Evicted | Failed) -> None:
    """The eviction that was asked for at this place, and is held."""
    world.writer.going[world.writer.evicted[index][0]].set_result(outcome)


def claimants(world: World, name: str) -> list[str]:
    """The pods that wait for the node."""
    return [each.uid for each in world.scheduler.queue.nominated_on(name)]


@asynccontextmanager
async def first_victim_held(cpu: str, nodes: int = 1) -> AsyncIterator[World]:
    """A pod wants so much of the crowded nodes, and its first victim has been asked for; the loop runs."""
    world = crowded(nodes=nodes, held=True)
    wants(world, cpu)
    async with running(world):
        await evictions(world, 1)
        yield world


async def the_node_of_the_first_victim_goes_away(world: World) -> tuple[str, str, str]:
    """And the pod asks for another victim on the other one of two nodes: the first victim, its node, the other node."""
    first, _ = world.writer.evicted[0]
    lost = world.scheduler.state.pods[first].node.name
    (left,) = {"n0", "n1"} - {lost}
    world.loop.deliver(DeleteNode(lost))
    await world.timers.advance(1.1)
    await evictions(world, 2)
    return first, lost, left


async def another_node_takes_the_pod(world: World) -> None:
    world.loop.deliver(SetNode(node("free")))
    await world.timers.advance(1.1)
    await world.writer.until(lambda w: w.binds == [("high", "free")])


def is_leaving(world: World, name: str) -> None:
    world.loop.deliver(SetPod(pod(name, on="n0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})))


def crammed(names: list[str]) -> World:
    """One node, with room for these pods of 1 cpu and no more."""
    world = World()
    world.loop.deliver(SetNode(node("n0", cpu=str(len(names)))))
    for name in names:
        world.loop.deliver(SetPod(pod(name, on="n0")))
    return world


def broken(*_: object) -> None:
    raise InternalError("no event")


async def test_victims_go_one_after_another_and_are_told_and_the_pod_takes_their_place() -> None:
    async with first_victim_held("2") as world:
        ((first, _),) = world.writer.evicted
        await settle()
        assert len(world.writer.evicted) == 1
        assert world.writer.nominations == [("high", "n0")]
        assert world.writer.conditions == [("high", "Unschedulable", MESSAGE)]
        world.writer.going[first].set_result(Evicted())
        await evictions(world, 2)
        assert events(world, "Preempted") == [(first, "high on n0")]
        second, _ = world.writer.evicted[1]
        world.writer.going[second].set_result(Evicted())
        await settle()
        assert events(world, "Preempted") == [(first, "high on n0"), (second, "high on n0")]
        assert len(world.loop.effects.evictions) == 0
        world.writer.held = False
        for name in (first, second):
            world.loop.deliver(DeletePod(name))
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: w.binds == [("high", "n0")])
    assert len(world.writer.evicted) == 2


async def test_a_victim_that_is_gone_already_is_not_said_to_be_preempted() -> None:
    world = crowded()
    world.writer.evictions["d"] = world.writer.evictions["c"] = Gone()
    wants(world, "4")
    async with running(world):
        await evictions(world, 4)
        await settle()
    assert {name for name, _ in events(world, "Preempted")} == {"a", "b"}


async def test_a_victim_that_cannot_be_deleted_ends_it_and_the_user_is_told() -> None:
    world = crowded()
    names = {"a", "b", "c", "d"}
    world.writer.evictions = dict.fromkeys(names, Failed("403 Forbidden: no"))
    wants(world, "2")
    async with running(world):
        await world.writer.until(lambda w: ("high", "") in w.nominations)
        ((victim, _),) = world.writer.evicted
        assert events(world, "FailedScheduling") == [
            ("high", MESSAGE),
            ("high", f"cannot preempt pod {victim} on node n0: 403 Forbidden"),
        ]
        assert not world.scheduler.evictions.victims
        assert world.scheduler.queue.nominated_on("n0") == []
        world.writer.evictions = {}
        await world.timers.advance(1.1)
        await evictions(world, 3)
        assert events(world, "Preempted")
    assert world.seen.faults == []


async def test_victims_that_cannot_be_deleted_are_not_asked_for_in_a_circle() -> None:
    world = crowded()
    world.writer.evictions = dict.fromkeys(("a", "b", "c", "d"), Failed("403 Forbidden: no"))
    wants(world, "4")
    async with running(world):
        await world.timers.asleep()
        await world.timers.advance(100)
    assert 8 <= len(world.writer.evicted) <= 15


async def test_a_fault_while_evicting_counts_as_not_evicted() -> None:
    world = crowded()
    world.writer.evictions = dict.fromkeys(("a", "b", "c", "d"), ValueError("a bug"))
    wants(world, "1")
    async with running(world):
        await world.writer.until(lambda w: ("high", "") in w.nominations)
    ((victim, _),) = world.writer.evicted
    assert world.seen.faults == [("evicting", victim)]
    said = "internal error: ValueError, see the scheduler's log"
    assert ("high", f"cannot preempt pod {victim} on node n0: {said}") in events(world, "FailedScheduling")


async def test_no_further_victim_goes_once_the_pod_that_preempts_has_gone_away() -> None:
    async with first_victim_held("2") as world:
        world.loop.deliver(DeletePod("high"))
        world.writer.held = False
        ends(world, 0, Evicted())
        await settle()
        assert len(events(world, "Preempted")) == len(world.writer.evicted) == 1
        assert len(world.loop.effects.evictions) == 0
    assert not world.scheduler.evictions.victims
    assert world.seen.faults == []


async def test_no_further_victim_goes_once_the_pod_that_preempts_has_found_another_node() -> None:
    async with first_victim_held("2") as world:
        await another_node_takes_the_pod(world)
        ends(world, 0, Evicted())
        await settle()
        assert len(world.writer.evicted) == 1
        assert len(world.loop.effects.evictions) == 0
        world.writer.open["high"].set_result(Bound())
    assert not world.scheduler.evictions.victims


async def test_a_late_echo_of_an_older_nomination_does_not_end_evictions() -> None:
    """The pod waited for one node, lost it, and waits for another, when the watch begins to show all that."""
    async with first_victim_held("2", nodes=2) as world:
        _, lost, left = await the_node_of_the_first_victim_goes_away(world)
        for shown in (lost, "", left):
            echo = pod("high", requests={"cpu": "2"}, priority=10, nominated=shown)
            world.loop.deliver(SetPod(echo))
            assert claimants(world, left) == ["high"]
        ends(world, 1, Evicted())
        await evictions(world, 3)
    assert world.seen.faults == []


async def test_a_fault_in_telling_of_a_victim_is_told_and_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = crowded()
    monkeypatch.setattr(world.recorder, "preempted", broken)
    wants(world, "2")
    async with running(world):
        await world.writer.until(lambda w: ("high", "") in w.nominations)
        ((victim, _),) = world.writer.evicted
        assert world.seen.faults == [("evicting", victim)]
        assert not world.scheduler.evictions.victims


async def test_evictions_that_have_not_begun_are_left_when_nobody_needs_them_any_more() -> None:
    world = crowded("a", nodes=AT_A_TIME + 2, held=True)
    for i in range(AT_A_TIME + 2):
        wants(world, "4", f"high{i}")
    async with running(world):
        await evictions(world, AT_A_TIME)
        waiting = {f"high{i}" for i in range(AT_A_TIME + 2)} - {name for _, name in world.writer.evicted}
        unneeded = min(waiting)
        world.loop.deliver(DeletePod(unneeded))
        world.writer.held = False
        for going in list(world.writer.going.values()):
            going.set_result(Evicted())
        await evictions(world, AT_A_TIME + 1)
        await settle()
        assert len(world.loop.effects.evictions) == 0
        assert unneeded not in {name for _, name in world.writer.evicted}


async def test_a_pod_that_lost_its_claim_before_its_turn_is_tried_again() -> None:
    """Somebody else has written another node into its status."""
    world = crowded(nodes=2, held=True)
    wants(world, "1")
    async with running(world):
        await settle(1)
        (nominated,) = (name for name in ("n0", "n1") if world.scheduler.queue.nominated_on(name))
        (other,) = {"n0", "n1"} - {nominated}
        world.loop.deliver(SetPod(pod("high", requests={"cpu": "1"}, priority=10, nominated=other)))
        await settle()
        assert world.writer.evicted == []
        assert not world.scheduler.evictions.victims
        await world.timers.advance(1.1)
        await evictions(world, 1)
    assert world.seen.faults == []


async def test_a_pod_that_goes_away_hears_nothing_of_a_failure() -> None:
    async with first_victim_held("1") as world:
        world.loop.deliver(DeletePod("high"))
        ends(world, 0, Failed("no"))
        await settle()
    assert events(world, "FailedScheduling") == [("high", MESSAGE)]


async def test_a_pod_that_has_found_another_node_hears_nothing_of_a_failure() -> None:
    async with first_victim_held("2") as world:
        await another_node_takes_the_pod(world)
        ends(world, 0, Failed("no"))
        await settle()
        world.writer.open["high"].set_result(Bound())
        await settle()
    assert [note for _, note in events(world, "FailedScheduling")] == [MESSAGE]


async def test_a_pod_whose_node_goes_away_preempts_elsewhere_and_hears_of_that_only() -> None:
    async with first_victim_held("1", nodes=2) as world:
        first, lost, left = await the_node_of_the_first_victim_goes_away(world)
        second, _ = world.writer.evicted[1]
        assert world.scheduler.state.pods[second].node.name == left
        world.writer.going[first].set_result(Failed("too late"))
        await settle()
        assert claimants(world, left) == ["high"]
        world.writer.going[second].set_result(Evicted())
        await settle()
    assert world.writer.nominations[0] == ("high", lost)
    assert world.writer.nominations[-1] == ("high", left)
    assert events(world, "Preempted") == [(second, f"high on {left}")]
    assert not any("too late" in note for _, note in events(world, "FailedScheduling"))


async def test_a_less_important_pod_that_waited_for_the_node_loses_its_claim() -> None:
    world = crowded()
    wants(world, "4", "middle", priority=5)
    async with running(world):
        await evictions(world, 4)
        wants(world, "4", "high", priority=10)
        await world.writer.until(lambda w: ("middle", "") in w.nominations)
        await settle()
        assert claimants(world, "n0") == ["high"]
    assert world.writer.nominations == [("middle", "n0"), ("high", "n0"), ("middle", "")]


async def test_evictions_are_waited_for_at_the_end_and_given_up_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async with first_victim_held("4") as world:
        world.loop.stop()
        ending = asyncio.create_task(world.loop.drain(10))
        await world.timers.asleep()
        ends(world, 0, Evicted())
        await evictions(world, 2)
        assert not ending.done()
        await world.timers.advance(11)
        assert await ending == 1
        assert len(world.loop.effects.evictions) == 0
    assert "gave up evicting pods for another" in caplog.text


async def test_the_log_names_the_first_victims_and_says_how_many_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="ksp")
    names = [f"v{i:02}" for i in range(NAMED + 2)]
    world = crammed(names)
    wants(world, str(len(names)))
    async with running(world):
        await evictions(world, len(names))
    (said,) = (each for each in caplog.messages if each.startswith("preempts pods of lower priority"))
    assert "pod=default/high node=n0" in said
    assert said.count("default/v") == NAMED
    assert "+2 more" in said


async def test_the_log_says_whose_budget_did_not_allow_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="ksp")
    world = World()
    world.loop.deliver(SetNode(node("n0")))
    world.loop.deliver(SetPod(pod("guarded", on="n0", labels={"app": "db"})))
    world.loop.deliver(SetPod(pod("other", on="n0")))
    spec = {"selector": {"matchLabels": {"app": "db"}}}
    budget = convert(PodDisruptionBudget, {"metadata": {"name": "b", "namespace": "default"}, "spec": spec})
    world.loop.deliver(SetObject("podDisruptionBudgets", "default", "b", budget))
    wants(world, "4")
    async with running(world):
        await evictions(world, 2)
    (said,) = (each for each in caplog.messages if each.startswith("preempts pods of lower priority"))
    assert said.endswith("victims=default/guarded,default/other against_budgets=default/guarded")


async def test_victims_that_leave_already_are_passed_over() -> None:
    async with first_victim_held("4") as world:
        first, _ = world.writer.evicted[0]
        gone, leaving, left = sorted({"a", "b", "c", "d"} - {first})
        world.loop.deliver(DeletePod(gone))
        is_leaving(world, leaving)
        world.writer.held = False
        world.writer.going[first].set_result(Evicted())
        await evictions(world, 2)
        await settle()
        assert world.writer.evicted == [(first, "high"), (left, "high")]
        assert len(world.loop.effects.evictions) == 0
        assert claimants(world, "n0") == ["high"]


async def test_a_victim_that_was_not_bound_after_all_is_spared() -> None:
    """It counted on the node while it was being bound."""
    world = crowded("a", "b", "c", held=True)
    async with running(world):
        wants(world, "1", "unlucky", priority=0)
        await world.writer.until(lambda w: w.binds == [("unlucky", "n0")])
        wants(world, "4")
        await evictions(world, 1)
        first, _ = world.writer.evicted[0]
        assert first != "unlucky"
        world.writer.open["unlucky"].set_result(NotBound("refused"))
        await settle()
        world.writer.held = False
        world.writer.going[first].set_result(Evicted())
        await evictions(world, 3)
        await settle()
    assert {name for name, _ in world.writer.evicted} == {"a", "b", "c"}


async def test_pods_that_preempt_at_once_do_not_ask_for_the_same_twice() -> None:
    """Each has to count those that leave for the others' sake among its victims."""
    names = [f"v{i}" for i in range(12)]
    world = crammed(names)
    world.writer.held = True
    for i in range(12):
        wants(world, "1", f"high{i:02}")
    async with running(world):
        await evictions(world, AT_A_TIME)
        while world.writer.going:
            name, going = next(iter(world.writer.going.items()))
            going.set_result(Evicted())
            is_leaving(world, name)
            await settle()
        assert len(world.loop.effects.evictions) == 0
        assert {name for name, _ in world.writer.evicted} == set(names)
        assert len(world.writer.evicted) <= len(names) + AT_A_TIME


async def test_only_so_many_pods_have_others_evicted_at_a_time() -> None:
    world = crowded("a", nodes=AT_A_TIME + 3, held=True)
    for i in range(AT_A_TIME + 3):
        wants(world, "4", f"high{i}")
    async with running(world):
        await evictions(world, AT_A_TIME)
        await settle()
        assert len(world.writer.evicted) == AT_A_TIME
        ends(world, 0, Evicted())
        await evictions(world, AT_A_TIME + 1)


async def test_a_fault_before_the_evictions_begin_leaves_nobody_waiting_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = crowded()
    with monkeypatch.context() as patched:
        patched.setattr(world.recorder, "failed_scheduling", broken)
        wants(world, "1")
        async with running(world):
            await world.timers.asleep()
            assert world.writer.evicted == []
            assert world.seen.faults == [("deciding", "high")]
            assert not world.scheduler.evictions.victims
            patched.undo()
            await world.timers.advance(1.1)
            await evictions(world, 1)


async def test_users_of_victims_hear_of_budgets_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    world = crowded()
    raw = {"metadata": {"name": "keep", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "a b"}}}}
    budget = convert(PodDisruptionBudget, raw)
    world.loop.deliver(SetObject("podDisruptionBudgets", "default", "keep", budget))
    wants(world, "1")
    async with running(world):
        await evictions(world, 1)
    ((victim, _),) = world.writer.evicted
    ((name, note),) = events(world, "UnreadableDisruptionBudget")
    assert name == victim
    assert note.startswith('poddisruptionbudget "keep" protects no pod: ')
    assert any("reason=UnreadableDisruptionBudget" in message for message in caplog.messages)
