"""A secure port before an embedded API server that knows tokens and rights, and clients of it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import trustme
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.embedded import Server, served

from ksp.apiserver.access import AUTHENTICATED, MASTERS
from ksp.apiserver.strategy import User as ApiUser
from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.credentials import User
from ksp.kube.http.client import Client
from ksp.runtime.metrics import new_registry
from ksp.runtime.secure import SecurePort
from ksp.runtime.serve import StatusServer
from ksp.runtime.serving_options import Authentication, ServingOptions

TOKENS = {
    "admin": ApiUser("admin", (MASTERS, AUTHENTICATED), "1"),
    "scheduler": ApiUser("system:kube-scheduler", (AUTHENTICATED,), "2"),
    "somebody": ApiUser("somebody", (AUTHENTICATED,), "3"),
}
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
READABLE = "/version"
"""A path that everybody who is known may read, as the embedded server has it."""


@dataclass
class Authority:
    """Of client certificates, and of servers'."""

    ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def pem(self) -> bytes:
        return bytes(self.ca.cert_pem.bytes())

    def pair(self, folder: Path, name: str, *hosts: str, group: str | None = None) -> tuple[Path, Path]:
        """Files of a certificate and its key."""
        issued = self.ca.issue_cert(*hosts, common_name=name, organization_name=group)
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        return certificate, key


class Counting(Server):
    """Remembers the requests."""

    def __init__(self) -> None:
        super().__init__(tokens=TOKENS)
        self.lines: list[str] = []

    async def _serve(self, request: Any) -> Any:
        self.lines.append(f"{request.method} {request.raw_path}")
        return await super()._serve(request)


def trusting_anybody() -> ssl.SSLContext:
    """A client's."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


@dataclass
class Port:
    """A secure port that serves, and the API server that it asks."""

    server: Counting
    timers: VirtualTimers
    secure: SecurePort
    port: int

    async def get(
        self, path: str, token: str = "", certificate: tuple[Path, Path] | None = None,
        headers: Mapping[str, str] | None = None, method: str = "GET",
    ) -> tuple[int, str]:  # fmt: skip
        """Status and text. The server's certificate is not looked at."""
        tls = trusting_anybody()
        if certificate is not None:
            tls.load_cert_chain(*certificate)
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        url = f"https://127.0.0.1:{self.port}{path}"
        connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, url, headers=sent) as answer,
        ):
            return answer.status, await answer.text()

    @property
    def asked(self) -> int:
        """Reviews that the API server was asked for."""
        return len([line for line in self.server.lines if "reviews" in line])


@asynccontextmanager
async def secure_port(
    options: ServingOptions | None = None, told: Mapping[str, str] | None = None, token: str = "admin"
) -> AsyncIterator[Port]:
    """`told` is what the ConfigMap of the cluster says; `token` is what the scheduler has."""
    options = replace(options or ServingOptions(), bind_address="127.0.0.1", secure_port=0)
    server = Counting()
    async with served(server), AsyncExitStack() as stack:
        cluster = Cluster(server.url, "the test", user=User(authorization=f"Bearer {token}"))
        if told is not None:
            await tell(server, told)
        timers = VirtualTimers()
        secure = SecurePort(options, cluster, timers, {})
        await secure.open(stack)
        await secure.look_up()
        following = asyncio.create_task(secure.run())
        stack.push_async_callback(_ended, following)
        if not options.authentication.skip_lookup:
            await timers.asleep()
        pages = StatusServer(
            new_registry(), {"informer-sync": lambda: "waiting"}, {},
            {READABLE: lambda: "{}", "/policyz": lambda: '{"generation":1}', "/configz": lambda: "kind: X"},
        )  # fmt: skip
        port = await pages.start("127.0.0.1", 0, secure.guard)
        stack.push_async_callback(pages.stop)
        yield Port(server, timers, secure, port)
        await asyncio.sleep(0)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def tell(server: Server, told: Mapping[str, str]) -> None:
    user = User(authorization="Bearer admin")
    async with Client(Cluster(server.url, "the test", user=user), qps=0) as client:
        body, kind = json.dumps({"data": dict(told)}).encode(), "application/merge-patch+json"
        await client.request("PATCH", CONFIG_MAP, body=body, content_type=kind)


def trusting(**fields: Any) -> ServingOptions:
    return ServingOptions(authentication=Authentication(**fields))
