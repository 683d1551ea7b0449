"""Elections under any weather: never two leaders at a time, and one again when the weather is good."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.leader_election.candidates import ELECTION, Candidate, Etcd
from tests.unit.kube.timers import VirtualTimers, settle

from ksp.kube.errors import ApiError
from ksp.kube.leader_election.elector import Elector
from ksp.kube.leader_election.lease import Lease

NAMES = ("a", "b", "c")
LONG = replace(ELECTION, lease_duration=10.2, renew_deadline=10.0)
"""With next to no room between the two."""
LOOK = 0.5
"""Seconds between two looks at who leads."""

Action = tuple[str, int, float]
"""What happens, to which candidate, and a figure in seconds that it needs."""

actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["pass", "cut", "silent", "lossy", "slow", "refusing", "heal", "crash", "stop", "start", "label", "delete",
             "clock"]
        ),
        st.integers(0, len(NAMES) - 1),
        st.floats(0.0, 12.0).map(lambda seconds: round(seconds, 1)),
    ),
    min_size=5,
    max_size=15,
)  # fmt: skip


class Election:
    """Candidates, and what happens to them."""

    def __init__(self, elector: type[Elector]) -> None:
        self.timers = VirtualTimers(jitter=0.5)
        self.etcd = Etcd()
        self._elector = elector
        self._born = 0
        self.candidates: list[Candidate] = []
        self.all: list[Candidate] = []
        for _ in NAMES:
            self._start()

    def _start(self) -> Candidate:
        self._born += 1
        election = LONG if self._born % 2 else ELECTION
        born = Candidate(f"c{self._born}", self.etcd, self.timers, election, self._elector)
        self.candidates.append(born)
        self.all.append(born)
        return born

    async def act(self, action: Action) -> None:
        what, which, seconds = action
        candidate = self.candidates[which]
        link = candidate.link
        match what:
            case "cut":
                link.cut = True
            case "silent":
                link.silent = True
            case "lossy":
                link.loses_answers = True
            case "slow":
                link.there, link.back = seconds / 4, seconds / 3
            case "refusing":
                link.fails = ApiError(500, "InternalError", "etcd is away")
            case "heal":
                self._heal(candidate)
            case "crash":
                await candidate.crash()
                await self._another(which)
            case "stop":
                await self._stop(candidate)
                await self._another(which)
            case "start":
                await candidate.crash()
                await self._another(which)
            case "label" if self.etcd.lease is not None:
                self.etcd.put(self.etcd.lease.record, {"x": str(seconds)}, self.etcd.lease.version)
            case "delete" if self._all_know():
                self.etcd.lease = None
            case "clock":
                candidate.clock.off = 1000 * (seconds - 6)
        await self._pass(seconds if what == "pass" else min(seconds, 1.0))

    def _all_know(self) -> bool:
        """Who holds the lease. Else a candidate may make it anew when it is deleted: that is documented."""
        lease = self.etcd.lease
        return lease is not None and all(each.elector.leader == lease.record.holder for each in self.candidates)

    async def _another(self, which: int) -> None:
        """In its place. Not while there is no lease and somebody may hold the one that was deleted: a newcomer cannot
        know that, and this is documented."""
        for _ in range(math.ceil(25.0 / LOOK)):
            if self.etcd.lease is not None:
                break
            await self._pass(LOOK)
        born = self._start()
        self.candidates[which] = self.candidates.pop()
        assert self.candidates[which] is born
        await settle()

    async def _stop(self, candidate: Candidate) -> None:
        """It ends while the time goes on: giving the lease back can take long."""
        stopping = asyncio.create_task(candidate.stop())
        for _ in range(40):
            await settle()
            if stopping.done():
                break
            await self._pass(LOOK)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)

    def _heal(self, candidate: Candidate) -> None:
        link = candidate.link
        link.cut = link.silent = link.loses_answers = False
        link.there = link.back = 0.0
        link.fails = None

    async def _pass(self, seconds: float) -> None:
        for _ in range(math.ceil(seconds / LOOK)):
            await self.timers.advance(LOOK)
            self.look()

    def look(self) -> None:
        leaders = [each.elector.identity for each in self.all if each.elector.leads()]
        assert len(leaders) <= 1, leaders
        for each in self.all:
            if each.elector.leads():
                assert each.elector.leader == each.elector.identity

    async def in_good_weather(self) -> None:
        """Who has lost is started again, as its process would be; then one leads."""
        for which, candidate in enumerate(list(self.candidates)):
            self._heal(candidate)
            if candidate.task.done():
                await self._another(which)
        await self._pass(15 + 2 * 4.4 + 1 + 15)  # a lease, two attempts, and what was still on its way
        assert sum(each.elector.leads() for each in self.candidates) == 1

    async def end(self) -> None:
        for candidate in self.all:
            await candidate.crash()


async def elected(plan: Sequence[Action], elector: type[Elector] = Elector) -> None:
    election = Election(elector)
    try:
        await settle()
        for action in plan:
            await election.act(action)
        await election.in_good_weather()
    finally:
        await election.end()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:  # requests that nobody waits for
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@settings(max_examples=40, deadline=None)  # so many find each of the mistakes below; 20 miss `Hasty` now and then
@given(actions)
def test_never_two_lead_and_one_does_when_the_weather_is_good(plan: Sequence[Action]) -> None:
    asyncio.run(elected(plan))


# ---- that it would be noticed


class ByTimestamps(Elector):
    """Believes the times that another clock wrote."""

    def _is_held(self) -> bool:
        if self._lease is None or self._lease.record.holder in {"", self.identity}:
            return False
        now = self._clock.wall().isoformat().partition("+")[0]
        return now < self._lease.record.renewed[:-1]


class Patient(Elector):
    """Leads on, however long it could not renew."""

    def leads(self) -> bool:
        return self._leads

    async def _renew_by(self, deadline: float) -> str:
        return await super()._renew_by(deadline + 100.0)


class Hasty(Elector):
    """Makes a lease that has vanished, at once."""

    def _see(self, lease: Lease | None) -> None:
        if lease is None:
            self._lease = None
        else:
            super()._see(lease)


CUT_LEADER: list[Action] = [("pass", 0, 3.0), *[("cut", n, 0.0) for n in range(3)], ("pass", 0, 20.0)]


@pytest.mark.parametrize(
    ("elector", "plan"),
    [
        (ByTimestamps, [("pass", 0, 3.0), *[("clock", n, 10.0 + n) for n in range(3)], ("pass", 0, 5.0)]),
        (Patient, [("pass", 0, 3.0), ("cut", 0, 0.0), ("pass", 0, 20.0), ("pass", 0, 20.0)]),
        (Hasty, [("pass", 0, 5.0), ("cut", 0, 0.0), ("delete", 0, 0.0), ("pass", 0, 6.0)]),
    ],
)
async def test_mistakes_of_other_electors_are_noticed(elector: type[Elector], plan: list[Action]) -> None:
    with pytest.raises(AssertionError):
        await elected(plan, elector)


async def test_a_lease_that_vanishes_hides_when_it_was_renewed() -> None:
    await elected([("pass", 0, 6.0), ("delete", 0, 0.0), ("crash", 1, 0.0), ("delete", 0, 0.0), ("crash", 0, 0.0)])


async def test_these_plans_are_harmless_to_ours() -> None:
    await elected([("pass", 0, 3.0), *[("clock", n, 10.0 + n) for n in range(3)], ("pass", 0, 5.0)])
    await elected([("pass", 0, 5.0), ("cut", 0, 0.0), ("delete", 0, 0.0), ("pass", 0, 6.0), *CUT_LEADER])
