"""A reload changes who is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cluster.brisk import BriskTimers
from tests.cluster.reloads import until, written
from tests.cluster.servers import Server
from tests.cluster.test_extenders import FEW_RULES, names, only
from tests.cluster.view import Cluster
from tests.unit.kube.extender_server import ExtenderServer, extending

from ksp.policy.assemble import Settings, assemble
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.runtime.reload import reloading
from ksp.runtime.reload.child import Child
from ksp.runtime.reload.sources import LegacyFileSource
from ksp.runtime.reload.verdict import Trial, Verdict


def policy_text(*servers: ExtenderServer) -> str:
    """A Policy with these extenders, which filter."""
    extenders = [{"urlPrefix": each.url, "filterVerb": "filter", "httpTimeout": 20_000_000_000} for each in servers]
    return json.dumps({"kind": "Policy", "apiVersion": "v1", **FEW_RULES, "extenders": extenders})


class Trusting(Child):
    """Tries no policy: `test_reload.py` shows the process that does, which takes a second to start."""

    async def vet(self, trial: Trial) -> Verdict:
        return Verdict(ok=True)


async def test_a_reload_brings_an_extender(
    cluster: Cluster, server: Server, once: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is sent has been there before anything was kept for extenders."""
    monkeypatch.setattr(reloading, "Child", Trusting)
    file, settings = tmp_path / "policy.cfg", Settings(cluster.scheduler)
    file.write_text(policy_text())
    nodes = {name: await cluster.node(name) for name in ("a", "b")}
    source = LegacyFileSource(str(file))
    options = Options(
        assemble(source.read(), settings), str(server.kubeconfig), port=None, seed=1, source=source, settings=settings
    )
    app = App(options, timers=BriskTimers(), environ={})
    async with extending({"filter": only(nodes["b"])}) as extender, running(app):
        await cluster.pod("before")
        await cluster.bound("before")
        written(file, policy_text(extender))
        await until(app, lambda app: app.status.status.generation == 2)
        await cluster.pod("after")
        assert await cluster.bound("after") == nodes["b"]
    (asked,) = extender.asked["filter"]
    assert sorted(names(asked)) == sorted(nodes.values())
    assert all(node["status"]["allocatable"] for node in asked["Nodes"]["items"])
    assert asked["Pod"]["spec"]["containers"][0]["image"] == "none"
