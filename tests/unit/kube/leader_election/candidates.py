"""A lease in memory behind a network that a test can spoil, and candidates that want it, in virtual time."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tests.unit.kube.timers import START, VirtualTimers

from ksp.kube.errors import ApiError, OutcomeUnknownError, UnreachableError
from ksp.kube.leader_election.elector import Elector
from ksp.kube.leader_election.lease import Annotations, Lease, Record, lease_of
from ksp.policy.configuration.leader_election import LeaderElection

ELECTION = LeaderElection(resource_name="ksp")

T = TypeVar("T")


class Etcd:
    """The one lease, as a server keeps it."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.history: list[Record] = []
        self._version = 0

    def put(self, record: Record, annotations: Annotations, expected: str | None) -> Lease:
        """`expected` is the version that is changed; None to make one."""
        present = None if self.lease is None else self.lease.version
        if expected is not None and present is None:
            raise ApiError(404, "NotFound", 'leases.coordination.k8s.io "ksp" not found')
        if expected != present:
            raise ApiError(409, "Conflict", "the object has been modified")
        self._version += 1
        before = {} if self.lease is None else self.lease.annotations
        kept = {name: text for name, text in {**before, **annotations}.items() if text is not None}
        metadata = {"name": "ksp", "uid": "u", "resourceVersion": str(self._version), "annotations": kept}
        spec = {
            "holderIdentity": record.holder, "leaseDurationSeconds": record.duration, "acquireTime": record.acquired,
            "renewTime": record.renewed, "leaseTransitions": record.transitions,
        }  # fmt: skip
        body = {"kind": "Lease", "metadata": metadata, "spec": spec}
        self.lease = lease_of(json.dumps(body).encode())
        self.history.append(self.lease.record)
        return self.lease


@dataclass
class Link:
    """One candidate's way to the server, a `Lock`. Requests take `there` seconds, answers `back` seconds. A cut
    link fails at once, one that is `silent` says nothing for ever. With `loses_answers` what is written is written, and
    nobody learns of it. `fails` is raised instead of what would be done."""

    etcd: Etcd
    timers: VirtualTimers
    there: float = 0.0
    back: float = 0.0
    cut: bool = False
    silent: bool = False
    loses_answers: bool = False
    fails: ApiError | None = None
    asked: list[tuple[str, float]] = field(default_factory=list)

    async def read(self, within: float) -> Lease | None:
        return await self._ask("read", lambda: self.etcd.lease)

    async def create(self, record: Record, annotations: Annotations, within: float) -> Lease:
        return await self._ask("create", lambda: self.etcd.put(record, annotations, None))

    async def update(
        self,
        lease: Lease,
        record: Record,
        annotations: Annotations,
        within: float,
    ) -> Lease:
        return await self._ask("update", lambda: self.etcd.put(record, annotations, lease.version))

    async def _ask(self, what: str, action: Callable[[], T]) -> T:
        self.asked.append((what, self.timers.now()))
        if self.cut:
            raise UnreachableError("no route")
        if self.silent:
            await asyncio.Event().wait()
        if self.there:
            # As with a server: who gives up waiting does not take back what is on its way.
            late = asyncio.ensure_future(self._late(action))
            late.add_done_callback(_heard)
            return await asyncio.shield(late)
        return await self._served(action)

    async def _late(self, action: Callable[[], T]) -> T:
        await self.timers.sleep(self.there)
        return await self._served(action)

    async def _served(self, action: Callable[[], T]) -> T:
        if self.fails is not None:
            raise self.fails
        answer = action()
        if self.back:
            await self.timers.sleep(self.back)
        if self.loses_answers:
            raise OutcomeUnknownError("the connection was lost")
        return answer


def _heard(late: asyncio.Future[T]) -> None:
    """Perhaps nobody waits for it any more."""
    if not late.cancelled():
        late.exception()


@dataclass
class Clock:
    """A time of day that is wrong by so much."""

    timers: VirtualTimers
    off: float = 0.0

    def wall(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.timers.now() + self.off)


@dataclass
class Heard:
    """An observer that remembers."""

    leaders: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def leader_is(self, identity: str) -> None:
        self.leaders.append(identity)

    def election_failed(self, why: str) -> None:
        self.failures.append(why)


class Candidate:
    """An elector that runs: it campaigns, then holds the lease until it is lost."""

    def __init__(
        self, name: str, etcd: Etcd, timers: VirtualTimers, election: LeaderElection = ELECTION,
        elector: type[Elector] = Elector,
    ) -> None:  # fmt: skip
        self.link = Link(etcd, timers)
        self.heard = Heard()
        self.clock = Clock(timers)
        self.says: dict[str, str | None] = {}
        self.elector = elector(self.link, election, name, timers, self.clock, self.heard, lambda: self.says)
        self.lost = ""
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self.elector.acquire()
        self.lost = await self.elector.hold()

    async def crash(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def stop(self) -> bool:
        """As a scheduler that is told to stop; whether the lease was given back."""
        await self.crash()
        return await self.elector.release()
