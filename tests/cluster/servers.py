"""The API server that these tests use: a given cluster's, one started from its binaries, or the embedded one.

KSP_TEST_KUBECONFIG    the kubeconfig of a cluster whose nodes and pods may be added to
KUBEBUILDER_ASSETS     a folder with `kube-apiserver` and `etcd` (the convention of envtest)
neither                ksp's embedded server, as 1.19 and as 1.36

Binaries are started once for each worker of pytest-xdist: `-n0` starts them once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from ksp.apiserver.server import ApiServer
from ksp.kube.auth.config import load_cluster
from ksp.kube.errors import KubeError
from ksp.kube.http.client import Client

GIVEN = "KSP_TEST_KUBECONFIG"
ASSETS = "KUBEBUILDER_ASSETS"
EMULATED = ("1.19", "1.36")
PATIENCE = 120.0
"""Seconds in which a server that starts has to answer."""
WORDS = 2000
"""Characters of a log that are shown."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `embedded` is there if it is ksp's own: only that one can be made to fail."""

    kubeconfig: Path
    embedded: ApiServer | None = None


def kinds() -> tuple[str, ...]:
    """What to run each test on: `given`, `binaries`, or the versions that the embedded server emulates."""
    if os.environ.get(GIVEN):
        return ("given",)
    return ("binaries",) if os.environ.get(ASSETS) else EMULATED


def given() -> Path:
    """The kubeconfig of the cluster that KSP_TEST_KUBECONFIG names."""
    path = Path(os.environ[GIVEN])
    if not path.is_file():
        pytest.fail(f"{GIVEN}: there is no file {path}")
    return path


@contextlib.asynccontextmanager
async def embedded(version: str, folder: Path) -> AsyncIterator[Server]:
    server = ApiServer(emulate=version)
    await server.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(server.kubeconfig()))
    try:
        yield Server(kubeconfig, server)
    finally:
        await server.stop()


@contextlib.contextmanager
def binaries(folder: Path) -> Iterator[Server]:
    """etcd and kube-apiserver from KUBEBUILDER_ASSETS, on free ports of the loopback."""
    assets = Path(os.environ[ASSETS])
    store, peer, port = _free_port(), _free_port(), _free_port()
    with contextlib.ExitStack() as stack:
        etcd: list[str | Path] = [
            assets / "etcd", f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{store}", f"--advertise-client-urls=http://127.0.0.1:{store}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
        ]  # fmt: skip
        stack.enter_context(_process(etcd, folder / "etcd.log"))
        server = stack.enter_context(_process(_apiserver(assets, folder, store, port), folder / "kube-apiserver.log"))
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(port)))
        asyncio.run(_answers(server, kubeconfig, folder / "kube-apiserver.log"))
        yield Server(kubeconfig)


def _apiserver(assets: Path, folder: Path, store: int, port: int) -> list[str | Path]:
    """The command line, for 1.19 as for current releases. Without an address to advertise the server looks for one, and
    ends where the machine has no default route."""
    key, certificates = folder / "service-accounts.key", folder / "certificates"
    trustme.CA(key_type=trustme.KeyType.RSA).private_key_pem.write_to_path(key)
    tokens = folder / "tokens.csv"
    tokens.write_text('test-token,tester,1,"system:masters"\n')
    command: list[str | Path] = [
        assets / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{store}", f"--cert-dir={certificates}",
        "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC", "--anonymous-auth=false", "--service-cluster-ip-range=10.0.0.0/16",
        "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
        f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
    ]  # fmt: skip
    said = subprocess.run([assets / "kube-apiserver", "--version"], check=True, capture_output=True, text=True).stdout
    minor = int(said.split("v", 1)[1].split(".")[1])
    return [*command, "--insecure-port=0"] if minor < 20 else command  # later it is gone, or has no other value


def _kubeconfig(port: int) -> dict[str, object]:
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": "test-token"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }


@contextlib.contextmanager
def _process(command: list[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(5)  # kube-apiserver lets watches go on for a minute
            except subprocess.TimeoutExpired:
                process.kill()


async def _answers(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    """Waits until the server says that it is ready."""
    cluster, why = load_cluster(str(kubeconfig), None, {}), ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE), Client(cluster, qps=0) as client:
            while process.poll() is None:
                try:
                    await client.request("GET", "/readyz", retry=False)
                except KubeError as error:
                    why = str(error)
                else:
                    return
                await asyncio.sleep(0.2)
    how = f"does not get ready ({why})" if process.poll() is None else "ended"
    said = log.read_text(errors="replace")[-WORDS:]  # noqa: ASYNC240 - nothing else runs
    pytest.fail(f"kube-apiserver {how}; {log} ends with:\n{said}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
