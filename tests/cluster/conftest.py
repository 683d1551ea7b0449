"""Fixtures of the tests that run on any API server: see `servers` for which."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster import servers
from tests.cluster.policies import default_policy
from tests.cluster.servers import Server
from tests.cluster.view import Cluster

from ksp.kube.auth.config import load_cluster
from ksp.kube.errors import ApiError
from ksp.kube.http.client import Client
from ksp.policy.assemble import Policy
from ksp.policy.extender import Extender
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.sim.actor import Actor

Scheduling = Callable[..., AbstractAsyncContextManager[App]]
GOODBYE = 0.3
"""Seconds in which a TLS connection that was given up ends in order. Nothing tells when it has, and a loop that ends
before leaves a socket open, which pytest takes for a failure."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_kind" in metafunc.fixturenames:
        metafunc.parametrize("server_kind", servers.kinds(), scope="session")


@pytest.fixture(scope="session")
def started(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server | None]:
    """A server that outlives a test; None where each test gets an embedded one of its own."""
    if server_kind == "given":
        yield Server(servers.given())
    elif server_kind == "binaries":
        with servers.binaries(tmp_path_factory.mktemp("server")) as server:
            yield server
    else:
        yield None


@pytest.fixture
async def server(server_kind: str, started: Server | None, tmp_path: Path) -> AsyncIterator[Server]:
    """A running API server."""
    if started is not None:
        yield started
        await asyncio.sleep(GOODBYE)
        return
    async with servers.embedded(server_kind, tmp_path) as embedded:
        yield embedded


@pytest.fixture
def once(server_kind: str) -> None:
    """Once is enough where it is not the server that matters."""
    if server_kind != servers.kinds()[-1]:
        pytest.skip("what does not depend on the server is shown once")


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    """A client of the test's own, without a limit of requests."""
    async with Client(load_cluster(str(server.kubeconfig), None, {}), qps=0) as client:
        yield client


@pytest.fixture
async def cluster(client: Client) -> AsyncIterator[Cluster]:
    """A namespace of the test's own, and an actor that keeps it alive. All that was made goes away in the end."""
    version = json.loads((await client.request("GET", "/version")).body)
    minor = int(re.sub(r"\D.*", "", version["minor"]))
    view = Cluster(client, secrets.token_hex(4), minor, await _policy_group(client))
    await view.make_namespace()
    actor = asyncio.create_task(Actor(client, view.budgets, namespace=view.namespace, selector=view.selector).run())
    try:
        yield view
    finally:
        await view.clean_up()
        actor.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await actor


async def _policy_group(client: Client) -> str:
    try:
        await client.request("GET", "/apis/policy/v1")
    except ApiError:
        return "/apis/policy/v1beta1"
    return "/apis/policy/v1"


@pytest.fixture
def scheduling(server: Server, cluster: Cluster) -> Scheduling:
    """Runs the scheduler: `async with scheduling(unread_fields=...) as app`. Flags are those of `Options`; and
    `bind_timeout` are the seconds in which claims have to be bound. A `policy` has the scheduler's name."""

    def start(
        *,
        bind_timeout: int | None = None,
        extenders: Sequence[Extender] = (),
        policy: Policy | None = None,
        **flags: Any,
    ) -> AbstractAsyncContextManager[App]:
        policy = policy or default_policy(cluster.scheduler, bind_timeout, extenders)
        options = Options(policy, str(server.kubeconfig), **({"port": None, "seed": 1} | flags))
        return running(App(options))

    return start
