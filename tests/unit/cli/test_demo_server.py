"""The demo's server goes when it is not needed any more, and what it says last is heard."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click
import pytest
from tests.unit.cli.commands import written

from ksp.cli.demo_server import api_server
from ksp.kube.auth.config import load_cluster
from ksp.kube.http.client import Client

WITHIN = 60.0
"""Real seconds; a process has to start."""


async def test_it_answers_and_goes_at_the_end(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with asyncio.timeout(WITHIN), api_server([], "1.19", kubeconfig) as process:
        async with Client(load_cluster(str(kubeconfig), None, {})) as client:
            assert b'"v1.19' in (await client.request("GET", "/version")).body
        assert process.returncode is None
    assert process.returncode == 0


async def test_what_it_cannot_load_is_said(tmp_path: Path) -> None:
    file = written(tmp_path, {"bad.yaml": "kind: [\n"}) / "bad.yaml"
    async with asyncio.timeout(WITHIN):
        with pytest.raises(click.ClickException, match=r"the API server ended: Error: .*bad\.yaml"):
            async with api_server([file], "1.36", tmp_path / "kubeconfig"):
                pytest.fail("it cannot answer")


async def _use(kubeconfig: Path, what: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Does something with a server that is gone."""
    async with api_server([], "1.36", kubeconfig) as process:
        process.kill()
        await what()


async def test_who_waits_for_a_server_that_ended_is_told_at_once(tmp_path: Path) -> None:
    async with asyncio.timeout(WITHIN):
        with pytest.raises(click.ClickException, match="the API server ended: exit code -9"):
            await _use(tmp_path / "kubeconfig", asyncio.Event().wait)


async def test_a_request_that_its_end_breaks_is_explained_by_it(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    async def requests() -> None:
        async with Client(load_cluster(str(kubeconfig), None, {})) as client:
            while True:
                await client.request("GET", "/version", retry=False)

    async with asyncio.timeout(WITHIN):
        with pytest.raises(click.ClickException, match="the API server ended"):
            await _use(kubeconfig, requests)


async def test_who_is_cancelled_leaves_no_server_behind(tmp_path: Path) -> None:
    started: asyncio.Future[Process] = asyncio.get_running_loop().create_future()

    async def using() -> None:
        async with api_server([], "1.36", tmp_path / "kubeconfig") as process:
            started.set_result(process)
            await asyncio.Event().wait()

    task = asyncio.create_task(using())
    async with asyncio.timeout(WITHIN):
        process = await started
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert process.returncode == 0
