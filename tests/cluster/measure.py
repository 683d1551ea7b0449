"""How long the scheduler takes to see and bind a pod after something broke, on the embedded server:

python -m tests.cluster.measure [--runs N] [--inactivity SECONDS]

reset       all connections are cut, and a pod is made at once
half-open   all connections fall silent, and a pod is made at once; the inactivity deadline has to find out
restart     the server was away for some seconds; from its return to the first bind, of a pod that is made then
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from tests.cluster.policies import default_policy
from tests.cluster.relay import Relay
from tests.cluster.view import Cluster

from ksp.apiserver import ApiServer
from ksp.kube.auth.config import load_cluster
from ksp.kube.http.client import Client
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.sim.actor import Actor

Break = Callable[[Relay, ApiServer, float], Awaitable[None]]
DOWN = (1.0, 5.0, 20.0)
"""Seconds that a server is away."""


@asynccontextmanager
async def _scene(folder: Path, inactivity: float) -> AsyncIterator[tuple[Relay, ApiServer, Cluster]]:
    server = ApiServer(emulate="1.36")
    await server.start()
    direct, relayed = folder / "direct", folder / "relayed"
    direct.write_text(json.dumps(server.kubeconfig()))
    async with Relay(server.port).running() as relay, Client(load_cluster(str(direct), None, {}), qps=0) as client:
        kubeconfig = server.kubeconfig()
        kubeconfig["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{relay.port}"
        relayed.write_text(json.dumps(kubeconfig))
        cluster = Cluster(client, "measure", 36, "/apis/policy/v1")
        await cluster.make_namespace()
        actor = asyncio.create_task(
            Actor(client, cluster.budgets, namespace=cluster.namespace, selector=cluster.selector).run()
        )
        await cluster.node("a", cpu="64")
        options = Options(
            default_policy(cluster.scheduler), str(relayed), port=None, seed=1, watch_inactivity=inactivity
        )
        async with running(App(options)):
            yield relay, server, cluster
        actor.cancel()
        await asyncio.gather(actor, return_exceptions=True)
    await server.stop()


async def _once(breaks: Break, down: float, inactivity: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with _scene(Path(folder), inactivity) as (relay, server, cluster):
            await breaks(relay, server, down)
            began = monotonic()
            await cluster.pod("web")
            await _bound(cluster)
            return monotonic() - began


async def _bound(cluster: Cluster) -> None:
    """As `Cluster.bound`, for longer."""
    while True:
        pod = await cluster.send("GET", f"{cluster.pods}/web")
        if pod["spec"].get("nodeName"):
            return
        await asyncio.sleep(0.01)


async def _reset(relay: Relay, server: ApiServer, down: float) -> None:
    relay.reset()


async def _freeze(relay: Relay, server: ApiServer, down: float) -> None:
    relay.freeze()


async def _restart(relay: Relay, server: ApiServer, down: float) -> None:
    await server.restart(down)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--inactivity", type=float, default=60.0)
    given = parser.parse_args()
    _report("reset", [asyncio.run(_once(_reset, 0, given.inactivity)) for _ in range(given.runs)])
    for down in DOWN:
        times = [asyncio.run(_once(_restart, down, given.inactivity)) for _ in range(given.runs)]
        _report(f"restart, away {down:g} s", times)
    _report(f"half-open, deadline {given.inactivity:g} s", [asyncio.run(_once(_freeze, 0, given.inactivity))])


def _report(what: str, times: list[float]) -> None:
    spread = f"{min(times):.2f} to {max(times):.2f}" if len(times) > 1 else "one run"
    print(f"{what:28} {statistics.median(times):6.2f} s  ({spread})", flush=True)  # noqa: T201 - this is what it is for


if __name__ == "__main__":
    main()
