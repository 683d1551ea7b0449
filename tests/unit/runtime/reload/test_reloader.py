"""One change at a time, the newest texts win, and on any error the last good policy stays."""

from __future__ import annotations

import logging
import sys

import pytest
from tests.unit.core.scheduling import node, pod
from tests.unit.runtime.reload.driving import Bench, reloading, rules

from ksp.core.changes import SetNode, SetPod
from ksp.core.probation import Terms
from ksp.policy.assemble import Policy, Settings, assemble
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.reloader import DEBOUNCE
from ksp.runtime.reload.source import SourceError
from ksp.runtime.reload.verdict import Verdict
from ksp.runtime.reload.watching import Found

FIRST = rules(0)
BROKEN = PolicyTexts("policy", {"a.ksp": "predicate A implements A { deny }"}, ("a.ksp",))


def assembled(texts: PolicyTexts) -> Policy:
    return assemble(texts, Settings())


async def test_a_new_policy_decides_and_everybody_is_told() -> None:
    async with reloading(Bench(FIRST)) as bench:
        await bench.taken(rules(1, "one", "two"))
        assert bench.scheduler.generation.number == 2
        assert set(bench.scheduler.cycles) == {"one", "two"}
        status = bench.board.status
        assert (status.generation, status.source, status.source_kind) == (2, "kube-system/policy", "ConfigMap")
        assert [(each.name, each.predicates) for each in status.profiles] == [("one", 1), ("two", 1)]
        assert bench.events.told == [
            ("Normal", "PolicyReloaded", f"Generation 2 decides for one, two: policy {status.sha256[:12]}")
        ]
        assert bench.metric("ksp_policy_last_reload_successful") == 1
        assert bench.metric("ksp_policy_reload_duration_seconds_count", stage="prepare") == 1


async def test_changes_in_quick_succession_are_one() -> None:
    async with reloading(Bench(FIRST)) as bench:
        for number in range(1, 5):
            bench.offer(rules(number))
            await bench.timers.advance(DEBOUNCE / 2)
        await bench.until(lambda: bench.outcomes()["adopted"] == 1)
        assert bench.vetter.vetted == [rules(4).sha256]


async def test_changes_without_an_end_are_taken_up_all_the_same() -> None:
    async with reloading(Bench(FIRST)) as bench:
        for number in range(1, 30):
            bench.offer(rules(number))
            await bench.timers.advance(DEBOUNCE / 2)
        assert bench.vetter.vetted


async def test_of_what_comes_while_a_policy_is_tried_only_the_newest_counts() -> None:
    async with reloading(Bench(FIRST)) as bench:
        bench.vetter.held = True
        bench.offer(rules(1))
        await bench.until(bench.vetter.began.is_set)
        bench.offer(rules(2))
        bench.offer(rules(3))
        await bench.timers.advance(10)
        assert len(bench.vetter.vetted) == 1
        bench.vetter.let_go.set()
        await bench.until(lambda: bench.outcomes()["adopted"] == 2)
        assert bench.vetter.vetted == [rules(1).sha256, rules(3).sha256]


async def test_the_texts_that_decide_are_no_change_and_only_who_asks_is_told() -> None:
    async with reloading(Bench(FIRST)) as bench:
        bench.offer(FIRST)
        await bench.timers.advance(5)
        assert sum(bench.outcomes().values()) == 0
        await bench.taken(FIRST, asked=True)
        assert bench.outcomes() == {"adopted": 0, "unchanged": 1, "failed": 0, "rolled_back": 0}
        assert bench.vetter.vetted == []


# ---- failures


async def test_after_a_failure_it_is_told_that_the_policy_is_again_as_it_was() -> None:
    async with reloading(Bench(FIRST)) as bench:
        bench.vetter.verdict = Verdict(ok=False, stage="check", message="run `a | b`\n= help: no\n3 | quoted")
        await bench.taken(rules(1))
        await bench.taken(FIRST)
        assert [(reason, note) for _, reason, note in bench.events.told] == [
            ("PolicyReloadFailed", "Not reloaded, generation 0 stays: check: run `a | b`"),
            ("PolicyReloaded", "Generation 0 decides: the policy is again as it was"),
        ]
        assert bench.board.status.failure is None


async def test_what_the_child_refuses_is_told_and_the_last_good_policy_stays(caplog: pytest.LogCaptureFixture) -> None:
    async with reloading(Bench(FIRST)) as bench:
        said = "error[KSP0202]: nothing here is called `nod`\n --> a.ksp:2:3\n  |\n2 | nod\n  | ^^^ a label\n"
        bench.vetter.verdict = Verdict(ok=False, stage="check", message=said)
        await bench.taken(rules(1))
        assert bench.scheduler.generation.number == 1
        short = "check: error[KSP0202]: nothing here is called `nod`; --> a.ksp:2:3"
        assert bench.events.told == [("Warning", "PolicyReloadFailed", f"Not reloaded, generation 0 stays: {short}")]
        failure = bench.board.status.failure
        assert failure is not None
        assert (failure.stage, failure.texts) == ("check", rules(1).sha256)
        assert bench.metric("ksp_policy_last_reload_successful") == 0
        logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert "    2 | nod" in logged


async def test_a_source_without_texts_is_a_failure_that_is_told_once() -> None:
    async with reloading(Bench(FIRST)) as bench:
        await bench.taken(SourceError("there is no ConfigMap"))
        bench.offer(SourceError("there is no ConfigMap"))
        await bench.timers.advance(5)
        assert bench.outcomes()["failed"] == 1
        await bench.taken(FIRST)
        assert bench.board.status.failure is None
        await bench.taken(SourceError("there is no ConfigMap"))
        assert bench.outcomes()["failed"] == 2


async def test_texts_that_failed_are_tried_again_only_if_they_change_or_somebody_asks() -> None:
    async with reloading(Bench(FIRST)) as bench:
        bench.vetter.verdict = Verdict(ok=False, stage="test", message="not met")
        await bench.taken(rules(1))
        bench.offer(rules(1))
        await bench.timers.advance(5)
        assert len(bench.vetter.vetted) == 1
        bench.vetter.verdict = Verdict(ok=True)
        await bench.taken(rules(1), asked=True)
        assert bench.outcomes()["adopted"] == 1


async def test_what_only_shows_when_it_is_assembled_here_is_a_failure() -> None:
    async with reloading(Bench(FIRST)) as bench:
        interval = sys.getswitchinterval()
        await bench.taken(BROKEN)
        assert bench.board.status.failure is not None
        assert bench.board.status.failure.stage == "assemble"
        assert sys.getswitchinterval() == interval


async def test_without_the_caches_that_it_reads_a_policy_is_not_taken() -> None:
    async with reloading(Bench(FIRST)) as bench:
        bench.caches.why_not = "cannot list namespaces at cluster scope: add to the ClusterRole"
        await bench.taken(rules(1))
        assert bench.scheduler.generation.number == 1
        assert bench.board.status.failure is not None
        assert bench.board.status.failure.message == bench.caches.why_not
        bench.caches.why_not = ""  # the right was given, and the ConfigMap touched
        await bench.taken(rules(1))
        assert bench.scheduler.generation.number == 2


async def test_a_fault_of_ksp_leaves_what_decides_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with reloading(Bench(FIRST)) as bench:

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(bench.scheduler, "prepare", broken)
        await bench.taken(rules(1))
        monkeypatch.undo()
        await bench.taken(rules(2))
        assert bench.outcomes()["adopted"] == 1
    assert [record.exc_info is not None for record in caplog.records if "a fault of ksp" in record.message] == [True]


# ---- pods


async def test_pods_of_a_profile_that_came_are_offered_and_decided() -> None:
    async with reloading(Bench(FIRST)) as bench:
        bench.world.loop.deliver(SetNode(node("n1")))
        waits = pod("waits", scheduler_name="new")
        bench.world.loop.deliver(SetPod(waits))
        bench.caches.known = [waits]
        await bench.taken(rules(1, "new"))
        await bench.world.writer.until(lambda writer: writer.binds == [("waits", "n1")])


async def test_a_fault_in_reading_does_not_end_reloads() -> None:
    def broken() -> PolicyTexts:
        raise ZeroDivisionError("a bug")

    async with reloading(Bench(FIRST)) as bench:
        bench.reloader.offer(Found(broken))
        await bench.until(lambda: bench.outcomes()["failed"] == 1)
        assert bench.board.status.failure is not None
        assert bench.board.status.failure.stage == "internal error"
        await bench.taken(rules(1))


# ---- probation


async def test_a_policy_that_denies_what_the_one_before_placed_is_taken_back_and_not_tried_again() -> None:
    async with reloading(Bench(FIRST, Terms(0.5, pods=2))) as bench:
        bench.board.running(1, assembled(FIRST), "kube-system/policy", "ConfigMap")
        bench.world.loop.deliver(SetNode(node("n1")))
        bad = rules(1, where="false")
        await bench.taken(bad)
        for name in ("a", "b", "c"):
            bench.world.loop.deliver(SetPod(pod(name)))
        await bench.until(lambda: bench.outcomes()["rolled_back"] == 1)
        assert bench.scheduler.generation.number == bench.board.status.generation == 3
        assert bench.board.status.rollbacks == 1
        await bench.until(lambda: len(bench.world.writer.binds) == 3)
        (reason,) = [reason for _, reason, note in bench.events.told if "Generation 2 is taken back" in note]
        assert reason == "PolicyRolledBack"
        bench.offer(bad, asked=True)
        await bench.timers.advance(5)
        assert len(bench.vetter.vetted) == 1
        await bench.taken(FIRST)
        assert bench.outcomes()["unchanged"] == 1
        await bench.taken(rules(2))
        assert bench.board.status.failure is None


async def test_a_policy_is_not_proven_while_the_scheduler_stands_by() -> None:
    async with reloading(Bench(FIRST, Terms(0.5, pods=1, seconds=60))) as bench:
        bench.stands_by = True
        await bench.taken(rules(1))
        await bench.timers.advance(1000)
        assert bench.scheduler.probation is not None
        bench.stands_by = False
        await bench.timers.advance(58)
        assert bench.scheduler.probation is not None
        await bench.timers.advance(3)
        assert bench.scheduler.probation is None


async def test_a_fault_of_ksp_in_going_back_is_logged_and_reloads_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with reloading(Bench(FIRST, Terms(0.5, pods=1))) as bench:

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(bench.scheduler, "go_back", broken)
        bench.world.loop.deliver(SetNode(node("n1")))
        await bench.taken(rules(1, where="false"))
        bench.world.loop.deliver(SetPod(pod("a")))
        await bench.until(lambda: "no policy goes back by itself" in caplog.text)
        await bench.taken(rules(2))
        assert bench.outcomes()["adopted"] == 2


async def test_a_policy_that_does_well_stays() -> None:
    async with reloading(Bench(FIRST, Terms(0.5, pods=1, seconds=60))) as bench:
        bench.world.loop.deliver(SetNode(node("n1")))
        await bench.taken(rules(1))
        bench.world.loop.deliver(SetPod(pod("a")))
        await bench.timers.advance(61)
        assert bench.scheduler.probation is None
        assert bench.scheduler.generation.number == 2
