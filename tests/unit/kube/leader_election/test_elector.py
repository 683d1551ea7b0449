from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.unit.kube.leader_election.candidates import ELECTION, Candidate, Etcd
from tests.unit.kube.timers import VirtualTimers, settle

from ksp.kube.errors import ApiError
from ksp.kube.leader_election.elector import Elector
from ksp.kube.leader_election.lease import Record
from ksp.policy.configuration.leader_election import LeaderElection


class World:
    def __init__(self, jitter: float = 0.0) -> None:
        self.timers = VirtualTimers(jitter=jitter)
        self.etcd = Etcd()
        self.candidates: list[Candidate] = []

    def candidate(self, name: str, election: LeaderElection = ELECTION) -> Candidate:
        found = Candidate(name, self.etcd, self.timers, election)
        self.candidates.append(found)
        return found

    @property
    def record(self) -> Record:
        assert self.etcd.lease is not None
        return self.etcd.lease.record

    async def until(self, end: float) -> None:
        await self.timers.advance(end - self.timers.now())
        await settle()


@asynccontextmanager
async def world(jitter: float = 0.0) -> AsyncIterator[World]:
    found = World(jitter)
    try:
        async with asyncio.timeout(10):
            yield found
    finally:
        for candidate in found.candidates:
            await candidate.crash()


async def test_the_first_one_makes_the_lease_and_renews_it_each_retry_period() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(5)
        assert a.elector.leads()
        assert a.link.asked == [("read", 0.0), ("create", 0.0), ("update", 2.0), ("update", 4.0)]
        assert w.record == Record("a", 15, "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:04.000000Z", 0)


async def test_a_candidate_waits_for_a_retry_period_and_up_to_1_2_of_it_by_chance() -> None:
    for jitter, expected in ((0.0, [0.0, 2.0, 4.0]), (0.5, [0.0, 3.2, 6.4])):
        async with world(jitter) as w:
            w.candidate("a")
            await w.until(0)
            b = w.candidate("b")
            await w.until(7)
            assert [at for _, at in b.link.asked][:3] == expected
            assert not b.elector.leads()


async def test_a_crashed_leader_is_followed_when_its_lease_has_not_changed_for_its_duration() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        await w.until(9)  # a renews at 8, b sees that at 9
        await a.crash()
        await w.until(23.9)
        assert not b.elector.leads()
        await w.until(25)  # the first attempt at or after 9 + 15
        assert b.elector.leads()
        assert (w.record.holder, w.record.transitions) == ("b", 1)
        assert b.heard.leaders == ["a", "b"]


async def test_the_duration_is_that_of_the_holder_not_of_the_candidate() -> None:
    async with world() as w:
        a = w.candidate("a", replace(ELECTION, lease_duration=40.0, renew_deadline=30.0))
        await w.until(1)
        b = w.candidate("b")
        await w.until(5)
        await a.crash()
        await w.until(44)
        assert not b.elector.leads()
        await w.until(46)
        assert b.elector.leads()


@pytest.mark.parametrize("off", [-7200.0, 7200.0])
async def test_wrong_clocks_and_clocks_that_jump_change_nothing(off: float) -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        b.clock.off = off
        await w.until(20)
        a.clock.off = -off
        await w.until(60)
        assert a.elector.leads()
        assert not b.elector.leads()
        await a.crash()
        await w.until(60 + 15 + 2.1)
        assert b.elector.leads()


async def test_who_stops_gives_the_lease_back_and_the_next_one_leads_soon() -> None:
    async with world() as w:
        a = w.candidate("a")
        a.says["status"] = "fine"
        await w.until(1)
        b = w.candidate("b")
        await w.until(4)
        assert w.etcd.lease is not None
        assert w.etcd.lease.annotations == {"status": "fine"}
        assert await a.stop()
        assert not a.elector.leads()
        assert (w.record.holder, w.record.duration, w.record.transitions) == ("", 1, 0)
        assert w.etcd.lease.annotations == {}
        await w.until(5.1)
        assert b.elector.leads()
        assert (w.record.transitions, w.record.duration) == (1, 15)


async def test_a_leader_that_cannot_renew_has_lost_before_anybody_else_may_lead() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        await w.until(5)
        a.link.cut = True  # the last renewal was sent at 4
        await w.until(13.9)
        assert a.elector.leads()
        assert a.lost == ""
        await w.until(14)
        assert not a.elector.leads()
        await settle()
        assert a.lost == "the lease could not be renewed for 10 seconds: no route"
        assert not b.elector.leads()
        await w.until(21)
        assert b.elector.leads()
        a.link.cut = False
        await w.until(40)
        assert not a.elector.leads()  # for ever


async def test_a_connection_that_says_nothing_more_costs_half_of_the_deadline() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        a.link.silent = True
        await w.until(6.9)
        a.link.silent = False  # the request of second 2 still hangs; the next is sent at 7 + 2
        await w.until(9.5)
        assert a.elector.leads()
        assert a.heard.failures == ["no whole answer in 5 seconds"]
        assert w.record.renewed == "2020-01-01T00:00:09.000000Z"


async def test_an_answer_that_was_lost_is_found_out_and_the_leader_stays() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        a.link.loses_answers = True
        await w.until(3)
        a.link.loses_answers = False
        await w.until(4.5)
        assert a.elector.leads()
        assert [what for what, _ in a.link.asked] == ["read", "create", "update", "update", "read", "update"]
        assert w.record.transitions == 0


async def test_a_candidate_whose_create_was_lost_leads_at_its_next_attempt() -> None:
    async with world() as w:
        a = w.candidate("a")
        a.link.loses_answers = True
        await w.until(0)
        w.etcd.put(Record("a", 15, "x", "y", 0), {}, None)
        a.link.loses_answers = False
        await w.until(2)
        assert a.elector.leads()
        assert (w.record.acquired, w.record.transitions) == ("x", 0)


async def test_a_lease_that_somebody_deletes_stays_with_its_leader() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        await w.until(3)
        a.link.cut = True  # so that b sees first that it is gone
        w.etcd.lease = None
        await w.until(9)
        assert not b.elector.leads()
        a.link.cut = False
        await w.until(11)
        assert a.elector.leads()
        assert w.record.holder == "a"
        assert "create" in [what for what, at in a.link.asked if at > 3]


async def test_a_deleted_lease_of_a_leader_that_is_gone_too_is_made_anew_a_duration_later() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        await w.until(3.5)
        await a.crash()
        w.etcd.lease = None
        await w.until(19.9)  # b saw that it was gone at 5
        assert not b.elector.leads()
        await w.until(21)
        assert b.elector.leads()
        assert w.record.transitions == 1


async def test_a_leader_that_sees_another_name_has_lost_at_once() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(3)
        assert w.etcd.lease is not None
        w.etcd.put(replaced(w.record, holder="somebody"), {}, w.etcd.lease.version)
        await w.until(4)
        assert a.lost == "the lease is held by somebody"
        assert w.record.holder == "somebody"


def replaced(record: Record, holder: str) -> Record:
    return record._replace(holder=holder)


async def test_who_changes_only_labels_of_a_dead_leaders_lease_does_not_renew_it() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        await w.until(2.5)
        await a.crash()
        for second in range(3, 17):
            assert w.etcd.lease is not None
            w.etcd.put(w.record, {"touched": str(second)}, w.etcd.lease.version)
            await w.until(second)
        await w.until(19.1)
        assert b.elector.leads()


async def test_a_leader_survives_that_others_change_its_lease() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        assert w.etcd.lease is not None
        w.etcd.put(w.record, {"by": "somebody"}, w.etcd.lease.version)
        await w.until(2)
        assert a.elector.leads()
        assert w.etcd.lease.annotations == {"by": "somebody"}
        assert [what for what, _ in a.link.asked[2:]] == ["update", "read", "update"]


async def test_a_process_that_was_stopped_for_long_writes_nothing_before_it_has_renewed() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        w.timers._now = 14.5  # nothing ran meanwhile
        assert not a.elector.leads()
        await w.until(15)
        assert a.elector.leads()  # nobody had taken it
        b = w.candidate("b")
        await w.until(16)
        w.timers._now = 40.0
        a.link.silent = True
        await w.until(42)
        assert b.elector.leads()
        assert not a.elector.leads()


async def test_what_changes_in_the_status_is_written_at_once() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(0.5)
        a.says["status"] = "new"
        a.elector.touch()
        await settle()
        assert w.etcd.lease is not None
        assert w.etcd.lease.annotations == {"status": "new"}
        assert a.link.asked[-1] == ("update", 0.5)
        await w.until(2.4)
        assert a.link.asked[-1] == ("update", 0.5)
        await w.until(2.5)
        assert a.link.asked[-1] == ("update", 2.5)


async def test_missing_rights_are_said_with_the_rule_to_add() -> None:
    async with world() as w:
        a = w.candidate("a")
        what = 'cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "kube-system"'
        a.link.fails = ApiError(403, "Forbidden", f'leases is forbidden: User "x" {what}')
        await w.until(0)
        assert a.heard.failures[0].endswith(
            'add to the ClusterRole: apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]'
        )
        a.link.fails = None
        await w.until(2)
        assert a.elector.leads()


async def test_the_watchdog_speaks_when_a_leader_does_not_notice_that_its_lease_has_expired() -> None:
    async with world() as w:
        a = w.candidate("a")
        await w.until(1)
        assert a.elector.stalled() == ""
        a.task.cancel()  # as if it hung
        await w.until(35)
        assert a.elector.stalled() == ""
        await w.until(35.1)
        assert a.elector.stalled() == "failed election to renew leadership on lease"


async def test_what_was_never_held_is_not_given_back() -> None:
    async with world() as w:
        w.candidate("a")
        await w.until(1)
        b = w.candidate("b")
        await w.until(2)
        assert not await b.stop()
        assert w.record.holder == "a"


def test_an_elector_that_never_campaigned_does_not_lead() -> None:
    async def check() -> None:
        timers = VirtualTimers()
        found = Candidate("a", Etcd(), timers)
        assert isinstance(found.elector, Elector)
        assert not found.elector.leads()
        assert found.elector.stalled() == ""
        await found.crash()

    asyncio.run(check())
