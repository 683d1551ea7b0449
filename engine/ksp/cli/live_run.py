"""A trial on a server of its own: objects are loaded, the scheduler runs, pods are made, until nothing more happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import ksp
from ksp.cli.demo_objects import Json, write_trace
from ksp.cli.demo_server import api_server
from ksp.cli.live import Audience, Follower
from ksp.cli.manifest_objects import objects
from ksp.cli.run_policy import shipped_policy
from ksp.kube.auth.config import load_cluster
from ksp.kube.http.client import Client
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.sim.outcome import Outcome

EXAMPLES = Path(ksp.__file__).parent / "examples"
POLL = 0.05
"""Seconds between two looks at whether all is done."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trace with its first `limit` pods, or the examples; the version to emulate; the seed of the dice."""

    openb: Path | None
    limit: int | None
    emulate: str
    seed: int


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of it. `cpu` are the seconds that this process worked, from when the scheduler started."""

    outcome: Outcome
    kubeconfig: Path
    cpu: float


@contextlib.asynccontextmanager
async def settled(trial: Trial, audience: Audience) -> AsyncGenerator[Settled, None]:
    """The trial when all is done; server and scheduler run until the context is left. Raises ManifestError."""
    with tempfile.TemporaryDirectory(prefix="ksp-demo-") as name:
        folder = Path(name)
        kubeconfig = folder / "kubeconfig"
        load, ours, pods = _given(trial, folder)
        audience.expect(len(ours) + len(pods))
        async with api_server([load], trial.emulate, kubeconfig):
            policy = shipped_policy()
            follower = Follower(audience, lambda: len(app.scheduler.state.nodes))
            options = Options(policy, str(kubeconfig), qps=0, port=None, seed=trial.seed)
            app = App(options, observers=[follower])
            began = process_time()
            async with running(app):
                ours |= await _create(pods, kubeconfig, follower)
                while not follower.is_settled(app.scheduler, ours):
                    follower.tell()
                    await asyncio.sleep(POLL)
                follower.tell()
                yield Settled(follower.outcome(app.scheduler, ours), kubeconfig, process_time() - began)


def _given(trial: Trial, folder: Path) -> tuple[Path, set[str], list[Json]]:
    """What the server loads; the uids of those pods that are to be scheduled; and the pods that are made later."""
    if trial.openb is None:
        return (
            EXAMPLES / "cluster",
            set(),
            [found.value for found in objects([str(EXAMPLES / "workload")], sys.stdin.buffer)],
        )
    file = folder / "trace.json"
    return file, write_trace(trial.openb, trial.limit, file), []


async def _create(objects: list[Json], kubeconfig: Path, follower: Follower) -> set[str]:
    """Makes the pods, each when the one before was decided for; their uids."""
    uids: set[str] = set()
    async with Client(load_cluster(str(kubeconfig), None, {}), qps=0) as client:
        for obj in objects:
            namespace = obj["metadata"].get("namespace", "default")
            path = f"/api/v1/namespaces/{namespace}/pods"
            answer = await client.request("POST", path, body=json.dumps(obj).encode())
            uid = json.loads(answer.body)["metadata"]["uid"]
            uids.add(uid)
            while uid not in follower.records:  # noqa: ASYNC110 - as above
                await asyncio.sleep(POLL / 10)
            follower.tell()
    return uids
