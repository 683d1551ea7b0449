from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from tests.unit.kube.leader_election.test_lease import LEASES, client_of
from tests.unit.kube.timers import VirtualTimers
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
    served,
)
from tests.unit.runtime.test_app import text_of

from ksp.apiserver.server import STATIC_USERS
from ksp.kube.leader_election.elector import LeadershipLostError
from ksp.policy.configuration.leader_election import LeaderElection
from ksp.runtime.app import STANDBY_SWEEP, App, running
from ksp.runtime.leadership import new_identity
from ksp.runtime.serving_options import Authentication, ServingOptions

ELECTION = LeaderElection(resource_name="ksp")


def elected(server: Server, name: str, timers: VirtualTimers, **options: Any) -> App:
    fields: dict[str, Any] = {"leader_election": ELECTION, "identity": name, "flush_seconds": 0.5}
    app = app_of(server, **{**fields, **options})
    app._election_timers = timers
    return app


def master(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("leader_election_master_status", {"name": "ksp"})


async def leads(app: App) -> None:
    async with asyncio.timeout(WITHIN):
        await app.leading.wait()


async def test_a_standby_is_ready_and_decides_nothing() -> None:
    timers = VirtualTimers()
    async with served() as server, running(elected(server, "first", timers)) as first:
        await leads(first)
        async with running(elected(server, "second", timers, port=0)) as second:
            assert await text_of(second, "/readyz") == (200, "ok")
            _, text = await text_of(second, "/readyz?verbose")
            assert "[+]leaderElection ok\n" in text
            assert "[+]leaderElection ok\n" in (await text_of(second, "/healthz?verbose"))[1]
            assert (master(first.registry), master(second.registry)) == (1, 0)
            assert (first.status.status.leading, second.status.status.leading) == (True, False)
            server.load([node("n1")])
            await created(server, pod("a"))
            await pod_until(server, "a", node_of)
            assert not second.leading.is_set()
            assert second.scheduler.queue.incoming  # it has heard of the pod


async def test_without_an_election_it_decides_at_once() -> None:
    async with served() as server, running(app_of(server, port=0)) as app:
        await leads(app)
        assert app.status.status.leading
        assert "leaderElection" not in (await text_of(app, "/readyz?verbose"))[1]
        assert master(app.registry) is None


async def test_election_that_is_off_is_none() -> None:
    async with served() as server:
        off = LeaderElection(elect=False)
        async with running(app_of(server, leader_election=off)) as app:
            await leads(app)
        assert (await got(f"{server.url}{LEASES}"))["items"] == []


async def test_another_kind_of_lock_is_warned_of_and_a_lease_is_taken() -> None:
    election = LeaderElection(resource_lock="endpointsleases", resource_name="ksp")
    async with served() as server:
        with Said() as said:
            async with running(elected(server, "a", VirtualTimers(), leader_election=election)) as app:
                await leads(app)
        assert any("a Lease is the lock" in message for message in said.messages)
        assert [lease["metadata"]["name"] for lease in (await got(f"{server.url}{LEASES}"))["items"]] == ["ksp"]


async def test_what_a_leader_would_have_had_to_do_is_not_kept_for_ever() -> None:
    timers = VirtualTimers()
    async with served() as server, running(elected(server, "first", timers)) as first:
        await leads(first)
        second = elected(server, "second", timers)
        second._timers = own = VirtualTimers()
        stop = asyncio.Event()
        following = asyncio.create_task(second.run(stop))
        async with asyncio.timeout(WITHIN):
            await second.ready.wait()
            await own.asleep(1)
        waiting = pod("waits", nodeName="")
        second.scheduler.outcomes.effects.append(waiting)  # type: ignore[arg-type]
        await own.advance(STANDBY_SWEEP)
        assert second.scheduler.outcomes.effects == []
        stop.set()
        async with asyncio.timeout(WITHIN):
            while not following.done():
                await own.advance(1)
                await got(f"{server.url}/version")
        await following


async def test_a_binding_that_is_given_up_keeps_the_lease() -> None:
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")
        with Said() as said:
            async with asyncio.timeout(WITHIN):
                async with running(elected(server, "a", VirtualTimers(), stop_seconds=0.1)):
                    await server.until_held()
        assert any("the lease is not given back, and expires" in message for message in said.messages)
        async with client_of(server.port) as client:
            found = await client.request("GET", f"{LEASES}/ksp")
        assert b'"holderIdentity":"a"' in found.body


async def test_somebody_else_takes_the_lease_while_it_stops() -> None:
    timers = VirtualTimers()
    async with served() as server:
        server.load([node("n1"), pod("a")])
        server.hold("/binding")
        app, stop = elected(server, "a", timers, stop_seconds=20.0), asyncio.Event()
        working = asyncio.create_task(app.run(stop))
        await server.until_held()
        stop.set()
        server.hold("/leases")
        async with asyncio.timeout(WITHIN):
            while app._leadership.leads():
                await timers.advance(1)
                await got(f"{server.url}/version")
            with pytest.raises(LeadershipLostError):
                await working


async def test_who_is_stopped_while_the_lease_is_asked_for_ends_in_order() -> None:
    async with served() as server:
        server.hold("/leases")
        app, stop = elected(server, "a", VirtualTimers()), asyncio.Event()
        working = asyncio.create_task(app.run(stop))
        await server.until_held()
        stop.set()
        async with asyncio.timeout(WITHIN):
            await working
        assert not app.leading.is_set()


async def test_decisions_do_not_wait_for_those_who_know_who_may_read_metrics(tmp_path: Path) -> None:
    async with served() as server, served(elsewhere := Server()) as mute:
        elsewhere.hold("extension-apiserver-authentication")
        server.load([node("n1"), pod("a")])
        asked = Authentication(str(kubeconfig(tmp_path, mute)))
        serving = ServingOptions("127.0.0.1", 0, authentication=asked)
        async with asyncio.timeout(8), running(app_of(server, serving=serving)):
            await pod_until(server, "a", node_of)
        assert elsewhere.waiting


def test_identities_are_of_one_process() -> None:
    assert new_identity() != new_identity()


@pytest.mark.parametrize("emulate", ["1.19", "1.36"])
async def test_with_the_rights_of_kube_scheduler_it_leads_and_serves(
    emulate: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = {f"token-of-{name}": user for name, user in STATIC_USERS.items()}
    async with served(Server(emulate, tokens)) as server:
        server.load([node("n1"), pod("a")])
        path = str(kubeconfig(tmp_path, server, "system:kube-scheduler"))
        options: dict[str, Any] = {"leader_election": LeaderElection(), "serving": ServingOptions("127.0.0.1", 0)}
        async with running(app_of(server, kubeconfig=path, master=None, **options)) as app:
            await pod_until(server, "a", node_of, "token-of-admin")
            url = f"https://127.0.0.1:{app.secure_port}/metrics"
            headers = {"Authorization": "Bearer token-of-admin"}
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
                assert answer.status == 200
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_missing_rights_are_said_with_the_rule_and_it_stands_by(tmp_path: Path) -> None:
    tokens = {f"token-of-{name}": user for name, user in STATIC_USERS.items()}
    async with served(Server("1.19", tokens)) as server:
        path = str(kubeconfig(tmp_path, server, "system:kube-scheduler"))
        elsewhere = LeaderElection(resource_name="ksp")  # kube-scheduler's role has the name of its own lease only
        with Said() as said:
            async with running(app_of(server, kubeconfig=path, master=None, leader_election=elsewhere)) as app:
                rule = 'apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]'
                await said.until(rule.replace('"', '\\"'))
                assert not app.leading.is_set()
