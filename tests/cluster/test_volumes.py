"""Pods get nodes where their claims find volumes, and these are bound before: on any API server."""

from __future__ import annotations

import pytest
from tests.cluster.conftest import Scheduling
from tests.cluster.view import LABEL, SELECTED_NODE, VOLUMES, Cluster, Json, scheduled, selected_node

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NOTHING_FOUND = "node(s) didn't find available persistent volumes to bind"


def is_bound(claim: Json) -> bool:
    return bool(claim["status"].get("phase") == "Bound")


async def test_a_claim_that_waits_gets_a_volume_where_the_pod_goes(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a")
    node = await cluster.node("b")
    local = await cluster.storage_class("local", provisioner=NO_PROVISIONER)
    volume = await cluster.volume("disk", local, node)
    claim = await cluster.claim("data", local)
    async with scheduling():
        await cluster.pod_with("data", "db")
        assert await cluster.bound("db") == node
    bound = await cluster.until(cluster.claims, "data", is_bound)
    assert bound["spec"]["volumeName"] == volume
    found = await cluster.send("GET", f"{VOLUMES}/{volume}")
    assert found["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert found["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert selected_node(bound) == ""


async def test_a_claim_that_waits_has_a_volume_made_for_the_pods_node(cluster: Cluster, scheduling: Scheduling) -> None:
    await cluster.node("a", cpu="1")
    node = await cluster.node("b", cpu="4")
    made = await cluster.storage_class("made")
    await cluster.claim("data", made)
    async with scheduling():
        await cluster.pod_with("data", "db", cpu="2")
        assert await cluster.bound("db") == node
        await cluster.event("db", "Scheduled")
        claim = await cluster.send("GET", f"{cluster.claims}/data")
        assert selected_node(claim) == node
        volume = await cluster.send("GET", f"{VOLUMES}/{claim['spec']['volumeName']}")
        assert volume["spec"]["storageClassName"] == made
        assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]


async def test_of_two_pods_and_one_volume_the_second_waits_for_another(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    node = await cluster.node("a")
    local = await cluster.storage_class("local", provisioner=NO_PROVISIONER)
    first = await cluster.volume("first", local, node)
    for name in ("c1", "c2"):
        await cluster.claim(name, local)
    async with scheduling():
        await cluster.pod_with("c1", "p1")
        await cluster.pod_with("c2", "p2")
        for name in ("p1", "p2"):
            await cluster.until(cluster.pods, name, lambda pod: bool(pod["spec"].get("nodeName") or scheduled(pod)))
        pods = {name: await cluster.send("GET", f"{cluster.pods}/{name}") for name in ("p1", "p2")}
        loser, claim = ("p1", "c1") if "nodeName" not in pods["p1"]["spec"] else ("p2", "c2")
        await cluster.refused(loser, NOTHING_FOUND)
        second = await cluster.volume("second", local, node)
        assert await cluster.bound(loser) == node
    bound = await cluster.until(cluster.claims, claim, is_bound)
    assert bound["spec"]["volumeName"] == second
    assert (await cluster.send("GET", f"{VOLUMES}/{first}"))["spec"]["claimRef"]["name"] != claim


async def test_two_pods_that_share_a_claim_go_where_its_volume_is(cluster: Cluster, scheduling: Scheduling) -> None:
    nodes = [await cluster.node(name) for name in ("a", "b", "c")]
    await cluster.claim("data", await cluster.storage_class("made"))
    async with scheduling():
        for name in ("p1", "p2", "p3"):
            await cluster.pod_with("data", name)
        places = {await cluster.bound(name) for name in ("p1", "p2", "p3")}
    assert len(places) == 1
    assert places <= set(nodes)


async def test_a_volume_that_cannot_be_made_is_tried_again(cluster: Cluster, scheduling: Scheduling) -> None:
    """A provisioner that fails takes the annotation away: the scheduler is to choose anew."""
    node = await cluster.node("a")
    slow = await cluster.storage_class("by-hand", acted=False)
    await cluster.claim("data", slow)
    async with scheduling():
        await cluster.pod_with("data", "db")
        await cluster.until(cluster.claims, "data", lambda claim: selected_node(claim) == node)
        await cluster.patch(f"{cluster.claims}/data", {"metadata": {"annotations": {SELECTED_NODE: None}}})
        event = await cluster.event("db", "FailedScheduling", 'for PVC "data"')
        assert event["type"] == "Warning"
        assert (await cluster.refused("db", 'for PVC "data"'))["reason"] == "SchedulerError"
        await cluster.until(cluster.claims, "data", lambda claim: selected_node(claim) == node)
        await cluster.volume("late", slow, node, claim="data")
        assert await cluster.bound("db") == node


async def test_volumes_that_are_not_bound_in_time_are_given_up_and_tried_again(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    node = await cluster.node("a")
    slow = await cluster.storage_class("by-hand", acted=False)
    await cluster.claim("data", slow)
    async with scheduling(bind_timeout=1):
        await cluster.pod_with("data", "db")
        event = await cluster.event("db", "FailedScheduling", "timed out waiting for the condition")
        assert event["message"].startswith('error while running "VolumeBinding" prebind plugin for pod "db":')
        assert selected_node(await cluster.send("GET", f"{cluster.claims}/data")) == node
        await cluster.volume("late", slow, node, claim="data")
        assert await cluster.bound("db") == node


async def test_a_pod_that_goes_while_it_waits_for_volumes_gives_its_place_back(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    node = await cluster.node("a", cpu="1")
    await cluster.claim("data", await cluster.storage_class("by-hand", acted=False))
    async with scheduling():
        await cluster.pod_with("data", "db", cpu="800m")
        await cluster.until(cluster.claims, "data", lambda claim: selected_node(claim) == node)
        await cluster.pod("web", cpu="800m")
        await cluster.refused("web", "Insufficient cpu")
        await cluster.delete(f"{cluster.pods}/db")
        assert await cluster.bound("web") == node


async def test_a_pod_waits_until_its_claim_is_there_and_bound(cluster: Cluster, scheduling: Scheduling) -> None:
    """A class that does not wait: the claim has to be bound first, by others. Takes two backoffs, 1 s and 2 s."""
    node = await cluster.node("a")
    await cluster.node("b")
    at_once = await cluster.storage_class("at-once", mode="Immediate", acted=False)
    async with scheduling():
        await cluster.pod_with("data", "db")
        await cluster.refused("db", 'persistentvolumeclaim "data" not found')
        await cluster.claim("data", at_once)
        await cluster.refused("db", "pod has unbound immediate PersistentVolumeClaims")
        await cluster.volume("disk", at_once, node, claim="data")
        assert await cluster.bound("db") == node


async def test_an_immediate_claim_is_bound_without_a_pod(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("a")
    await cluster.node("b")
    at_once = await cluster.storage_class("at-once", provisioner=NO_PROVISIONER, mode="Immediate")
    await cluster.claim("data", at_once)
    volume = await cluster.volume("disk", at_once, node)
    assert (await cluster.until(cluster.claims, "data", is_bound))["spec"]["volumeName"] == volume
    async with scheduling():
        await cluster.pod_with("data", "db")
        assert await cluster.bound("db") == node


async def test_an_ephemeral_volume_is_made_for_its_pod_and_goes_with_it(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    if cluster.minor < 21:
        pytest.skip("generic ephemeral volumes came with 1.21")
    node = await cluster.node("a")
    made = await cluster.storage_class("made")
    spec = {"storageClassName": made, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    async with scheduling():
        pod = await cluster.pod("job", volumes=[scratch])
        assert await cluster.bound("job") == node
        claim = await cluster.until(cluster.claims, "job-scratch", is_bound)
        assert claim["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
        await cluster.delete(f"{cluster.pods}/job")
        await cluster.gone(cluster.claims, "job-scratch")
        await cluster.gone(VOLUMES, claim["spec"]["volumeName"])


async def test_a_claim_that_is_not_the_pods_own_is_not_taken_for_its_ephemeral_volume(
    cluster: Cluster, scheduling: Scheduling
) -> None:
    if cluster.minor < 21:
        pytest.skip("generic ephemeral volumes came with 1.21")
    await cluster.node("a")
    made = await cluster.storage_class("made")
    await cluster.claim("job-scratch", made)
    spec = {"storageClassName": made, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    async with scheduling():
        await cluster.pod("job", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}])
        await cluster.refused("job", "was not created for pod")


async def test_a_claim_for_one_pod_is_used_by_one_at_a_time(cluster: Cluster, scheduling: Scheduling) -> None:
    if cluster.minor < 27:
        pytest.skip("ReadWriteOncePod is on by default since 1.27")
    node = await cluster.node("a")
    made = await cluster.storage_class("made")
    await cluster.claim("data", made, mode="ReadWriteOncePod")
    async with scheduling():
        await cluster.pod_with("data", "first")
        assert await cluster.bound("first") == node
        await cluster.pod_with("data", "second", nodeSelector={LABEL: cluster.token})
        await cluster.refused("second", "ReadWriteOncePod access mode")
        await cluster.delete(f"{cluster.pods}/first")
        assert await cluster.bound("second") == node
