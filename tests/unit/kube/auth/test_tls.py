from __future__ import annotations

import datetime as dt
import socket
import ssl
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.kube.certificates import Authority
from tests.unit.kube.servers import Wire, raw_server, serving, who

from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.credentials import User
from ksp.kube.auth.tls import KeyPair, Pem, Trust, ssl_context
from ksp.kube.errors import ConfigError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.client import Client

OURS, OTHERS = Authority(), Authority()


def shows(authority: Authority, name: str) -> User:
    certificate, key = authority.client(name)
    return User(certificate=Pem("the certificate", certificate), key=Pem("the key", key))


async def asked(cluster: Cluster) -> str:
    async with Client(cluster) as client:
        return (await client.request("POST", "/x", body=b"{}")).body.decode()


async def test_a_server_that_is_known() -> None:
    async with serving(who, OURS.server()) as cluster:
        assert await asked(replace(cluster, trust=OURS.trust)) == "nobody"


async def test_a_server_under_another_name() -> None:
    async with serving(who, OURS.server("api.example")) as cluster:
        assert await asked(replace(cluster, trust=replace(OURS.trust, server_name="api.example"))) == "nobody"


async def test_a_server_that_is_not_verified_because_the_kubeconfig_says_so() -> None:
    async with serving(who, OURS.server("api.example")) as cluster:
        assert await asked(replace(cluster, trust=Trust(verify=False))) == "nobody"


@pytest.mark.parametrize(
    ("server", "trust", "message"),
    [
        (OURS.server(), OTHERS.trust, "unable to get local issuer certificate; correct certificate-authority"),
        (OURS.server(), Trust(), "not trusted"),
        (OURS.server("api.example"), OURS.trust, "IP address mismatch.*name the server in tls-server-name"),
        (OURS.server(), replace(OURS.trust, server_name="api.example"), "Hostname mismatch.*tls-server-name"),
        (
            OURS.server(expires=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
            OURS.trust,
            "certificate has expired; have it renewed",
        ),
    ],
)
async def test_a_server_that_is_not_trusted_gets_nothing(server: ssl.SSLContext, trust: Trust, message: str) -> None:
    async with serving(who, server) as cluster:
        with pytest.raises(UnreachableError, match=rf"^{cluster.server}: .*{message}") as caught:
            await asked(replace(cluster, trust=trust))
    assert not caught.value.temporary


async def test_a_client_certificate_is_shown() -> None:
    async with serving(who, OURS.server(clients=OTHERS)) as cluster:
        assert await asked(replace(cluster, trust=OURS.trust, user=shows(OTHERS, "ksp"))) == "ksp"


@pytest.mark.parametrize("user", [User(), shows(OURS, "ksp")])
async def test_a_server_that_demands_another_client_certificate(user: User) -> None:
    async with serving(who, OURS.server(clients=OTHERS)) as cluster:
        with pytest.raises((UnreachableError, OutcomeUnknownError)):  # Python's server only closes the connection
            await asked(replace(cluster, trust=OURS.trust, user=user))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_server_that_says_that_it_demands_a_certificate(version: ssl.TLSVersion) -> None:
    context = OURS.server(clients=OTHERS)
    context.maximum_version = version
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def serve() -> None:
            accepted, _ = listening.accept()
            accepted.settimeout(10)
            with context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as encrypted:
                with pytest.raises(ssl.SSLError):
                    encrypted.do_handshake()
                with socket.socket(fileno=encrypted.detach()) as plain:  # what it said must not be lost to a reset
                    plain.settimeout(10)
                    plain.shutdown(socket.SHUT_WR)
                    while plain.recv(65536):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        cluster = Cluster(f"https://127.0.0.1:{listening.getsockname()[1]}", "a test", OURS.trust)
        async with Client(cluster) as client:
            with pytest.raises(UnreachableError, match=r"handshake|client certificate"):  # nothing was processed
                await client.request("POST", "/x", body=b"{}", retry=False)
        thread.join()


async def test_plain_http_where_tls_is_expected() -> None:
    async def talk(wire: Wire) -> None:
        await wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with (
        raw_server(talk) as cluster,
        Client(replace(cluster, server=cluster.server.replace("http:", "https:"))) as client,
    ):
        with pytest.raises(UnreachableError, match=r"wrong version number.*; does the address begin with http://\?"):
            await client.request("POST", "/x", retry=False)


# --- files -----------------------------------------------------------------------------------------------------------


def pair(certificate: bytes, key: bytes) -> KeyPair:
    return KeyPair(certificate, key, "user `x`")


def test_a_key_that_does_not_match() -> None:
    certificate, _ = OURS.client("a")
    _, key = OURS.client("b")
    with pytest.raises(ConfigError, match="user `x` cannot be used: the key does not belong to the certificate"):
        ssl_context(OURS.trust, OURS.pem, pair(certificate, key))


def test_a_damaged_certificate() -> None:
    certificate, key = OURS.client("a")
    with pytest.raises(ConfigError, match="damaged"):
        ssl_context(OURS.trust, OURS.pem, pair(certificate[:300] + certificate[-50:], key))


def test_an_encrypted_key_asks_nobody() -> None:
    certificate, _ = OURS.client("a")
    with pytest.raises(ConfigError, match="encrypted"):
        ssl_context(OURS.trust, OURS.pem, pair(certificate, b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"))


@pytest.mark.parametrize(
    "authority", [b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", OURS.client("a")[1], b"\xff\xfe"]
)
def test_a_damaged_authority(authority: bytes) -> None:
    with pytest.raises(ConfigError, match="the authority holds no certificates"):
        ssl_context(OURS.trust, authority, None)


def test_keys_leave_nothing_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modes: list[int] = []

    def load(_context: ssl.SSLContext, certificate: Path, key: Path, password: str) -> None:
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (certificate.parent, certificate, key))

    with monkeypatch.context() as patched:
        patched.setattr(ssl.SSLContext, "load_cert_chain", load)
        ssl_context(OURS.trust, OURS.pem, pair(*OURS.client("a")))
    assert modes == [0o700, 0o600, 0o600]
    assert list(tmp_path.iterdir()) == []
    certificate, _ = OURS.client("a")
    with pytest.raises(ConfigError, match="key does not belong"):
        ssl_context(OURS.trust, OURS.pem, pair(certificate, OURS.client("b")[1]))
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_takes_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with a file system that cannot be written to, and a certificate in its kubeconfig."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"user `x` cannot be used: .*No such file .*; set TMPDIR to a folder"):
        ssl_context(OURS.trust, OURS.pem, pair(*OURS.client("a")))


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"`client-key` \({tmp_path}/k\) cannot be read: No such file"):
        Pem("`client-key`", tmp_path / "k").read()


def test_a_file_that_is_no_pem(tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(b"\x30\x82\x01\x0a")
    with pytest.raises(ConfigError, match=rf"\({tmp_path}/k\) is not PEM"):
        Pem("`client-key`", tmp_path / "k").read()
