"""What networks and API servers do, and the scheduler goes on: on the embedded server, which can be made to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cluster.policies import default_policy
from tests.cluster.relay import Relay
from tests.cluster.servers import Server
from tests.cluster.view import Cluster

from ksp.apiserver import ApiServer
from ksp.runtime.app import App, running
from ksp.runtime.options import Options


@pytest.fixture
def own(server: Server) -> ApiServer:
    """The server, if it is ours to break."""
    if server.embedded is None:
        pytest.skip("only the embedded server can be made to fail")
    return server.embedded


@pytest.fixture
async def relay(own: ApiServer) -> AsyncIterator[Relay]:
    async with Relay(own.port).running() as relay:
        yield relay


def through(relay: Relay, own: ApiServer, cluster: Cluster, folder: Path, *, inactivity: float = 60.0) -> App:
    """A scheduler that reaches the server through the relay."""
    kubeconfig = own.kubeconfig()
    kubeconfig["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{relay.port}"
    file = folder / "relayed"
    file.write_text(json.dumps(kubeconfig))
    policy = default_policy(cluster.scheduler)
    options = Options(policy, str(file), port=None, seed=1, watch_inactivity=inactivity, flush_seconds=0.1)
    return App(options)


async def test_watches_resume_after_a_reset(relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    await cluster.node("a")
    async with running(through(relay, own, cluster, tmp_path)):
        assert relay.reset() > 0
        await cluster.pod("web")
        await cluster.bound("web")


async def test_watches_resume_after_their_connections_became_half_open(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.node("a")
    async with running(through(relay, own, cluster, tmp_path, inactivity=0.5)):
        assert relay.freeze() > 0
        await cluster.pod("web")
        await cluster.bound("web")


async def test_pods_are_bound_after_the_server_was_restarted(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.node("a")
    async with running(through(relay, own, cluster, tmp_path)):
        await own.restart()
        await cluster.pod("web")
        await cluster.bound("web")


async def test_what_happened_while_watches_were_too_old_is_seen(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.node("full", cpu="1")
    async with running(through(relay, own, cluster, tmp_path)):
        await cluster.pod("first", cpu="800m")
        await cluster.bound("first")
        await cluster.pod("second", cpu="800m")
        await cluster.refused("second", "Insufficient cpu")
        own.compact()
        relay.reset()
        await cluster.delete(f"{cluster.pods}/first")
        await cluster.bound("second")


async def test_nothing_is_bound_twice_however_often_connections_break(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Each pod gets one Scheduled event, and no node more than it can take."""
    nodes = [await cluster.node(name, cpu="1") for name in "ab"]
    stop = asyncio.Event()

    async def breaking() -> None:
        while not stop.is_set():
            relay.reset()
            await asyncio.wait([asyncio.create_task(stop.wait())], timeout=0.05)

    async with running(through(relay, own, cluster, tmp_path)), asyncio.TaskGroup() as tasks:
        tasks.create_task(breaking())
        for i in range(8):
            await cluster.pod(f"p{i}", cpu="250m")
        try:
            places = [await cluster.bound(f"p{i}") for i in range(8)]
        finally:
            stop.set()
    assert sorted(places) == sorted(nodes * 4)
