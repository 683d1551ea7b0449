"""Two profiles in one scheduler: one queue, one cache, each pod by the rules of its own, on any API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.cluster.servers import Server
from tests.cluster.view import Cluster, Json

from ksp.policy.assemble import Policy, Settings, assemble
from ksp.policy.configuration import read_configuration
from ksp.policy.texts import PolicyTexts
from ksp.runtime.app import App, running
from ksp.runtime.options import Options

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: NAME-spread
- schedulerName: NAME-pack
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]}
"""
POLICY = """\
import "ksp:cluster-autoscaler.ksp"
provider Packs extends ClusterAutoscalerProvider { priorities { -SelectorSpreadPriority, -BalancedResourceAllocation } }
profile "NAME-spread" uses DefaultProvider { }
profile "NAME-pack" uses Packs { }
"""


def of_configuration(name: str) -> Policy:
    configuration = read_configuration(CONFIGURATION.replace("NAME", name), "config.yaml")
    texts = PolicyTexts(configuration.rules, {}, (configuration.rules,))
    return assemble(texts, Settings(configuration=configuration))


def of_policy(name: str) -> Policy:
    """Without the profile that it imports: there may be another scheduler for the pods that name none."""
    policy = assemble(PolicyTexts("two.ksp", {"two.ksp": POLICY.replace("NAME", name)}, ("two.ksp",)), Settings())
    return replace(policy, profiles=tuple(each for each in policy.profiles if each.scheduler_name.startswith(name)))


def told_by(event: Json) -> str:
    """Who speaks, in either version of events."""
    return str(event.get("reportingComponent") or event.get("source", {}).get("component"))


@pytest.mark.parametrize("policy_of", [of_configuration, of_policy])
async def test_each_pod_by_its_own_rules_and_all_in_one_cache(
    policy_of: Callable[[str], Policy], server: Server, cluster: Cluster
) -> None:
    nodes = {await cluster.node("a"), await cluster.node("b")}
    pack, spread = f"{cluster.scheduler}-pack", f"{cluster.scheduler}-spread"
    app = App(Options(policy_of(cluster.scheduler), str(server.kubeconfig), seed=1))
    async with running(app):
        await cluster.pod("first", cpu="500m", scheduler=pack)
        full = await cluster.bound("first")
        for name in ("second", "third"):
            await cluster.pod(name, cpu="500m", scheduler=pack)
            assert await cluster.bound(name) == full
        await cluster.pod("other", cpu="500m", scheduler=spread)
        assert {await cluster.bound("other")} == nodes - {full}
        for name, scheduler in (("third", pack), ("other", spread)):
            assert told_by(await cluster.event(name, "Scheduled")) == scheduler
        await cluster.pod("huge", cpu="64", scheduler=spread)
        await cluster.refused("huge", "Insufficient cpu")
        assert told_by(await cluster.event("huge", "FailedScheduling", "Insufficient cpu")) == spread
        assert app.scheduler.cache_size()["pods"] >= 4
        assert sum(app.scheduler.pending().values()) == 1
