"""Writes against the embedded API server, in both of its versions: what ends up in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from tests.unit.kube.driving import driven
from tests.unit.kube.events.test_recorder import Loaded, Told, Wall
from tests.unit.kube.timers import VirtualTimers

from ksp.apiserver.server import ApiServer
from ksp.kube.auth.cluster import Cluster
from ksp.kube.errors import ApiError
from ksp.kube.events.recorder import EventRecorder
from ksp.kube.http.client import Client
from ksp.kube.watch.discovery import Discovery
from ksp.kube.write.writes import Bound, Evicted, Gone, NotBound, Patched, Writer
from ksp.model.decode import decode
from ksp.model.info import PodInfo
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node
from ksp.model.pod import Pod

PODS = "/api/v1/namespaces/default/pods"


class LossyProxy:
    """Carries everything through; of the next `lost` requests that change something, the answer is lost."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.lost = 0
        self.url = ""

    async def carry(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {"Content-Type": request.headers.get("Content-Type", "application/json")}
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, f"{self.server}{request.raw_path}", data=body, headers=headers) as answer,
        ):
            found = await answer.read()
        if self.lost and request.method != "GET":
            self.lost -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=answer.status, body=found, content_type="application/json")

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.carry)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()


@dataclass
class Bench:
    version: str
    server: ApiServer
    proxy: LossyProxy
    client: Client
    timers: VirtualTimers
    writer: Writer

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        response = await self.client.request(method, path, body=None if body is None else msgspec.json.encode(body))
        return msgspec.json.decode(response.body)

    async def make(self, name: str) -> PodInfo:
        spec = {"containers": [{"name": "c", "image": "registry.example/pause:1"}]}
        made = await self.client.request(
            "POST", PODS, body=msgspec.json.encode({"metadata": {"name": name}, "spec": spec})
        )
        return PodInfo.of(decode(Pod, made.body))

    async def pod(self, name: str) -> PodInfo:
        return PodInfo.of(decode(Pod, (await self.client.request("GET", f"{PODS}/{name}")).body))

    async def scheduled(self, name: str) -> dict[str, Any]:
        """The pod's condition."""
        pod = await self.json("GET", f"{PODS}/{name}")
        (condition,) = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
        return dict(condition)

    async def delete(self, name: str) -> None:
        await self.client.request("DELETE", f"{PODS}/{name}")
        with pytest.raises(ApiError):
            await self.client.request("GET", f"{PODS}/{name}")


@pytest.fixture(params=["1.19", "1.36"])
async def bench(request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    server, timers = ApiServer(request.param), VirtualTimers(jitter=0.5)
    await server.start()
    try:
        proxy = LossyProxy(server.url)
        async with proxy.serving(), Client(Cluster(proxy.url, "test"), timers, qps=0) as client:
            yield Bench(request.param, server, proxy, client, timers, Writer(client, timers, Wall(timers)))
    finally:
        await server.stop()


async def test_a_pod_is_bound(bench: Bench) -> None:
    pod = await bench.make("p")
    assert await driven(bench.timers, bench.writer.bind(pod, "n1")) == Bound()
    assert (await bench.pod("p")).spec.node_name == "n1"
    assert (await bench.scheduled("p"))["status"] == "True"
    assert await driven(bench.timers, bench.writer.bind(pod, "n2")) == NotBound(
        "the pod is on node n1 already", elsewhere=True
    )


async def test_a_binding_whose_answer_is_lost_is_settled(bench: Bench) -> None:
    pod = await bench.make("p")
    bench.proxy.lost = 1
    assert await driven(bench.timers, bench.writer.bind(pod, "n1")) == Bound()
    assert (await bench.pod("p")).spec.node_name == "n1"


async def test_a_pod_that_is_gone_or_another(bench: Bench) -> None:
    pod = await bench.make("p")
    await bench.delete("p")
    assert await driven(bench.timers, bench.writer.bind(pod, "n1")) == NotBound('pods "p" not found', gone=True)
    assert await driven(bench.timers, bench.writer.set_condition(pod, "Unschedulable", "no")) is Patched.GONE
    await bench.make("p")
    assert await driven(bench.timers, bench.writer.set_condition(pod, "Unschedulable", "no")) is Patched.GONE
    if bench.version == "1.36":  # 1.19 does not look at the uid
        verdict = await driven(bench.timers, bench.writer.bind(pod, "n1"))
        assert verdict == NotBound("the pod was deleted, and another has its name", gone=True)
        assert not (await bench.pod("p")).spec.node_name


async def test_a_condition_and_its_transition_time(bench: Bench) -> None:
    pod = await bench.make("p")
    assert await driven(bench.timers, bench.writer.set_condition(pod, "Unschedulable", "one", "n7")) is Patched.SENT
    first = await bench.scheduled("p")
    assert (first["status"], first["reason"], first["message"]) == ("False", "Unschedulable", "one")
    assert first["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    await bench.timers.advance(60)
    bench.proxy.lost = 1
    fresh = await bench.pod("p")
    assert fresh.status.nominated_node_name == "n7"
    assert await driven(bench.timers, bench.writer.set_condition(fresh, "Unschedulable", "two", "")) is Patched.SENT
    assert await bench.scheduled("p") == {**first, "message": "two"}
    again = await bench.pod("p")
    assert again.status.nominated_node_name == ""
    assert await driven(bench.timers, bench.writer.set_condition(again, "Unschedulable", "two")) is Patched.UNCHANGED
    assert await driven(bench.timers, bench.writer.bind(again, "n1")) == Bound()
    assert (await bench.scheduled("p"))["status"] == "True"


def evictor(bench: Bench, *, marks: bool) -> Writer:
    return Writer(bench.client, bench.timers, Wall(bench.timers), marks_victims=marks)


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("marks", [True, False])
async def test_a_victim_goes_with_its_grace_period_and_says_why(bench: Bench, marks: bool, lost: int) -> None:
    pod, preemptor = await bench.make("p"), await bench.make("important")
    assert await driven(bench.timers, bench.writer.bind(pod, "n1")) == Bound()
    bench.proxy.lost = lost
    assert await driven(bench.timers, evictor(bench, marks=marks).evict(pod, preemptor)) == Evicted()
    victim = await bench.json("GET", f"{PODS}/p")
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 30
    conditions = {each["type"]: each for each in victim["status"]["conditions"]}
    if marks:
        told = conditions["DisruptionTarget"]
        assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
        assert told["lastTransitionTime"].startswith("2026-01-02T03:04")
    else:
        assert "DisruptionTarget" not in conditions
    assert conditions["PodScheduled"]["status"] == "True"


@pytest.mark.parametrize("marks", [True, False])
async def test_a_victim_on_no_node_is_gone_and_another_of_its_name_stays(bench: Bench, marks: bool) -> None:
    pod, preemptor = await bench.make("p"), await bench.make("important")
    writer = evictor(bench, marks=marks)
    assert await driven(bench.timers, writer.evict(pod, preemptor)) == Evicted()
    assert await driven(bench.timers, writer.evict(pod, preemptor)) == Gone()
    other = await bench.make("p")
    assert await driven(bench.timers, writer.evict(pod, preemptor)) == Gone()
    found = await bench.pod("p")
    assert (found.uid, found.terminating) == (other.uid, False)
    assert [each.type for each in found.status.conditions] == [each.type for each in other.status.conditions]


@pytest.mark.parametrize(
    ("bench", "api"),
    [("1.19", "found"), ("1.19", "v1beta1"), ("1.19", "core"), ("1.36", "found"), ("1.36", "core")],
    indirect=["bench"],
)
async def test_events_appear_and_repeat(bench: Bench, api: str) -> None:
    """In the version that discovery finds, and in the older ones where the server has them."""
    discovery = Discovery(bench.client)
    await discovery.refresh()
    told = Told()
    recorder = EventRecorder(
        bench.client,
        discovery if api == "found" else Only(api),
        bench.timers,
        Loaded(),
        source="default-scheduler",
        host="h",
        clock=Wall(bench.timers),
        observer=told,
    )
    pod = await bench.make("p")
    async with asyncio.timeout(20):
        running = asyncio.create_task(recorder.run())
        await bench.timers.asleep()
        recorder.failed_scheduling(pod, "0/2 nodes are available.")
        recorder.scheduled(pod, "n1")
        recorder.event(Node(metadata=ObjectMeta(name="n1", uid="n1")), "Normal", "R", "A", "of a node")
        await told.until(lambda: told.written["create"] == 3)
        await bench.timers.advance(2)
        recorder.failed_scheduling(pod, "0/2 nodes are available.")
        await told.until(lambda: told.written["patch"] == 1)
        await recorder.close(5)
        await running
    assert not told.dropped
    assert not told.messages
    await _check(bench, api)


class Only:
    """Serves one version."""

    def __init__(self, version: str) -> None:
        self.version = version

    def serves(self, group: str, version: str, resource: str) -> bool:
        return version == self.version

    async def refresh(self) -> None: ...


async def _check(bench: Bench, api: str) -> None:
    """Read as kubectl does, which knows the core's form."""
    items = (await bench.json("GET", "/api/v1/namespaces/default/events"))["items"]
    by_reason = {item["reason"]: item for item in items if item["reason"] in {"FailedScheduling", "Scheduled", "R"}}
    assert by_reason["Scheduled"]["message"] == "Successfully assigned default/p to n1"
    assert by_reason["R"]["involvedObject"]["kind"] == "Node"
    failed = by_reason["FailedScheduling"]
    assert failed["type"] == "Warning"
    assert failed["involvedObject"]["name"] == "p"
    if api == "core":
        assert (failed["count"], failed["lastTimestamp"]) == (2, "2026-01-02T03:04:07Z")
    else:
        assert failed["series"] == {"count": 2, "lastObservedTime": "2026-01-02T03:04:07.000006Z"}
        assert failed["reportingComponent"] == "default-scheduler"
        path = f"/apis/events.k8s.io/v1/namespaces/default/events/{failed['metadata']['name']}"
        assert (await bench.json("GET", path))["note"] == "0/2 nodes are available."
