"""What a cluster has beside its API server: with `ksp demo --keep` and `ksp apiserver --controllers`."""

from __future__ import annotations

from pathlib import Path

POLICY_GROUP = {"1.19": "/apis/policy/v1beta1", "1.36": "/apis/policy/v1"}


async def play_controllers(kubeconfig: Path, emulate: str) -> None:
    """Plays kubelets and controllers (`ksp.sim.actor`) over HTTP, until cancelled."""
    from ksp.kube.auth.config import load_cluster
    from ksp.kube.http.client import Client
    from ksp.sim.actor import Actor

    async with Client(load_cluster(str(kubeconfig), None, {}), qps=0) as client:
        await Actor(client, POLICY_GROUP[emulate]).run()
