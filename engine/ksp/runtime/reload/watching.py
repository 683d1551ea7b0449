"""Notices that the texts of a policy have changed.

Files are looked at once a second. inotify would tell sooner, but not of files on NFS and other network mounts, and only
of the folders that a link led to when it was asked; editors and the kubelet put other files in the place of the old
ones. A look is one `stat` a file. What has changed is read when two looks in a row see the same, so a file that is
being written is not read in the middle; after `RESTLESS` looks it is read anyway.

A ConfigMap is watched through the API, like everything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ksp.kube.events.objects import ObjectReference
from ksp.kube.timers import Timers
from ksp.model.config_map import ConfigMap
from ksp.policy.texts import PolicyTexts
from ksp.runtime.log import entry
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.source import FilePolicySource, SourceError
from ksp.runtime.reload.thread import in_thread

_log = logging.getLogger(__name__)

EVERY: Final = 1.0
"""Seconds between two looks at files."""
RESTLESS: Final = 10
"""Looks that have seen another state each, after which that is read: whoever writes all the time is to be told."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a source has at a moment: `read` gives the texts, or raises SourceError. That is done only where nothing
    newer has been found meanwhile, since it may take a while. `asked`: somebody wants it read, changed or not.
    `regarding` is the object that holds it."""

    read: Callable[[], PolicyTexts]
    asked: bool = False
    regarding: ObjectReference | None = None


class FileWatch:
    """Looks at files until cancelled; `found` is told of each change."""

    def __init__(self, source: FilePolicySource, found: Callable[[Found], None], timers: Timers) -> None:
        self._source = source
        self._found = found
        self._timers = timers
        self._seen = source.read_at
        self._restless = 0
        self._asked = asyncio.Event()

    def again(self) -> None:
        """Read it now."""
        self._asked.set()

    async def run(self) -> None:
        """Looks, again and again."""
        while True:
            await self._pause()
            if self._asked.is_set():
                self._asked.clear()
                await self._read(asked=True)
            else:
                await self.look()

    async def look(self) -> None:
        """Reads the files if they have changed, and are at rest."""
        marks = await in_thread(self._source.marks)
        at_rest, self._seen = marks == self._seen, marks
        self._restless = 0 if at_rest else self._restless + 1
        if marks != self._source.read_at and (at_rest or self._restless >= RESTLESS):
            await self._read(asked=False)

    async def _read(self, *, asked: bool) -> None:
        self._restless = 0
        try:
            texts = await in_thread(self._source.read)
        except SourceError as error:
            self._found(Found(partial(_refuse, error), asked))
        except Exception as error:  # noqa: BLE001 - it is told of, and must not end the scheduler
            _log.exception(entry("a fault of ksp while the policy is read"))
            fault = SourceError(f"{self._source.name}: internal error: {type(error).__name__}: {error}")
            self._found(Found(partial(_refuse, fault), asked))
        else:
            self._found(Found(lambda: texts, asked))

    async def _pause(self) -> None:
        waits = [asyncio.ensure_future(self._timers.sleep(EVERY)), asyncio.ensure_future(self._asked.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


class ConfigMapWatch:
    """Handles what an informer of that one ConfigMap tells."""

    def __init__(self, source: ConfigMapSource, found: Callable[[Found], None]) -> None:
        self._source = source
        self._found = found
        self._last: ConfigMap | None = None

    def again(self) -> None:
        """Tells of what is known, which the watch keeps up to date."""
        self._tell(self._last, asked=True)

    def synced(self) -> None:
        """All that is there has been told."""
        if self._last is None:
            self._tell(None)

    def on_add(self, obj: ConfigMap) -> None:
        self._tell(obj)

    def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        self._tell(new)

    def on_delete(self, obj: ConfigMap, known_final_state: bool) -> None:
        self._tell(None)

    def _tell(self, config_map: ConfigMap | None, *, asked: bool = False) -> None:
        self._last = config_map
        self._found(found_in(self._source, config_map, asked=asked))


def found_in(source: ConfigMapSource, config_map: ConfigMap | None, *, asked: bool = False) -> Found:
    """What it holds."""
    regarding = ObjectReference(
        kind="ConfigMap", api_version="v1", namespace=source.namespace, name=source.config_map,
        uid="" if config_map is None else config_map.metadata.uid,
    )  # fmt: skip
    if config_map is None:
        return Found(partial(_refuse, source.missing()), asked, regarding)
    return Found(partial(source.texts_of, config_map), asked, regarding)


def _refuse(why: SourceError) -> PolicyTexts:
    raise why
