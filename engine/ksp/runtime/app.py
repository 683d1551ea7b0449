"""The whole: a cluster, its caches, the core, and what is served of it. Where to see how the parts fit.

    listen -> load the cluster -> first contact -> caches in sync -> lead -> decide -> stop

Nothing is decided before all caches are in sync, nor, where one of several schedulers is elected, before this one
leads; until then its caches are kept up to date, so that it takes over at once. Of what can go wrong at the start,
waiting mends most: then it waits and says for what. The rest is a ConfigError.

Stopping takes this order: no more decisions; open bindings and evictions finish, for at most `stop_seconds`; events are
written, for at most `flush_seconds`; the lease is given back; watches and connections close. Who has lost the lease
stops at once, and writes nothing more: LeadershipLostError.

Two clients have a limit of requests each: one for all that is written but events, one for all else, so that neither a
storm of events nor a long list keeps a binding waiting. The lease has a third.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from ksp.core.backoff import Backoff
from ksp.core.cycle import MOST_CLASSES
from ksp.core.queue import SchedulingQueue
from ksp.core.scheduler import Scheduler
from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.config import load_cluster
from ksp.kube.events.recorder import EventRecorder
from ksp.kube.http.client import Client
from ksp.kube.leader_election.elector import LeadershipLostError
from ksp.kube.timers import AwakeTimers, SystemTimers, Timers
from ksp.kube.wall_clock import SystemWallClock
from ksp.kube.watch.raw import Kept
from ksp.kube.watch.reflector import ReflectorSettings
from ksp.kube.watch.shared_informers import SharedInformers
from ksp.kube.write.evictions import SINCE
from ksp.kube.write.writes import Writer
from ksp.policy.assemble import Policy
from ksp.ports import Stopwatch
from ksp.runtime.bodies import Bodies
from ksp.runtime.caches import synced
from ksp.runtime.chance import RandomDice, SystemStopwatch
from ksp.runtime.changes import handlers, kinds_of
from ksp.runtime.contact import first_contact, is_since
from ksp.runtime.edge import EventWatch, ExtenderWatch, ReflectorWatch, RequestWatch, WriteWatch
from ksp.runtime.introduction import say_what_decides, say_what_starts
from ksp.runtime.leadership import BURST, QPS, Alone, Leadership, new_identity
from ksp.runtime.log import entry
from ksp.runtime.loop import SchedulingLoop
from ksp.runtime.metrics import BuildInfo, CoreMetrics, SchedulerMetrics, new_registry
from ksp.runtime.observer import Observer, Observers
from ksp.runtime.options import Options
from ksp.runtime.pod_events import PodEvents
from ksp.runtime.questions import Questions
from ksp.runtime.reload.reloading import Reloading
from ksp.runtime.secure import SecurePort
from ksp.runtime.serve import Check, StatusServer
from ksp.runtime.status import StatusBoard
from ksp.runtime.summary import Summary
from ksp.runtime.takeover import caught_up
from ksp.runtime.until import unless

_log = logging.getLogger(__name__)

COMPONENT = "ksp"
LAST_WORDS = 1.0
"""Seconds for events of a scheduler that has lost the lease."""
STANDBY_SWEEP = 10.0
"""Seconds for which a scheduler that does not lead keeps what would follow from changes: who leads does that."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What works together once the server is known and there is a policy."""

    reads: Client
    writes: Client
    informers: SharedInformers
    recorder: EventRecorder
    loop: SchedulingLoop
    leadership: Alone | Leadership
    extenders: Questions
    secure: SecurePort | None


class App:
    """A scheduler of one cluster. `run` it once."""

    scheduler: Scheduler
    """There once a policy is known: at once if the options have it."""

    def __init__(
        self, options: Options, *, observers: Sequence[Observer] = (), timers: Timers | None = None,
        stopwatch: Stopwatch | None = None, environ: Mapping[str, str] | None = None,
        when_synced: Callable[[], None] = lambda: None, election_timers: Timers | None = None,
    ) -> None:  # fmt: skip
        """`when_synced` is called when the caches are in sync, before anything is decided. `election_timers` are what
        the lease is measured by, if not `timers`, or a clock that does not stand still while the computer sleeps."""
        self.options = options
        self.registry = new_registry()
        self.port: int | None = None
        self.secure_port: int | None = None
        self.ready = asyncio.Event()
        """The caches are in sync."""
        self.leading = asyncio.Event()
        """It decides, or may: at once when it is ready, or when it has the lease."""
        self.identity = options.identity or new_identity()
        self.status = StatusBoard(SystemWallClock(), self.identity)
        self._election_timers = election_timers or timers or AwakeTimers()
        self._timers = timers or SystemTimers()
        self._environ = os.environ if environ is None else environ
        self.reloading = Reloading(options, self.status, self.registry, self._timers, self._environ)
        if options.policy is not None:
            self._decide_by(options.policy)
        self._summary = Summary(self._timers)
        self._observer = Observers((SchedulerMetrics(self.registry), self._summary, *observers))
        self._requests = RequestWatch(self.registry)
        self._stopwatch = stopwatch or SystemStopwatch()
        self._when_synced = when_synced
        self._stopping = False
        self._not_ready = "not connected yet"
        self._leadership: Alone | Leadership = Alone()

    async def run(self, stop: asyncio.Event) -> None:
        """Schedules until `stop` is set. Raises ConfigError where waiting is of no use; LeadershipLostError when
        another may lead: then the process has to end at once."""
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            cluster = load_cluster(self.options.kubeconfig, self.options.master, self._environ)
            say_what_starts(self.options, cluster)
            if self.options.policy is not None:
                say_what_decides(self.options.policy, self.options)
            secure = await self._listen_securely(stack, cluster)
            self._leadership = await self._election(stack, cluster)
            reads = await stack.enter_async_context(self._client(cluster))
            writes = await stack.enter_async_context(self._client(cluster, self._leadership.leads_for))
            version = await unless(stop, first_contact(reads, self._timers))
            if version is None:
                return
            _log.info(entry("connected", server=cluster.server, version=version))
            if secure is not None:
                await unless(stop, secure.look_up())
            policy = self.options.policy or await unless(stop, self.reloading.first_policy(reads))
            if policy is None:
                return
            if self.options.policy is None:
                self._decide_by(policy)
                say_what_decides(policy, self.options)
            parts = self._put_together(reads, writes, policy, secure, marks_victims=is_since(version, SINCE))
            try:
                await self._run_all(parts, stop)
            finally:
                await parts.loop.drain(0)  # of what a fault left behind
                await parts.extenders.close()

    # ---- the parts

    async def _listen(self, stack: AsyncExitStack) -> None:
        if self.options.port is None:
            return
        server = self._server()
        self.port = await server.start(self.options.address, self.options.port)
        stack.push_async_callback(server.stop)
        _log.info(entry("serving without TLS, to everybody", address=self.options.address, port=self.port))

    async def _listen_securely(self, stack: AsyncExitStack, cluster: Cluster) -> SecurePort | None:
        serving = self.options.serving
        if serving.secure_port is None:
            return None
        secure = SecurePort(serving, cluster, self._timers, self._environ)
        await secure.open(stack)
        server = self._server()
        self.secure_port = await server.start(serving.bind_address, serving.secure_port, secure.guard)
        stack.push_async_callback(server.stop)
        _log.info(entry("serving securely", address=serving.bind_address, port=self.secure_port))
        return secure

    def _server(self) -> StatusServer:
        documents = {"/policyz": self.status.text, "/configz": lambda: self.options.effective_configuration}
        return StatusServer(self.registry, self._ready_checks, self._alive_checks, documents)

    @property
    def _alive_checks(self) -> dict[str, Check]:
        election = self.options.leader_election
        elects = election is not None and election.elect
        return {"leaderElection": self._stalled} if elects else {}

    @property
    def _ready_checks(self) -> dict[str, Check]:
        return self._alive_checks | {
            "informer-sync": lambda: self._not_ready,
            "shutdown": lambda: "stopping" if self._stopping else "",
        }

    def _stalled(self) -> str:
        return self._leadership.stalled()

    async def _election(self, stack: AsyncExitStack, cluster: Cluster) -> Alone | Leadership:
        election = self.options.leader_election
        if election is None or not election.elect:
            return Alone()
        timers = self._election_timers
        answered = self._requests.of(urlsplit(cluster.server).netloc)
        client = Client(cluster, timers, qps=QPS, burst=BURST, answered=answered)
        await stack.enter_async_context(client)
        return Leadership(client, election, self.identity, timers, SystemWallClock(), self.status, self.registry)

    def _client(self, cluster: Cluster, fence: Callable[[], float] | None = None) -> Client:
        answered = self._requests.of(urlsplit(cluster.server).netloc)
        options = self.options
        return Client(cluster, self._timers, qps=options.qps, burst=options.burst, answered=answered, fence=fence)

    def _decide_by(self, policy: Policy) -> None:
        """The first policy."""
        options = self.options
        self.scheduler = Scheduler(
            policy.profiles, RandomDice(options.seed), unread_fields=options.unread_fields,
            queue=SchedulingQueue(Backoff(options.initial_backoff, options.max_backoff)),
            assumed_ttl=options.assumed_ttl,
            equivalence_classes=MOST_CLASSES if options.equivalence_classes else 0, extenders=policy.extenders,
        )  # fmt: skip
        self.reloading.decides(self.scheduler.generation.number, policy)

    def _put_together(
        self, reads: Client, writes: Client, policy: Policy, secure: SecurePort | None, *, marks_victims: bool
    ) -> Parts:
        now, kinds, kept = self._timers.now, kinds_of(policy.profiles), Kept()
        kept.use(policy.extenders)
        informers = SharedInformers(
            reads, self._timers, kinds=kinds, observer=ReflectorWatch(self.registry, now),
            settings=ReflectorSettings(inactivity=self.options.watch_inactivity), kept=kept,
        )  # fmt: skip
        recorder = EventRecorder(
            reads, informers.discovery, self._timers, RandomDice(), source=COMPONENT, host=platform.node(),
            observer=EventWatch(self.registry, now),
        )  # fmt: skip
        watch = WriteWatch(self.registry, now)
        writer = Writer(writes, self._timers, SystemWallClock(), watch, marks_victims=marks_victims)
        extenders = Questions(
            lambda: self.scheduler.generation.extenders.all, Bodies(informers, reads, kept), kept, writer, self._timers,
            self._environ, ExtenderWatch(self.registry, now).asked, self._leadership.leads,
        )  # fmt: skip
        loop = SchedulingLoop(
            self.scheduler, writer, PodEvents(recorder), self._observer,
            timers=self._timers, stopwatch=self._stopwatch, limit=self.options.binds, extenders=extenders,
        )  # fmt: skip
        effects = loop.effects
        self.registry.register(CoreMetrics(self.scheduler, lambda: len(effects.binds), lambda: len(effects.evictions)))
        self.registry.register(BuildInfo())
        for kind, handler in handlers(loop.deliver, kinds):
            informers.informer(kind).add_handler(handler)
        informers.informer("Pod").tell_of_lists(loop.relisted)
        self._leadership.record_with(recorder)
        return Parts(reads, writes, informers, recorder, loop, self._leadership, extenders, secure)

    # ---- its life

    async def _run_all(self, parts: Parts, stop: asyncio.Event) -> None:
        lost: LeadershipLostError | None = None
        async with asyncio.TaskGroup() as group:
            ours = (parts.informers.run(), parts.recorder.run(), self._summary.run(), self._reload(parts))
            background = [group.create_task(each) for each in ours]
            if parts.secure is not None:
                background.append(group.create_task(parts.secure.run()))
            try:
                await self._work(parts, stop, group)
            except LeadershipLostError as error:
                lost = error
                await self._last_words(parts)
            for task in background:
                task.cancel()
        if lost is not None:
            raise lost

    async def _work(self, parts: Parts, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        """From the first list to the release of the lease. Raises LeadershipLostError."""
        settled = False
        try:
            if await unless(stop, self._sync(parts.informers)) and await unless(stop, self._lead(parts.informers)):
                group.create_task(parts.loop.run())
                await parts.leadership.unless_lost(stop.wait())
            settled = await parts.leadership.unless_lost(self._stop(parts))
        finally:
            await parts.leadership.close(settled=settled)

    async def _reload(self, parts: Parts) -> None:
        """The policy is kept up to date, by who leads and by who stands by."""
        await self.ready.wait()
        await self.reloading.run(self.scheduler, parts.loop, parts.informers, parts.recorder, self.leading.is_set)

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

    async def _lead(self, informers: SharedInformers) -> bool:
        """Returns when this scheduler leads. Raises LeadershipLostError if it did, and does not any more."""
        forgetting = asyncio.create_task(self._forget_effects())
        try:
            await self._leadership.acquire()
        finally:
            forgetting.cancel()
            await asyncio.gather(forgetting, return_exceptions=True)
        await self._leadership.unless_lost(caught_up(informers.troubles, self._timers))
        self.status.leads(True)
        self.leading.set()
        return True

    async def _forget_effects(self) -> None:
        """A scheduler that stands by for weeks must not keep what it would have had to do."""
        while True:
            await self._timers.sleep(STANDBY_SWEEP)
            self.scheduler.effects()

    def _waiting(self, why: str) -> None:
        self._not_ready = why

    async def _stop(self, parts: Parts) -> bool:
        """In order; whether all that was begun is settled."""
        self._stopping = True
        loop = parts.loop
        under_way = {"open_bindings": len(loop.effects.binds), "open_evictions": len(loop.effects.evictions)}
        _log.info(entry("stopping", **under_way, at_most_seconds=self.options.stop_seconds))
        loop.stop()
        given_up = await loop.drain(self.options.stop_seconds)
        parts.leadership.stops()
        await parts.recorder.close(self.options.flush_seconds)
        return given_up == 0

    async def _last_words(self, parts: Parts) -> None:
        """The lease is lost: nothing is written any more but events."""
        self._stopping = True
        parts.loop.stop()
        await parts.loop.drain(0)
        await parts.recorder.close(LAST_WORDS)


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
