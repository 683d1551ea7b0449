"""The lease on an embedded API server, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.cluster.relay import Relay
from tests.unit.kube.leader_election.candidates import ELECTION, Clock, Heard
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.embedded import WITHIN, Server, served

from ksp.apiserver.server import STATIC_USERS
from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.credentials import User
from ksp.kube.errors import ApiError
from ksp.kube.http.client import Client
from ksp.kube.http.reader import MalformedError
from ksp.kube.leader_election.elector import Elector
from ksp.kube.leader_election.lease import LeaseLock, Record, lease_of

RECORD = Record("a", 15, "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z", 0)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def client_of(port: int, token: str = "") -> Client:
    user = User(authorization=f"Bearer {token}") if token else User()
    return Client(Cluster(f"http://127.0.0.1:{port}", "the test", user=user), qps=0)


@asynccontextmanager
async def lock_of(server: Server, token: str = "", namespace: str = "kube-system") -> AsyncIterator[LeaseLock]:
    async with client_of(server.port, token) as client:
        yield LeaseLock(client, namespace, "ksp")


async def stored(server: Server) -> dict[str, Any]:
    async with client_of(server.port) as client:
        return dict(json.loads((await client.request("GET", f"{LEASES}/ksp")).body))


@pytest.mark.parametrize("emulate", ["1.19", "1.36"])
async def test_it_is_made_read_and_changed(emulate: str) -> None:
    async with served(Server(emulate)) as server, lock_of(server) as lock:
        assert await lock.read(5) is None
        made = await lock.create(RECORD, {"one": "1", "two": "2"}, 5)
        assert (made.record, made.annotations) == (RECORD, {"one": "1", "two": "2"})
        assert await lock.read(5) == made
        changed = await lock.update(made, RECORD._replace(transitions=1), {"two": None}, 5)
        assert (changed.record.transitions, changed.annotations) == (1, {"one": "1"})
        assert changed.uid == made.uid
        assert changed.version != made.version


async def test_of_two_changes_of_one_version_the_server_takes_one() -> None:
    async with served() as server, lock_of(server) as lock:
        made = await lock.create(RECORD, {}, 5)
        with pytest.raises(ApiError) as error:
            await lock.create(RECORD, {}, 5)
        assert error.value.status == 409
        await lock.update(made, RECORD._replace(holder="b"), {}, 5)
        with pytest.raises(ApiError) as error:
            await lock.update(made, RECORD._replace(holder="c"), {}, 5)
        assert error.value.status == 409
        assert (await stored(server))["spec"]["holderIdentity"] == "b"


async def test_a_lease_that_was_deleted_is_not_made_by_a_change() -> None:
    async with served() as server, lock_of(server) as lock, client_of(server.port) as client:
        made = await lock.create(RECORD, {}, 5)
        await client.request("DELETE", f"{LEASES}/ksp")
        with pytest.raises(ApiError) as error:
            await lock.update(made, RECORD, {}, 5)
        assert error.value.status in {404, 409}
        assert await lock.read(5) is None


async def test_what_others_keep_in_it_stays() -> None:
    async with served() as server, lock_of(server) as lock, client_of(server.port) as client:
        await lock.create(RECORD, {}, 5)
        patch = {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}}
        merge = "application/merge-patch+json"
        await client.request("PATCH", f"{LEASES}/ksp", body=json.dumps(patch).encode(), content_type=merge)
        lease = await lock.read(5)
        assert lease is not None
        await lock.update(lease, RECORD._replace(holder="b"), {"status": "fine"}, 5)
        metadata = (await stored(server))["metadata"]
        assert metadata["labels"] == {"team": "x"}
        assert metadata["annotations"] == {"note": "y", "status": "fine"}


async def test_a_released_lease_has_an_empty_holder() -> None:
    async with served() as server, lock_of(server) as lock:
        made = await lock.create(RECORD, {}, 5)
        released = await lock.update(made, RECORD._replace(holder="", duration=1), {}, 5)
        assert released.record.holder == ""
        assert (await stored(server))["spec"]["leaseDurationSeconds"] == 1


async def test_missing_rights_are_a_refusal_and_no_missing_lease() -> None:
    tokens = {f"token-of-{name}": user for name, user in STATIC_USERS.items()}
    async with served(Server(tokens=tokens)) as server, lock_of(server, "token-of-nobody") as lock:
        with pytest.raises(ApiError) as error:
            await lock.read(5)
        assert error.value.status == 403


async def test_a_namespace_that_is_not_there_is_said() -> None:
    async with served() as server, lock_of(server, namespace="nowhere") as lock:
        assert await lock.read(5) is None
        with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
            await lock.create(RECORD, {}, 5)


async def test_a_server_without_leases_is_no_missing_lease() -> None:
    async with served() as server, client_of(server.port) as client:
        lock = LeaseLock(client, "kube-system", "ksp")
        lock._one = "/apis/coordination.k8s.io/v9/namespaces/kube-system/leases/ksp"
        with pytest.raises(ApiError) as error:
            await lock.read(5)
        assert error.value.status == 404


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"kind":"Lease"}', b'{"kind":"Pod","metadata":{}}', b"\xff",
             b'{"kind":"Lease","metadata":{},"spec":{"holderIdentity":7}}']
)  # fmt: skip
def test_what_is_no_lease_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedError):
        lease_of(text)


def test_a_lease_without_a_spec_is_held_by_nobody() -> None:
    lease = lease_of(b'{"kind":"Lease","metadata":{"resourceVersion":"7"}}')
    assert (lease.record, lease.version, lease.uid, lease.annotations) == (Record(), "7", "", {})


# ---- elections over sockets


def elector_of(client: Client, name: str, timers: VirtualTimers) -> Elector:
    """The time of the lease is the test's, that of the network is real."""
    lock = LeaseLock(client, "kube-system", "ksp")
    return Elector(lock, ELECTION, name, timers, Clock(timers), Heard())


async def pass_until(server: Server, timers: VirtualTimers, done: Callable[[], bool]) -> None:
    """The time goes on, and so much happens on the network between two steps of it that requests come and go."""
    async with asyncio.timeout(WITHIN), client_of(server.port) as client:
        while not done():
            await timers.advance(0.5)
            for _ in range(4):
                await client.request("GET", "/version")


async def test_two_candidates_over_sockets_and_a_partition_by_the_network() -> None:
    timers = VirtualTimers()
    async with (
        served() as server,
        Relay(server.port).running() as relay,
        client_of(relay.port) as first,
        client_of(server.port) as second,
    ):
        a, b = elector_of(first, "a", timers), elector_of(second, "b", timers)
        await a.acquire()
        holding = asyncio.create_task(a.hold())
        following = asyncio.create_task(b.acquire())
        relay.freeze()  # the connection says nothing more; new ones work
        await pass_until(server, timers, lambda: timers.now() > 12)
        assert a.leads()
        assert b.leader == "a"
        for verb in (b"PUT", b"GET"):  # and then no request gets through
            relay.hold(verb)
        await pass_until(server, timers, holding.done)
        assert holding.result().startswith("the lease could not be renewed for 10 seconds: ")
        assert not a.leads()
        assert not following.done()
        await pass_until(server, timers, following.done)
        assert b.leads()
        found = (await stored(server))["spec"]
        assert (found["holderIdentity"], found["leaseTransitions"]) == ("b", 1)
        for verb in (b"PUT", b"GET"):
            relay.release(verb)
        assert await b.release()


async def test_a_server_that_restarts_costs_nobody_the_lease() -> None:
    timers = VirtualTimers()
    async with served() as server, client_of(server.port) as client:
        a = elector_of(client, "a", timers)
        await a.acquire()
        holding = asyncio.create_task(a.hold())
        await server.restart()
        await pass_until(server, timers, lambda: timers.now() > 20)
        assert a.leads()
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
