"""Whose client certificates count, and which proxies are believed: files of the flags, and what the cluster says in the
ConfigMap kube-system/extension-apiserver-authentication. A file goes before the ConfigMap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from ksp.kube.auth.tls import Pem
from ksp.kube.errors import ApiError, ConfigError, KubeError
from ksp.kube.http.client import Client
from ksp.kube.http.reader import MalformedError
from ksp.kube.timers import Timers
from ksp.runtime.log import Seldom
from ksp.runtime.serving_options import Authentication, RequestHeader

_log = logging.getLogger(__name__)

PATH: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
ADVICE: Final = "bind the Role extension-apiserver-authentication-reader of kube-system to ksp's service account"
EVERY: Final = 60.0
"""Seconds between two looks at the ConfigMap."""
SOON: Final = 5.0
"""The same until it was read for the first time."""
LOOK: Final = 1.0
"""Seconds between two looks at a file."""
TIMEOUT: Final = 10.0


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the ConfigMap says: PEM of the authorities for clients, and for proxies; and how proxies tell."""

    clients: bytes = b""
    proxies: bytes = b""
    header: RequestHeader | None = None


class Authorities:
    """PEM texts, as they are now."""

    def __init__(self, settings: Authentication, timers: Timers) -> None:
        """`changed` is called when the ConfigMap was read. Raises ConfigError if a file of the flags cannot be used."""
        self.changed: Callable[[], None] = _tell_nobody
        self._settings = settings
        self._timers = timers
        self._seldom = Seldom(_log, timers.now)
        self._cluster = Cluster()
        self._read_once = False
        self._clients = _File("--client-ca-file", settings.client_ca_file, timers)
        self._proxies = _File("--requestheader-client-ca-file", settings.request_header.client_ca_file, timers)

    def clients(self) -> bytes:
        """b"" if no certificate of a client counts."""
        return self._clients.text() or self._cluster.clients

    def proxies(self) -> bytes:
        """b"" if no proxy is believed."""
        return self._proxies.text() or self._cluster.proxies

    def both(self) -> bytes:
        """For TLS, which does not tell them apart."""
        return b"\n".join(filter(None, (self.clients(), self.proxies())))

    @property
    def header(self) -> RequestHeader:
        """How a proxy says for whom it asks."""
        if self._settings.request_header.client_ca_file or self._cluster.header is None:
            return self._settings.request_header
        return self._cluster.header

    async def look_up(self, client: Client) -> None:
        """Where the start fails without the ConfigMap: raises ConfigError if it cannot be read. Else it is not waited
        for, since decisions do not depend on it."""
        if self._settings.skip_lookup or self._settings.tolerate_lookup_failure:
            return
        why = await self._read(client, retry=True)
        if why:
            raise ConfigError(f"cannot read who may ask for metrics: {why}; {ADVICE}")

    async def run(self, client: Client) -> None:
        """Reads it again and again, until cancelled."""
        while not self._settings.skip_lookup:
            why = await self._read(client, retry=False)
            await self._timers.sleep(SOON if why and not self._read_once else EVERY)

    async def _read(self, client: Client, *, retry: bool) -> str:
        """Why that failed; what was known stays."""
        try:
            answer = await client.request("GET", PATH, timeout=TIMEOUT, retry=retry)
            self._cluster = _told(answer.body)
            self._read_once = True
            self.changed()
        except KubeError as error:
            why = "it may not be read" if isinstance(error, ApiError) and error.status == 403 else str(error)
            about = "client certificates and proxies that the cluster knows are not taken"
            self._seldom.say("", about, configmap="extension-apiserver-authentication", error=why, advice=ADVICE)
            return why
        return ""


class _File:
    """PEM in a file that may change."""

    def __init__(self, flag: str, path: str | None, timers: Timers) -> None:
        self._pem = Pem(flag, Path(path)) if path else None
        self._timers = timers
        self._looked = timers.now()
        self._text = self._pem.read() if self._pem is not None else b""
        self._seldom = Seldom(_log, timers.now)

    def text(self) -> bytes:
        """As it was, if it cannot be read any more."""
        if self._pem is not None and self._timers.now() - self._looked >= LOOK:
            self._looked = self._timers.now()
            try:
                self._text = self._pem.read()
            except ConfigError as error:
                self._seldom.say("", "what was in a file before stays", error=str(error))
        return self._text


def _told(text: bytes) -> Cluster:
    """Raises MalformedError."""
    try:
        data = msgspec.json.decode(text, type=_ConfigMap).data
        names = ("allowed-names", "username-headers", "group-headers", "extra-headers-prefix")
        allowed, users, groups, prefixes = (_listed(data.get(f"requestheader-{name}")) for name in names)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"the ConfigMap cannot be read: {error}") from error
    header = RequestHeader(None, allowed, users, groups, prefixes)
    clients, proxies = (data.get(f"{name}client-ca-file", "").encode() for name in ("", "requestheader-"))
    return Cluster(clients, proxies, header)


def _listed(text: str | None) -> tuple[str, ...]:
    """A JSON list of names. Raises DecodeError."""
    return () if text is None else msgspec.json.decode(text, type=tuple[str, ...])


def _tell_nobody() -> None:
    """Where nobody serves."""
