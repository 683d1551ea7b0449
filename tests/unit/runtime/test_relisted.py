"""Bound pods of which no watch ever says so, on a server that misbehaves: the next list of all pods is the truth."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.core.scheduling import node, scheduler
from tests.unit.kube.api_objects import added, bookmark, broken, listed, pod, too_old
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.hostile_server import HostileServer, Live, events, hostile_server, reply
from tests.unit.kube.running import PAGES, Running, informers_at

from ksp.core.cache import CachePhase
from ksp.core.changes import SetNode
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.kube.watch.reflector import ReflectorSettings
from ksp.runtime.changes import PodHandler

STREAMS = ReflectorSettings()
UID = "uid-p"
Json = dict[str, Any]


@pytest.fixture
async def server() -> AsyncGenerator[HostileServer, None]:
    async with hostile_server() as server:
        yield server


class Bound:
    """A scheduler that has bound P to `n`, which the watch does not show."""

    def __init__(self, core: Scheduler, running: Running, watch: Live, timers: EagerTimers) -> None:
        self.core = core
        self.running = running
        self.lists: list[float] = []
        self._watch = watch
        self._timers = timers
        running.informers.informer("Pod").tell_of_lists(self._relisted)

    async def bind(self) -> None:
        await self.running.until(lambda: UID in self.core.queue)
        step = self.core.step(self._timers.now())
        assert isinstance(step, Step)
        assert step.decision.node == "n"
        self._timers.elapse(1)
        self.core.bind_succeeded(UID, self._timers.now())
        self._timers.elapse(1)

    async def lose_the_watch(self) -> None:
        """The server has forgotten what happened; all is listed again."""
        seen = len(self.lists)
        self._watch.put(too_old(), "end")
        await self.running.until(lambda: len(self.lists) > seen)

    def _relisted(self, began: float) -> None:
        self.lists.append(began)
        self.core.relisted(began, self._timers.now())

    @property
    def state(self) -> tuple[CachePhase, Place]:
        queued = self.core.queue.get(UID)
        return self.core.cache.phase(UID), Place.ABSENT if queued is None else queued.place


@asynccontextmanager
async def bound(server: HostileServer, then: list[Json], *, streams: bool = False) -> AsyncGenerator[Bound, None]:
    """`then` is what the server lists the next time."""
    watch, timers, core = Live(), EagerTimers(), scheduler()
    if streams:
        watch.put(added(pod("p", 3)), bookmark(10, initial_end=True))
        again = Live()
        again.put(*[added(each) for each in then], bookmark(50, initial_end=True))
        server.plan("watch", watch, again)
    else:
        first = listed(pod("p", 3), version=10)
        server.plan("list", reply(first), reply(listed(*then, version=50)))
        server.plan("watch", watch, events())
    core.on(SetNode(node("n")), 0.0)
    settings = STREAMS if streams else PAGES
    async with informers_at(server, timers, settings=settings) as running:
        handler = PodHandler(lambda change: core.on(change, timers.now()))
        running.informers.informer("Pod").add_handler(handler)
        subject = Bound(core, running, watch, timers)
        await subject.bind()
        yield subject


@pytest.mark.parametrize("streams", [False, True])
async def test_bound_pod_that_no_watch_shows_is_confirmed_by_the_next_list(
    server: HostileServer, streams: bool
) -> None:
    async with bound(server, [pod("p", 20, node="n")], streams=streams) as subject:
        assert subject.state == (CachePhase.BOUND, Place.IN_FLIGHT)
        await subject.lose_the_watch()
        assert subject.state == (CachePhase.ADDED, Place.ABSENT)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("version", [3, 2], ids=["as before", "older"])
async def test_bound_pod_whose_binding_the_server_lost_is_tried_again(
    server: HostileServer, version: int, streams: bool
) -> None:
    async with bound(server, [pod("p", version)], streams=streams) as subject:
        await subject.lose_the_watch()
        assert subject.state == (CachePhase.ABSENT, Place.BACKOFF)
        assert not subject.core.state.pods


async def test_bound_pod_that_is_not_in_the_list_is_gone(server: HostileServer) -> None:
    async with bound(server, []) as subject:
        await subject.lose_the_watch()
        assert subject.state == (CachePhase.ABSENT, Place.ABSENT)


async def test_bound_pod_that_the_list_has_and_nobody_can_read_keeps_its_place(server: HostileServer) -> None:
    """It may be bound: the list does not tell."""
    async with bound(server, [broken("p", 20), pod("q", 30)]) as subject:
        subject._watch.put(too_old(), "end")
        await subject.running.until(lambda: "uid-q" in subject.core.queue)
        await server.seen("watch", 2)
        assert subject.lists == [0.0]
        assert subject.state == (CachePhase.BOUND, Place.IN_FLIGHT)
