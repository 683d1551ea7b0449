"""The loop against an API server that refuses, is away, forgets pods and has faults, in an order that dice decide."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace
from tests.unit.core.scheduling import default_profile, node, pod
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.driving import Recorder, Seen, Stopwatch

from ksp.core.changes import DeletePod, SetNode, SetPod
from ksp.core.scheduler import Scheduler
from ksp.kube.write.writes import Bound, Evicted, Failed, Gone, NotBound, Patched, VolumesWritten
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.runtime.chance import RandomDice
from ksp.runtime.loop import SchedulingLoop

NODES, PODS, EARLY, CPUS = 4, 50, 30, 8
MOST_TURNS = 3000


class Weather:
    """The truth about pods and nodes, and the writer of the loop. `told` are pods as the watch shows them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.timers = VirtualTimers()
        self.place: dict[str, str] = {}
        self.told: dict[str, Pod] = {}
        self.conditions = self.evicted = 0
        self.going: set[str] = set()
        self.said: dict[str, list[str]] = {}
        self.wrong: list[str] = []
        self.later: list[asyncio.Task[None]] = []
        self.loop = SchedulingLoop(
            Scheduler([default_profile()], RandomDice(seed)), self, Recorder(), Seen(),
            timers=self.timers, stopwatch=Stopwatch(0.002), limit=self.random.choice([1, 3, 100]),
        )  # fmt: skip

    def insist(self, holds: bool, what: str) -> None:
        """For the end of the test: what a writer raises is a fault, which the loop lives with."""
        if not holds:
            self.wrong.append(what)

    def create(self, name: str) -> None:
        self.told[name] = pod(name, priority=self.random.randrange(3))
        self.show(name)

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound:
        await self.timers.sleep(self.random.choice([0, 0, 0.1, 3]))
        what = self.random.random()
        if what < 0.15:
            return NotBound("refused")
        if what < 0.3:
            return NotBound("away", unreached=True)
        if what < 0.35:
            raise ZeroDivisionError("a bug of the writer")
        if pod.name not in self.told:
            return NotBound("gone", gone=True)
        self.insist(pod.name not in self.place, "bound twice")
        self.place[pod.name] = node
        if self.random.random() < 0.5:
            self.show(pod.name)
        else:
            self.later.append(asyncio.create_task(self._show_later(pod.name)))
        await self.timers.sleep(self.random.choice([0, 0.2]))
        return Bound()

    async def bind_volumes(self, pod: PodInfo, *_: object) -> VolumesWritten | NotBound:
        self.insist(False, "the pod has no volumes")
        return NotBound("no volumes")

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched:
        """What failed may have happened, and what has happened is shown some time later, one after another."""
        self.conditions += 1
        outcome = self.random.choice([Patched.SENT, Patched.FAILED])
        if nominated_node is not None and (outcome is Patched.SENT or self.random.random() < 0.3):
            self.said.setdefault(pod.name, []).append(nominated_node)
            self.later.append(asyncio.create_task(self._echo_later(pod.name)))
        await self.timers.sleep(self.random.choice([0, 0.1]))
        return outcome

    async def clear_nomination(self, pod: PodInfo) -> Patched:
        return await self.set_condition(pod, "", "", "")

    async def _echo_later(self, name: str) -> None:
        """It moves no claim: what the status says was decided by the scheduler, perhaps long ago."""
        await self.timers.sleep(self.random.choice([0, 0.1, 1, 5]))
        node = self.said[name].pop(0)
        if name in self.told:
            nominations = self.loop.scheduler.queue.nominations
            before = nominations.node_of(name)
            self.told[name] = replace(self.told[name], status=replace(self.told[name].status, nominated_node_name=node))
            self.loop.deliver(SetPod(self.told[name]))
            assert nominations.node_of(name) == before

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed:
        self.insist(victim.priority < preemptor.priority, "the victim is as important")
        claim = self.loop.scheduler.queue.nominations.node_of(preemptor.uid)
        self.insist(claim is not None, "nobody needs the victim's place")
        await self.timers.sleep(self.random.choice([0, 0.1, 3]))
        what = self.random.random()
        if what < 0.15:
            return Failed("refused")
        if what < 0.2:
            raise ZeroDivisionError("a bug of the writer")
        if victim.name not in self.told:
            return Gone()
        self.evicted += 1
        self.going.add(victim.name)
        self.later.append(asyncio.create_task(self._goes(victim.name)))
        return Evicted()

    async def _goes(self, name: str) -> None:
        """A pod that is being deleted: the watch may show that first."""
        if self.random.random() < 0.5 and name in self.told:
            await self.timers.sleep(self.random.choice([0, 0.1]))
            self.show(name)
        await self.timers.sleep(self.random.choice([0, 1, 10]))
        if name in self.told:
            self.delete(name)

    async def _show_later(self, name: str) -> None:
        await self.timers.sleep(self.random.choice([0.1, 5]))
        self.show(name)

    def show(self, name: str) -> None:
        """The watch tells of the pod as it is."""
        if name in self.told:
            found = self.told[name]
            gone = "2026-01-01T00:00:00Z" if name in self.going else None
            self.told[name] = replace(
                found, spec=replace(found.spec, node_name=self.place.get(name, "")),
                metadata=replace(found.metadata, deletion_timestamp=gone),
            )  # fmt: skip
            self.loop.deliver(SetPod(self.told[name]))

    @property
    def settled(self) -> bool:
        """All pods have their place, and nothing is under way."""
        going = self.going & self.told.keys()
        effects = self.loop.effects
        return self.place.keys() == self.told.keys() and not (effects.binds or effects.evictions or going)

    def delete(self, name: str) -> None:
        del self.told[name]
        self.place.pop(name, None)
        self.loop.deliver(DeletePod(name))


@pytest.mark.parametrize("seed", range(12))
async def test_all_pods_end_up_on_nodes_once_and_no_node_is_asked_for_more_than_it_has(seed: int) -> None:
    weather = Weather(seed)
    for i in range(NODES):
        weather.loop.deliver(SetNode(node(f"n{i}", cpu=str(CPUS))))
    coming = [f"p{i}" for i in range(PODS)]
    async with asyncio.timeout(20):
        running = asyncio.create_task(weather.loop.run())
        for name in coming[:EARLY]:
            weather.create(name)
        del coming[:EARLY]
        for turn in range(MOST_TURNS):
            if coming and (turn % 5 == 0 or weather.settled):
                weather.create(coming.pop())
            await weather.timers.next()
            if turn % 10 == 0 and len(weather.told) > NODES * CPUS:
                weather.delete(weather.random.choice(list(weather.told)))
            assert max(Counter(weather.place.values()).values(), default=0) <= CPUS
            if weather.settled and not coming:
                break
        weather.loop.stop()
        await weather.timers.advance(20)
        await asyncio.gather(running, *weather.later)
    assert weather.wrong == []
    assert weather.place.keys() == weather.told.keys()
    assert weather.evicted > 0
    scheduler = weather.loop.scheduler
    assert len(scheduler.queue) == 0
    assert scheduler.cache_size() == {"nodes": NODES, "pods": len(weather.told), "assumed_pods": 0}
    assert not scheduler.evictions.victims
    assert not any(scheduler.queue.nominated_on(name) for name in scheduler.state.nodes)
    assert {info.name: info.node.name for info in scheduler.state.pods.values()} == weather.place
