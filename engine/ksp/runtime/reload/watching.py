"""Notices that the texts of a policy have changed.

Files are looked at once a second. inotify would tell sooner, but not of files on NFS and other network mounts, and only
of the folders that a link led to when it was asked; editors and the kubelet put other files in the place of the old
ones. A look is one `stat` a file. What has changed is read when two looks in a row see the same, so a file that is
being written is not read in the middle.

A ConfigMap is watched through the API, like everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ksp.kube.events.objects import ObjectReference
from ksp.kube.timers import Timers
from ksp.model.config_map import ConfigMap
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.source import FilePolicySource, SourceError

EVERY: Final = 1.0
"""Seconds between two looks at files."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a source has at a moment: texts, or why there are none. `asked`: somebody wants it read, changed or not.
    `regarding` is the object that holds it."""

    texts: PolicyTexts | SourceError
    asked: bool = False
    regarding: ObjectReference | None = None


class FileWatch:
    """Looks at files until cancelled; `found` is told of each change."""

    def __init__(self, source: FilePolicySource, found: Callable[[Found], None], timers: Timers) -> None:
        self._source = source
        self._found = found
        self._timers = timers
        self._seen = source.read_at
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
        marks = await asyncio.to_thread(self._source.marks)
        settled, self._seen = marks == self._seen, marks
        if settled and marks != self._source.read_at:
            await self._read(asked=False)

    async def _read(self, *, asked: bool) -> None:
        try:
            texts: PolicyTexts | SourceError = await asyncio.to_thread(self._source.read)
        except SourceError as error:
            texts = error
        self._found(Found(texts, asked))

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
        return Found(source.missing(), asked, regarding)
    try:
        return Found(source.texts_of(config_map), asked, regarding)
    except SourceError as error:
        return Found(error, asked, regarding)
