"""A pod is bound once, or not, over real HTTP, whatever the server and the network do."""

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
    answers,
    answers_by_half,
    closes_after,
    closes_before,
    fails,
    pod_info,
    says,
    when,
)
from tests.unit.kube.write.bench import WriteBench, at_work, unheard

from ksp.kube.write.patience import Patience
from ksp.kube.write.settling import DEAD_AFTER, MOST_SENT
from ksp.kube.write.writes import Bound, NotBound, Patched
from ksp.model.info import PodInfo


class Bench(WriteBench[PodServer]):
    async def bind(self, node: str = "n1", pod: PodInfo | None = None) -> Bound | NotBound:
        return await driven(self.timers, self.writer.bind(pod or pod_info(), node))

    @property
    def node(self) -> str:
        found = self.server.pods["w/p"]["spec"].get("nodeName", "")
        assert isinstance(found, str)
        return found


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with at_work(Bench, PodServer(), Patience(bind=0.3)) as bench:
        bench.server.add("p")
        yield bench


async def test_a_pod_is_bound_with_its_uid(bench: Bench) -> None:
    assert await bench.bind() == Bound()
    assert [(seen.path, seen.body) for seen in bench.server.seen] == [
        (
            "/api/v1/namespaces/w/pods/p/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": "w", "name": "p", "uid": "u1"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
        )
    ]
    assert bench.node == "n1"
    assert bench.told.unsettled_ == []


async def test_a_pod_without_a_uid_is_bound_by_its_name(bench: Bench) -> None:
    assert await bench.bind(pod=pod_info(uid="")) == Bound()
    assert bench.server.seen[0].body["metadata"] == {"namespace": "w", "name": "p"}


@pytest.mark.parametrize(
    "fault",
    [
        closes_after,
        answers_by_half,
        fails(500),
        fails(503),
        fails(504),
        fails(599),
        says("<html>", done=True),
        says("", 200, done=True),
        says('{"kind": "Status", "status": ' + "[" * 100_000, done=True),
        says('{"kind": "Status", "status": "Failure"}', done=True),
    ],
)
async def test_a_lost_answer_is_settled_by_reading_the_pod(bench: Bench, fault: Fault) -> None:
    bench.server.fault("bind", fault)
    assert await bench.bind() == Bound()
    assert [seen.method for seen in bench.server.seen] == ["POST", "GET"]
    assert len(bench.told.unsettled_) == 1


@pytest.mark.parametrize("fault", [closes_before, answers(500), answers(502), answers(408), answers(404), says("{}")])
async def test_a_request_that_was_not_carried_out_is_sent_again_as_it_was(bench: Bench, fault: Fault) -> None:
    bench.server.fault("bind", fault)
    assert await bench.bind() == Bound()
    first, again = bench.server.sent("bind")
    assert first == again
    assert bench.node == "n1"


async def test_a_request_that_is_late_is_settled_and_not_decided_anew(bench: Bench) -> None:
    """The client gives up, the pod is read unbound, and while the binding is repeated the first one comes through."""
    release = asyncio.Event()
    bench.server.fault("bind", when(release))

    async def after_the_late_one(request: web.Request, apply: Apply) -> web.StreamResponse:
        bench.server.pods["w/p"]["spec"]["nodeName"] = "n1"
        return apply()

    bench.server.fault("bind", after_the_late_one)
    assert await bench.bind() == Bound()
    assert len(bench.server.sent("bind")) == 2
    assert bench.node == "n1"
    release.set()


async def test_after_a_lost_answer_another_scheduler_may_have_bound_it(bench: Bench) -> None:
    async def bound_elsewhere(request: web.Request, apply: Apply) -> web.StreamResponse:
        bench.server.pods["w/p"]["spec"]["nodeName"] = "n9"
        return await closes_before(request, apply)

    bench.server.fault("bind", bound_elsewhere)
    assert await bench.bind() == NotBound("the pod is on node n9 already", elsewhere=True)


async def test_a_conflict_is_told_from_our_own_earlier_success(bench: Bench) -> None:
    bench.server.add("p", node="n1")
    assert await bench.bind("n1") == Bound()
    assert await bench.bind("n2") == NotBound("the pod is on node n1 already", elsewhere=True)


async def test_a_conflict_for_another_reason_is_the_servers_last_word(bench: Bench) -> None:
    bench.server.fault("bind", answers(409, "Conflict", "pod p has non-empty .spec.schedulingGates"))
    assert await bench.bind() == NotBound("pod p has non-empty .spec.schedulingGates")


async def test_a_pod_that_is_being_deleted_is_not_bound(bench: Bench) -> None:
    bench.server.add("p", deletionTimestamp="2020-01-02T03:04:05Z")
    bench.server.fault("bind", closes_before)
    assert await bench.bind() == NotBound("the pod is being deleted")


async def test_a_pod_that_is_gone(bench: Bench) -> None:
    bench.server.pods.clear()
    assert await bench.bind() == NotBound('pods "p" not found', gone=True)
    bench.server.fault("bind", closes_before)
    assert await bench.bind() == NotBound("the pod was deleted", gone=True)


@pytest.mark.parametrize("checks_uid", [True, False])
async def test_another_pod_of_that_name_is_not_taken_for_ours(bench: Bench, *, checks_uid: bool) -> None:
    """A server of 1.19 does not look at the uid of the binding; reading back does."""
    bench.server.checks_uid = checks_uid
    bench.server.add("p", uid="u2", node="" if checks_uid else "n1")
    assert await bench.bind() == NotBound("the pod was deleted, and another has its name", gone=True)


async def test_without_the_right_the_message_names_the_rule(bench: Bench) -> None:
    denial = (
        'pods "p" is forbidden: User "x" cannot create resource "pods/binding" in API group "" in the namespace "w"'
    )
    bench.server.fault("bind", answers(403, "Forbidden", denial))
    rule = 'apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]'
    assert await bench.bind() == NotBound(f"403 Forbidden: {denial}; add to the ClusterRole: {rule}")


async def test_not_every_403_is_a_matter_of_rights(bench: Bench) -> None:
    bench.server.fault("bind", answers(403, "Forbidden", "the namespace is being terminated"))
    assert await bench.bind() == NotBound("403 Forbidden: the namespace is being terminated")


async def test_a_redirect_is_not_followed_and_changes_nothing(bench: Bench) -> None:
    bench.server.fault("bind", answers(307))
    verdict = await bench.bind()
    assert isinstance(verdict, NotBound)
    assert "redirects" in verdict.message
    assert len(bench.server.seen) == 1


@pytest.mark.parametrize("code", [400, 422])
async def test_what_the_server_calls_wrong_is_not_repeated(bench: Bench, code: int) -> None:
    bench.server.fault("bind", answers(code, "Invalid", "target.name: Required value"))
    assert await bench.bind() == NotBound(f"{code} Invalid: target.name: Required value")
    assert len(bench.server.seen) == 1


async def test_an_overloaded_server_is_asked_again_and_then_left_alone(bench: Bench) -> None:
    bench.server.fault("bind", answers(429, "TooManyRequests", "wait"))
    assert await bench.bind() == Bound()
    bench.server.add("p")
    bench.server.fault("bind", *[answers(429, "TooManyRequests", "wait")] * 20)
    verdict = await bench.bind()
    assert isinstance(verdict, NotBound)
    assert verdict == NotBound("429 TooManyRequests: wait")
    assert not bench.server.sent("read")


async def test_nobody_listens() -> None:
    """Nothing was processed, so nothing has to be settled."""
    async with unheard(Bench, PodServer()) as bench:
        verdict = await bench.bind()
    assert isinstance(verdict, NotBound)
    assert verdict.unreached
    assert not verdict.gone


async def test_while_the_server_is_away_the_read_is_repeated_for_as_long_as_it_takes(bench: Bench) -> None:
    away: list[Fault] = [answers(500), closes_before, says("<html>", 200), NESTED, answers(404), answers(403)] * 40
    bench.server.fault("bind", closes_after)
    bench.server.fault("read", *away)
    assert await bench.bind() == Bound()
    assert len(bench.server.sent("read")) == len(away) + 1
    assert len(bench.server.sent("bind")) == 1
    assert len(bench.told.unsettled_) == len(away) + 1
    assert max(bench.timers.slept) <= 4.0  # soon after its return


@pytest.mark.parametrize(("said", "waited"), [("7", 7.0), ("86400", 30.0)])
async def test_a_read_waits_as_long_as_the_server_says_within_reason(bench: Bench, said: str, waited: float) -> None:
    async def later(request: web.Request, apply: Apply) -> web.StreamResponse:
        response = await answers(429)(request, apply)
        response.headers["Retry-After"] = said
        return response

    bench.server.fault("bind", closes_after)
    bench.server.fault("read", later)
    assert await bench.bind() == Bound()
    assert waited in bench.timers.slept


async def test_waiting_for_the_server_can_be_cancelled(bench: Bench) -> None:
    arrived = asyncio.Event()
    bench.server.fault("bind", closes_after)
    bench.server.fault("read", when(asyncio.Event(), arrived))
    task = asyncio.create_task(bench.writer.bind(pod_info(), "n1"))
    async with asyncio.timeout(10):
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    assert await bench.bind("n1") == Bound()  # the pod's turn was given back


async def test_a_server_that_never_carries_it_out_is_given_up_when_its_requests_are_dead(bench: Bench) -> None:
    """For instance a webhook that fails each binding (500)."""
    bench.server.fault("bind", *[answers(500, "InternalError", "failed calling webhook")] * 20)
    verdict = await bench.bind()
    assert isinstance(verdict, NotBound)
    assert "failed calling webhook" in verdict.message
    assert len(bench.server.sent("bind")) == MOST_SENT
    assert bench.timers.now() >= DEAD_AFTER
    assert [seen.method for seen in bench.server.seen][-1] == "GET"


async def test_a_refusal_of_the_repeated_request_ends_it_when_the_first_one_is_dead(bench: Bench) -> None:
    bench.server.fault("bind", closes_before, answers(403, "Forbidden", "no more"))
    verdict = await bench.bind()
    assert isinstance(verdict, NotBound)
    assert verdict.message.endswith("no more")
    assert [seen.method for seen in bench.server.seen][:4] == ["POST", "GET", "POST", "GET"]
    assert len(bench.server.sent("bind")) == 2
    assert bench.timers.now() >= DEAD_AFTER  # the first one could come through until then


async def test_a_binding_comes_after_the_condition_that_is_in_flight_and_instead_of_the_next(bench: Bench) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()
    bench.server.fault("status", when(release, arrived))
    pod = pod_info()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        first = group.create_task(bench.writer.set_condition(pod, "Unschedulable", "one"))
        await arrived.wait()
        second = group.create_task(bench.writer.set_condition(pod, "Unschedulable", "two"))
        await asyncio.sleep(0)
        binding = group.create_task(bench.writer.bind(pod, "n1"))
        await asyncio.sleep(0)
        third = group.create_task(bench.writer.set_condition(pod, "Unschedulable", "three"))
        await asyncio.sleep(0)
        assert not bench.server.sent("bind")
        release.set()
    assert [task.result() for task in (first, second, third)] == [Patched.SENT, Patched.SUPERSEDED, Patched.SUPERSEDED]
    assert binding.result() == Bound()
    assert [seen.method for seen in bench.server.seen] == ["PATCH", "POST"]


async def test_two_bindings_that_wait_for_one_pod_are_a_mistake(bench: Bench) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()
    bench.server.fault("bind", when(release, arrived))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(bench.writer.bind(pod_info(), "n1"))
        await arrived.wait()
        group.create_task(bench.writer.bind(pod_info(), "n1"))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="waits already"):
            await bench.writer.bind(pod_info(), "n2")
        release.set()
    assert bench.node == "n1"
