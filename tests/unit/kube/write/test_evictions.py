"""Pods that have to go for another's sake, on a server that misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from aiohttp import web
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import (
    NESTED,
    Apply,
    Fault,
    PodServer,
    Seen,
    answers,
    answers_by_half,
    closes_after,
    closes_before,
    fails,
    pod_info,
    says,
    status,
    when,
)
from tests.unit.kube.write.bench import NOON, WriteBench, at_work, unheard

from ksp.kube.write.evictions import TRIES, disruption_target
from ksp.kube.write.patience import Patience
from ksp.kube.write.writes import Bound, Evicted, Failed, Gone, NotBound, Patched
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.pod import Pod

PREEMPTOR = pod_info("important", "u9")
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": MESSAGE,
    "lastProbeTime": None,
    "lastTransitionTime": "2026-01-02T12:00:00Z",
}


class Bench(WriteBench[PodServer]):
    """`writer` is for a `modern` server, `older` for one that does not know the condition."""

    def __post_init__(self) -> None:
        self.writer, self.older = (self.new_writer(marks_victims=marks) for marks in (True, False))
        self.modern = True

    async def evict(self, pod: PodInfo | None = None) -> Evicted | Gone | Failed:
        writer = self.writer if self.modern else self.older
        return await driven(self.timers, writer.evict(pod or pod_info(), PREEMPTOR))

    def sent(self) -> list[tuple[str, str]]:
        return [(seen.method, seen.path.rpartition("/")[2]) for seen in self.server.seen]

    @property
    def deletion(self) -> Seen:
        return self.server.sent("delete")[-1]

    @property
    def deleted(self) -> bool:
        return "deletionTimestamp" in self.server.pods["w/p"]["metadata"]


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with at_work(Bench, PodServer(), Patience(patch=0.3, delete=0.3)) as bench:
        bench.server.add("p", node="n1")
        yield bench


def labelled(condition: dict[str, str]) -> PodInfo:
    meta = {"namespace": "w", "name": "p", "uid": "u1"}
    return PodInfo.of(convert(Pod, {"metadata": meta, "status": {"conditions": [condition]}}))


async def test_a_victim_is_told_why_and_then_deleted_if_it_is_that_pod(bench: Bench) -> None:
    assert await bench.evict() == Evicted()
    patch, deletion = bench.server.seen
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/namespaces/w/pods/p/status")
    assert patch.content_type == "application/strategic-merge-patch+json"
    assert patch.body == {"metadata": {"uid": "u1"}, "status": {"conditions": [CONDITION]}}
    assert (deletion.method, deletion.path) == ("DELETE", "/api/v1/namespaces/w/pods/p")
    assert deletion.body == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}}
    assert bench.deleted
    assert bench.told.evictions == [("p", Evicted())]


async def test_an_older_server_is_not_told_why(bench: Bench) -> None:
    bench.modern = False
    assert await bench.evict() == Evicted()
    assert bench.sent() == [("DELETE", "p")]


async def test_a_victim_that_says_so_already_is_not_told_again() -> None:
    said = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": MESSAGE}
    assert disruption_target(labelled(said), PREEMPTOR, NOON) is None
    other = disruption_target(labelled(said | {"reason": "DeletionByTaintManager"}), PREEMPTOR, NOON)
    assert other == said  # the status is as before, and so is the time of its last change
    assert disruption_target(labelled(said | {"status": "False"}), PREEMPTOR, NOON) == CONDITION


async def test_a_victim_that_is_on_its_way_out_is_left_alone(bench: Bench) -> None:
    meta = {"namespace": "w", "name": "p", "uid": "u1", "deletionTimestamp": "2026-01-02T03:04:05Z"}
    assert await bench.evict(PodInfo.of(convert(Pod, {"metadata": meta}))) == Gone()
    assert bench.server.seen == []
    assert bench.told.evictions == [("p", Gone())]


@pytest.mark.parametrize("modern", [True, False])
async def test_another_pod_of_the_victims_name_is_not_deleted(bench: Bench, modern: bool) -> None:
    bench.modern = modern
    bench.server.add("p", uid="u2", node="n1")
    assert await bench.evict() == Gone()
    assert not bench.deleted
    assert bench.server.pods["w/p"]["status"] == {}


@pytest.mark.parametrize("modern", [True, False])
async def test_a_victim_that_is_gone_is_no_failure(bench: Bench, modern: bool) -> None:
    bench.modern = modern
    bench.server.pods.clear()
    assert await bench.evict() == Gone()
    assert len(bench.server.seen) == 1


UNKNOWN = [
    closes_before, closes_after, answers_by_half, answers(500), answers(502), answers(504), fails(500),
    says("<html>", 200), says("<html>", 200, done=True), says('{"kind": "Login"}', 200), NESTED,
    answers(404, "", "the server could not find the requested resource"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["status", "delete"])
@pytest.mark.parametrize("fault", UNKNOWN)
async def test_an_eviction_whose_outcome_is_unknown_is_sent_again(bench: Bench, kind: str, fault: Fault) -> None:
    bench.server.fault(kind, fault)
    assert await bench.evict() == Evicted()
    first, again = bench.server.sent(kind)
    assert first == again
    assert bench.deleted
    assert bench.server.pods["w/p"]["status"]["conditions"] == [CONDITION]


async def test_a_victim_that_our_lost_request_took_away_is_evicted_by_us(bench: Bench) -> None:
    bench.server.add("p")  # on no node: it is gone at once
    bench.server.fault("delete", closes_after)
    assert await bench.evict() == Evicted()
    assert bench.server.pods == {}


async def test_a_pod_that_came_under_the_name_after_a_lost_request_stays(bench: Bench) -> None:
    async def replaced(request: web.Request, apply: Apply) -> web.StreamResponse:
        bench.server.add("p", uid="u2", node="n1")
        return await closes_before(request, apply)

    bench.server.fault("delete", replaced)
    assert await bench.evict() == Evicted()
    assert not bench.deleted


async def test_a_conflict_of_another_kind_is_sent_again(bench: Bench) -> None:
    bench.server.fault("delete", answers(409, "Conflict", "the object has been modified; please apply your changes"))
    assert await bench.evict() == Evicted()
    assert bench.sent() == [("PATCH", "status"), ("DELETE", "p"), ("GET", "p"), ("DELETE", "p")]
    assert bench.deleted


async def test_a_conflict_is_not_taken_for_the_victims_end_while_the_pod_cannot_be_read(bench: Bench) -> None:
    bench.server.fault("delete", answers(409, "Conflict", "who knows"))
    bench.server.fault("read", answers(403, "Forbidden", "no"))
    assert await bench.evict() == Evicted()
    assert len(bench.server.sent("delete")) == 2


@pytest.mark.parametrize("kind", ["status", "delete"])
async def test_a_refused_eviction_fails_at_once_and_names_the_rule(bench: Bench, kind: str) -> None:
    resource, verb = {"status": ("pods/status", "patch"), "delete": ("pods", "delete")}[kind]
    denial = f'User "x" cannot {verb} resource "{resource}" in API group "" in the namespace "w"'
    bench.server.fault(kind, answers(403, "Forbidden", denial))
    outcome = await bench.evict()
    rule = f'apiGroups: [""], resources: ["{resource}"], verbs: ["{verb}"]'
    assert outcome == Failed(f"403 Forbidden: {denial}; add to the ClusterRole: {rule}")
    assert not bench.deleted
    assert len(bench.server.sent(kind)) == 1
    assert bench.told.evictions == [("p", outcome)]


async def test_what_the_server_calls_wrong_fails_at_once(bench: Bench) -> None:
    bench.server.fault("delete", answers(422, "Invalid", "a webhook does not like it"))
    assert await bench.evict() == Failed("422 Invalid: a webhook does not like it")
    assert len(bench.server.sent("delete")) == 1


async def test_an_eviction_is_given_up_after_so_many_tries(bench: Bench) -> None:
    bench.server.fault("delete", *[answers(500, "InternalError", "etcd is slow")] * 20)
    assert await bench.evict() == Failed("500 InternalError: etcd is slow")
    assert len(bench.server.sent("delete")) == TRIES


async def test_an_eviction_that_the_server_is_too_busy_for_is_sent_when_it_says(bench: Bench) -> None:
    async def busy(_request: web.Request, _apply: Apply) -> web.StreamResponse:
        answer = status(429, "TooManyRequests", "later")
        answer.headers["Retry-After"] = "3"
        return answer

    bench.server.fault("delete", busy)
    assert await bench.evict() == Evicted()
    assert 3 <= bench.timers.now() < 4


async def test_an_eviction_without_a_server_fails() -> None:
    async with unheard(Bench, PodServer()) as bench:
        bench.modern = False
        outcome = await bench.evict()
    assert isinstance(outcome, Failed)
    assert "refused" in outcome.message.lower()


async def test_a_victim_that_is_being_bound_is_evicted_without_waiting_for_its_binding(bench: Bench) -> None:
    bench.server.add("p")
    release, arrived = asyncio.Event(), asyncio.Event()
    bench.server.fault("bind", when(release, arrived))
    async with asyncio.timeout(10):
        binding = asyncio.create_task(bench.writer.bind(pod_info(), "n1"))
        await arrived.wait()
        assert await bench.evict() == Evicted()
        release.set()
        assert await binding == NotBound('pods "p" not found', gone=True)


async def test_a_binding_that_comes_first_does_not_save_the_victim(bench: Bench) -> None:
    bench.server.add("p")
    assert await driven(bench.timers, bench.writer.bind(pod_info(), "n1")) == Bound()
    assert await bench.evict() == Evicted()
    assert bench.deleted


async def test_a_report_that_waits_behind_a_patch_is_not_lost_to_an_eviction(bench: Bench) -> None:
    bench.server.add("p")
    release, arrived = asyncio.Event(), asyncio.Event()
    bench.server.fault("status", when(release, arrived))
    async with asyncio.timeout(10):
        report = asyncio.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", "no"))
        await arrived.wait()
        bench.modern = False
        assert await bench.evict() == Evicted()
        release.set()
        assert await report is Patched.GONE
