"""Pods of low priority go for the sake of others: on any API server."""

from __future__ import annotations

from tests.cluster.conftest import Scheduling
from tests.cluster.view import Cluster, Json, condition, nominated


async def test_a_pod_takes_the_place_of_one_of_lower_priority(cluster: Cluster, scheduling: Scheduling) -> None:
    node, high = await cluster.node("only", cpu="1"), await cluster.priority("high", 1000)
    async with scheduling():
        await settled(cluster, "low")
        uid = (await cluster.pod("high", cpu="800m", priorityClassName=high))["metadata"]["uid"]
        assert await cluster.nominated("high") == node
        victim = await cluster.until(cluster.pods, "low", goes)
        told = condition(victim, "DisruptionTarget")
        event = await cluster.event("low", "Preempted")
        waiting = await cluster.refused("high", "Insufficient cpu")
        await cluster.let_go("low")
        assert await cluster.bound("high") == node
    if cluster.minor < 26:
        assert told == {}
    else:
        assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
        assert told["message"] == f"{cluster.scheduler}: preempting to accommodate a higher priority pod"
    assert event["type"] == "Normal"
    assert event["message"] == f"Preempted by pod {uid} on node {node}"
    assert waiting["reason"] == "Unschedulable"


async def test_a_protected_pod_is_spared_and_goes_only_if_it_must(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("only", cpu="1")
    high, highest = await cluster.priority("high", 1000), await cluster.priority("highest", 2000)
    async with scheduling():
        for name in ("guarded", "plain"):
            await settled(cluster, name, cpu="400m")
        await cluster.budget("keep", {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}})
        await cluster.pod("high", cpu="500m", priorityClassName=high)
        await cluster.until(cluster.pods, "plain", goes)
        await cluster.let_go("plain")
        assert await cluster.bound("high") == node
        assert not goes(await cluster.send("GET", f"{cluster.pods}/guarded"))
        by = (await cluster.pod("highest", cpu="1", priorityClassName=highest))["metadata"]["uid"]
        await cluster.event("guarded", "Preempted", by)
        await cluster.event("high", "Preempted", by)
        await cluster.let_go("guarded")
        assert await cluster.bound("highest") == node


async def test_of_two_nodes_the_one_without_a_protected_pod_is_taken(cluster: Cluster, scheduling: Scheduling) -> None:
    for name in ("a", "b"):
        await cluster.node(name, cpu="1")
    high = await cluster.priority("high", 1000)
    async with scheduling():
        places = {name: await settled(cluster, name) for name in ("guarded", "plain")}
        await cluster.budget("keep", {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}})
        await cluster.pod("high", cpu="800m", priorityClassName=high)
        assert await cluster.nominated("high") == places["plain"]
        await cluster.until(cluster.pods, "plain", goes)
        await cluster.let_go("plain")
        assert await cluster.bound("high") == places["plain"]
    assert not goes(await cluster.send("GET", f"{cluster.pods}/guarded"))


async def test_a_pod_that_may_not_preempt_waits_until_there_is_room(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("only", cpu="1")
    polite = await cluster.priority("polite", 1000, preemptionPolicy="Never")
    async with scheduling():
        await settled(cluster, "low")
        await cluster.pod("polite", cpu="800m", priorityClassName=polite)
        await cluster.refused("polite", "Insufficient cpu")
        await cluster.pod("small", cpu="100m")
        await cluster.bound("small")
        assert not goes(await cluster.send("GET", f"{cluster.pods}/low"))
        assert nominated(await cluster.send("GET", f"{cluster.pods}/polite")) == ""
        await cluster.delete(f"{cluster.pods}/low")
        await cluster.let_go("low")
        assert await cluster.bound("polite") == node


async def test_a_pod_that_waits_for_a_node_which_goes_away_preempts_elsewhere(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    nodes = {await cluster.node(name, cpu="1") for name in ("a", "b")}
    high = await cluster.priority("high", 1000)
    async with scheduling():
        on = {await settled(cluster, name): name for name in ("one", "two")}
        await cluster.pod("high", cpu="800m", priorityClassName=high)
        lost = await cluster.nominated("high")
        (left,) = nodes - {lost}
        await cluster.until(cluster.pods, on[lost], goes)
        await cluster.delete(f"/api/v1/nodes/{lost}")
        await cluster.until(cluster.pods, "high", lambda pod: nominated(pod) == left)
        await cluster.until(cluster.pods, on[left], goes)
        await cluster.let_go(on[left])
        assert await cluster.bound("high") == left


async def test_a_pod_that_waits_for_a_node_which_goes_away_finds_a_free_one(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    only, high = await cluster.node("only", cpu="1"), await cluster.priority("high", 1000)
    async with scheduling():
        await settled(cluster, "low")
        await cluster.pod("high", cpu="800m", priorityClassName=high, nodeSelector={"role": "work"})
        await cluster.refused("high", "Insufficient cpu")  # and no place of others would help
        await cluster.patch(f"/api/v1/nodes/{only}", {"metadata": {"labels": {"role": "work"}}})
        assert await cluster.nominated("high") == only
        free = await cluster.node("free", cpu="1")
        await cluster.delete(f"/api/v1/nodes/{only}")
        await cluster.until(cluster.pods, "high", lambda pod: nominated(pod) == "")
        await cluster.patch(f"/api/v1/nodes/{free}", {"metadata": {"labels": {"role": "work"}}})
        assert await cluster.bound("high") == free


async def test_a_less_important_pod_loses_the_node_that_it_waited_for(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("only", cpu="1")
    middle, high = await cluster.priority("middle", 500), await cluster.priority("high", 1000)
    async with scheduling():
        await settled(cluster, "low")
        await cluster.pod("middle", cpu="800m", priorityClassName=middle)
        assert await cluster.nominated("middle") == node
        await cluster.until(cluster.pods, "low", goes)
        await cluster.pod("high", cpu="800m", priorityClassName=high)
        assert await cluster.nominated("high") == node
        await cluster.until(cluster.pods, "middle", lambda pod: nominated(pod) == "")
        await cluster.let_go("low")
        assert await cluster.bound("high") == node
        middles = await cluster.send("GET", f"{cluster.pods}/middle")
    assert "nodeName" not in middles["spec"]


async def test_a_pod_that_waited_when_the_scheduler_stopped_is_bound_by_the_next_one(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    node, high = await cluster.node("only", cpu="1"), await cluster.priority("high", 1000)
    async with scheduling():
        await settled(cluster, "low")
        await cluster.pod("high", cpu="800m", priorityClassName=high)
        assert await cluster.nominated("high") == node
        await cluster.until(cluster.pods, "low", goes)
    async with scheduling():
        await cluster.pod("middle", cpu="800m", priorityClassName=await cluster.priority("middle", 500))
        await cluster.refused("middle", "Insufficient cpu")
        await cluster.let_go("low")
        assert await cluster.bound("high") == node
    assert "nodeName" not in (await cluster.send("GET", f"{cluster.pods}/middle"))["spec"]


async def settled(cluster: Cluster, name: str, *, cpu: str = "800m") -> str:
    """A pod of no priority, which runs, and which stays when it is deleted; its node."""
    await cluster.pod(name, cpu=cpu)
    pod = await cluster.until(cluster.pods, name, lambda pod: pod["status"].get("phase") == "Running")
    await cluster.lasts(name)
    node: str = pod["spec"]["nodeName"]
    return node


def goes(pod: Json) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]
