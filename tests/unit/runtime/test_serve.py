from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import Counter

from ksp.kube.errors import ConfigError
from ksp.runtime.metrics import new_registry
from ksp.runtime.serve import StatusServer, is_loopback


class Checks:
    def __init__(self) -> None:
        self.waits = "waiting for pods"

    def synced(self) -> str:
        return self.waits


@asynccontextmanager
async def serving(checks: Checks, host: str = "127.0.0.1") -> AsyncIterator[str]:
    registry = new_registry()
    Counter("ksp_things", "Things.", registry=registry).inc()
    server = StatusServer(registry, {"informer-sync": checks.synced})
    port = await server.start(host, 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.stop()


async def get(url: str, **headers: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/healthz/ping", "/livez/ping"])
async def test_it_is_alive_before_it_is_ready(path: str) -> None:
    async with serving(Checks()) as url:
        assert await get(url + path) == (200, "text/plain; charset=utf-8", "ok")


async def test_it_is_ready_when_the_checks_pass() -> None:
    checks = Checks()
    async with serving(checks) as url:
        status, _, text = await get(url + "/readyz")
        assert (status, text) == (
            500, "[+]ping ok\n[-]informer-sync failed: waiting for pods\nreadyz check failed\n",
        )  # fmt: skip
        assert await get(url + "/readyz/informer-sync") == (500, "text/plain; charset=utf-8", "waiting for pods\n")
        assert (await get(url + "/readyz?exclude=informer-sync"))[0] == 200
        checks.waits = ""
        assert (await get(url + "/readyz"))[2] == "ok"
        assert (await get(url + "/readyz/informer-sync"))[2] == "ok"
        assert (await get(url + "/readyz?verbose"))[2] == "[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n"


@pytest.mark.parametrize("path", ["/", "/readyz/else", "/healthz/informer-sync", "/debug"])
async def test_what_is_not_there_is_404(path: str) -> None:
    async with serving(Checks()) as url:
        assert (await get(url + path))[0] == 404


async def test_metrics_come_in_the_format_that_is_asked_for() -> None:
    async with serving(Checks()) as url:
        status, kind, text = await get(url + "/metrics")
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
        assert "ksp_things_total 1.0\n" in text
        assert "process_resident_memory_bytes" in text
        _, kind, text = await get(url + "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert kind.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "10.0.0.1", "localhost.evil.example:80", "[::2]:1"]
)
async def test_on_the_loopback_a_foreign_host_is_refused(host: str) -> None:
    async with serving(Checks()) as url:
        assert (await get(url + "/metrics", Host=host))[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:10251", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80"])
async def test_on_the_loopback_its_names_are_accepted(host: str) -> None:
    async with serving(Checks()) as url:
        assert (await get(url + "/healthz", Host=host))[0] == 200


async def test_elsewhere_any_host_is_accepted() -> None:
    async with serving(Checks(), "0.0.0.0") as url:
        assert (await get(url + "/healthz", Host="10.1.2.3:10251"))[0] == 200


async def test_a_port_that_is_taken_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as error:
            await StatusServer(new_registry(), {}).start("127.0.0.1", port)
    assert str(error.value) == (f"port {port} of 127.0.0.1 is in use: choose another with --port, or 0 for none")


async def test_an_address_of_another_machine_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on port 0 of 192\.0\.2\.1: "):
        await StatusServer(new_registry(), {}).start("192.0.2.1", 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_all_addresses_are_those_of_both_families(host: str) -> None:
    server = StatusServer(new_registry(), {})
    port = await server.start(host, 0)
    try:
        for address in ("127.0.0.1", "[::1]"):
            assert (await get(f"http://{address}:{port}/livez"))[0] == 200
        with pytest.raises(ConfigError, match="is in use"):
            await StatusServer(new_registry(), {}).start(host, port)
    finally:
        await server.stop()


async def test_without_ipv6_all_addresses_are_those_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with serving(Checks(), "0.0.0.0") as url:
        assert (await get(f"{url}/livez"))[0] == 200


def test_loopback_addresses() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))
