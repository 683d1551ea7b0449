"""Why a pod has no node, as it reaches the pod's status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import (
    NESTED,
    Fault,
    PodServer,
    answers,
    answers_by_half,
    closes_after,
    closes_before,
    pod_info,
    says,
    when,
)
from tests.unit.kube.write.bench import WriteBench, at_work

from ksp.kube.write.patience import Patience
from ksp.kube.write.status_patches import IN_FLIGHT, TRIES
from ksp.kube.write.writes import Patched
from ksp.model.info import PodInfo


class Bench(WriteBench[PodServer]):
    async def set(self, pod: PodInfo, message: str = "0/2 nodes", nominated: str | None = None) -> Patched:
        return await driven(self.timers, self.writer.set_condition(pod, "Unschedulable", message, nominated))

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.pods["w/p"]["status"]
        return found


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with at_work(Bench, PodServer(), Patience(patch=0.3)) as bench:
        bench.server.add("p")
        yield bench


async def test_the_first_condition(bench: Bench) -> None:
    assert await bench.set(pod_info()) is Patched.SENT
    (seen,) = bench.server.seen
    assert (seen.method, seen.path) == ("PATCH", "/api/v1/namespaces/w/pods/p/status")
    assert seen.content_type == "application/strategic-merge-patch+json"
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T12:00:00Z",
    }
    assert seen.body == {"metadata": {"uid": "u1"}, "status": {"conditions": [condition]}}
    assert bench.told.outcomes == [(Patched.SENT, "")]


async def test_the_transition_time_moves_only_with_the_status(bench: Bench) -> None:
    pod = pod_info(status="False", reason="Unschedulable", message="0/1 nodes")
    await bench.set(pod, "0/2 nodes")
    (condition,) = bench.server.seen[0].body["status"]["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes",
    }
    await bench.set(pod_info(status="True", version="900"), "0/2 nodes")
    (condition,) = bench.server.seen[1].body["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2026-01-02T12:00:00Z"


async def test_nothing_is_sent_where_nothing_changes(bench: Bench) -> None:
    pod = pod_info(status="False", reason="Unschedulable", message="0/2 nodes", nominated="n1")
    assert await bench.set(pod) is Patched.UNCHANGED
    assert await bench.set(pod, nominated="n1") is Patched.UNCHANGED
    assert bench.server.seen == []


async def test_a_pod_from_before_our_own_patch_does_not_hide_what_the_server_has(bench: Bench) -> None:
    old = pod_info(version="1", status="False", reason="Unschedulable", message="a")
    assert await bench.set(old, "b") is Patched.SENT
    assert await bench.set(old, "b") is Patched.UNCHANGED
    assert await bench.set(old, "a") is Patched.SENT
    assert bench.status["conditions"][0]["message"] == "a"


async def test_a_newer_version_of_the_pod_counts_for_more_than_our_own_patch(bench: Bench) -> None:
    assert await bench.set(pod_info(version="1"), "a") is Patched.SENT
    newer = pod_info(version="500", status="False", reason="Unschedulable", message="of another")
    assert await bench.set(newer, "a") is Patched.SENT


async def test_nominations_go_along(bench: Bench) -> None:
    await bench.set(pod_info(), nominated="n7")
    assert bench.server.seen[0].body["status"]["nominatedNodeName"] == "n7"
    held = pod_info(version="900", nominated="n7", status="False", reason="Unschedulable", message="0/2 nodes")
    await bench.set(held, nominated="")
    assert bench.server.seen[1].body == {"metadata": {"uid": "u1"}, "status": {"nominatedNodeName": None}}
    await bench.set(pod_info(version="901", nominated="n7"), "other", nominated=None)
    assert "nominatedNodeName" not in bench.server.seen[2].body["status"]


async def test_a_nomination_stays_while_the_watch_does_not_show_it_yet(bench: Bench) -> None:
    await bench.set(pod_info(version="1"), "a", nominated="n7")
    assert await bench.set(pod_info(version="1"), "b", nominated=None) is Patched.SENT
    assert bench.status["nominatedNodeName"] == "n7"
    assert "nominatedNodeName" not in bench.server.seen[1].body["status"]


async def test_a_nomination_is_cleared_and_nothing_else(bench: Bench) -> None:
    pod = pod_info(version="1", nominated="n7", status="False", reason="Unschedulable", message="0/2 nodes")
    assert await driven(bench.timers, bench.writer.clear_nomination(pod)) is Patched.SENT
    assert bench.server.seen[0].body == {"metadata": {"uid": "u1"}, "status": {"nominatedNodeName": None}}
    assert await driven(bench.timers, bench.writer.clear_nomination(pod)) is Patched.UNCHANGED
    assert await driven(bench.timers, bench.writer.clear_nomination(pod_info(version="900"))) is Patched.UNCHANGED
    assert bench.told.outcomes == [(Patched.SENT, ""), (Patched.UNCHANGED, ""), (Patched.UNCHANGED, "")]


async def test_texts_are_cleaned_and_cut(bench: Bench) -> None:
    await bench.set(pod_info(), "line\nbreak \x1b[31m" + "é" * 40000)
    message = bench.status["conditions"][0]["message"]
    assert message.startswith("line break  [31m")
    assert message.endswith("é ...")
    assert 32764 <= len(message.encode()) <= 32768


@pytest.mark.parametrize(
    "fault", [closes_before, closes_after, answers_by_half, answers(500), answers(502), says("<>", 200), NESTED]
)
async def test_an_unknown_outcome_is_sent_again(bench: Bench, fault: Fault) -> None:
    bench.server.fault("status", fault)
    assert await bench.set(pod_info()) is Patched.SENT
    assert bench.status["conditions"][0]["message"] == "0/2 nodes"
    first, again = bench.server.seen
    assert first == again


async def test_a_hopeless_patch_is_given_up_and_told(bench: Bench) -> None:
    bench.server.fault("status", *[closes_before] * 20)
    assert await bench.set(pod_info()) is Patched.FAILED
    assert len(bench.server.seen) == TRIES
    ((outcome, why),) = bench.told.outcomes
    assert outcome is Patched.FAILED
    assert why


async def test_a_pod_that_is_gone_is_no_failure(bench: Bench) -> None:
    bench.server.add("p", uid="u2")
    assert await bench.set(pod_info()) is Patched.GONE
    assert bench.status == {}
    bench.server.pods.clear()
    assert await bench.set(pod_info()) is Patched.GONE
    bench.server.fault("status", answers(409, "Conflict", "Precondition failed: UID"))
    assert await bench.set(pod_info()) is Patched.GONE


async def test_a_refusal_names_the_rule(bench: Bench) -> None:
    rule = 'apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]'
    denial = 'User "x" cannot patch resource "pods/status" in API group ""'
    bench.server.fault("status", answers(403, "Forbidden", denial), answers(422, "Invalid", "bad"))
    assert await bench.set(pod_info()) is Patched.FAILED
    assert await bench.set(pod_info()) is Patched.FAILED
    assert [why for _, why in bench.told.outcomes] == [
        f"403 Forbidden: {denial}; add to the ClusterRole: {rule}",
        "422 Invalid: bad",
    ]


async def test_patches_of_one_pod_coalesce_to_the_latest(bench: Bench) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()
    bench.server.fault("status", when(release, arrived))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        tasks = [group.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", "0"))]
        await arrived.wait()
        for n in range(1, 50):
            tasks.append(group.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", str(n))))
            await asyncio.sleep(0)
        release.set()
    assert [task.result() for task in tasks] == [Patched.SENT, *[Patched.SUPERSEDED] * 48, Patched.SENT]
    assert len(bench.server.seen) == 2
    assert bench.status["conditions"][0]["message"] == "49"


async def test_a_patch_is_not_sent_again_when_a_later_one_waits(bench: Bench) -> None:
    bench.server.fault("status", answers(503))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        first = group.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", "1"))
        await bench.timers.asleep()
        second = group.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", "2"))
        await asyncio.sleep(0)
        await bench.timers.next()
    assert (first.result(), second.result()) == (Patched.SUPERSEDED, Patched.SENT)
    assert [seen.body["status"]["conditions"][0]["message"] for seen in bench.server.seen] == ["1", "2"]


async def test_many_pods_are_patched_a_few_at_a_time(bench: Bench) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()
    names = [f"p{n}" for n in range(4 * IN_FLIGHT)]
    for name in names:
        bench.server.add(name, uid=name)
    bench.server.fault("status", *[when(release, arrived)] * IN_FLIGHT)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(bench.writer.set_condition(pod_info(name, name), "Unschedulable", "x")) for name in names
        ]
        await bench.server.received(IN_FLIGHT)
        release.set()
    assert {task.result() for task in tasks} == {Patched.SENT}
    assert bench.server.most_in_flight == IN_FLIGHT


async def test_a_cancelled_patch_gives_up_its_turn(bench: Bench) -> None:
    arrived = asyncio.Event()
    bench.server.fault("status", when(asyncio.Event(), arrived))
    async with asyncio.timeout(10):
        task = asyncio.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", "x"))
        await arrived.wait()
        waiting = asyncio.create_task(bench.writer.set_condition(pod_info(), "Unschedulable", "y"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert await waiting is Patched.SENT
