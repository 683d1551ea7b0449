"""Reloading as the app has it: what it reads at the start, and the tasks that follow the source.

A policy in a ConfigMap is read when the server is known. What is wrong with it then ends the program, as what is wrong
with a file does before; without the right to read it the scheduler waits, and says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from ksp.core.probation import Terms
from ksp.core.scheduler import Scheduler
from ksp.kube.errors import ApiError, ConfigError, KubeError
from ksp.kube.http.backoff import Backoff
from ksp.kube.http.paths import path_of
from ksp.kube.http.reader import Reader
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import SystemWallClock
from ksp.kube.watch.complaints import explain
from ksp.kube.watch.resources import one_config_map
from ksp.kube.watch.shared_informers import SharedInformers
from ksp.model.config_map import ConfigMap
from ksp.model.decode import DecodeError, decode
from ksp.policy.assemble import Policy, assemble
from ksp.policy.errors import PolicyError
from ksp.policy.texts import PolicyTexts
from ksp.runtime.log import Seldom, entry
from ksp.runtime.loop import SchedulingLoop
from ksp.runtime.options import Options
from ksp.runtime.reload.child import Child
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.kinds import WatchedKinds
from ksp.runtime.reload.metrics import PolicyInfo, ReloadMetrics
from ksp.runtime.reload.reloader import Reloader
from ksp.runtime.reload.source import FilePolicySource, SourceError
from ksp.runtime.reload.sources import FileSource, FolderSource, LegacyFileSource
from ksp.runtime.reload.telling import EventSink, Telling
from ksp.runtime.reload.thread import in_thread
from ksp.runtime.reload.watching import ConfigMapWatch, FileWatch
from ksp.runtime.status import StatusBoard

_log = logging.getLogger(__name__)

TIMEOUT: Final = 10.0
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 5.0


class Reloading:
    """The policy's source, and what follows it. Without a source, as with the shipped rules, there is nothing to do."""

    def __init__(
        self, options: Options, board: StatusBoard, registry: CollectorRegistry, timers: Timers,
        environ: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._options = options
        self._board = board
        self._timers = timers
        self._environ = environ
        self._clock = SystemWallClock()
        self._metrics = ReloadMetrics(registry)
        self._watch: FileWatch | ConfigMapWatch | None = None
        self._asked = False
        self._texts: PolicyTexts | None = None if options.source is None else options.source.texts
        registry.register(PolicyInfo(board))

    def again(self) -> None:
        """Somebody wants the policy to be read again (SIGHUP)."""
        if self._options.source is None:
            _log.info("the rules are the shipped ones: there is nothing to read again")
        elif self._watch is None:
            self._asked = True
        else:
            _log.info(entry("asked to read the policy again", source=self._options.source.name))
            self._watch.again()

    def decides(self, number: int, policy: Policy) -> None:
        """The first policy."""
        source = self._options.source
        self._board.running(
            number, policy, policy.name if source is None else source.name, source.kind if source else ""
        )
        self._metrics.took(self._clock.wall().timestamp())

    # ---- the first policy, from a ConfigMap

    async def first_policy(self, reader: Reader) -> Policy:
        """What the ConfigMap says. Raises ConfigError if that cannot be used; waits for the right to read it."""
        source = self._options.source
        if not isinstance(source, ConfigMapSource):
            raise ConfigError("there is no policy: neither a file nor a ConfigMap is named")
        try:
            found = await self._read(source, reader)
            if found is None:
                raise source.missing()
            self._texts = source.texts_of(found)
            return await in_thread(partial(assemble, self._texts, self._options.settings))
        except SourceError as error:
            raise ConfigError(str(error)) from error
        except PolicyError as error:
            raise ConfigError(
                f"the policy in the ConfigMap {source.name} cannot be used\n{error.rendered()}"
            ) from error

    async def _read(self, source: ConfigMapSource, reader: Reader) -> ConfigMap | None:
        """None if there is none."""
        path = path_of("api", "v1", "namespaces", source.namespace, "configmaps", source.config_map)
        backoff = Backoff(self._timers, initial=FIRST_WAIT, maximum=LONGEST_WAIT)
        seldom = Seldom(_log, self._timers.now)
        while True:
            try:
                answer = await reader.request("GET", path, timeout=TIMEOUT, retry=False)
                return decode(ConfigMap, answer.body)
            except DecodeError as error:
                raise SourceError(f"the ConfigMap {source.name} cannot be read: {error}") from error
            except KubeError as error:
                if isinstance(error, ApiError) and error.status == 404:
                    return None
                resource = one_config_map(source.namespace, source.config_map)
                seldom.say("", "waiting for the policy", why=explain(resource, "get", error))
            await self._timers.sleep(backoff.next())

    # ---- what follows the source

    async def run(
        self, scheduler: Scheduler, loop: SchedulingLoop, informers: SharedInformers, events: EventSink,
        decides: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Reloads until cancelled. The caches are in sync. `decides`: whether this scheduler leads."""
        source = self._options.source
        if source is None:
            return
        telling = Telling(source, self._board, self._metrics, events, self._clock, self._environ)
        ratio = self._options.max_denied_ratio
        reloader = Reloader(
            scheduler, loop, WatchedKinds(informers, loop.deliver, self._timers), Child(self._timers, self._environ),
            telling, self._timers, texts=self._texts, settings=self._options.settings,
            terms=None if ratio is None or ratio >= 1 else Terms(ratio), decides=decides,
        )  # fmt: skip
        async with asyncio.TaskGroup() as group:
            group.create_task(reloader.run())
            if isinstance(source, ConfigMapSource):
                group.create_task(self._follow_config_map(source, reloader, informers))
            else:
                assert isinstance(source, FileSource | FolderSource | LegacyFileSource)
                group.create_task(self._follow_files(source, reloader))

    async def _follow_files(self, source: FilePolicySource, reloader: Reloader) -> None:
        watch = FileWatch(source, reloader.offer, self._timers)
        self._follow(watch)
        await watch.run()

    async def _follow_config_map(self, source: ConfigMapSource, reloader: Reloader, informers: SharedInformers) -> None:
        watch = ConfigMapWatch(source, reloader.offer)
        informer = informers.add(one_config_map(source.namespace, source.config_map))
        informer.add_handler(watch)
        await informer.wait_for_sync()
        watch.synced()
        self._follow(watch)

    def _follow(self, watch: FileWatch | ConfigMapWatch) -> None:
        self._watch = watch
        if self._asked:
            self._asked = False
            watch.again()
