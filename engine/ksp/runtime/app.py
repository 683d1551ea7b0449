"""The whole: a cluster, its caches, the core, and what is served of it. Where to see how the parts fit.

    listen -> load the cluster -> first contact -> caches in sync -> decide -> stop

Nothing is decided before all caches are in sync. Of what can go wrong at the start, waiting mends most: then it waits
and says for what. The rest is a ConfigError.

Stopping takes this order: no more decisions; open bindings and evictions finish, for at most `stop_seconds`; events are
written, for at most `flush_seconds`; watches and connections close.

Two clients have a limit of requests each: one for all that is written but events, one for all else, so that neither a
storm of events nor a long list keeps a binding waiting.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ksp import __version__
from ksp.core.cycle import MOST_CLASSES
from ksp.core.scheduler import Scheduler
from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.config import load_cluster
from ksp.kube.events.recorder import EventRecorder
from ksp.kube.http.client import Client
from ksp.kube.timers import SystemTimers, Timers
from ksp.kube.wall_clock import SystemWallClock
from ksp.kube.watch.reflector import ReflectorSettings
from ksp.kube.watch.shared_informers import SharedInformers
from ksp.kube.write.evictions import SINCE
from ksp.kube.write.writes import Writer
from ksp.ports import Stopwatch
from ksp.runtime.caches import synced
from ksp.runtime.chance import RandomDice, SystemStopwatch
from ksp.runtime.changes import handlers, kinds_of
from ksp.runtime.contact import first_contact, is_since
from ksp.runtime.edge import EventWatch, ReflectorWatch, RequestWatch, WriteWatch
from ksp.runtime.log import entry
from ksp.runtime.loop import SchedulingLoop
from ksp.runtime.metrics import BuildInfo, CoreMetrics, SchedulerMetrics, new_registry
from ksp.runtime.observer import Observer, Observers
from ksp.runtime.options import Options
from ksp.runtime.pod_events import PodEvents
from ksp.runtime.serve import StatusServer
from ksp.runtime.summary import Summary

_log = logging.getLogger(__name__)

COMPONENT = "ksp"

T = TypeVar("T")


class App:
    """A scheduler of one cluster. `run` it once."""

    def __init__(
        self, options: Options, *, observers: Sequence[Observer] = (), timers: Timers | None = None,
        stopwatch: Stopwatch | None = None, environ: Mapping[str, str] | None = None,
        when_synced: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`when_synced` is called when the caches are in sync, before anything is decided."""
        self.options = options
        self.registry = new_registry()
        self.port: int | None = None
        self.ready = asyncio.Event()
        self.scheduler = Scheduler(
            options.policy.profiles, RandomDice(options.seed), unread_fields=options.unread_fields,
            assumed_ttl=options.assumed_ttl,
            equivalence_classes=MOST_CLASSES if options.equivalence_classes else 0,
        )  # fmt: skip
        self._timers = timers or SystemTimers()
        self._summary = Summary(self._timers)
        self._observer = Observers((SchedulerMetrics(self.registry), self._summary, *observers))
        self._requests = RequestWatch(self.registry)
        self._stopwatch = stopwatch or SystemStopwatch()
        self._environ = os.environ if environ is None else environ
        self._when_synced = when_synced
        self._stopping = False
        self._not_ready = "not connected yet"

    async def run(self, stop: asyncio.Event) -> None:
        """Schedules until `stop` is set. Raises ConfigError where waiting is of no use."""
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            cluster = load_cluster(self.options.kubeconfig, self.options.master, self._environ)
            self._say_what_starts(cluster)
            reads, writes = [await stack.enter_async_context(self._client(cluster)) for _ in range(2)]
            version = await _unless(stop, first_contact(reads, self._timers))
            if version is not None:
                _log.info(entry("connected", server=cluster.server, version=version))
                await self._schedule(reads, writes, stop, marks_victims=is_since(version, SINCE))

    # ---- the parts

    async def _listen(self, stack: AsyncExitStack) -> None:
        if self.options.port is None:
            return
        checks = {"informer-sync": lambda: self._not_ready, "shutdown": lambda: "stopping" if self._stopping else ""}
        server = StatusServer(self.registry, checks)
        self.port = await server.start(self.options.bind_address, self.options.port)
        stack.push_async_callback(server.stop)
        _log.info(entry("serving /metrics /healthz /livez /readyz", address=self.options.bind_address, port=self.port))

    def _client(self, cluster: Cluster) -> Client:
        host = urlsplit(cluster.server).netloc
        return Client(
            cluster, self._timers, qps=self.options.qps, burst=self.options.burst, answered=self._requests.of(host)
        )

    def _say_what_starts(self, cluster: Cluster) -> None:
        options, policy = self.options, self.options.policy
        _log.info(entry("ksp starts", version=__version__, python=platform.python_version()))
        for profile in policy.profiles:
            about = {
                "scheduler": profile.scheduler_name,
                "predicates": len(profile.predicates),
                "priorities": len(profile.priorities),
                "percentageOfNodesToScore": profile.percentage,
            }
            _log.info(entry("profile", **about))
        _log.info(entry("policy", policy=policy.name, sha256=policy.sha256, unread_fields=options.unread_fields.value))
        for warning in policy.warnings:
            line, _ = warning.span.source.place(warning.span.start)
            place = f"{warning.span.source.name}:{line}"
            _log.warning(entry("policy warning", place=place, code=warning.code, message=warning.message))
        _log.info(entry("feature gates", EnableEquivalenceClassCache=str(options.equivalence_classes).lower()))
        _log.info(entry("limits", **_limits(options)))
        _log.info(entry("cluster", server=cluster.server, found_in=cluster.origin))

    async def _schedule(self, reads: Client, writes: Client, stop: asyncio.Event, *, marks_victims: bool) -> None:
        now, kinds = self._timers.now, kinds_of(self.options.policy.profiles)
        informers = SharedInformers(
            reads, self._timers, kinds=kinds, observer=ReflectorWatch(self.registry, now),
            settings=ReflectorSettings(inactivity=self.options.watch_inactivity),
        )  # fmt: skip
        recorder = EventRecorder(
            reads, informers.discovery, self._timers, RandomDice(), source=COMPONENT, host=platform.node(),
            observer=EventWatch(self.registry, now),
        )  # fmt: skip
        watch = WriteWatch(self.registry, now)
        writer = Writer(writes, self._timers, SystemWallClock(), watch, marks_victims=marks_victims)
        loop = SchedulingLoop(
            self.scheduler, writer, PodEvents(recorder), self._observer,
            timers=self._timers, stopwatch=self._stopwatch, limit=self.options.binds,
        )  # fmt: skip
        effects = loop.effects
        self.registry.register(CoreMetrics(self.scheduler, lambda: len(effects.binds), lambda: len(effects.evictions)))
        self.registry.register(BuildInfo(self.options.policy.name, self.options.policy.sha256))
        for kind, handler in handlers(loop.deliver, kinds):
            informers.informer(kind).add_handler(handler)
        informers.informer("Pod").tell_of_lists(loop.relisted)
        try:
            await self._run_all(informers, recorder, loop, stop)
        finally:
            await loop.drain(0)  # of what a fault left behind

    async def _run_all(
        self, informers: SharedInformers, recorder: EventRecorder, loop: SchedulingLoop, stop: asyncio.Event
    ) -> None:
        async with asyncio.TaskGroup() as group:
            ours = (informers.run(), recorder.run(), self._summary.run())
            background = [group.create_task(each) for each in ours]
            if await _unless(stop, self._sync(informers)):
                group.create_task(loop.run())
                await stop.wait()
            await self._stop(loop, recorder)
            for task in background:
                task.cancel()

    async def _sync(self, informers: SharedInformers) -> bool:
        began = self._timers.now()
        await synced(informers, self._timers, self._waiting)
        self._not_ready = ""
        sizes = self.scheduler.cache_size()
        waiting = sum(self.scheduler.pending().values())
        seconds = self._timers.now() - began
        _log.info(entry("synced", nodes=sizes["nodes"], pods=sizes["pods"], waiting=waiting, seconds=seconds))
        self._when_synced()
        self.ready.set()
        return True

    def _waiting(self, why: str) -> None:
        self._not_ready = why

    async def _stop(self, loop: SchedulingLoop, recorder: EventRecorder) -> None:
        self._stopping = True
        under_way = {"open_bindings": len(loop.effects.binds), "open_evictions": len(loop.effects.evictions)}
        _log.info(entry("stopping", **under_way, at_most_seconds=self.options.stop_seconds))
        loop.stop()
        await loop.drain(self.options.stop_seconds)
        await recorder.close(self.options.flush_seconds)


@asynccontextmanager
async def running(app: App) -> AsyncGenerator[App, None]:
    """The app, from when its caches are in sync; it is stopped at the end. Raises what `App.run` raises, and then at
    once: whoever waits for something of the app waits in vain."""
    stop = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(app.run(stop))
            try:
                await app.ready.wait()
                yield app
            finally:
                stop.set()
                await asyncio.wait({task})
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise


def _limits(options: Options) -> dict[str, object]:
    if options.qps <= 0:
        return {"qps": "none", "bindings_in_flight": options.binds}
    note = (
        f"at most {options.qps:g} bindings a second in the long run, {options.burst} at once; --kube-api-qps raises it"
    )
    return {"qps": options.qps, "burst": options.burst, "bindings_in_flight": options.binds, "note": note}


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work gives; None if `stop` comes first."""
    doing, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({doing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for task in (doing, stopped):
            task.cancel()
        await asyncio.gather(doing, stopped, return_exceptions=True)
