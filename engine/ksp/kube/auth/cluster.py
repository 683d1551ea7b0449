"""An API server, and how to talk to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ksp.kube.auth.credentials import User
from ksp.kube.auth.tls import Trust
from ksp.kube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a kubeconfig's context says.

    `server` is `http(s)://host:port` with an optional path and no slash at its end. `origin` says, for the start-up
    line, where that was found. `proxy` is the URL of an HTTP proxy.
    """

    server: str
    origin: str
    trust: Trust = field(default_factory=Trust)
    user: User = field(default_factory=User)
    proxy: str | None = field(default=None, repr=False)  # may hold a password
    compression: bool = True

    @property
    def encrypted(self) -> bool:
        return self.server.startswith("https://")


def server_url(text: str, what: str, *, encrypted: bool) -> str:
    """A server's address as `Cluster` holds it; `host:port` alone gets https where `encrypted`, else http.

    ConfigError, which names `what`, where it is no such address.
    """
    address = text if "://" in text else f"{'https' if encrypted else 'http'}://{text}"
    if "@" in address:
        raise ConfigError(
            f"{what} holds a user or a password, which would be sent to nobody; put them into a kubeconfig"
        )
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
        parts = urlsplit("")
    if not good or parts.query or parts.fragment or any(not "!" <= character <= "~" for character in address):
        raise ConfigError(f"{what} {text!r} is not an address like https://10.0.0.1:6443")
    return address.rstrip("/")


def proxy_url(text: str, what: str) -> str:
    """The URL of an HTTP proxy. ConfigError where it is none; that does not repeat it, as it may hold a password."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"{what} is no address like http://proxy:3128 (http and https are supported)")
    return text
