"""The policy changes while the scheduler runs: over HTTP, and where it is in a ConfigMap with a child that tries it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.cluster.brisk import BriskTimers
from tests.cluster.reloads import BROKEN, Bindings, app_of, mounted, rules, until, written
from tests.cluster.servers import Server
from tests.cluster.view import Cluster
from tests.unit.runtime.reload.driving import Vetter

from ksp.kube.errors import ConfigError
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.runtime.reload import reloading
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.sources import FileSource, FolderSource


async def config_map(cluster: Cluster, data: dict[str, str], *, name: str = "policy") -> None:
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    await cluster.send("POST", path, {"metadata": {"name": name}, "data": data})


def of_config_map(cluster: Cluster, server: Server, **options: object) -> App:
    source = ConfigMapSource("policy", cluster.namespace)
    given: dict[str, object] = {"port": None, "seed": 1, "source": source} | options
    return App(Options(None, str(server.kubeconfig), **given), timers=BriskTimers(), environ={})  # type: ignore[arg-type]


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child tries policies, which takes a second for each."""
    monkeypatch.setattr(reloading, "Child", lambda *_: Vetter())


# ---- a ConfigMap


async def test_a_config_map_is_followed_and_its_events_say_what_became_of_it(
    cluster: Cluster, server: Server, once: None
) -> None:
    node = await cluster.node("a")
    await config_map(cluster, {"rooms.ksp": rules(cluster.scheduler)})
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps/policy"
    async with running(of_config_map(cluster, server)) as app:
        await cluster.pod("first")
        assert await cluster.bound("first") == node
        await cluster.patch(path, {"data": {"rooms.ksp": BROKEN}})
        failed = await cluster.event("policy", "PolicyReloadFailed", "nod")
        assert (failed["type"], failed["involvedObject"]["kind"]) == ("Warning", "ConfigMap")
        assert "generation 1 stays" in failed["message"]
        await cluster.pod("second")
        assert await cluster.bound("second") == node
        await cluster.patch(path, {"data": {"rooms.ksp": rules(cluster.scheduler, where='node.name == "b"')}})
        reloaded = await cluster.event("policy", "PolicyReloaded")
        assert reloaded["type"] == "Normal"
        assert app.scheduler.generation.number == app.status.status.generation == 2
        await cluster.pod("third")
        await cluster.refused("third", "not there")
        await cluster.delete(path)
        await cluster.event("policy", "PolicyReloadFailed", "there is no ConfigMap")
        assert app.scheduler.generation.number == 2


async def test_without_the_config_map_it_does_not_start_and_says_what_to_create(
    cluster: Cluster, server: Server
) -> None:
    with pytest.raises(ConfigError, match=rf"there is no ConfigMap {cluster.namespace}/policy: create it"):
        async with running(of_config_map(cluster, server)):
            pass


async def test_a_config_map_with_errors_does_not_start_it(cluster: Cluster, server: Server) -> None:
    await config_map(cluster, {"a.ksp": BROKEN})
    with pytest.raises(ConfigError, match=r"(?s)cannot be used.*KSP0202.*policy/a.ksp:2"):
        async with running(of_config_map(cluster, server)):
            pass


# ---- files


async def test_a_mounted_config_map_is_read_again_when_its_link_is_swapped(
    cluster: Cluster, server: Server, once: None, untried: None, tmp_path: Path
) -> None:
    folder = tmp_path / "policies"
    mounted(folder, 1, {"rooms.ksp": rules(cluster.scheduler)})
    async with running(app_of(FolderSource(str(folder)), server.kubeconfig)) as app:
        mounted(folder, 2, {"rooms.ksp": rules(cluster.scheduler, where="false")})
        await until(app, lambda app: app.status.status.generation == 2)
        await cluster.node("a")
        await cluster.pod("web")
        await cluster.refused("web", "not there")


async def test_pods_of_a_profile_that_is_gone_are_told_and_those_of_a_new_one_are_bound(
    cluster: Cluster, server: Server, once: None, untried: None, tmp_path: Path
) -> None:
    file = tmp_path / "policy.ksp"
    file.write_text(rules("old", where="false"))
    node = await cluster.node("a")
    async with running(app_of(FileSource(str(file)), server.kubeconfig)) as app:
        await cluster.pod("leaves", scheduler="old")
        await cluster.pod("comes", scheduler="new")
        await cluster.refused("leaves", "not there")
        written(file, rules("new"))
        assert await cluster.bound("comes") == node
        event = await cluster.event("leaves", "ProfileRemoved")
        assert event["type"] == "Warning"
        assert app.scheduler.pending() == dict.fromkeys(app.scheduler.pending(), 0)


async def test_a_policy_under_which_nothing_fits_goes_back_by_itself(
    cluster: Cluster, server: Server, once: None, untried: None, tmp_path: Path
) -> None:
    file, node = tmp_path / "policy.ksp", await cluster.node("a")
    file.write_text(rules(cluster.scheduler))
    async with running(app_of(FileSource(str(file)), server.kubeconfig, max_denied_ratio=0.5)) as app:
        written(file, rules(cluster.scheduler, where="false"))
        await until(app, lambda app: app.status.status.generation == 2)
        for number in range(6):
            await cluster.pod(f"pod-{number}")
        for number in range(6):
            assert await cluster.bound(f"pod-{number}") == node
        assert app.status.status.generation == 3
        assert app.status.status.rollbacks == 1
        assert app.status.status.failure is not None
        assert "denied" in app.status.status.failure.message


async def test_a_kind_that_the_new_policy_reads_is_known_before_it_decides(
    cluster: Cluster, server: Server, once: None, untried: None, tmp_path: Path
) -> None:
    file, node = tmp_path / "policy.ksp", await cluster.node("a")
    file.write_text(rules(cluster.scheduler, where="false"))
    async with running(app_of(FileSource(str(file)), server.kubeconfig)):
        await cluster.pod("web")
        await cluster.refused("web", "not there")
        seen = f'"{cluster.namespace}" in cluster.namespaces'
        written(file, rules(cluster.scheduler, where=seen))
        assert await cluster.bound("web") == node


# ---- under load

PODS = 60
CHANGES = 3


async def test_no_pod_is_lost_while_the_policy_changes_again_and_again(
    cluster: Cluster, server: Server, once: None, untried: None, tmp_path: Path
) -> None:
    file = tmp_path / "policy.ksp"
    file.write_text(rules(cluster.scheduler, where="false"))
    nodes = [await cluster.node(f"n{number}", cpu="64", pods="500") for number in range(4)]
    names, seen = [f"pod-{number}" for number in range(PODS)], Bindings()
    async with running(app_of(FileSource(str(file)), server.kubeconfig, observers=[seen])) as app:
        for name in names:
            await cluster.pod(name, cpu="10m")
        for change in range(2, CHANGES):
            some = f'node.name == "{nodes[change % 4]}" && pod.name.endsWith("{change}")'
            written(file, rules(cluster.scheduler, where=some))
            await until(app, lambda app, wanted=change: app.status.status.generation == wanted)  # type: ignore[misc]
        written(file, BROKEN)
        await until(app, lambda app: app.status.status.failure is not None)
        assert app.status.status.generation == CHANGES - 1
        written(file, rules(cluster.scheduler))
        await until(app, lambda app: app.status.status.generation == CHANGES)
        placed = [await cluster.bound(name) for name in names]
    assert set(placed) == set(nodes)
    assert seen.times == Counter(names)
    assert seen.faults == []
