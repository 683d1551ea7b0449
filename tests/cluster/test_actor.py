"""The actor does what the other tests rely on, on each server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.cluster.conftest import Scheduling
from tests.cluster.view import VOLUMES, Cluster, Json


async def test_a_bound_pod_runs_and_a_deleted_one_goes(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a")
    async with scheduling():
        await cluster.pod("web")
        await cluster.until(cluster.pods, "web", lambda pod: pod["status"].get("phase") == "Running")
        await cluster.send("DELETE", f"{cluster.pods}/web", {"gracePeriodSeconds": 30})
        await cluster.gone(cluster.pods, "web")


async def test_a_budget_gets_its_status(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a")
    path = f"{cluster.budgets}/namespaces/{cluster.namespace}/poddisruptionbudgets"
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}
    for name, spec in (("keep", {"minAvailable": "50%"}), ("spare", {"maxUnavailable": 1})):
        await cluster.send("POST", path, {"metadata": {"name": name}, "spec": spec | {"selector": selector}})
    async with scheduling():
        await cluster.pod("web")
        await cluster.pod("other")
        for name, allowed in (("keep", 0), ("spare", 1)):
            status = (await cluster.until(path, name, lambda budget: budget["status"].get("currentHealthy") == 1))[
                "status"
            ]
            assert (status["expectedPods"], status["disruptionsAllowed"]) == (1, allowed)


def phase(wanted: str) -> Callable[[Json], bool]:
    return lambda found: bool(found["status"].get("phase") == wanted)


async def test_a_claim_that_waits_for_no_pod_has_a_volume_made_that_goes_with_it(cluster: Cluster) -> None:
    made = await cluster.storage_class("made", mode="Immediate")
    await cluster.claim("data", made)
    claim = await cluster.until(cluster.claims, "data", phase("Bound"))
    volume = await cluster.until(VOLUMES, claim["spec"]["volumeName"], phase("Bound"))
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert "nodeAffinity" not in volume["spec"]
    await cluster.delete(f"{cluster.claims}/data")
    await cluster.gone(cluster.claims, "data")
    await cluster.gone(VOLUMES, volume["metadata"]["name"])


async def test_a_volume_that_was_there_before_its_claim_is_kept_and_nobody_gets_it(cluster: Cluster) -> None:
    local = await cluster.storage_class("local", provisioner="kubernetes.io/no-provisioner", mode="Immediate")
    volume = await cluster.volume("disk", local, "nowhere", claim="data")
    await cluster.claim("data", local)
    await cluster.until(cluster.claims, "data", phase("Bound"))
    await cluster.delete(f"{cluster.claims}/data")
    await cluster.until(VOLUMES, volume, phase("Released"))
    await cluster.gone(cluster.claims, "data")
    await cluster.claim("next", local)
    second = await cluster.volume("second", local, "nowhere")
    claim = await cluster.until(cluster.claims, "next", phase("Bound"))
    assert claim["spec"]["volumeName"] == second


async def test_a_claim_that_a_pod_uses_goes_after_it(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a")
    await cluster.claim("data", await cluster.storage_class("made"))
    async with scheduling():
        await cluster.pod_with("data", "db")
        await cluster.bound("db")
        await cluster.delete(f"{cluster.claims}/data")
        claim = await cluster.send("GET", f"{cluster.claims}/data")
        assert "deletionTimestamp" in claim["metadata"]
        await cluster.delete(f"{cluster.pods}/db")
        await cluster.gone(cluster.claims, "data")


async def test_an_ephemeral_volume_whose_claim_the_server_refuses_holds_up_no_other_pod(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    if cluster.minor < 21:
        pytest.skip("generic ephemeral volumes came with 1.21")
    await cluster.node("a")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    wanted = {"volumes": [scratch], "containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"}
    long = "a" * 250  # with the volume's name it is too long for a claim
    await cluster.send("POST", cluster.pods, {"metadata": {"name": long}, "spec": wanted})
    async with scheduling():
        await cluster.pod("web")
        await cluster.until(cluster.pods, "web", lambda pod: pod["status"].get("phase") == "Running")
