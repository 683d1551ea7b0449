"""Pods of today that the rules of 1.19 do not know."""

from __future__ import annotations

import pytest
from tests.cluster.conftest import Scheduling
from tests.cluster.view import LABEL, Cluster, scheduled

from ksp.policy.unread import UnreadFields


def since(cluster: Cluster, minor: int) -> None:
    """Skips on a server that drops the field."""
    if cluster.minor < minor:
        pytest.skip(f"the field came with 1.{minor}")


def spread(cluster: Cluster, **more: object) -> dict[str, object]:
    selector = {"matchLabels": {LABEL: cluster.token}}
    return {"maxSkew": 1, "topologyKey": LABEL, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more}


async def test_a_hard_guarantee_that_the_policy_does_not_read_keeps_a_pod_pending(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    since(cluster, 27)
    await cluster.node("a")
    async with scheduling():
        await cluster.pod("picky", topologySpreadConstraints=[spread(cluster, minDomains=2)])
        condition = await cluster.refused("picky", "minDomains")
        assert condition["reason"] == "Unschedulable"
        await cluster.event("picky", "FailedScheduling", "minDomains")
        await cluster.pod("plain")
        await cluster.bound("plain")
    picky = await cluster.send("GET", f"{cluster.pods}/picky")
    assert "nodeName" not in picky["spec"]


async def test_resource_claims_keep_a_pod_pending(cluster: Cluster, scheduling: Scheduling) -> None:
    since(cluster, 34)
    await cluster.node("a")
    async with scheduling():
        await cluster.pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "any"}])
        await cluster.refused("claims", "spec.resourceClaims")


async def test_asked_to_warn_it_binds_the_pod_and_says_what_it_left_out(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    since(cluster, 27)
    await cluster.node("a")
    async with scheduling(unread_fields=UnreadFields.WARN):
        await cluster.pod("picky", topologySpreadConstraints=[spread(cluster, minDomains=2)])
        await cluster.bound("picky")
        event = await cluster.event("picky", "UnreadField", "minDomains")
    assert event["type"] == "Warning"


async def test_a_gated_pod_is_left_alone_until_its_last_gate_is_gone(cluster: Cluster, scheduling: Scheduling) -> None:
    since(cluster, 27)
    node = await cluster.node("a")
    async with scheduling():
        await cluster.pod("gated", schedulingGates=[{"name": "example.com/one"}, {"name": "example.com/two"}])
        await cluster.pod("free")
        await cluster.bound("free")
        await cluster.patch(f"{cluster.pods}/gated", {"spec": {"schedulingGates": [{"name": "example.com/two"}]}})
        await cluster.pod("after")
        await cluster.bound("after")
        gated = await cluster.send("GET", f"{cluster.pods}/gated")
        assert scheduled(gated).get("reason") == "SchedulingGated"
        assert "nodeName" not in gated["spec"]
        await cluster.patch(f"{cluster.pods}/gated", {"spec": {"schedulingGates": None}})
        assert await cluster.bound("gated") == node


async def test_sidecars_count_as_requests(cluster: Cluster, scheduling: Scheduling) -> None:
    since(cluster, 29)
    await cluster.node("a", cpu="1")
    sidecar = {"name": "side", "image": "none", "restartPolicy": "Always", "resources": {"requests": {"cpu": "700m"}}}
    async with scheduling():
        await cluster.pod("two", cpu="700m", initContainers=[sidecar])
        await cluster.refused("two", "Insufficient cpu")
        await cluster.pod("one", cpu="200m", initContainers=[sidecar])
        await cluster.bound("one")
