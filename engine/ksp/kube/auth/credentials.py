"""Who ksp is to the server: credentials that are loaded again before they expire and when they are refused.

Callers: `ksp.kube.http.client`. Two kinds change while ksp runs:

- files (tokens of service accounts, certificates, authorities) are read again once a minute, and after a 401;
- an `Issuer` (an exec plugin, an OIDC provider) is asked again shortly before what it issued expires, and after a 401.
  One question is under way at a time, whoever waits for it; while the old credentials are good nobody waits.

If loading fails, the old credentials stay until the server refuses them; `problem` says why, and the log has it once.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ksp.kube.auth.tls import KeyPair, Pem, Trust, read_file, ssl_context
from ksp.kube.errors import ConfigError
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import WallClock

FILE_INTERVAL = 60.0
"""Seconds between two looks at the files, as in client-go."""
MARGIN = 0.2
"""The part of a credential's life that is left when the next one is asked for,"""
LONGEST_MARGIN = 60.0
"""but at most so many seconds."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds between two questions to an issuer that fails; doubled from the first."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Issued:
    """What an issuer gives: a bearer token, a client certificate, or both. `expires`: seconds since 1970."""

    token: str | None = field(repr=False)
    pair: KeyPair | None = None
    expires: float | None = None


class Issuer(Protocol):
    """Gives credentials when asked: an exec plugin or an OIDC provider. `name` stands in messages."""

    @property
    def name(self) -> str: ...

    async def issue(self) -> Issued:
        """New credentials within a bounded time; ConfigError where it fails."""
        ...


@dataclass(frozen=True, slots=True)
class User:
    """How ksp proves who it is, as configured. A token's file or an issuer's token goes before `authorization`."""

    authorization: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    issuer: Issuer | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """What goes with a request: headers, and the TLS context of its connection (None: plain HTTP)."""

    headers: tuple[tuple[str, str], ...] = field(repr=False)
    tls: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class _Material:
    """All that a grant is made of, to see whether it changed."""

    authorization: str | None = field(repr=False)
    pair: KeyPair | None = field(repr=False)
    authority: bytes | None


class Credentials:
    """The current grant. `start` before anything else, `close` at the end."""

    def __init__(
        self,
        user: User,
        trust: Trust | None,
        timers: Timers,
        clock: WallClock,
    ) -> None:
        """`trust` is None for plain HTTP. `clock` is what expiry is compared with."""
        self.problem: str | None = None
        self._user = user
        self._trust = trust
        self._timers = timers
        self._clock = clock
        self._material: _Material | None = None
        self._grant = Grant((), None)
        self._look_at = 0.0
        self._issued = Issued(None)
        self._renew_at: float | None = None  # wall time
        self._pause = 0.0
        self._not_before = -float("inf")  # timers
        self._renewal: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Loads everything for the first time. ConfigError where something is missing or broken."""
        if self._user.issuer is not None:
            self._accept(await self._user.issuer.issue())
        else:
            self._load_files()

    async def close(self) -> None:
        """Ends a renewal that is under way."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])

    async def current(self) -> Grant:
        """What the next request goes with. Waits only if the credentials have expired and new ones are on their way."""
        if self._timers.now() >= self._look_at:
            self._look_at_files()
        if self._renew_at is not None and self._clock.wall().timestamp() >= self._renew_at:
            await self._renew_in_time()
        return self._grant

    async def refused(self, grant: Grant) -> bool:
        """The server does not accept `grant` (401): loads again. Whether `current` gives something else now."""
        if self._grant is grant:
            if self._user.issuer is not None:
                await asyncio.shield(self._renewing())
            self._look_at_files()
        return self._grant is not grant

    async def _renew_in_time(self) -> None:
        if self._renewal is None and self._timers.now() < self._not_before:
            return
        renewal = self._renewing()
        if self._issued.expires is None or self._clock.wall().timestamp() >= self._issued.expires:
            await asyncio.shield(renewal)

    def _renewing(self) -> asyncio.Task[None]:
        """The renewal under way, or a new one."""
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew())
        return self._renewal

    async def _renew(self) -> None:
        issuer = self._user.issuer
        assert issuer is not None
        try:
            self._accept(await issuer.issue())
        except ConfigError as error:
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
            self._not_before = self._timers.now() + self._pause
            self._report(str(error))
        else:
            self._report(None)
        finally:
            self._renewal = None

    def _accept(self, issued: Issued) -> None:
        """Uses what was issued, and sees when the next is to be asked for. ConfigError where it is of no use."""
        self._use(issued)
        self._pause = 0.0
        self._renew_at = None
        if issued.expires is not None:
            left = max(0.0, issued.expires - self._clock.wall().timestamp())
            self._renew_at = issued.expires - min(left * MARGIN, LONGEST_MARGIN)
            # What has expired when it arrives must not make every request ask again.
            self._not_before = self._timers.now() + (FIRST_PAUSE if left <= 0 else 0.0)

    def _look_at_files(self) -> None:
        try:
            self._load_files()
        except ConfigError as error:
            self._report(str(error))
        else:
            if self._user.issuer is None:
                self._report(None)

    def _load_files(self) -> None:
        self._look_at = self._timers.now() + FILE_INTERVAL
        self._use(self._issued)

    def _use(self, issued: Issued) -> None:
        """Makes a new grant if anything changed."""
        material = self._read(issued)
        if material != self._material:
            self._grant = self._granted(material)
        self._material = material
        self._issued = issued

    def _granted(self, material: _Material) -> Grant:
        """The TLS context stays the same object while the certificates are the same, and so do the connections."""
        before, tls = self._material, self._grant.tls
        if before is None or (before.pair, before.authority) != (material.pair, material.authority):
            tls = None if self._trust is None else ssl_context(self._trust, material.authority, material.pair)
        given = () if material.authorization is None else (("Authorization", material.authorization),)
        return Grant((*self._user.headers, *given), tls)

    def _read(self, issued: Issued) -> _Material:
        user = self._user
        authorization = user.authorization
        if user.token_file is not None:
            authorization = f"Bearer {token_in(user.token_file)}"
        elif issued.token is not None:
            authorization = f"Bearer {issued.token}"
        if self._trust is None:
            return _Material(authorization, None, None)
        pair = issued.pair
        if pair is None and user.certificate is not None and user.key is not None:
            what = f"{user.certificate} with {user.key}"
            pair = KeyPair(user.certificate.read(), user.key.read(), what)
        return _Material(authorization, pair, None if self._trust.authority is None else self._trust.authority.read())

    def _report(self, problem: str | None) -> None:
        if problem != self.problem:
            if problem is None:
                log.info("credentials are loaded again")
            else:
                log.warning("credentials could not be loaded again, the old ones stay in use: %s", problem)
        self.problem = problem


def token_in(path: Path) -> str:
    """The token that a file holds, without the newline at its end. ConfigError if it is empty or not text."""
    try:
        token = read_file(path, "the token file").decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the token file ({path}) holds something else than a token") from error
    if not token:
        raise ConfigError(f"the token file ({path}) is empty; whoever writes it has to write a token into it")
    return checked_token(token, f"the token file ({path})")


def checked_token(token: str, what: str) -> str:
    """`token`, if it can stand in a header; ConfigError otherwise."""
    if not token or not token.isascii() or any(not "!" <= character <= "~" for character in token):
        raise ConfigError(f"{what} holds a token with blanks or line breaks; a token is one word")
    return token


def basic(name: str, password: str) -> str:
    """The value of the header that carries a name and a password (RFC 7617)."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def bearer(token: str, what: str) -> str:
    """The value of the header that carries `token`."""
    return f"Bearer {checked_token(token, what)}"
