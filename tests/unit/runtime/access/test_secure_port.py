from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import aiohttp
import pytest
from tests.unit.runtime.access.serving import READABLE, Authority, Port, secure_port, tell, trusting, trusting_anybody
from tests.unit.runtime.embedded import Said

from ksp.kube.errors import ConfigError
from ksp.runtime.access.authorities import EVERY
from ksp.runtime.serving_options import Authentication, Authorization, RequestHeader, ServingOptions

PROXY = {"X-Remote-User": "ann", "X-Remote-Group": "system:authenticated"}


# ---- without credentials


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
async def test_probes_need_nobodys_leave(path: str) -> None:
    async with secure_port() as port:
        assert await port.get(path) == (200, "ok")
        assert await port.get(path, token="wrong") == (200, "ok")
        assert port.asked == 0


@pytest.mark.parametrize("path", ["/metrics", "/configz", "/policyz", "/healthz/ping", "/readyz/informer-sync"])
async def test_nothing_else_is_served_to_nobody(path: str) -> None:
    async with secure_port() as port:
        assert await port.get(path) == (403, f'forbidden: User "system:anonymous" cannot get path "{path}"\n')


async def test_what_is_not_there_is_no_question_to_the_cluster() -> None:
    async with secure_port() as port:
        for path in ("/", "/x", "/debug/pprof", "//metrics"):
            assert (await port.get(path))[0] == 404
        assert (await port.get("/metrics", method="POST", token="admin"))[0] == 405
        assert port.asked == 0


async def test_the_paths_that_are_always_allowed_can_be_chosen() -> None:
    options = ServingOptions(authorization=Authorization(always_allow_paths=("/healthz*", "/metrics")))
    async with secure_port(options) as port:
        assert (await port.get("/healthz/ping"))[0] == 200
        assert (await port.get("/metrics"))[0] == 200
        assert (await port.get("/livez"))[0] == 403


# ---- tokens


async def test_a_token_is_reviewed_and_its_owner_gets_what_he_may() -> None:
    async with secure_port() as port:
        assert (await port.get("/metrics", token="admin"))[0] == 200
        assert await port.get("/policyz", token="admin") == (200, '{"generation":1}')
        assert await port.get("/configz", token="admin") == (200, "kind: X")
        assert (await port.get(READABLE, token="somebody"))[0] == 200
        status, text = await port.get("/metrics", token="somebody")
        assert (status, text) == (403, 'forbidden: User "somebody" cannot get path "/metrics"\n')


@pytest.mark.parametrize("value", ["Bearer wrong", "Bearer ", "Basic YTpi", "admin"])
async def test_credentials_that_do_not_hold_are_401(value: str) -> None:
    async with secure_port() as port:
        assert await port.get(READABLE, headers={"Authorization": value}) == (401, "Unauthorized\n")


async def test_answers_are_remembered_for_a_while() -> None:
    async with secure_port() as port:
        for _ in range(3):
            assert (await port.get(READABLE, token="somebody"))[0] == 200
            assert (await port.get(READABLE, token="wrong"))[0] == 401
            assert (await port.get(READABLE))[0] == 403
        assert port.asked == 4  # two tokens, two people
        del port.server.access.tokens["somebody"]
        assert (await port.get(READABLE, token="somebody"))[0] == 200
        await port.timers.advance(10.1)
        assert (await port.get(READABLE, token="somebody"))[0] == 401


async def test_lifetimes_are_those_of_the_flags() -> None:
    options = ServingOptions(
        authentication=Authentication(token_cache_ttl=0), authorization=Authorization(None, 100.0, 1.0)
    )
    async with secure_port(options) as port:
        for _ in range(2):
            await port.get(READABLE, token="somebody")
        assert port.asked == 3
        await port.get("/metrics", token="somebody")
        await port.timers.advance(1.5)
        before = port.asked
        await port.get("/metrics", token="somebody")
        assert port.asked == before + 2


async def test_without_the_api_server_nobody_is_let_in() -> None:
    async with secure_port() as port:
        await port.server.stop()
        with Said() as said:
            assert (await port.get("/metrics", token="admin"))[0] == 401
            assert (await port.get("/metrics"))[0] == 500
            assert (await port.get("/healthz"))[0] == 200
        assert any(message.startswith("a token cannot be reviewed") for message in said.messages)


async def test_a_scheduler_that_may_not_ask_lets_nobody_in() -> None:
    async with secure_port(token="somebody") as port:
        assert (await port.get("/metrics", token="admin"))[0] == 401


# ---- client certificates


async def test_a_client_certificate_is_a_user_and_its_groups(tmp_path: Path) -> None:
    authority = Authority()
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    async with secure_port(trusting(client_ca_file=str(ca))) as port:
        root = authority.pair(tmp_path, "root", group="system:masters")
        ann = authority.pair(tmp_path, "ann")
        assert (await port.get("/metrics", certificate=root))[0] == 200
        assert await port.get("/metrics", certificate=ann) == (
            403, 'forbidden: User "ann" cannot get path "/metrics"\n',
        )  # fmt: skip
        assert (await port.get(READABLE, certificate=ann))[0] == 200
        assert (await port.get(READABLE))[0] == 403


async def test_a_certificate_of_somebody_else_ends_the_connection(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(Authority().pem)
    async with secure_port(trusting(client_ca_file=str(ca))) as port:
        foreign = Authority().pair(tmp_path, "root", group="system:masters")
        with pytest.raises(aiohttp.ClientError):
            await port.get("/metrics", certificate=foreign)


async def test_where_no_authority_is_known_certificates_are_not_asked_for(tmp_path: Path) -> None:
    async with secure_port() as port:
        foreign = Authority().pair(tmp_path, "root", group="system:masters")
        assert (await port.get("/metrics", certificate=foreign))[0] == 403


async def test_the_authority_of_the_cluster_counts_and_may_change(tmp_path: Path) -> None:
    first, second = Authority(), Authority()
    async with secure_port(told={"client-ca-file": first.pem.decode()}) as port:
        folders = [tmp_path / name for name in ("first", "second")]
        for folder in folders:
            folder.mkdir()
        old, new = (a.pair(f, "root", group="system:masters") for a, f in zip((first, second), folders, strict=True))
        assert (await port.get("/metrics", certificate=old))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await port.get("/metrics", certificate=new)
        await tell(port.server, {"client-ca-file": second.pem.decode()})
        reads = len(port.server.lines)
        await port.timers.advance(EVERY)
        async with asyncio.timeout(5):
            while port.secure._authorities.clients() != second.pem:
                await port.get("/healthz")
        assert len(port.server.lines) == reads + 1
        assert (await port.get("/metrics", certificate=new))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await port.get("/metrics", certificate=old)


async def test_a_file_goes_before_the_cluster_and_skipping_asks_nobody(tmp_path: Path) -> None:
    cluster, own = Authority(), Authority()
    ca = tmp_path / "ca.crt"
    ca.write_bytes(own.pem)
    told = {"client-ca-file": cluster.pem.decode()}
    root = own.pair(tmp_path, "root", group="system:masters")
    async with secure_port(trusting(client_ca_file=str(ca)), told) as port:
        assert (await port.get("/metrics", certificate=root))[0] == 200
    async with secure_port(trusting(skip_lookup=True), told) as port:
        assert port.secure._authorities.clients() == b""
        assert not [line for line in port.server.lines if "GET" in line]


async def test_a_lookup_that_fails_is_tolerated_or_not() -> None:
    with Said() as said:
        async with secure_port(token="somebody") as port:
            assert (await port.get("/healthz"))[0] == 200
    assert any("extension-apiserver-authentication-reader" in message for message in said.messages)
    with pytest.raises(ConfigError, match="bind the Role extension-apiserver-authentication-reader"):
        async with secure_port(trusting(tolerate_lookup_failure=False), token="somebody"):
            pass


# ---- proxies


def told_of_proxies(authority: Authority, clients: Authority, allowed: list[str]) -> dict[str, str]:
    return {
        "client-ca-file": clients.pem.decode(),
        "requestheader-client-ca-file": authority.pem.decode(),
        "requestheader-allowed-names": json.dumps(allowed),
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


async def test_a_proxy_asks_for_others_and_nobody_else_does(tmp_path: Path) -> None:
    proxies, clients = Authority(), Authority()
    async with secure_port(told=told_of_proxies(proxies, clients, ["front"])) as port:
        front, other = proxies.pair(tmp_path, "front"), proxies.pair(tmp_path, "other")
        client = clients.pair(tmp_path, "bob")

        async def said_of(certificate: tuple[Path, Path] | None, headers: dict[str, str]) -> tuple[int, str]:
            return await port.get("/metrics", certificate=certificate, headers=headers)

        assert (await said_of(front, PROXY))[1] == 'forbidden: User "ann" cannot get path "/metrics"\n'
        assert (await said_of(front, {**PROXY, "X-Remote-Group": "system:masters"}))[0] == 200
        assert (await port.get(READABLE, certificate=front, headers=PROXY))[0] == 200
        masters = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
        assert "system:anonymous" in (await said_of(other, masters))[1]  # a name that is not allowed
        assert "bob" in (await said_of(client, masters))[1]  # a client that forges the headers
        assert "system:anonymous" in (await said_of(None, masters))[1]
        assert "system:anonymous" in (await said_of(front, {}))[1]  # a proxy is no user


async def test_a_proxys_certificate_makes_nobody_an_administrator(tmp_path: Path) -> None:
    proxies, clients = Authority(), Authority()
    async with secure_port(told=told_of_proxies(proxies, clients, [])) as port:
        forged = proxies.pair(tmp_path, "root", group="system:masters")
        assert (await port.get("/metrics", certificate=forged))[0] == 403


async def test_proxies_of_the_flags(tmp_path: Path) -> None:
    proxies = Authority()
    ca = tmp_path / "ca.crt"
    ca.write_bytes(proxies.pem)
    header = RequestHeader(str(ca), username_headers=("X-User",), group_headers=("X-Group",))
    async with secure_port(trusting(request_header=header)) as port:
        front = proxies.pair(tmp_path, "front")
        said = {"X-User": "ann", "X-Group": "system:masters"}
        assert (await port.get("/metrics", certificate=front, headers=said))[0] == 200
        assert (await port.get("/metrics", headers=said))[0] == 403


# ---- the server's certificate


async def served_certificate(port: Port, name: str | None = None, trust: bytes | None = None) -> str:
    """The certificate that is shown to who asks for that name; verified if `trust` is given."""
    tls = ssl.create_default_context(cadata=trust.decode()) if trust is not None else trusting_anybody()
    _, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=tls, server_hostname=name or "")
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return str(ssl.DER_cert_to_PEM_cert(shown))


async def test_its_certificate_is_made_in_memory_for_this_host() -> None:
    async with secure_port() as one, secure_port() as two:
        assert await served_certificate(one) == await served_certificate(one)
        assert await served_certificate(one) != await served_certificate(two)


@pytest.mark.parametrize("name", ["my_host", "x" * 64, "-x", "a..b", "", "host.local."])
async def test_a_computer_whose_name_no_certificate_can_have_serves_too(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: name)
    async with secure_port() as port:
        assert await port.get("/livez") == (200, "ok")


async def test_certificate_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    authority = Authority()
    cert, key = authority.pair(tmp_path, "ksp", "ksp.example")
    options = ServingOptions(tls_cert_file=str(cert), tls_private_key_file=str(key))
    async with secure_port(options) as port:
        first = await served_certificate(port, "ksp.example", authority.pem)
        authority.pair(tmp_path, "ksp", "ksp.example", "more.example")
        assert await served_certificate(port, "ksp.example", authority.pem) == first
        await port.timers.advance(1)
        second = await served_certificate(port, "more.example", authority.pem)
        assert second != first
        key.write_text("no key")
        await port.timers.advance(1)
        with Said() as said:
            assert await served_certificate(port, "ksp.example", authority.pem) == second
        assert said.messages[0].startswith("cannot use new certificates, the old ones stay error=")


async def test_certificates_for_several_names(tmp_path: Path) -> None:
    authority = Authority()
    main = authority.pair(tmp_path, "main", "main.example")
    more = authority.pair(tmp_path, "more", "*.more.example")
    third = authority.pair(tmp_path, "third", "third.example")
    options = ServingOptions(
        tls_cert_file=str(main[0]), tls_private_key_file=str(main[1]),
        tls_sni_cert_keys=((str(more[0]), str(more[1]), ()), (str(third[0]), str(third[1]), ("any.example",))),
    )  # fmt: skip
    async with secure_port(options) as port:
        shown = {
            name: await served_certificate(port, name)
            for name in ("main.example", "a.more.example", "x", "any.example")
        }
        files = {name: file[0].read_text() for name, file in (("main", main), ("more", more), ("third", third))}
        assert files["main"].startswith(shown["main.example"])
        assert files["more"].startswith(shown["a.more.example"])
        assert files["main"].startswith(shown["x"])
        assert files["third"].startswith(shown["any.example"])


async def test_a_folder_of_certificates_is_filled_once(tmp_path: Path) -> None:
    options = ServingOptions(cert_dir=str(tmp_path / "certs"))
    async with secure_port(options) as port:
        first = await served_certificate(port)
    assert (tmp_path / "certs" / "kube-scheduler.key").stat().st_mode & 0o077 == 0
    async with secure_port(options) as port:
        assert await served_certificate(port) == first


async def test_old_versions_of_tls_can_be_refused() -> None:
    async with secure_port(ServingOptions(tls_min_version="VersionTLS13")) as port:
        tls = trusting_anybody()
        tls.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", port.port, ssl=tls)


async def test_cipher_suites_can_be_chosen() -> None:
    options = ServingOptions(tls_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"))
    async with secure_port(options) as port:
        tls = trusting_anybody()
        tls.maximum_version = ssl.TLSVersion.TLSv1_2
        _, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=tls)
        assert writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
        writer.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ServingOptions(tls_cert_file="x"), "are given together or not at all"),
        (ServingOptions(tls_cert_file="/nowhere", tls_private_key_file="/nowhere"), "cannot be read: No such file"),
        (ServingOptions(tls_min_version="1.2"), "--tls-min-version: 1.2 is none of VersionTLS10, "),
        (ServingOptions(tls_cipher_suites=("RC4",)), "--tls-cipher-suites: RC4 is none of "),
        (ServingOptions(tls_sni_cert_keys=(("a", "b", ()),)), "--tls-sni-cert-key needs --tls-cert-file"),
        (trusting(client_ca_file="/nowhere"), "--client-ca-file"),
    ],
)
async def test_what_cannot_be_used_is_a_clear_error(options: ServingOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        async with secure_port(options):
            pass
