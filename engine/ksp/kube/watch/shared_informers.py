"""The caches of all kinds that a policy reads, and the tasks that keep them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ksp.kube.http.reader import Reader
from ksp.kube.timers import Timers
from ksp.kube.watch.discovery import Discovery
from ksp.kube.watch.informer import Informer
from ksp.kube.watch.observer import ReflectorObserver, Unobserved
from ksp.kube.watch.raw import Kept
from ksp.kube.watch.reflector import DEFAULT_SETTINGS, Reflector, ReflectorSettings
from ksp.kube.watch.resources import RESOURCES, Resource


class SharedInformers:
    """One informer for each of `kinds` (keys of RESOURCES: `Pod`, `Node`, ...), shared by all who want to know.

    Handlers, indexes and further kinds are added before `run`, or at any time later.
    """

    def __init__(
        self,
        reader: Reader,
        timers: Timers,
        *,
        kinds: Iterable[str] = RESOURCES,
        discovery: Discovery | None = None,
        observer: ReflectorObserver | None = None,
        settings: ReflectorSettings = DEFAULT_SETTINGS,
        kept: Kept | None = None,
    ) -> None:
        """`kept` says of which pods and nodes the bytes are kept that they were read from."""
        self.discovery = discovery or Discovery(reader)
        self._reader = reader
        self._timers = timers
        self._observer = observer or Unobserved()
        self._settings = settings
        self._informers: dict[str, Informer[Any]] = {}
        self._reflectors: dict[str, Reflector[Any]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        for kind in kinds:
            self.add(_resource(kind, kept))

    def add(self, resource: Resource) -> Informer[Any]:
        """A further kind; one that is there already as it is. While `run` runs its cache is filled from now on: add
        its handlers before anything else has a turn."""
        known = self._informers.get(resource.kind)
        if known is not None:
            return known
        informer: Informer[Any] = Informer(resource)
        self._informers[resource.kind] = informer
        self._reflectors[resource.kind] = Reflector(
            resource, self._reader, self.discovery, informer.fifo, self._timers, self._observer, self._settings
        )
        if self._tasks is not None:
            self._start(self._tasks, resource.kind)
        return informer

    @property
    def kinds(self) -> tuple[str, ...]:
        """All that there are."""
        return tuple(self._informers)

    def informer(self, kind: str) -> Informer[Any]:
        """KeyError for a kind that was not asked for."""
        return self._informers[kind]

    async def run(self) -> None:
        """Until cancelled, and that returns at once. Raises only what a handler raises, in an ExceptionGroup."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for kind in self._informers:
                    self._start(tasks, kind)
        finally:
            self._tasks = None

    def _start(self, tasks: asyncio.TaskGroup, kind: str) -> None:
        informer = self._informers[kind]
        tasks.create_task(self._reflectors[kind].run(), name=f"reflect {informer.resource.plural}")
        tasks.create_task(informer.deliver(), name=f"deliver {informer.resource.plural}")

    @property
    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def wait_for_sync(self) -> None:
        """Returns when all handlers have been told of all that was there at first."""
        for informer in tuple(self._informers.values()):
            await informer.wait_for_sync()

    def waiting_for(self) -> list[tuple[str, str]]:
        """The kinds (plurals) that are not in sync yet, and for each what it is at or what stands in its way."""
        return [
            (informer.resource.plural, self._reflectors[kind].trouble or self._reflectors[kind].doing)
            for kind, informer in self._informers.items()
            if not informer.has_synced
        ]

    def troubles(self) -> list[tuple[str, str]]:
        """The kinds (plurals) whose cache is not kept up to date at the moment, and why; in sync or not."""
        return [
            (informer.resource.plural, self._reflectors[kind].trouble)
            for kind, informer in self._informers.items()
            if self._reflectors[kind].trouble
        ]


def _resource(kind: str, kept: Kept | None) -> Resource:
    resource = RESOURCES[kind]
    if kept is None or kind not in {"Pod", "Node"}:
        return resource
    return replace(resource, with_bytes=kept.pod if kind == "Pod" else kept.node)
