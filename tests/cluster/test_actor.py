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
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await cluster.send("POST", path, {"metadata": {"name": "keep"}, "spec": spec})
    async with scheduling():
        await cluster.pod("web")
        await cluster.until(path, "keep", lambda budget: budget["status"].get("currentHealthy") == 1)
    budget = await cluster.send("GET", f"{path}/keep")
    assert budget["status"]["disruptionsAllowed"] == 0
