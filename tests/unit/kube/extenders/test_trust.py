"""TLS with an extender: how it is known, and ksp to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.certificates import Authority
from tests.unit.kube.extender_server import extending
from tests.unit.kube.extenders.asking import NODES, POD, asking, failure, good

from ksp.kube.extenders import ExtenderError
from ksp.kube.extenders.trust import caution_of
from ksp.policy.extender import Extender, ExtenderTLS


async def answers(url: str, **fields: Any) -> bool:
    async with asking(url, **fields) as client:
        return (await client.filter(POD, NODES)).names == ("a",)


async def test_its_certificate_is_held_against_the_authority() -> None:
    ours, other = Authority(), Authority()
    async with extending({"filter": good}, ours.server()) as server:
        assert await answers(server.url, enable_https=True, tls=ExtenderTLS(ca_data=ours.pem))
        error = await failure(server.url, enable_https=True, tls=ExtenderTLS(ca_data=other.pem))
        assert "the server's certificate is not trusted" in str(error)
        assert "correct the authority in its tlsConfig" in str(error)
        error = await failure(server.url)  # the system's authorities know nothing of it
        assert "not trusted" in str(error)


async def test_without_an_authority_https_trusts_everybody_as_in_kube_scheduler() -> None:
    async with extending({"filter": good}, Authority().server("elsewhere")) as server:
        assert await answers(server.url, enable_https=True)
        assert await answers(server.url, tls=ExtenderTLS(insecure=True))


async def test_the_name_in_its_certificate_may_be_another() -> None:
    ours = Authority()
    async with extending({"filter": good}, ours.server("extender.example")) as server:
        assert await answers(server.url, tls=ExtenderTLS(ca_data=ours.pem, server_name="extender.example"))
        error = await failure(server.url, tls=ExtenderTLS(ca_data=ours.pem))
    assert "not trusted" in str(error)


async def test_ksp_proves_who_it_is_and_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    ours, clients, strangers = Authority(), Authority(), Authority()
    files = {name: tmp_path / name for name in ("ca", "cert", "key")}
    tls = ExtenderTLS(ca_file=str(files["ca"]), cert_file=str(files["cert"]), key_file=str(files["key"]))
    async with (
        extending({"filter": good}, ours.server(clients=clients)) as server,
        asking(server.url, tls=tls) as client,
    ):
        with pytest.raises(ExtenderError, match=r"tlsConfig.caFile \(.*\) cannot be read: No such file"):
            await client.filter(POD, NODES)
        files["ca"].write_bytes(ours.pem)
        put_pair(files, strangers)
        with pytest.raises(ExtenderError) as refused:
            await client.filter(POD, NODES)
        assert refused.value.outcome in {"unreachable", "lost"}  # the refusal, or the end of the connection
        put_pair(files, clients)
        assert (await client.filter(POD, NODES)).names == ("a",)


def put_pair(files: Mapping[str, Path], authority: Authority) -> None:
    """Replaced, as a mounted secret is: another file under the name."""
    for name, content in zip(("cert", "key"), authority.client("ksp"), strict=True):
        new = files[name].with_suffix(".new")
        new.write_bytes(content)
        new.replace(files[name])


@pytest.mark.parametrize(
    ("tls", "why"),
    [
        (ExtenderTLS(insecure=True, ca_data=b"x"), "tlsConfig has both insecure and an authority"),
        (ExtenderTLS(cert_data=b"x"), "needs both a certificate"),
        (ExtenderTLS(ca_data=b"no PEM"), "tlsConfig.caData is not PEM"),
    ],
)
async def test_tls_that_cannot_be_used_is_said_so(tls: ExtenderTLS, why: str) -> None:
    assert why in str(await failure("https://127.0.0.1:1", tls=tls))


@pytest.mark.parametrize(
    ("extender", "caution"),
    [
        (Extender("https://x"), ""),
        (Extender("http://x"), ""),
        (Extender("https://x", enable_https=True, tls=ExtenderTLS(insecure=True)), ""),
        (Extender("https://x", enable_https=True, tls=ExtenderTLS(ca_file="ca")), ""),
        (Extender("https://x", enable_https=True, tls=ExtenderTLS(server_name="y")), "not verified"),
        (Extender("https://x", enable_https=True), "not verified"),
        (Extender("http://x", enable_https=True), "no TLS is spoken"),
    ],
)
def test_what_operators_may_not_expect_of_tls_is_said(extender: Extender, caution: str) -> None:
    assert caution in caution_of(extender)
    assert bool(caution) == bool(caution_of(extender))
