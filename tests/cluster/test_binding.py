"""Pods get nodes, and are told when they do not: on any API server."""

from __future__ import annotations

from tests.cluster.conftest import Scheduling
from tests.cluster.view import LABEL, Cluster, scheduled


async def test_a_pod_is_bound_and_an_event_says_so(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("a")
    async with scheduling():
        await cluster.pod("web")
        assert await cluster.bound("web") == node
        event = await cluster.event("web", "Scheduled")
    assert event["message"] == f"Successfully assigned {cluster.namespace}/web to {node}"
    assert event["type"] == "Normal"
    pod = await cluster.send("GET", f"{cluster.pods}/web")
    assert scheduled(pod)["status"] == "True"


async def test_a_pod_that_waited_before_the_scheduler_started_is_bound(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    node = await cluster.node("a")
    await cluster.pod("early")
    async with scheduling():
        assert await cluster.bound("early") == node


async def test_a_pod_that_fits_nowhere_is_told_why_and_bound_when_a_node_comes(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    await cluster.node("small", cpu="1")
    async with scheduling():
        await cluster.pod("large", cpu="2")
        condition = await cluster.refused("large", "Insufficient cpu")
        assert condition["reason"] == "Unschedulable"
        event = await cluster.event("large", "FailedScheduling", "Insufficient cpu")
        assert event["type"] == "Warning"
        assert event["message"] == condition["message"]
        node = await cluster.node("large", cpu="4")
        assert await cluster.bound("large") == node


async def test_a_pod_waits_until_another_makes_room(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("only", cpu="1")
    async with scheduling():
        await cluster.pod("first", cpu="800m")
        await cluster.bound("first")
        await cluster.pod("second", cpu="800m")
        await cluster.refused("second", "Insufficient cpu")
        await cluster.delete(f"{cluster.pods}/first")
        assert await cluster.bound("second") == node


async def test_pods_of_another_scheduler_are_left_alone(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a")
    async with scheduling():
        await cluster.pod("theirs", scheduler="somebody-else")
        await cluster.pod("ours")
        await cluster.bound("ours")
        theirs = await cluster.send("GET", f"{cluster.pods}/theirs")
    assert "nodeName" not in theirs["spec"]
    assert scheduled(theirs) == {}


async def test_no_node_takes_more_than_it_has(cluster: Cluster, scheduling: Scheduling) -> None:
    nodes = [await cluster.node(name, cpu="1") for name in ("a", "b", "c")]
    async with scheduling():
        for i in range(10):
            await cluster.pod(f"p{i}", cpu="300m")
        for i in range(9):
            await cluster.until(cluster.pods, f"p{i}", lambda pod: bool(pod["spec"].get("nodeName") or scheduled(pod)))
        await cluster.refused("p9", "Insufficient cpu")
    listed = await cluster.send("GET", cluster.pods)
    places = [pod["spec"].get("nodeName") for pod in listed["items"]]
    assert sorted(filter(None, places)) == sorted(nodes * 3)


async def test_a_cordoned_node_takes_nothing_until_it_is_uncordoned(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("a")
    await cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    async with scheduling():
        await cluster.pod("web")
        await cluster.refused("web", "were unschedulable")
        await cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None, "taints": None}})
        assert await cluster.bound("web") == node


async def test_a_pod_goes_where_its_affinity_says(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a", zone="one")
    near = await cluster.node("b", zone="two")
    async with scheduling():
        await cluster.pod("first", nodeSelector={LABEL: cluster.token, "zone": "two"})
        assert await cluster.bound("first") == near
        term = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": "zone"}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await cluster.pod("second", affinity=affinity)
        assert await cluster.bound("second") == near


async def test_a_pod_made_anew_under_the_same_name_is_another_pod(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a", cpu="1")
    async with scheduling():
        await cluster.pod("web", cpu="2")
        await cluster.refused("web", "Insufficient cpu")
        await cluster.delete(f"{cluster.pods}/web")
        await cluster.pod("web", cpu="500m")
        await cluster.bound("web")
