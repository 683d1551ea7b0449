"""Who leads: client-go's election (`tools/leaderelection`), and when a leader is none any more.

A candidate looks at the lease every `retry_period`, and up to 1.2 of it later by chance. It takes the lease if nobody
holds it, or if it has not changed for as long as its holder said, by the candidate's own clock since it saw the last
change: never by the times in it, which another clock wrote. The holder renews it every `retry_period`. If that fails
for `renew_deadline`, or another's name stands in it, it is lost, and whoever led has to end.

So two never lead at a time, as far as clocks run equally fast: the holder's time runs from before its last renewal was
sent, a candidate's from after it has seen it, and `renew_deadline` is shorter than `lease_duration`. What differs from
client-go makes this stricter, or steadier:

- the deadline runs from the last renewal, not from the first attempt after it;
- a leader that sees another's name has lost at once, and does not wait for its deadline;
- who saw a lease that was held, and then sees it gone, waits as long as if it had been renewed at that moment;
- no request may take more than half of the deadline, so that a connection that says nothing more is given up in time;
- `leads_for` is asked before each write (`Client(fence=...)`), which waits no longer than that for its connection: a
  process that was stopped for a while writes nothing more.

Nothing here protects from a Lease that somebody deletes before a candidate has seen who holds it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError
from ksp.kube.http.forbidden import explained
from ksp.kube.http.reader import MalformedError
from ksp.kube.leader_election.lease import Annotations, Lease, Lock, Record
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import WallClock, microseconds
from ksp.policy.configuration.leader_election import JITTER, LeaderElection

TOLERATED: Final = 20.0
"""Seconds for which a leader may be past its lease until `stalled` says so, as kube-scheduler's watchdog."""
RELEASED: Final = 1
"""Seconds of a lease that was given back."""

T = TypeVar("T")


class LeadershipLostError(KubeError):
    """Another may lead by now: the process has to end, and to write nothing more."""


class ElectionObserver(Protocol):
    """Hears of the election. Each method returns at once and raises nothing."""

    def leader_is(self, identity: str) -> None:
        """Another name stands in the lease than before; it may be our own."""
        ...

    def election_failed(self, why: str) -> None:
        """An attempt to read or to write the lease failed; there will be another."""
        ...


class Elector:
    """One candidate: `acquire`, then `hold` until it is lost, then nothing; or `release` instead of that."""

    def __init__(
        self, lock: Lock, election: LeaderElection, identity: str, timers: Timers, clock: WallClock,
        observer: ElectionObserver, annotations: Callable[[], Annotations] = dict,
    ) -> None:  # fmt: skip
        """`annotations` are written with each renewal, and at once after `touch`. `clock` is for the times that people
        read in the lease."""
        self.identity = identity
        self._lock = lock
        self._election = election
        self._timers = timers
        self._clock = clock
        self._observer = observer
        self._annotations = annotations
        self._lease: Lease | None = None
        self._seen_at = -math.inf
        self._vanished = False
        self._renewed_at = -math.inf
        self._leads = False
        self._touched = asyncio.Event()
        self._said = ""

    @property
    def leader(self) -> str:
        """The name that stood in the lease last; "" if none did."""
        return self._lease.record.holder if self._lease is not None else ""

    @property
    def lease(self) -> Lease | None:
        """As it was seen last."""
        return self._lease

    def leads_for(self) -> float:
        """For how many seconds from now nobody else can lead, as things stand; 0 or less if somebody may."""
        return self._renewed_at + self._election.renew_deadline - self._timers.now() if self._leads else 0.0

    def leads(self) -> bool:
        """Whether nobody else can lead at this moment."""
        return self.leads_for() > 0

    def stalled(self) -> str:
        """Why a leader should be restarted: it does not notice that its lease has expired. "" if all is well."""
        late = self._timers.now() - self._seen_at - self._election.lease_duration
        return "failed election to renew leadership on lease" if self._leads and late > TOLERATED else ""

    def touch(self) -> None:
        """The annotations have changed: renew now."""
        self._touched.set()

    # ---- a candidate

    async def acquire(self) -> None:
        """Returns when it leads."""
        while not await self._attempt(self._acquired()):
            retry = self._election.retry_period
            await self._timers.sleep(retry * (1 + JITTER * self._timers.jitter()))

    async def _acquired(self) -> bool:
        limit = self._request_limit
        lease = await self._bounded(self._lock.read(limit), limit)
        self._see(lease)
        if self._is_held():
            return False
        await self._write(lease, limit)
        self._leads = True
        return True

    def _is_held(self) -> bool:
        """By another, as far as can be known: a lease that has vanished counts as it was seen last."""
        held = self._lease.record if self._lease is not None else Record()
        if held.holder in {"", self.identity}:
            return False
        return self._timers.now() < self._seen_at + (held.duration or self._election.lease_duration)

    # ---- a leader

    async def hold(self) -> str:
        """Renews, until it is lost: the result is why. From then on `leads` is false for ever."""
        while True:
            await self._until_renewal()
            lost = await self._renew_by(self._renewed_at + self._election.renew_deadline)
            if lost:
                self._leads = False
                return lost

    async def _until_renewal(self) -> None:
        """A retry period, or until the annotations change."""
        touched = asyncio.ensure_future(self._touched.wait())
        pause = asyncio.ensure_future(self._timers.sleep(self._election.retry_period))
        try:
            await asyncio.wait({touched, pause}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            touched.cancel()
            pause.cancel()
            await asyncio.gather(touched, pause, return_exceptions=True)
        self._touched.clear()

    async def _renew_by(self, deadline: float) -> str:
        """Tries until it is renewed: ""; or why it is lost. Once in any case: if this process was stopped meanwhile and
        nobody has taken the lease, it is still ours."""
        limit = self._request_limit
        while not await self._attempt(self._renewed(limit)):
            if self.leader != self.identity:
                return f"the lease is held by {self.leader or 'nobody'}"
            await self._timers.sleep(min(self._election.retry_period, deadline - self._timers.now()))
            limit = min(deadline - self._timers.now(), self._request_limit)
            if limit <= 0:
                seconds = self._election.renew_deadline
                return f"the lease could not be renewed for {seconds:g} seconds: {self._said}"
        return ""

    async def _renewed(self, limit: float) -> bool:
        """With one request, if nobody has touched the lease; else it is read anew, and renewed if it is still ours. All
        within the limit."""
        end = self._timers.now() + limit
        try:
            await self._write(self._lease, limit)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
        else:
            return True
        limit = end - self._timers.now()
        lease = await self._bounded(self._lock.read(limit), limit)
        self._see(lease)
        if self.leader != self.identity:
            return False
        await self._write(lease, end - self._timers.now())
        return True

    async def release(self) -> bool:
        """Gives the lease back, so that others need not wait for it to expire; whether that is certain. From the
        beginning of it `leads` is false. `hold` must not run any more."""
        held, self._leads = self._leads, False
        return held and await self._attempt(self._released())

    async def _released(self) -> bool:
        limit = self._request_limit
        lease = await self._bounded(self._lock.read(limit), limit)
        self._see(lease)
        if lease is None or lease.record.holder != self.identity:
            return False
        now = microseconds(self._clock.wall())
        record = Record("", RELEASED, now, now, lease.record.transitions)
        gone: dict[str, str | None] = dict.fromkeys(self._annotations())
        self._see(await self._bounded(self._lock.update(lease, record, gone, limit), limit))
        return True

    # ---- the lease

    @property
    def _request_limit(self) -> float:
        """Seconds that a request may take."""
        return self._election.renew_deadline / 2

    async def _write(self, lease: Lease | None, limit: float) -> None:
        """Puts our name into the lease, or makes one. Raises KubeError."""
        sent = self._timers.now()
        before = Record() if self._lease is None else self._lease.record
        now = microseconds(self._clock.wall())
        ours = before.holder == self.identity
        transitions = before.transitions + (0 if ours or self._lease is None else 1)
        duration = math.ceil(self._election.lease_duration)
        record = Record(self.identity, duration, before.acquired if ours else now, now, transitions)
        if lease is None:
            request = self._lock.create(record, self._annotations(), limit)
        else:
            request = self._lock.update(lease, record, self._annotations(), limit)
        stored = await self._bounded(request, limit)
        self._see(stored)
        if stored.record.holder != self.identity:
            raise MalformedError("the answer is not the lease that was written")
        self._renewed_at = sent

    def _see(self, lease: Lease | None) -> None:
        """Its time runs from now on, if its record has changed; who else changes the object does not renew it. One that
        has vanished may have been renewed just before."""
        if lease is None:
            if not self._vanished:
                self._vanished, self._seen_at = True, self._timers.now()
            return
        before, self._lease = self._lease, lease
        if self._vanished or before is None or before.record != lease.record:
            self._vanished, self._seen_at = False, self._timers.now()
        if before is None or before.record.holder != lease.record.holder:
            self._observer.leader_is(lease.record.holder)

    async def _attempt(self, attempt: Coroutine[Any, Any, bool]) -> bool:
        """False also for what the server does."""
        try:
            done = await attempt
        except KubeError as error:
            self._said = explained(error) if isinstance(error, ApiError) else str(error)
            self._observer.election_failed(self._said)
            return False
        self._said = ""
        return done

    async def _bounded(self, request: Coroutine[Any, Any, T], seconds: float) -> T:
        """The request's outcome, if it comes in time. By our own clock, and with all that it waits for: credentials,
        its turn, a connection."""
        asking = asyncio.ensure_future(request)
        patience = asyncio.ensure_future(self._timers.sleep(seconds))
        try:
            await asyncio.wait({asking, patience}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise OutcomeUnknownError(f"no whole answer in {seconds:.3g} seconds", timed_out=True)
            return asking.result()
        finally:
            asking.cancel()
            patience.cancel()
            await asyncio.gather(asking, patience, return_exceptions=True)
