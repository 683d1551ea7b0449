"""Credentials of an OpenID Connect provider: the kubeconfig's ID token, and after it what a refresh token gives.

New refresh tokens are kept in memory: ksp never writes a kubeconfig.
Source: client-go `plugin/pkg/client/auth/oidc`; OpenID Connect Core 1.0, section 12.
"""

from __future__ import annotations

import base64
import json
import ssl
from typing import Any, Self
from urllib.parse import quote_plus

import aiohttp

from ksp.kube.auth.credentials import Issued, basic, checked_token
from ksp.kube.auth.section import Section
from ksp.kube.auth.tls import Pem, Trust, ssl_context
from ksp.kube.errors import ConfigError

LONGEST_REFRESH = 30.0
"""Seconds for asking the provider."""


class OidcProvider:
    """An `auth-provider` called `oidc`. `name` is what messages call it."""

    def __init__(
        self,
        name: str,
        issuer_url: str,
        client: tuple[str, str],
        tokens: tuple[str | None, str | None],
        authority: Pem | None,
    ) -> None:
        """`client`: id and secret. `tokens`: ID token and refresh token."""
        self._name = name
        self._issuer_url = issuer_url.rstrip("/")
        self._client = client
        self._id_token, self._refresh_token = tokens
        self._authority = authority

    @classmethod
    def of(cls, provider: Section) -> Self:
        """From a user's `auth-provider`; ConfigError where its `config` is wrong."""
        config = provider.section("config")
        if config is None:
            raise ConfigError(f"{provider.where}: `config` is missing")
        data, path = config.base64("idp-certificate-authority-data"), config.text("idp-certificate-authority")
        source = data if data is not None else None if path is None else config.base / path
        return cls(
            f"{provider.where}: oidc",
            config.needed("idp-issuer-url"),
            (config.needed("client-id"), config.text("client-secret") or ""),
            (config.text("id-token"), config.text("refresh-token")),
            None if source is None else Pem(f"{config.where}: `idp-certificate-authority`", source),
        )

    @property
    def name(self) -> str:
        return self._name

    async def issue(self) -> Issued:
        """The configured token the first time, then new ones. ConfigError where the provider gives none."""
        token, self._id_token = self._id_token, None
        if token is None:
            token = await self._refreshed()
        return Issued(checked_token(token, self._name), expires=_expiry(token))

    async def _refreshed(self) -> str:
        if self._refresh_token is None:
            raise ConfigError(f"{self._name}: the token is not valid, and there is no refresh-token; log in again")
        try:
            told = await self._ask(self._refresh_token)
        except (aiohttp.ClientError, OSError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"{self._name}: {self._issuer_url} gives no new token: {str(error) or type(error).__name__}"
            ) from error
        token, refresh = told.get("id_token"), told.get("refresh_token")
        if not isinstance(token, str):
            raise ConfigError(f"{self._name}: {self._issuer_url} answers without an id_token")
        if isinstance(refresh, str):
            self._refresh_token = refresh
        return token

    async def _ask(self, refresh_token: str) -> dict[str, Any]:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls()),
            headers={"Authorization": basic(*map(quote_plus, self._client))},  # RFC 6749, section 2.3.1
            timeout=aiohttp.ClientTimeout(total=LONGEST_REFRESH),
            raise_for_status=True,
        ) as session:
            async with session.get(f"{self._issuer_url}/.well-known/openid-configuration") as answer:
                endpoint = str((await _json(answer)).get("token_endpoint"))
            form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
            async with session.post(endpoint, data=form, allow_redirects=False) as answer:
                return await _json(answer)

    def _tls(self) -> ssl.SSLContext:
        return ssl_context(Trust(self._authority), None if self._authority is None else self._authority.read(), None)


async def _json(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    found = json.loads(await answer.read())
    if not isinstance(found, dict):
        raise ValueError("the answer is not an object")  # noqa: TRY004 - it is a wrong value, not a wrong call
    return found


def _expiry(token: str) -> float | None:
    """The `exp` of a JWT, in seconds since 1970; None where it has none that can be read: then a 401 will tell."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None
