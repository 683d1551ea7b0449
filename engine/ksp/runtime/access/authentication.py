"""Who sends a request: a proxy for somebody else, the owner of a client certificate, that of a token, or nobody known.

The order is kube-scheduler's. TLS has verified a certificate before it comes here, against the authorities of clients
and those of proxies together; here it is told apart whose it is, by the key that signed it: so both have to be named
directly, without authorities between them and the certificate.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from ksp.kube.wall_clock import WallClock
from ksp.runtime.access.authorities import Authorities
from ksp.runtime.access.reviews import Identity, TokenReviews
from ksp.runtime.serving_options import RequestHeader

ANONYMOUS: Final = Identity("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED: Final = "system:authenticated"


class Headers(Protocol):
    """Those of a request, as aiohttp has them: names without case, each with all its values."""

    def __iter__(self) -> Iterator[str]: ...

    def get(self, name: str, default: str, /) -> str: ...

    def getall(self, name: str, default: tuple[str, ...], /) -> Sequence[str]: ...


class Authenticator:
    """`identity` of each request."""

    def __init__(self, authorities: Authorities, tokens: TokenReviews, clock: WallClock) -> None:
        self._authorities = authorities
        self._tokens = tokens
        self._clock = clock

    async def identity(self, headers: Headers, tls: ssl.SSLObject | None) -> Identity | None:
        """None if there are credentials that do not hold. Raises KubeError."""
        certificate = _certificate(tls, self._clock.wall())
        if certificate is not None:
            proxied = self._proxied(certificate, headers)
            if proxied is not None:
                return proxied
            if _is_signed_by(certificate, self._authorities.clients()):
                return _owner(certificate)
        authorization = headers.get("Authorization", "")
        scheme, _, token = authorization.partition(" ")
        if not authorization:
            return ANONYMOUS
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            return None
        return await self._tokens.identity(token)

    def _proxied(self, certificate: x509.Certificate, headers: Headers) -> Identity | None:
        """For whom a proxy asks; None if this is no proxy, or one that asks for itself."""
        header = self._authorities.header
        name = next(filter(None, (headers.get(each, "") for each in header.username_headers)), "")
        if not name or not _is_signed_by(certificate, self._authorities.proxies()):
            return None
        if header.allowed_names and _common_name(certificate) not in header.allowed_names:
            return None
        groups = tuple(group for each in header.group_headers for group in headers.getall(each, ()))
        return Identity(name, _authenticated(groups), extra=tuple(sorted(_extra(header, headers).items())))


def _extra(header: RequestHeader, headers: Headers) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for prefix in header.extra_headers_prefix:
        for name in headers:
            if name.lower().startswith(prefix.lower()):
                found[unquote(name[len(prefix) :].lower())] = tuple(headers.getall(name, ()))
    return found


def _certificate(tls: ssl.SSLObject | None, now: dt.datetime) -> x509.Certificate | None:
    """The client's, if there is one and its time has not run out since the connection began."""
    der = tls.getpeercert(binary_form=True) if tls is not None else None
    if der is None:
        return None
    certificate = x509.load_der_x509_certificate(der)
    return certificate if certificate.not_valid_after_utc >= now else None


def _is_signed_by(certificate: x509.Certificate, authorities: bytes) -> bool:
    return any(_signed(certificate, authority) for authority in _loaded(authorities))


def _loaded(authorities: bytes) -> Iterator[x509.Certificate]:
    """What is there and can be read: TLS has complained of the rest."""
    try:
        yield from x509.load_pem_x509_certificates(authorities) if authorities else ()
    except ValueError:
        return


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _owner(certificate: x509.Certificate) -> Identity | None:
    name = _common_name(certificate)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return Identity(name, _authenticated(tuple(str(group.value) for group in groups))) if name else None


def _common_name(certificate: x509.Certificate) -> str:
    """The last one, which is the one that API servers see too."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


def _authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
