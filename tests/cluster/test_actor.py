"""The actor does what the other tests rely on, on each server."""

from __future__ import annotations

from tests.cluster.conftest import Scheduling
from tests.cluster.view import Cluster


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
