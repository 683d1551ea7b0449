"""How an extender is known, and ksp to it: TLS from what its configuration names, made anew when files change."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from ksp.kube.auth.tls import KeyPair, Pem, Trust, ssl_context
from ksp.kube.errors import ConfigError
from ksp.policy.extender import Extender, ExtenderTLS

_NONE: Final = ExtenderTLS()

Stamp = tuple[tuple[int, int] | None, ...]


def trust_of(extender: Extender) -> Trust:
    """What the extender's certificate is held against. With `enableHTTPS` and no authority that is nothing at all, as
    in kube-scheduler. ConfigError for an authority beside `insecure`, which kube-scheduler refuses, too."""
    tls = extender.tls or _NONE
    authority = _pem("tlsConfig.caFile", tls.ca_file, tls.ca_data)
    if authority is not None and tls.insecure:
        raise ConfigError("tlsConfig has both insecure and an authority (caFile, caData): take one of them away")
    return Trust(authority, verify=not (tls.insecure or is_unverified(extender)), server_name=tls.server_name or None)


def is_unverified(extender: Extender) -> bool:
    """Nobody asked for that in so many words: `enableHTTPS` without an authority."""
    tls = extender.tls or _NONE
    return extender.enable_https and not tls.insecure and not tls.ca_file and not tls.ca_data


def caution_of(extender: Extender) -> str:
    """What operators may not expect of the extender's TLS; "" if there is nothing."""
    if not extender.enable_https:
        return ""
    if not extender.url_prefix.startswith("https:"):
        return "enableHTTPS, but its urlPrefix does not begin with https: so, as in kube-scheduler, no TLS is spoken"
    return (
        "enableHTTPS without a CA: its certificate is not verified, as in kube-scheduler"
        if is_unverified(extender)
        else ""
    )


def context_of(extender: Extender) -> ssl.SSLContext:
    """Made from the files as they are now. ConfigError for what cannot be used."""
    tls, trust = extender.tls or _NONE, trust_of(extender)
    authority = None if trust.authority is None else trust.authority.read()
    return ssl_context(trust, authority, _pair(tls))


def stamp_of(extender: Extender) -> Stamp:
    """Another one when a file is another."""
    tls = extender.tls or _NONE
    return tuple(_seen(path) for path in (tls.ca_file, tls.cert_file, tls.key_file) if path)


def _seen(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _pem(what: str, file: str, data: bytes) -> Pem | None:
    """Data comes before a file, as in client-go."""
    if data:
        return Pem(what.replace("File", "Data"), data)
    return Pem(what, Path(file)) if file else None


def _pair(tls: ExtenderTLS) -> KeyPair | None:
    certificate = _pem("tlsConfig.certFile", tls.cert_file, tls.cert_data)
    key = _pem("tlsConfig.keyFile", tls.key_file, tls.key_data)
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("tlsConfig needs both a certificate (certFile, certData) and its key (keyFile, keyData)")
    return KeyPair(certificate.read(), key.read(), f"{certificate} and {key}")
