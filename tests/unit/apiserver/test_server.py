"""The server's own matters: who may reach it, TLS, resets, restarts, sizes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import io
import ssl

import aiohttp
import pytest
from tests.unit.apiserver.over_http import CONFIG_MAPS, PATIENCE, serving, until

from ksp.apiserver import ApiServer
from ksp.apiserver.server import new_tokens

WATCH = f"{CONFIG_MAPS}?watch=true"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]:80", "127.0.0.1:8080"])
async def test_names_of_this_machine_are_taken(host: str) -> None:
    async with serving() as http:
        assert (await http.ask("GET", "/version", headers={"Host": host}))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "evil.example:80", "[", "[::1", ""]
)
async def test_other_names_are_refused(host: str) -> None:
    async with serving() as http:
        code, body = await http.ask("GET", "/version", headers={"Host": host})
        assert (code, body["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://localhost:8001", 200),
        ("http://localhost:3000", 403),  # a page of another server on this machine
        ("http://localhost", 403),
        ("https://evil.example", 403),
        ("http://[", 403),
        ("null", 403),
    ],
)
async def test_pages_from_elsewhere_are_refused(origin: str, code: int) -> None:
    async with serving() as http:
        headers = {"Host": "localhost:8001", "Origin": origin}
        assert (await http.ask("GET", "/version", headers=headers))[0] == code


async def test_paths_of_any_bytes() -> None:
    async with serving() as http:
        code, status = await http.ask("GET", f"{CONFIG_MAPS}/%ff%00%0d%0a")
        assert (code, status["reason"]) == (404, "NotFound")


HEAD = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode()


@pytest.mark.parametrize(
    "rest",
    [
        b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\nzz\r\n',
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde",
        b"Content-Encoding: br\r\nContent-Length: 5\r\n\r\nabcde",
    ],
)
async def test_bodies_that_cannot_be_read(rest: bytes) -> None:
    async with serving() as http:
        reader, writer = await asyncio.open_connection("127.0.0.1", http.server.port)
        async with asyncio.timeout(PATIENCE):
            writer.write(HEAD + rest)
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.split()[1] == b"400"


async def test_a_compressed_body_is_not_blown_up() -> None:
    async with serving() as http:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        data = io.BytesIO(gzip.compress(b" " * 20_000_000))
        async with http.session.post(http.server.url + CONFIG_MAPS, data=data, headers=headers) as response:
            assert response.status == 400  # and not 413


async def test_a_fault_of_the_server_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as http:
        http.server.state.catalogue = None  # type: ignore[assignment]
        code, status = await http.ask("GET", "/api/v1/nodes")
        assert (code, status["reason"]) == (500, "InternalError")
    assert "GET /api/v1/nodes" in caplog.text
    assert "Traceback" in caplog.text


def test_addresses_that_mean_all_are_told_as_one_that_leads_here() -> None:
    server = ApiServer()
    for host, url in (("0.0.0.0", "http://127.0.0.1:0"), ("::", "http://[::1]:0"), ("::1", "http://[::1]:0")):
        server._host = host
        assert server.url == url
        assert server.kubeconfig()["clusters"][0]["cluster"]["server"] == url


async def test_tls_with_an_authority_of_its_own() -> None:
    server = ApiServer()
    await server.start(tls=True)
    try:
        data = server.kubeconfig()["clusters"][0]["cluster"]["certificate-authority-data"]
        trusted = ssl.create_default_context(cadata=base64.b64decode(data).decode())
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{server.url}/version", ssl=trusted) as response:
                assert response.status == 200
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get(f"{server.url}/version")
    finally:
        await server.stop()


async def test_dropped_connections_are_reset_and_the_server_goes_on() -> None:
    async with serving() as http:
        async with http.watching(WATCH) as lines:
            assert http.server.drop_connections() >= 1
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await lines.rest()
        assert (await http.ask("GET", "/version"))[0] == 200


async def test_a_restart_keeps_port_and_objects() -> None:
    async with serving() as http:
        await http.make("a")
        url = http.server.url
        await http.server.restart()
        assert http.server.url == url
        assert (await http.ask("GET", f"{CONFIG_MAPS}/a"))[0] == 200


async def test_nobody_answers_during_a_downtime() -> None:
    async with serving() as http:
        restarting = asyncio.create_task(http.server.restart(downtime=10))
        await until(lambda: http.clock.waiting)
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.ask("GET", "/version")
        http.clock.advance(10)
        async with asyncio.timeout(PATIENCE):
            await restarting
        assert (await http.ask("GET", "/version"))[0] == 200


async def test_stopping_ends_open_watches() -> None:
    async with serving() as http, http.watching(WATCH) as lines:
        async with asyncio.timeout(PATIENCE):
            await http.server.stop()
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(aiohttp.ClientError):  # the final chunk need not get through
                assert await lines.response.content.read() == b""


async def test_what_is_too_large_is_refused() -> None:
    async with serving() as http:
        body = {"metadata": {"name": "a"}, "data": {"k": "x" * (3 * 1024 * 1024)}}
        code, status = await http.ask("POST", CONFIG_MAPS, body)
        assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_large_answers_are_compressed_when_that_is_asked_for() -> None:
    async with serving() as http:
        await http.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}})
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            url, headers = f"{http.server.url}{CONFIG_MAPS}/a", {"Accept-Encoding": "gzip"}
            async with session.get(url, headers=headers) as response:
                assert response.headers["Content-Encoding"] == "gzip"
                assert b"x" * 200_000 in gzip.decompress(await response.read())
            async with session.get(url, headers={"Accept-Encoding": "identity"}) as response:
                assert "Content-Encoding" not in response.headers


async def test_tokens() -> None:
    tokens = new_tokens()
    async with serving(tokens=tokens) as http:
        by_user = {user.name: token for token, user in tokens.items()}

        async def code(path: str, user: str) -> int:
            return (await http.ask("GET", path, headers={"Authorization": f"Bearer {by_user[user]}"}))[0]

        assert (await http.ask("GET", "/version"))[0] == 401
        assert (await http.ask("GET", "/version", headers={"Authorization": "Bearer x"}))[0] == 401
        assert await code("/api/v1/nodes", "admin") == 200
        assert await code("/api/v1/nodes", "system:kube-scheduler") == 200
        assert await code("/api/v1/secrets", "system:kube-scheduler") == 403
        assert await code("/version", "nobody") == 200
        assert await code("/api/v1/nodes", "nobody") == 403
        config = http.server.kubeconfig()
        assert [one["name"] for one in config["contexts"]] == ["admin", "system:kube-scheduler", "nobody"]
        assert config["current-context"] == "admin"
        assert http.server.kubeconfig("nobody")["current-context"] == "nobody"


@pytest.mark.parametrize("path", ["/no-such-path", "/apis/no.such.group/v1"])
async def test_unknown_paths_are_plain_text(path: str) -> None:
    async with serving("1.36") as http:
        assert await http.ask("GET", path) == (404, "404 page not found\n")


@pytest.mark.parametrize("version", ["1.19", "1.36"])
async def test_discovery_leads_to_every_list(version: str) -> None:
    async with serving(version) as http:
        _, groups = await http.ask("GET", "/apis")
        roots = [
            "/api/v1",
            *(f"/apis/{one['groupVersion']}" for group in groups["groups"] for one in group["versions"]),
        ]
        lists = 0
        for root in roots:
            code, document = await http.ask("GET", root)
            assert code == 200
            for resource in document["resources"]:
                if "list" in resource["verbs"]:
                    code, body = await http.ask("GET", f"{root}/{resource['name']}?limit=1")
                    assert (code, body["kind"]) == (200, f"{resource['kind']}List"), root
                    lists += 1
        assert lists > 30
