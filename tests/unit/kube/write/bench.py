"""What tests of writes share: a writer over real HTTP in virtual time, and an observer that remembers."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.unit.kube.pod_server import PodServer, client_of, serving
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.http.client import Client
from ksp.kube.write.patience import Patience
from ksp.kube.write.writes import Evicted, Failed, Gone, Patched, Writer
from ksp.model.info import PodInfo

NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 999999, tzinfo=dt.UTC)


class Noon:
    def wall(self) -> dt.datetime:
        return NOON


@dataclass
class Told:
    """What the observer heard."""

    unsettled_: list[str] = field(default_factory=list)
    outcomes: list[tuple[Patched, str]] = field(default_factory=list)
    evictions: list[tuple[str, Evicted | Gone | Failed]] = field(default_factory=list)

    def unsettled(self, pod: PodInfo, node: str, why: str) -> None:
        self.unsettled_.append(why)

    def condition(self, pod: PodInfo, outcome: Patched, why: str) -> None:
        self.outcomes.append((outcome, why))

    def eviction(self, victim: PodInfo, outcome: Evicted | Gone | Failed) -> None:
        self.evictions.append((victim.name, outcome))


Server = TypeVar("Server", bound=PodServer)


@dataclass
class WriteBench(Generic[Server]):
    """A server, its client, and a writer with the given patience, whose clock shows noon."""

    server: Server
    client: Client
    patience: Patience
    timers: VirtualTimers
    told: Told = field(default_factory=Told)

    def __post_init__(self) -> None:
        self.writer = self.new_writer()

    def new_writer(self, *, marks_victims: bool = False) -> Writer:
        return Writer(self.client, self.timers, Noon(), self.told, self.patience, marks_victims=marks_victims)


B = TypeVar("B")


@asynccontextmanager
async def at_work(
    bench: Callable[[Server, Client, Patience, VirtualTimers], B], server: Server, patience: Patience
) -> AsyncGenerator[B]:
    """A bench with a server that listens."""
    timers = VirtualTimers()
    async with serving(server), client_of(server, timers) as client:
        yield bench(server, client, patience, timers)


@asynccontextmanager
async def unheard(bench: Callable[[Server, Client, Patience, VirtualTimers], B], server: Server) -> AsyncGenerator[B]:
    """A bench with a server that listens no more."""
    timers = VirtualTimers()
    async with serving(server):
        pass
    async with client_of(server, timers) as client:
        yield bench(server, client, Patience(), timers)
