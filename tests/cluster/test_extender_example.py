"""The example of docs/extenders.md works as the page says."""

from __future__ import annotations

import runpy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.cluster.conftest import Scheduling
from tests.cluster.view import Cluster

from ksp.policy.assemble import Policy, Settings, assemble
from ksp.policy.configuration import read_configuration
from ksp.policy.texts import PolicyTexts

FOLDER = Path(__file__).parents[2] / "examples" / "extender"
ADDRESS = "127.0.0.1:8888"


@asynccontextmanager
async def served() -> AsyncGenerator[str, None]:
    """The example's extender, on a port that is free; its address."""
    runner = web.AppRunner(runpy.run_path(str(FOLDER / "extender.py"))["application"](), shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def policy_of(file: str, address: str, scheduler: str) -> Policy:
    """What the file says, with an extender at that address."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    assert ADDRESS in text
    text = text.replace(ADDRESS, address)
    if file.endswith(".json"):
        return assemble(PolicyTexts(file, {file: text}, (), file), Settings(scheduler))
    text += f"profiles: [{{schedulerName: {scheduler}}}]\n"
    configuration = read_configuration(text, file)
    return assemble(PolicyTexts("", {}, (configuration.rules,)), Settings(configuration=configuration))


@pytest.mark.parametrize("file", ["configuration.yaml", "policy.json"])
async def test_pods_go_where_their_licences_are(
    file: str, cluster: Cluster, scheduling: Scheduling, once: None
) -> None:
    plain, licensed = await cluster.node("plain"), await cluster.node("licensed")
    licences = {"metadata": {"annotations": {"example.com/licences": "cad,video"}}}
    await cluster.patch(f"/api/v1/nodes/{licensed}", licences)
    async with served() as address, scheduling(policy=policy_of(file, address, cluster.scheduler)):
        for name, licence in (("draws", "cad"), ("flies", "wings"), ("idles", "")):
            await cluster.pod(name, annotations={"example.com/licence": licence} if licence else {})
        assert await cluster.bound("draws") == licensed
        assert await cluster.bound("idles") == plain
        await cluster.refused("flies", "0/2 nodes are available: 2 no licence for wings.")
