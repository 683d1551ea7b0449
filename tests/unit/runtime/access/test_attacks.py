"""Who tries to read what is not for him, or to keep others from it."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from contextlib import suppress
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from multidict import CIMultiDict
from tests.unit.kube.servers import serving
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.access.serving import READABLE, Authority, Port, secure_port, tell, trusting, trusting_anybody
from tests.unit.runtime.access.test_secure_port import served_certificate
from tests.unit.runtime.embedded import Said

from ksp.kube.auth.cluster import Cluster
from ksp.kube.errors import KubeError
from ksp.kube.http.client import Client
from ksp.kube.wall_clock import SystemWallClock
from ksp.runtime import listening, serve
from ksp.runtime.access.authentication import ANONYMOUS, Authenticator
from ksp.runtime.access.authorities import EVERY, SOON, Authorities
from ksp.runtime.access.reviews import AT_A_TIME, AccessReviews, Identity, TokenReviews
from ksp.runtime.serving_options import Authentication, Authorization, ServingOptions

SECRETS = (b"# HELP", b'"generation"', b"kind: X")
"""Of /metrics, /policyz and /configz."""


async def connected(port: Port) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port.port, ssl=trusting_anybody())


async def said_to(port: Port, request: bytes) -> bytes:
    """The whole answer to something that need not be HTTP."""
    reader, writer = await connected(port)
    try:
        writer.write(request)
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


# ---- paths and methods


SPELLINGS = [
    "/metrics", "//metrics", "/metrics/", "/./metrics", "/metrics?x", "/metrics#x", "/metrics;x", "/metrics%00",
    "/healthz/../metrics", "/healthz/%2e%2e/metrics", "/healthz%2f..%2fmetrics", "/healthz/..%2fmetrics",
    "https://127.0.0.1/metrics", "https://127.0.0.1/healthz/../metrics", "\\metrics", "metrics", "/%6detrics",
    "/METRICS", "/%2fmetrics", "/%25%36detrics", "*", "/configz", "/policyz",
]  # fmt: skip


@pytest.mark.parametrize(
    ("methods", "targets"),
    [(["GET"], SPELLINGS), (["HEAD", "POST", "OPTIONS", "get", "CONNECT"], ["/metrics", "/healthz/../metrics"])],
)
async def test_no_way_of_asking_gets_past_the_gate(methods: list[str], targets: list[str]) -> None:
    options = ServingOptions(authorization=Authorization(always_allow_paths=("/healthz*",)))
    async with secure_port(options) as port:
        for target in targets:
            for method in methods:
                head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
                answer = await said_to(port, head)
                assert answer.split(b" ", 2)[1] in {b"400", b"403", b"404", b"405"}, (head, answer)
                assert not any(secret in answer for secret in SECRETS), head


async def test_names_of_checks_that_are_made_up_are_no_questions_to_the_cluster() -> None:
    async with secure_port() as port:
        for number in range(5):
            assert (await port.get(f"/readyz/made-up-{number}"))[0] == 404
        assert port.asked == 0


@pytest.mark.parametrize(
    "request_", [b"\x00\xff\x00\r\n\r\n", b"GET /livez HTTP/1.1\r\nbroken\r\n\r\n",
                 b"GET /livez HTTP/1.1\r\nx: " + b"y" * 9000 + b"\r\n\r\n", b"GET /livez HTTP/9.9\r\n\r\n"],
)  # fmt: skip
async def test_what_is_no_http_is_nothing_for_the_log(request_: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with secure_port() as port:
        for before in (b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"):
            assert b" 400 " in await said_to(port, before + request_)
    assert caplog.messages == []


async def test_http_of_old_is_no_way_in_either() -> None:
    async with secure_port() as port:
        assert b" 403 " in await said_to(port, b"GET /metrics\r\n\r\n")


async def test_a_token_that_nobody_can_have_is_refused_without_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    async with secure_port() as port:
        head = f"GET {READABLE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ".encode()
        assert b" 401 " in await said_to(port, head + b"\xff\xfe\r\n\r\n")
        assert port.asked == 0
    assert caplog.messages == []


# ---- many, and slow


async def test_who_connects_and_says_nothing_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "CONNECTIONS", 3)
    async with secure_port() as port:
        silent = [await connected(port) for _ in range(3)]
        silent[0][1].write(b"GET /metrics HTTP/1.1\r\nHost")  # and never the rest
        for _ in range(2):
            assert await port.get("/livez") == (200, "ok")
        async with asyncio.timeout(5):
            assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_a_head_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "IDLE", 0.05)
    async with secure_port() as port:
        assert await said_to(port, b"GET /livez HTTP/1.1\r\nHost: ") == b""


async def test_what_is_remembered_is_told_while_the_api_server_is_silent() -> None:
    async with secure_port() as port:
        assert (await port.get(READABLE, token="somebody"))[0] == 200
        port.server.hold("reviews")
        flood = [asyncio.create_task(port.get("/metrics", token=f"made-up-{n}")) for n in range(AT_A_TIME + 4)]
        async with asyncio.timeout(5):
            while len(port.server.waiting) < AT_A_TIME:
                await port.get("/livez")
            assert (await port.get(READABLE, token="somebody"))[0] == 200
        port.server.release("reviews")
        assert {status for status, _ in await asyncio.gather(*flood)} == {401}


async def test_for_who_has_gone_nobody_is_asked() -> None:
    async with secure_port() as port:
        port.server.hold("reviews")
        present = [await asking(port, f"no-{number}") for number in range(AT_A_TIME)]
        async with asyncio.timeout(5):
            while len(port.server.waiting) < AT_A_TIME:
                await port.get("/livez")
        gone = [await asking(port, f"gone-{number}") for number in range(4)]
        await port.get("/livez")
        for writer in gone:
            writer.close()
            await writer.wait_closed()
        await port.get("/livez")
        port.server.release("reviews")
        assert (await port.get("/metrics", token="admin"))[0] == 200
        assert port.asked == AT_A_TIME + 1
        for writer in present:
            writer.close()


async def asking(port: Port, token: str) -> asyncio.StreamWriter:
    """Has asked for something, and waits for the answer."""
    _, writer = await connected(port)
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return writer


# ---- answers of the API server

NO_REVIEWS = [
    b"", b"<html>yes</html>", b"[]", b"null", b"{}", b'{"status":null}', b'{"status":{}}', b'{"status":{"allowed":1}}',
    b'{"status":{"allowed":"true","authenticated":"true"}}', b'{"status":{"allowed":null}}', b"\xff",
    b'{"status":{"allowed":true,"denied":true}}', b'{"allowed":true,"authenticated":true}',
    b'{"status":{"authenticated":true}}', b'{"status":{"authenticated":true,"user":null}}',
    b'{"status":{"authenticated":false,"user":{"username":"root","groups":["system:masters"]}}}',
    b'{"status":{"user":{"username":"root"}},"allowed":true}',
]  # fmt: skip


@pytest.mark.parametrize("body", NO_REVIEWS)
async def test_answers_that_are_not_a_clear_yes_are_a_no(body: bytes) -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(status=201, body=body)

    async with serving(answer) as cluster, Client(cluster) as client:
        tokens = TokenReviews(client, Authentication(), VirtualTimers())
        rights = AccessReviews(client, Authorization(), VirtualTimers())
        for _ in range(2):
            with suppress(KubeError):
                assert await tokens.identity("token") is None
            with suppress(KubeError):
                assert not await rights.allows(Identity("root"), "get", "/metrics")


# ---- certificates


def issued(
    authority: Authority, folder: Path, *names: str, usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH
) -> tuple[Path, Path]:
    """A certificate of somebody in system:masters, with these common names, in files."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names]
    subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"))
    signer = serialization.load_pem_private_key(authority.ca.private_key_pem.bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    certificate = (
        x509.CertificateBuilder(x509.load_pem_x509_certificate(authority.pem).subject, x509.Name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    files = folder / f"{names[0]}.crt", folder / f"{names[0]}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def remove(file: str) -> None:
    Path(file).unlink()


def authority_file(folder: Path) -> tuple[Authority, str]:
    authority, file = Authority(), folder / "ca.crt"
    file.write_bytes(authority.pem)
    return authority, str(file)


async def test_a_certificate_for_servers_is_nobodys_here(tmp_path: Path) -> None:
    authority, ca = authority_file(tmp_path)
    async with secure_port(trusting(client_ca_file=ca)) as port:
        good = issued(authority, tmp_path, "root")
        assert (await port.get("/metrics", certificate=good))[0] == 200
        server = issued(authority, tmp_path, "server", usage=ExtendedKeyUsageOID.SERVER_AUTH)
        with pytest.raises(aiohttp.ClientError):
            await port.get("/metrics", certificate=server)


class _Connection:
    """A connection whose client has shown this certificate."""

    def __init__(self, file: Path) -> None:
        self._der = ssl.PEM_cert_to_DER_cert(file.read_text())

    def getpeercert(self, *, binary_form: bool) -> bytes:
        assert binary_form
        return self._der


class _Later:
    def wall(self) -> dt.datetime:
        return SystemWallClock().wall() + dt.timedelta(days=2)


async def test_a_certificate_whose_time_runs_out_on_an_open_connection_counts_no_more(tmp_path: Path) -> None:
    authority, ca = authority_file(tmp_path)
    settings, timers = Authentication(client_ca_file=ca), VirtualTimers()
    connection = cast("ssl.SSLObject", _Connection(issued(authority, tmp_path, "first", "last")[0]))
    tokens = TokenReviews(Client(Cluster("http://127.0.0.1:1", "nobody")), settings, timers)
    now = Authenticator(Authorities(settings, timers), tokens, SystemWallClock())
    found = await now.identity(CIMultiDict(), connection)
    assert found is not None
    assert (found.name, found.groups) == ("last", ("system:masters", "system:authenticated"))  # as API servers read it
    later = Authenticator(Authorities(settings, timers), tokens, _Later())
    assert await later.identity(CIMultiDict(), connection) == ANONYMOUS


async def test_authorities_that_cannot_be_read_are_told_of_once_and_let_nobody_in(tmp_path: Path) -> None:
    authority = Authority()
    root = authority.pair(tmp_path, "root", group="system:masters")
    cert, key = authority.pair(tmp_path, "ksp", "ksp.example")
    options = ServingOptions(tls_cert_file=str(cert), tls_private_key_file=str(key))
    async with secure_port(options, told={"client-ca-file": authority.pem.decode()}) as port:
        assert (await port.get("/metrics", certificate=root))[0] == 200
        first = await served_certificate(port)
        with Said() as said:
            await tell(port.server, {"client-ca-file": "-----BEGIN CERTIFICATE-----\nrubbish\n"})
            await port.timers.advance(EVERY)
            async with asyncio.timeout(5):
                while not said.messages:
                    await port.get("/livez")
            authority.pair(tmp_path, "ksp", "ksp.example")
            for _ in range(3):
                await port.timers.advance(1)
                assert (await port.get("/metrics", certificate=root))[0] == 403
        assert await served_certificate(port) != first  # its own is renewed all the same
        told = [message for message in said.messages if "the old ones stay" in message]
        assert len(told) == 1


async def test_a_file_of_authorities_that_is_gone_is_told_of_now_and_then(tmp_path: Path) -> None:
    authority, ca = authority_file(tmp_path)
    root = authority.pair(tmp_path, "root", group="system:masters")
    async with secure_port(trusting(client_ca_file=ca)) as port:
        remove(ca)
        with Said() as said:
            for _ in range(4):
                await port.timers.advance(1)
                assert (await port.get("/metrics", certificate=root))[0] == 200  # what was known stays
        assert len([message for message in said.messages if "--client-ca-file" in message]) == 1


async def test_until_the_cluster_has_said_who_its_clients_are_it_is_asked_often() -> None:
    asked: list[float] = []
    timers = VirtualTimers()

    async def answer(_: web.BaseRequest) -> web.Response:
        asked.append(timers.now())
        if len(asked) < 3:
            return web.Response(status=503)
        return web.json_response({"data": {"client-ca-file": "-----BEGIN"}})

    async with serving(answer) as cluster, Client(cluster) as client:
        authorities = Authorities(Authentication(), timers)
        following = asyncio.create_task(authorities.run(client))
        for seconds in (SOON, SOON, EVERY):
            await timers.asleep()
            assert (authorities.clients() != b"") == (seconds == EVERY)
            await timers.advance(seconds)
        await timers.asleep()
        following.cancel()
    assert asked == [0.0, SOON, 2 * SOON, 2 * SOON + EVERY]
