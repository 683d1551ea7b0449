"""The loop while extenders are asked: nothing is decided, nothing is lost, and whatever goes wrong ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.core.scheduling import node, pod
from tests.unit.kube.timers import settle
from tests.unit.runtime.driving import World, running

from ksp.core.changes import DeletePod, SetNode, SetPod
from ksp.core.questions import Answer, Ask, Failed, Filter, FilterAnswer
from ksp.kube.write.conditions import MESSAGE_LIMIT
from ksp.kube.write.writes import Bound, NotBound
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender

FILTERS = Extender("http://extender", filter_verb="filter")
GPU = "example.com/gpu"
BINDS = Extender("http://binder", bind_verb="bind")


@dataclass
class Asked:
    """Extenders that answer when the test says: with all nodes, or with what is raised."""

    asks: list[Ask] = field(default_factory=list)
    open: list[asyncio.Future[Sequence[Answer]]] = field(default_factory=list)
    cancelled: int = 0
    bound: list[tuple[str, str, str]] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    binds: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    followed: int = 0

    def __post_init__(self) -> None:
        self.held.set()

    def follow(self) -> None:
        self.followed += 1

    async def answers(self, ask: Ask) -> Sequence[Answer]:
        self.asks.append(ask)
        self.open.append(asyncio.get_running_loop().create_future())
        self.came.set()
        try:
            return await self.open[-1]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def bind(self, extender: Extender, pod: PodInfo, node: str) -> Bound | NotBound:
        self.bound.append((extender.url_prefix, pod.name, node))
        self.binds.set()
        await self.held.wait()
        return Bound()

    async def question(self) -> Ask:
        """The next one."""
        await self.came.wait()
        self.came.clear()
        return self.asks[-1]

    def admit_all(self) -> None:
        (question,) = self.asks[-1].questions
        assert isinstance(question, Filter)
        self.open[-1].set_result([FilterAnswer(question.nodes)])


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def world(asked: Asked) -> World:
    made = World(extenders=asked, configured=[FILTERS])
    made.loop.deliver(SetNode(node("n")))
    made.loop.deliver(SetPod(pod("p")))
    return made


async def test_nothing_is_decided_until_there_is_an_answer(world: World, asked: Asked) -> None:
    async with running(world):
        ask = await asked.question()
        assert ask.pod.name == "p"
        world.loop.deliver(SetPod(pod("q")))
        await asyncio.sleep(0)
        assert world.seen.decisions == []
        asked.admit_all()
        await world.writer.until(lambda writer: writer.binds == [("p", "n")])
        assert (await asked.question()).pod.name == "q"


async def test_what_comes_in_meanwhile_counts_afterwards(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        world.loop.deliver(SetNode(node("m", labels={"new": "yes"})))
        world.loop.deliver(DeletePod("p"))
        world.loop.deliver(SetPod(pod("q", nodeSelector={"new": "yes"})))
        asked.admit_all()
        (question,) = (await asked.question()).questions
        assert isinstance(question, Filter)
        assert question.nodes == ("m",)


async def test_an_act_between_two_decisions_waits_for_the_answer(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        acting = asyncio.create_task(world.loop.between(lambda: world.scheduler.asked))
        await asyncio.sleep(0)
        assert not acting.done()
        asked.admit_all()
        assert await acting is None


async def test_a_fault_while_asking_fails_the_attempt_and_is_told(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        asked.open[-1].set_exception(ValueError("a bug"))
        await world.writer.until(lambda writer: bool(writer.conditions))
    assert world.writer.conditions == [("p", "SchedulerError", "internal error: ValueError, see the scheduler's log")]
    assert world.seen.faults == [("asking extenders", "p")]


async def test_answers_that_do_not_fit_fail_the_attempt(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        asked.open[-1].set_result([])
        await world.writer.until(lambda writer: bool(writer.conditions))
    ((_, reason, _),) = world.writer.conditions
    assert reason == "SchedulerError"
    assert world.scheduler.asked is None


async def test_a_fault_elsewhere_leaves_the_pod_to_its_answer(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        assert not world.loop.effects.failed(RuntimeError("elsewhere"), None)
        assert world.scheduler.asked is not None
        asked.admit_all()
        await world.writer.until(lambda writer: writer.binds == [("p", "n")])


async def test_stopping_gives_up_the_question(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
    assert asked.cancelled == 1


async def test_extenders_that_fail_are_told_of_as_they_say(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        asked.open[-1].set_result([Failed("extender http://extender: it sleeps")])
        await world.writer.until(lambda writer: bool(writer.conditions))
    assert world.writer.conditions == [("p", "SchedulerError", "extender http://extender: it sleeps")]


async def test_a_pod_is_bound_by_whom_the_core_says(asked: Asked) -> None:
    world = World(extenders=asked, configured=[BINDS])
    world.loop.deliver(SetNode(node("n")))
    world.loop.deliver(SetPod(pod("p")))
    async with running(world):
        await asked.binds.wait()
    assert asked.bound == [("http://binder", "p", "n")]
    assert world.writer.binds == []
    assert [binding.extender for binding in world.seen.bindings] == [BINDS]


async def test_an_extender_that_never_binds_holds_up_nobody_else(asked: Asked) -> None:
    """So many of its bindings are under way as may be of our own; the others wait, and pods that are not its business
    are decided and bound meanwhile. Who goes away while he waits is not asked for."""
    gpu = {"cpu": "4", "memory": "8Gi", "pods": "110", GPU: "9"}
    binds = replace(BINDS, managed_resources=frozenset({GPU}))
    world = World(extenders=asked, configured=[binds], limit=2)
    asked.held.clear()
    world.loop.deliver(SetNode(node("n", allocatable=gpu)))
    for name in "abcd":
        world.loop.deliver(SetPod(pod(name, requests={GPU: "1"})))
    world.loop.deliver(SetPod(pod("plain")))
    async with running(world):
        await world.writer.until(lambda writer: writer.binds == [("plain", "n")])
        await settle()
        assert [name for _, name, _ in asked.bound] == ["a", "b"]
        assert len(world.loop.effects.binds) == 4
        world.loop.deliver(DeletePod("c"))
        asked.held.set()
        await settle()
        assert [name for _, name, _ in asked.bound] == ["a", "b", "d"]
        assert len(world.loop.effects.binds) == 0


async def test_extenders_are_followed_when_another_generation_decides(world: World, asked: Asked) -> None:
    """At once, be it that nobody is asked any more."""
    async with running(world):
        await asked.question()
        adopting = asyncio.create_task(world.loop.between(lambda: None))
        await settle()
        assert asked.followed == 0
        asked.admit_all()
        await adopting
        assert asked.followed == 1


async def test_a_message_is_no_longer_than_it_will_be_shown(world: World, asked: Asked) -> None:
    async with running(world):
        await asked.question()
        asked.open[-1].set_result([FilterAnswer((), {"n": "no\n" * 20_000})])
        await world.writer.until(lambda writer: bool(writer.conditions))
    ((_, _, message),) = world.writer.conditions
    assert len(message.encode()) <= MESSAGE_LIMIT
    assert message.startswith("0/1 nodes are available: 1 no no no")
    assert message.isprintable()
