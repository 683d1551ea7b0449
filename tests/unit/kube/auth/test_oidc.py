from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.unit.kube.certificates import Authority
from tests.unit.kube.servers import serving

from ksp.kube.auth.credentials import Issued, basic
from ksp.kube.auth.oidc import OidcProvider
from ksp.kube.auth.section import Section
from ksp.kube.auth.tls import Pem
from ksp.kube.errors import ConfigError

AUTHORITY = Authority()


def jwt(**claims: Any) -> str:
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}.x"


def provider(url: str, config: dict[str, str], authority: Authority = AUTHORITY) -> OidcProvider:
    content = {
        "idp-issuer-url": url,
        "client-id": "ksp",
        "client-secret": "s3",
        "idp-certificate-authority-data": base64.b64encode(authority.pem).decode(),
        **config,
    }
    return OidcProvider.of(Section({"config": content}, "user `u`", Path("/base")))


class Idp:
    """An identity provider that gives a new ID token and a new refresh token each time."""

    def __init__(self) -> None:
        self.refresh = 1

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/realm/.well-known/openid-configuration":
            return web.json_response({"token_endpoint": f"{request.url.origin()}/token"})
        form = await request.post()
        good = {"grant_type": "refresh_token", "refresh_token": f"r{self.refresh}"}
        if request.headers["Authorization"] != basic("ksp", "s3") or dict(form) != good:
            return web.Response(status=400)
        self.refresh += 1
        return web.json_response({"id_token": jwt(exp=1000 * self.refresh), "refresh_token": f"r{self.refresh}"})


async def test_the_configured_token_and_then_new_ones() -> None:
    async with serving(Idp().answer, AUTHORITY.server()) as server:
        issuer = provider(f"{server.server}/realm/", {"id-token": jwt(exp=1000), "refresh-token": "r1"})
        assert await issuer.issue() == Issued(jwt(exp=1000), expires=1000)
        assert await issuer.issue() == Issued(jwt(exp=2000), expires=2000)
        assert await issuer.issue() == Issued(jwt(exp=3000), expires=3000)


async def test_a_provider_that_is_not_trusted_learns_nothing() -> None:
    idp = Idp()
    async with serving(idp.answer, AUTHORITY.server()) as server:
        with pytest.raises(ConfigError, match=f"user `u`: oidc: {server.server}/realm gives no new token"):
            await provider(f"{server.server}/realm", {"refresh-token": "r1"}, Authority()).issue()
    assert idp.refresh == 1


async def test_a_provider_that_refuses() -> None:
    async with serving(Idp().answer, AUTHORITY.server()) as server:
        with pytest.raises(ConfigError, match="gives no new token: 400"):
            await provider(f"{server.server}/realm", {"refresh-token": "stale"}).issue()


@pytest.mark.parametrize("body", ["null", "x", "{}", '{"token_endpoint": 7}'])
async def test_a_provider_that_answers_nonsense(body: str) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=body)

    async with serving(answer, AUTHORITY.server()) as server:
        with pytest.raises(ConfigError, match="gives no new token"):
            await provider(server.server, {"refresh-token": "r1"}).issue()


async def test_without_refresh_token() -> None:
    issuer = provider("https://idp.invalid", {"id-token": "opaque"})
    assert await issuer.issue() == Issued("opaque", expires=None)
    with pytest.raises(ConfigError, match="there is no refresh-token; log in again"):
        await issuer.issue()


def test_an_authority_in_a_file() -> None:
    content = {"idp-issuer-url": "https://x", "client-id": "ksp", "idp-certificate-authority": "ca.crt"}
    issuer = OidcProvider.of(Section({"config": content}, "user `u`", Path("/base")))
    assert issuer._authority == Pem("user `u`: `config`: `idp-certificate-authority`", Path("/base/ca.crt"))
