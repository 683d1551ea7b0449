"""The example of docs/extenders.md works as the page says."""

from __future__ import annotations

import runpy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from tests.cluster.conftest import Scheduling
from tests.cluster.view import Cluster

from ksp.policy.configuration import read_configuration
from ksp.policy.extender import Extender
from ksp.policy.legacy import configuration, read_policy

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


def configured(address: str = ADDRESS) -> tuple[Extender, ...]:
    """The extenders of the configuration, at that address."""
    text = (FOLDER / "configuration.yaml").read_text(encoding="utf-8")
    assert ADDRESS in text
    return read_configuration(text.replace(ADDRESS, address), "configuration.yaml").extenders


def test_the_policy_says_the_same() -> None:
    text = (FOLDER / "policy.json").read_text(encoding="utf-8")
    assert configuration(read_policy(text, "policy.json")).extenders == configured()


async def test_pods_go_where_their_licences_are(cluster: Cluster, scheduling: Scheduling, once: None) -> None:
    plain, licensed = await cluster.node("plain"), await cluster.node("licensed")
    licences = {"metadata": {"annotations": {"example.com/licences": "cad,video"}}}
    await cluster.patch(f"/api/v1/nodes/{licensed}", licences)
    async with served() as address, scheduling(extenders=configured(address)):
        for name, licence in (("draws", "cad"), ("flies", "wings"), ("idles", "")):
            await cluster.pod(name, annotations={"example.com/licence": licence} if licence else {})
        assert await cluster.bound("draws") == licensed
        assert await cluster.bound("idles") == plain
        await cluster.refused("flies", "0/2 nodes are available: 2 no licence for wings.")
