"""The scheduler's part in the election of one that leads: when it may decide, and what is told of it.

Without an election it always may. With one, `start` begins to campaign when the caches are in sync, and the leader
keeps the lease while it works, and while it stops. If it is lost, `unless_lost` ends what is done and raises
LeadershipLostError: the process has to end, since bindings that are on their way cannot be called back.
"""

from __future__ import annotations

import asyncio
import logging
import math
import platform
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, Gauge

from ksp.kube.events.objects import ObjectReference
from ksp.kube.events.recorder import EventRecorder
from ksp.kube.http.client import Client
from ksp.kube.leader_election.elector import Elector, LeadershipLostError
from ksp.kube.leader_election.lease import API, LeaseLock
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import WallClock
from ksp.policy.configuration.leader_election import LEASES, LeaderElection
from ksp.runtime.log import Seldom, entry
from ksp.runtime.status import StatusBoard

_log = logging.getLogger(__name__)

QPS: Final = 5.0
BURST: Final = 10
"""Of the election's own client: bindings and lists must not keep a renewal waiting."""
NORMAL: Final = "Normal"
REASON: Final = "LeaderElection"

T = TypeVar("T")


def new_identity() -> str:
    """A name that no other process has: with its host's, for people."""
    return f"{platform.node()}_{uuid.uuid4()}"


class Alone:
    """Nobody else schedules."""

    def leads(self) -> bool:
        return True

    def leads_for(self) -> float:
        return math.inf

    def stalled(self) -> str:
        return ""

    async def acquire(self) -> None:
        """At once."""

    async def unless_lost(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    def record_with(self, recorder: EventRecorder) -> None:
        """There is nothing to tell."""

    def stops(self) -> None:
        """Nobody waits for it."""

    async def close(self, *, settled: bool) -> None:
        """There is nothing to give back."""


class Leadership:
    """One of several schedulers."""

    def __init__(
        self, client: Client, election: LeaderElection, identity: str, timers: Timers, clock: WallClock,
        board: StatusBoard, registry: CollectorRegistry,
    ) -> None:  # fmt: skip
        """`client` is for the lease alone."""
        self._election = election
        self._told = _Told(election, identity, timers.now, registry)
        lock = LeaseLock(client, election.resource_namespace, election.resource_name)
        self._elector = Elector(lock, election, identity, timers, clock, self._told, board.annotations)
        self._holding: asyncio.Task[str] | None = None
        self._recorder: EventRecorder | None = None
        board.changed = self._elector.touch

    def leads(self) -> bool:
        """Whether a request that changes something may be sent now."""
        return self._elector.leads()

    def leads_for(self) -> float:
        """For how many seconds from now requests that change something may be sent."""
        return self._elector.leads_for()

    def stalled(self) -> str:
        """For health checks."""
        return self._elector.stalled()

    def record_with(self, recorder: EventRecorder) -> None:
        """Where events of the election go."""
        self._recorder = recorder

    async def acquire(self) -> None:
        """Returns when this scheduler leads; from then on the lease is renewed."""
        if self._election.resource_lock != LEASES:
            why = "a Lease is the lock, whatever --leader-elect-resource-lock says: another kind cannot be held safely"
            _log.warning(entry(why, resource_lock=self._election.resource_lock))
        _log.info(entry("attempting to acquire leader lease", lease=self._told.lease, identity=self._elector.identity))
        await self._elector.acquire()
        _log.info(entry("successfully acquired lease", lease=self._told.lease))
        self._told.master.set(1)
        self._event("became leader")
        self._holding = asyncio.create_task(self._elector.hold())

    async def unless_lost(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives. If leadership is lost, the work is cancelled; raises LeadershipLostError."""
        if self._holding is None:
            return await work
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.wait({doing, self._holding}, return_when=asyncio.FIRST_COMPLETED)
            if self._holding.done():
                why = self._holding.result()
                _log.error(entry("stopped leading", lease=self._told.lease, error=why))
                self._stopped()
                raise LeadershipLostError(f"leaderelection lost: {why}")
            return doing.result()
        finally:
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)

    async def close(self, *, settled: bool) -> None:
        """The end of leading, if it did. The lease is given back if all that was begun is settled; else it has to
        expire, since a binding may still take effect."""
        if self._holding is None or self._holding.done():
            return
        self._holding.cancel()
        await asyncio.gather(self._holding, return_exceptions=True)
        if settled and await self._elector.release():
            _log.info(entry("released the lease", lease=self._told.lease))
        else:
            _log.warning(entry("the lease is not given back, and expires", lease=self._told.lease))

    def stops(self) -> None:
        """It is about to end leading, and events are still written."""
        if self._holding is not None and not self._holding.done():
            self._stopped()

    def _stopped(self) -> None:
        self._told.master.set(0)
        self._event("stopped leading")

    def _event(self, what: str) -> None:
        election, lease = self._election, self._elector.lease
        about = ObjectReference(
            kind="Lease", api_version=API, namespace=election.resource_namespace, name=election.resource_name,
            uid=lease.uid if lease is not None else "", resource_version=lease.version if lease is not None else "",
        )  # fmt: skip
        if self._recorder is not None:
            self._recorder.event(about, NORMAL, REASON, REASON, f"{self._elector.identity} {what}")


class _Told:
    """An `ElectionObserver`: the log, and kube-scheduler's metric."""

    def __init__(
        self, election: LeaderElection, identity: str, now: Callable[[], float], registry: CollectorRegistry
    ) -> None:
        self.lease = f"{election.resource_namespace}/{election.resource_name}"
        self.master = Gauge(
            "leader_election_master_status",
            "Whether this process leads: 1, else 0.",
            ("name",),
            registry=registry,
        ).labels(election.resource_name)
        self._identity = identity
        self._seldom = Seldom(_log, now)

    def leader_is(self, identity: str) -> None:
        if identity and identity != self._identity:
            _log.info(entry("new leader elected", identity=identity))

    def election_failed(self, why: str) -> None:
        self._seldom.say(why[:80], "cannot read or write the lease", lease=self.lease, error=why)
