"""Certificates and keys: what a kubeconfig names, read and put into an SSLContext of ksp's own.

Keys that stand in a kubeconfig are written to a folder that only this user can read, for as long as OpenSSL reads them.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from ksp.kube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or key: in a file, which may change while ksp runs, or as data. `what` names it in messages."""

    what: str
    source: Path | bytes = field(repr=False)

    def read(self) -> bytes:
        """The PEM text. ConfigError if the file cannot be read or has no PEM block."""
        text = self.source if isinstance(self.source, bytes) else read_file(self.source, self.what)
        if b"-----BEGIN " not in text:
            raise ConfigError(f"{self} is not PEM: it has no line -----BEGIN ...-----; put a PEM file there")
        return text

    def __str__(self) -> str:
        return self.what if isinstance(self.source, bytes) else f"{self.what} ({self.source})"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate (with its chain) and its key, as PEM; `what` names them in messages."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    what: str


@dataclass(frozen=True, slots=True)
class Trust:
    """How the server is known: by which authorities (None: the system's), under which name (None: the address's)."""

    authority: Pem | None = None
    verify: bool = True
    server_name: str | None = None


def read_file(path: Path, what: str) -> bytes:
    """The content; ConfigError that names `what` and the path where that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} ({path}) cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a null character in the name
        raise ConfigError(f"{what} ({path}) cannot be read: {error}") from error


def ssl_context(trust: Trust, authority: bytes | None, pair: KeyPair | None) -> ssl.SSLContext:
    """TLS 1.2 and later; the server's certificate is verified unless the kubeconfig says otherwise."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not trust.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority is None:
        context.load_default_certs()
    else:
        _load_authority(context, authority, trust)
    if pair is not None:
        load_pair(context, pair)
    return context


def _load_authority(context: ssl.SSLContext, authority: bytes, trust: Trust) -> None:
    try:
        context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{trust.authority} holds no certificates that can be read: {_reason(error)}") from error


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    if b"ENCRYPTED" in pair.key:
        raise ConfigError(f"{pair.what}: the key is encrypted, and nobody can be asked; store it decrypted")
    try:
        with tempfile.TemporaryDirectory(prefix="ksp-") as folder:  # mode 0700
            certificate, key = Path(folder, "certificate"), Path(folder, "key")
            for path, content in ((certificate, pair.certificate), (key, pair.key)):
                path.touch(0o600)
                path.write_bytes(content)
            context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{pair.what} cannot be used: {_mismatch(error)}") from error
    except OSError as error:
        raise ConfigError(
            f"{pair.what} cannot be used: OpenSSL reads keys from files only, and none can be written "
            f"({error}); set TMPDIR to a folder that can be written to"
        ) from error


def _mismatch(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate"
    return f"the certificate or the key is damaged ({_reason(error)})"


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).lower().replace("_", " ")
