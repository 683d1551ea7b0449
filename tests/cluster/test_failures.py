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
from tests.cluster.view import PATIENCE, VOLUMES, Cluster, condition, nominated

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


async def test_a_pod_whose_binding_was_lost_with_a_backup_is_bound_again(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.node("a")
    async with running(through(relay, own, cluster, tmp_path)):
        pod = await cluster.pod("web")
        await cluster.bound("web")
        await cluster.pod("later")
        await cluster.bound("later")  # so the scheduler has seen that web is bound
        own.state.store.put("pods", pod)  # as it was before
        await cluster.bound("web")


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


async def test_a_claim_that_changes_while_its_node_is_written_is_decided_about_anew(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """The write comes too late, is refused for the version that it bears, and the next attempt succeeds."""
    node = await cluster.node("a")
    await cluster.claim("data", await cluster.storage_class("made"))
    start = f"PATCH {cluster.claims}".encode()
    async with running(through(relay, own, cluster, tmp_path)):
        late = relay.hold(start)
        await cluster.pod_with("data", "db")
        async with asyncio.timeout(PATIENCE):
            await late.wait()
        await cluster.patch(f"{cluster.claims}/data", {"metadata": {"labels": {"seen": "yes"}}})
        relay.release(start)
        event = await cluster.event("db", "FailedScheduling")
        assert event["message"].endswith('persistentvolumeclaim "data" has changed since it was chosen')
        assert await cluster.bound("db") == node


async def test_pods_with_volumes_are_bound_however_often_connections_break(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Each pod runs where the volumes of both its claims are."""
    nodes = [await cluster.node(name) for name in "ab"]
    local = await cluster.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    made = await cluster.storage_class("made")
    for i in range(4):
        await cluster.volume(f"v{i}", local, nodes[i % 2])
        await cluster.claim(f"local{i}", local)
        await cluster.claim(f"made{i}", made)
    stop = asyncio.Event()

    async def breaking() -> None:
        while not stop.is_set():
            relay.reset()
            await asyncio.wait([asyncio.create_task(stop.wait())], timeout=0.05)

    async with running(through(relay, own, cluster, tmp_path)), asyncio.TaskGroup() as tasks:
        tasks.create_task(breaking())
        for i in range(4):
            mounts = [(kind, {"claimName": f"{kind}{i}"}) for kind in ("local", "made")]
            await cluster.pod(f"p{i}", volumes=[{"name": k, "persistentVolumeClaim": claim} for k, claim in mounts])
        try:
            places = [await cluster.bound(f"p{i}") for i in range(4)]
        finally:
            stop.set()
    for i, place in enumerate(places):
        for name in (f"local{i}", f"made{i}"):
            claim = await cluster.send("GET", f"{cluster.claims}/{name}")
            volume = await cluster.send("GET", f"{VOLUMES}/{claim['spec']['volumeName']}")
            (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
            assert term["matchExpressions"][0]["values"] == [place]


async def test_a_pod_that_came_under_a_victims_name_is_not_deleted(
    relay: Relay, own: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """The first one goes, and the other comes, while the request to delete the first is on its way."""
    node, high = await cluster.node("only", cpu="1"), await cluster.priority("high", 1000)
    highest = await cluster.priority("highest", 2000)
    async with running(through(relay, own, cluster, tmp_path)) as app:
        await cluster.pod("low", cpu="800m")
        await cluster.bound("low")
        late = relay.hold(b"DELETE ")
        await cluster.pod("high", cpu="800m", priorityClassName=high)
        async with asyncio.timeout(PATIENCE):
            await late.wait()
        await cluster.delete(f"{cluster.pods}/low")
        await cluster.gone(cluster.pods, "low")
        other = await cluster.pod("low", cpu="800m", scheduler="somebody-else", priorityClassName=highest)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        await cluster.send("POST", f"{cluster.pods}/low/binding", {"metadata": {"name": "low"}, "target": target})
        relay.release(b"DELETE ")
        await cluster.until(cluster.pods, "high", lambda pod: nominated(pod) == "")
        assert app.registry.get_sample_value("ksp_evictions_total", {"outcome": "gone"}) == 1
    found = await cluster.send("GET", f"{cluster.pods}/low")
    assert found["metadata"]["uid"] == other["metadata"]["uid"]
    assert "deletionTimestamp" not in found["metadata"]
    assert condition(found, "DisruptionTarget") == {}
