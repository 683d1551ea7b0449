"""Two schedulers, one of which leads. The time of the lease is the test's own, so nothing waits for it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.policies import default_policy
from tests.cluster.relay import Relay
from tests.cluster.servers import Server
from tests.cluster.view import PATIENCE, Cluster
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.leader_election.elector import LeadershipLostError
from ksp.policy.configuration.leader_election import LeaderElection
from ksp.runtime.app import App, running
from ksp.runtime.options import Options

STEP = 0.5
ROUNDS = 4
"""Requests to the server between two steps of the time, so that those of others come and go."""


def candidate(cluster: Cluster, kubeconfig: Path, name: str, timers: VirtualTimers) -> App:
    election = LeaderElection(resource_name="ksp", resource_namespace=cluster.namespace)
    options = Options(
        default_policy(cluster.scheduler), str(kubeconfig), seed=1, leader_election=election, identity=name,
        flush_seconds=0.5,
    )  # fmt: skip
    return App(options, election_timers=timers)


async def pass_until(timers: VirtualTimers, cluster: Cluster, done: Callable[[], bool]) -> float:
    """Lets the time of the lease go on; how many of its seconds passed."""
    began = timers.now()
    async with asyncio.timeout(PATIENCE):
        while not done():
            await timers.advance(STEP)
            for _ in range(ROUNDS):
                await cluster.client.request("GET", "/version")
    return timers.now() - began


async def holder_of(cluster: Cluster) -> tuple[str, int]:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{cluster.namespace}/leases/ksp"
    spec = json.loads((await cluster.client.request("GET", path)).body)["spec"]
    return spec["holderIdentity"], spec["leaseTransitions"]


async def pods_by_node(cluster: Cluster) -> Counter[str]:
    items = json.loads((await cluster.client.request("GET", cluster.pods)).body)["items"]
    return Counter(pod["spec"].get("nodeName", "") for pod in items)


async def test_the_standby_takes_over_after_a_crash_and_no_pod_is_lost_or_bound_twice(
    server: Server, cluster: Cluster
) -> None:
    timers = VirtualTimers()
    nodes = [await cluster.node(name, cpu="4") for name in ("a", "b")]
    first, second = (candidate(cluster, server.kubeconfig, name, timers) for name in ("first", "second"))
    leading = asyncio.create_task(first.run(asyncio.Event()))
    await asyncio.wait_for(first.leading.wait(), PATIENCE)
    async with running(second):
        names = [f"p{number}" for number in range(8)]
        for name in names:
            await cluster.pod(name, cpu="1")
            if name == "p3":
                await cluster.bound("p0")
                leading.cancel()  # with whatever it had begun
                await asyncio.gather(leading, return_exceptions=True)
        assert not second.leading.is_set()
        assert await holder_of(cluster) == ("first", 0)
        assert 15 <= await pass_until(timers, cluster, second.leading.is_set) <= 15 + 2 * 2 + 2
        for name in names:
            await cluster.bound(name)
        assert await holder_of(cluster) == ("second", 1)
    assert await pods_by_node(cluster) == Counter(dict.fromkeys(nodes, 4))
    assert await holder_of(cluster) == ("", 1)


async def test_a_scheduler_that_is_stopped_hands_over_at_once(server: Server, cluster: Cluster) -> None:
    timers = VirtualTimers()
    await cluster.node("a")
    second = candidate(cluster, server.kubeconfig, "second", timers)
    async with running(candidate(cluster, server.kubeconfig, "first", timers)) as first:
        await asyncio.wait_for(first.leading.wait(), PATIENCE)
        standby = asyncio.create_task(second.run(stop := asyncio.Event()))
        await asyncio.wait_for(second.ready.wait(), PATIENCE)
        await cluster.pod("one")
        await cluster.bound("one")
    assert await pass_until(timers, cluster, second.leading.is_set) <= 2 * 2.2 + 1
    await cluster.pod("two")
    await cluster.bound("two")
    events = await cluster.client.request("GET", f"/api/v1/namespaces/{cluster.namespace}/events")
    told = {event["message"] for event in json.loads(events.body)["items"] if event["reason"] == "LeaderElection"}
    assert {"first became leader", "first stopped leading"} <= told
    stop.set()
    async with asyncio.timeout(PATIENCE):
        await standby


async def test_who_has_lost_the_lease_ends_and_writes_nothing_more(
    server: Server, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if server.embedded is None:
        pytest.skip("the relay speaks to the embedded server")
    monkeypatch.setattr("ksp.runtime.app.LAST_WORDS", 0.1)  # the relay holds them too
    timers = VirtualTimers()
    await cluster.node("a")
    async with Relay(server.embedded.port).running() as relay:
        kubeconfig = server.embedded.kubeconfig()
        kubeconfig["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{relay.port}"
        relayed = tmp_path / "relayed"
        relayed.write_text(json.dumps(kubeconfig))
        first = candidate(cluster, relayed, "first", timers)
        second = candidate(cluster, server.kubeconfig, "second", timers)
        leading = asyncio.create_task(first.run(asyncio.Event()))
        await asyncio.wait_for(first.leading.wait(), PATIENCE)
        async with running(second):
            held = {verb: relay.hold(verb) for verb in (b"PUT", b"GET", b"POST")}  # nothing of the leader gets through
            await cluster.pod("web")
            await asyncio.wait_for(held[b"POST"].wait(), PATIENCE)
            assert await pass_until(timers, cluster, lambda: not first._leadership.leads()) <= 10 + STEP
            with pytest.raises(LeadershipLostError, match="leaderelection lost: the lease could not be renewed for 10"):
                await leading
            assert not second.leading.is_set()
            for verb in held:
                relay.release(verb)
            await pass_until(timers, cluster, second.leading.is_set)
            await cluster.bound("web")
            assert await holder_of(cluster) == ("second", 1)
