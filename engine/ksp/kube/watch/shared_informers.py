"""The caches of all kinds that a policy reads, and the tasks that keep them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from ksp.kube.http.reader import Reader
from ksp.kube.timers import Timers
from ksp.kube.watch.discovery import Discovery
from ksp.kube.watch.informer import Informer
from ksp.kube.watch.observer import ReflectorObserver, Unobserved
from ksp.kube.watch.reflector import DEFAULT_SETTINGS, Reflector, ReflectorSettings
from ksp.kube.watch.resources import RESOURCES


class SharedInformers:
    """One informer for each of `kinds` (keys of RESOURCES: `Pod`, `Node`, ...), shared by all who want to know.

    Handlers and indexes are added before `run`, or at any time later.
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
    ) -> None:
        self.discovery = discovery or Discovery(reader)
        seen = observer or Unobserved()
        self._informers: dict[str, Informer[Any]] = {kind: Informer(RESOURCES[kind]) for kind in kinds}
        self._reflectors: Mapping[str, Reflector[Any]] = {
            kind: Reflector(informer.resource, reader, self.discovery, informer.fifo, timers, seen, settings)
            for kind, informer in self._informers.items()
        }

    def informer(self, kind: str) -> Informer[Any]:
        """KeyError for a kind that was not asked for."""
        return self._informers[kind]

    async def run(self) -> None:
        """Until cancelled, and that returns at once. Raises only what a handler raises, in an ExceptionGroup."""
        async with asyncio.TaskGroup() as tasks:
            for kind, informer in self._informers.items():
                tasks.create_task(self._reflectors[kind].run(), name=f"reflect {informer.resource.plural}")
                tasks.create_task(informer.deliver(), name=f"deliver {informer.resource.plural}")

    @property
    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def wait_for_sync(self) -> None:
        """Returns when all handlers have been told of all that was there at first."""
        for informer in self._informers.values():
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
