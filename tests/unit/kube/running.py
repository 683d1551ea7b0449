"""Informers that run while a test looks at them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.hostile_server import HostileServer, client_of
from tests.unit.kube.recorder import Recorder

from ksp.kube.http.reader import Reader
from ksp.kube.timers import Timers
from ksp.kube.watch.observer import Ending
from ksp.kube.watch.reflector import ReflectorSettings
from ksp.kube.watch.shared_informers import SharedInformers

PAGES = ReflectorSettings(watch_list=False)


@dataclass
class Notes:
    """A ReflectorObserver that writes down what it is told."""

    lists: list[int] = field(default_factory=list)
    watches: int = 0
    endings: list[Ending] = field(default_factory=list)
    relists: list[str] = field(default_factory=list)
    bad: list[tuple[str, str]] = field(default_factory=list)
    repeats: int = 0
    positions: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def listed(self, resource: str, items: int, seconds: float) -> None:
        self.lists.append(items)
        self.changed.set()

    def watching(self, resource: str) -> None:
        self.watches += 1
        self.changed.set()

    def watch_ended(self, resource: str, ending: Ending) -> None:
        self.endings.append(ending)
        self.changed.set()

    def relisting(self, resource: str, reason: str) -> None:
        self.relists.append(reason)
        self.changed.set()

    def undecodable(self, resource: str, key: str, message: str) -> None:
        self.bad.append((key, message))
        self.changed.set()

    def repeated(self, resource: str) -> None:
        self.repeats += 1
        self.changed.set()

    def position(self, resource: str, resource_version: str) -> None:
        self.positions.append(resource_version)
        self.changed.set()

    def failed(self, resource: str, why: str) -> None:
        self.failures.append(why)
        self.changed.set()


@dataclass
class Running:
    """Informers at work. `until` waits for something that the observer or the handler makes true."""

    informers: SharedInformers
    handler: Recorder
    notes: Notes
    task: asyncio.Task[None]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                if self.task.done():
                    await self.task
                await asyncio.sleep(0)

    async def told(self, *expected: str) -> None:
        """The handler has been told this, all of it, and nothing else."""
        try:
            await self.until(lambda: len(self.handler.told) >= len(expected))
        except TimeoutError:
            assert self.handler.told == list(expected)
        assert self.handler.told == list(expected)

    @property
    def versions(self) -> dict[str, str]:
        """The pods in the store, by key, with their versions."""
        return {f"{p.metadata.namespace}/{p.metadata.name}": p.metadata.resource_version for p in self._pods()}

    def _pods(self) -> Sequence[Any]:
        return self.informers.informer("Pod").lister.list()


@asynccontextmanager
async def informers_of(
    reader: Reader, timers: Timers, *, kinds: Iterable[str] = ("Pod",), settings: ReflectorSettings = PAGES
) -> AsyncGenerator[Running, None]:
    notes, handler = Notes(), Recorder()
    informers = SharedInformers(reader, timers, kinds=kinds, observer=notes, settings=settings)
    informers.informer("Pod").add_handler(handler)
    task = asyncio.create_task(informers.run())
    try:
        yield Running(informers, handler, notes, task)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await task


@asynccontextmanager
async def informers_at(
    server: HostileServer,
    timers: Timers | None = None,
    *,
    kinds: Iterable[str] = ("Pod",),
    settings: ReflectorSettings = PAGES,
    client_timers: Timers | None = None,
) -> AsyncGenerator[Running, None]:
    """Informers with a real client. The reflectors' waits are over at once unless `timers` say otherwise."""
    async with (
        client_of(server, client_timers) as client,
        informers_of(client, timers or EagerTimers(), kinds=kinds, settings=settings) as running,
    ):
        yield running
