from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import aiohttp
import pytest
from tests.unit.core.scheduling import profile_of
from tests.unit.runtime.embedded import (
    WITHIN,
    Said,
    Server,
    app_of,
    created,
    got,
    kubeconfig,
    node,
    node_of,
    pod,
    pod_until,
    scheduled,
    served,
)

from ksp.apiserver.server import STATIC_USERS
from ksp.kube.errors import ConfigError
from ksp.kube.events.recorder import EventRecorder
from ksp.policy.assemble import Policy
from ksp.runtime.app import App, running
from ksp.runtime.options import Options

TOKENS = {f"token-of-{name}": user for name, user in STATIC_USERS.items()}


async def text_of(app: App, path: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{app.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("emulate", ["1.19", "1.36"])
async def test_a_pod_is_bound_and_its_user_is_told(emulate: str) -> None:
    async with served(Server(emulate)) as server:
        server.load([node("n1"), pod("there-before")])
        async with running(app_of(server)):
            await created(server, pod("comes-later"))
            for name in ("there-before", "comes-later"):
                assert node_of(await pod_until(server, name, node_of)) == "n1"
        events = (await got(f"{server.url}/api/v1/namespaces/default/events"))["items"]
        assert {(event["involvedObject"]["name"], event["reason"], event["type"]) for event in events} == {
            ("there-before", "Scheduled", "Normal"),
            ("comes-later", "Scheduled", "Normal"),
        }


async def test_a_pod_that_fits_nowhere_says_why_and_is_bound_when_a_node_comes() -> None:
    async with served() as server:
        server.load([node("n1", cpu="1"), pod("big", cpu="2")])
        async with running(app_of(server)):
            condition = scheduled(await pod_until(server, "big", scheduled))
            assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
            assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."
            server.load([node("n2")])
            assert node_of(await pod_until(server, "big", node_of)) == "n2"


async def test_nothing_is_decided_before_all_caches_are_in_sync() -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/services")
        app, stop = app_of(server, port=0), asyncio.Event()
        running_app = asyncio.create_task(app.run(stop))
        await server.until_held()
        status, text = await text_of(app, "/readyz")
        assert status == 500
        assert "[-]informer-sync failed: waiting for" in text
        assert "services" in text
        assert (await text_of(app, "/healthz"))[0] == 200
        assert node_of(await got(f"{server.url}/api/v1/namespaces/default/pods/a")) == ""
        server.release("/services")
        assert node_of(await pod_until(server, "a", node_of)) == "n1"
        assert await text_of(app, "/readyz") == (200, "ok")
        stop.set()
        await running_app


async def test_what_is_measured_is_shown() -> None:
    async with served() as server:
        server.load([node("n1", cpu="1"), pod("a"), pod("big", cpu="2")])
        async with running(app_of(server, port=0)) as app:
            await pod_until(server, "a", node_of)
            await pod_until(server, "big", scheduled)
            _, text = await text_of(app, "/metrics")
    lines = set(text.splitlines())
    assert {
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0',
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
        'scheduler_pod_scheduling_duration_seconds_count{attempts="1"} 1.0',
        "scheduler_pod_scheduling_attempts_count 1.0",
        "scheduler_binding_duration_seconds_count 1.0",
        "scheduler_scheduling_algorithm_duration_seconds_count 1.0",
        'scheduler_e2e_scheduling_duration_seconds_count{profile="default-scheduler",result="scheduled"} 1.0',
        'scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"} 2.0',
        'scheduler_scheduler_cache_size{type="nodes"} 1.0',
        'scheduler_scheduler_cache_size{type="pods"} 1.0',
        'ksp_reflector_lists_total{resource="pods"} 1.0',
        f'ksp_policy_info{{policy="default",sha256="{"0" * 64}"}} 1.0',
    } <= lines
    assert any(line.startswith('rest_client_requests_total{code="201",host="127.0.0.1:') for line in lines)


async def test_stopping_lets_open_bindings_finish() -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")
        app, stop = app_of(server, port=0), asyncio.Event()
        running_app = asyncio.create_task(app.run(stop))
        await server.until_held()
        stop.set()
        while "stopping" not in (await text_of(app, "/readyz/shutdown"))[1]:
            pass
        await created(server, pod("too-late"))
        server.release("/binding")
        async with asyncio.timeout(WITHIN):
            await running_app
        pods = (await got(f"{server.url}/api/v1/namespaces/default/pods"))["items"]
        assert {found["metadata"]["name"]: node_of(found) for found in pods} == {"a": "n1", "too-late": ""}
        events = (await got(f"{server.url}/api/v1/namespaces/default/events"))["items"]
        assert [event["reason"] for event in events] == ["Scheduled"]


async def test_stopping_lets_evictions_finish_that_have_begun() -> None:
    async with served() as server:
        lows = [pod(name, "2", nodeName="n1") for name in ("low-1", "low-2")]
        server.load([node("n1"), *lows, pod("high", "4", priority=1000)])
        server.hold("DELETE /api/v1/namespaces/default/pods/")
        app, stop = app_of(server, port=0), asyncio.Event()
        running_app = asyncio.create_task(app.run(stop))
        await server.until_held()
        stop.set()
        while "stopping" not in (await text_of(app, "/readyz/shutdown"))[1]:
            pass
        server.release("DELETE /api/v1/namespaces/default/pods/")
        async with asyncio.timeout(WITHIN):
            await running_app
        pods = (await got(f"{server.url}/api/v1/namespaces/default/pods"))["items"]
        going = {found["metadata"]["name"] for found in pods if "deletionTimestamp" in found["metadata"]}
        events = (await got(f"{server.url}/api/v1/namespaces/default/events"))["items"]
        told = {event["involvedObject"]["name"] for event in events if event["reason"] == "Preempted"}
        assert going == told == {"low-1", "low-2"}


async def test_stopping_gives_up_a_binding_that_does_not_end(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")
        async with asyncio.timeout(WITHIN), running(app_of(server, stop_seconds=0.1)):
            await server.until_held()
    assert "gave up waiting for a binding; it may have happened pod=default/a node=n1" in caplog.messages


async def test_a_fault_ends_it_and_its_bindings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")

        async def broken(_: EventRecorder) -> None:
            await server.until_held()
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(EventRecorder, "run", broken)
        with pytest.raises(ExceptionGroup) as error:
            await app_of(server).run(asyncio.Event())
        assert error.group_contains(ZeroDivisionError, match="a bug")
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["gave up waiting for a binding; it may have happened pod=default/a node=n1"]


async def test_who_uses_a_running_app_is_told_at_once_when_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as server:
        ends = asyncio.Event()

        async def broken(_: EventRecorder) -> None:
            await ends.wait()
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(EventRecorder, "run", broken)

        async def using() -> None:
            async with running(app_of(server)):
                ends.set()
                await asyncio.Event().wait()

        with pytest.raises(ExceptionGroup) as error:
            await using()
        assert error.group_contains(ZeroDivisionError, match="a bug")


async def test_what_goes_wrong_beside_a_running_app_is_raised_as_it_is() -> None:
    async with served() as server:
        with pytest.raises(ZeroDivisionError, match="beside"):
            async with running(app_of(server)):
                raise ZeroDivisionError("beside")


async def test_a_server_that_restarts_gets_its_next_binding_soon_after_its_return() -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        async with running(app_of(server, flush_seconds=0.1)):
            await pod_until(server, "a", node_of)
            await server.restart()
            began = time.perf_counter()
            await created(server, pod("b"))
            await pod_until(server, "b", node_of)
            assert time.perf_counter() - began < 5


async def test_a_binding_whose_connection_breaks_is_settled_and_happens_once() -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")
        async with running(app_of(server)) as app:
            await server.until_held()
            server.held.pop("/binding")  # the request that waits is lost, the next one is not
            server.drop_connections()
            found = await pod_until(server, "a", node_of)
            assert node_of(found) == "n1"
            while len(app.scheduler.cache.assumed()):
                await got(f"{server.url}/api/v1/nodes")
        events = (await got(f"{server.url}/api/v1/namespaces/default/events"))["items"]
        assert [event["reason"] for event in events] == ["Scheduled"]


async def test_a_server_that_is_not_there_yet_is_waited_for() -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        await server.stop()
        app, stop = app_of(server), asyncio.Event()
        with Said() as said:
            running_app = asyncio.create_task(app.run(stop))
            await said.until("waiting for the API server")
        await server.start(port=server.port)
        await pod_until(server, "a", node_of)
        stop.set()
        await running_app


async def test_it_can_be_stopped_while_it_waits() -> None:
    async with served() as server:
        await server.stop()
        app, stop = app_of(server), asyncio.Event()
        with Said() as said:
            running_app = asyncio.create_task(app.run(stop))
            await said.until("waiting for the API server")
        stop.set()
        async with asyncio.timeout(WITHIN):
            await running_app


async def test_a_kind_that_a_rule_reads_is_watched_and_wakes_its_pods() -> None:
    closed = '!("open" in cluster.namespaces[pod.namespace].metadata.labels)'
    profile = profile_of(f'predicate Open {{ deny "the namespace is closed" when {closed} }}', "predicates { Open }")
    async with served() as server:
        server.load([node("n1"), pod("a")])
        app = App(Options(Policy("own", "0" * 64, (profile,)), master=server.url, port=None), environ={})
        async with running(app):
            condition = scheduled(await pod_until(server, "a", scheduled))
            assert condition["message"] == "0/1 nodes are available: 1 the namespace is closed."
            body = {"metadata": {"labels": {"open": ""}}}
            headers = {"Content-Type": "application/merge-patch+json"}
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.patch(f"{server.url}/api/v1/namespaces/default", json=body) as answer,
            ):
                assert answer.status == 200
            assert node_of(await pod_until(server, "a", node_of)) == "n1"


# ---- credentials


async def test_with_the_rights_of_a_scheduler_it_schedules(tmp_path: Path) -> None:
    async with served(Server(tokens=TOKENS)) as server:
        server.load([node("n1"), pod("a")])
        path = kubeconfig(tmp_path, server, "system:kube-scheduler")
        async with running(app_of(server, kubeconfig=str(path), master=None)):
            assert node_of(await pod_until(server, "a", node_of, "token-of-admin")) == "n1"


@pytest.mark.parametrize("emulate", ["1.19", "1.36"])
async def test_with_the_rights_of_a_scheduler_it_preempts(emulate: str, tmp_path: Path) -> None:
    async with served(Server(emulate, TOKENS)) as server:
        low, high = pod("low", "4", nodeName="n1"), pod("high", "4", priority=1000)
        server.load([node("n1"), low, high])
        path = kubeconfig(tmp_path, server, "system:kube-scheduler")
        async with running(app_of(server, kubeconfig=str(path), master=None)):
            await pod_until(server, "low", lambda it: "deletionTimestamp" in it["metadata"], "token-of-admin")
            await pod_until(server, "high", lambda it: it["status"].get("nominatedNodeName") == "n1", "token-of-admin")


async def test_a_refused_token_is_one_clear_error(tmp_path: Path) -> None:
    async with served(Server(tokens=TOKENS)) as server:
        path = kubeconfig(tmp_path, server, token="wrong")
        app = app_of(server, kubeconfig=str(path), master=None)
        with pytest.raises(ConfigError) as error:
            await app.run(asyncio.Event())
    assert str(error.value).startswith(
        f"{server.url} does not accept the credentials: check the token, the client cert"
    )
    assert str(path) in str(error.value)


async def test_no_credentials_at_all_are_one_clear_error() -> None:
    async with served(Server(tokens=TOKENS)) as server:
        with pytest.raises(ConfigError, match="credentials"):
            await app_of(server).run(asyncio.Event())


async def test_a_certificate_that_is_not_trusted_is_one_clear_error() -> None:
    server = Server()
    await server.start(tls=True)
    try:
        with pytest.raises(ConfigError, match="certificate is not trusted"):
            await app_of(server).run(asyncio.Event())
    finally:
        await server.stop()


async def test_missing_rights_are_said_with_the_rule_to_add(tmp_path: Path) -> None:
    async with served(Server(tokens=TOKENS)) as server:
        path = kubeconfig(tmp_path, server, "nobody")
        app, stop = app_of(server, kubeconfig=str(path), master=None), asyncio.Event()
        rule = 'add to the ClusterRole: apiGroups: [""], resources: ["pods"], verbs: ["get","list","watch"]'
        with Said() as said:
            running_app = asyncio.create_task(app.run(stop))
            await said.until(rule)
        stop.set()
        await running_app
