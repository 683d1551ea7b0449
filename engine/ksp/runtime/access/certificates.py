"""The server's certificates, and TLS with them: files that may change at any time, or made on the spot.

Each connection gets the certificates, and the authorities of clients, that count when it begins: the callback for the
name that the client asks for chooses them, whether it asks for one or not. Files are looked at once a second at most.
If new ones cannot be used, the old ones stay, and the log says so.
"""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme
from cryptography import x509

from ksp.kube.auth.tls import KeyPair, load_pair, read_file
from ksp.kube.errors import ConfigError
from ksp.runtime.access.ciphers import oldest_version, openssl_ciphers
from ksp.runtime.log import entry
from ksp.runtime.serving_options import ServingOptions

_log = logging.getLogger(__name__)

LOOK: Final = 1.0
"""Seconds between two looks at files."""
PAIR_NAME: Final = "kube-scheduler"
"""Of the files in `--cert-dir`."""

_DNS: Final = re.compile(r"(?!-)[a-zA-Z0-9-]{1,63}(?<!-)(\.(?!-)[a-zA-Z0-9-]{1,63}(?<!-))*")

Authorities = Callable[[], bytes]
"""Whose client certificates are taken: PEM, b"" for nobody's."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where one certificate is; `names` are those that it is for, empty for its own."""

    certificate: Path
    key: Path
    names: tuple[str, ...] = ()

    def mark(self) -> tuple[object, ...]:
        return tuple(_mark(path) for path in (self.certificate, self.key))

    def read(self) -> KeyPair:
        what = f"the serving certificate ({self.certificate}, {self.key})"
        return KeyPair(read_file(self.certificate, what), read_file(self.key, what), what)


class ServerTls:
    """`context` is what a server is started with."""

    def __init__(
        self, options: ServingOptions, hosts: Sequence[str], authorities: Authorities, now: Callable[[], float]
    ) -> None:
        """`hosts` are names and addresses for a certificate that is made here. Raises ConfigError."""
        self._oldest = oldest_version(options.tls_min_version)
        self._ciphers = openssl_ciphers(options.tls_cipher_suites)
        self._authorities = authorities
        self._now = now
        self._sources = _sources(options, hosts)
        self._looked = now()
        self._seen = self._marks(), authorities()
        self._pairs = self._read() or [_made(hosts)]
        self._trusted = self._seen[1]
        self._contexts = self._built(self._pairs, self._trusted)
        self.context = self._contexts[0][1]
        self.context.sni_callback = self._chosen

    def _marks(self) -> list[object]:
        return [source.mark() for source in self._sources]

    def _read(self) -> list[KeyPair]:
        """Raises ConfigError."""
        return [source.read() for source in self._sources]

    def _built(self, pairs: Sequence[KeyPair], trusted: bytes) -> list[tuple[tuple[str, ...], ssl.SSLContext]]:
        """For each pair the names that it is for. Raises ConfigError."""
        contexts = []
        for index, pair in enumerate(pairs):
            given = self._sources[index].names if self._sources else ()
            contexts.append((given or _names_in(pair), self._context(pair, trusted)))
        return contexts

    def _context(self, pair: KeyPair, trusted: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._oldest
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.options |= ssl.OP_NO_TICKET  # a resumed session would keep a certificate that counts no more
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        if self._ciphers is not None:
            context.set_ciphers(self._ciphers)
        if trusted:
            try:
                context.load_verify_locations(cadata=trusted.decode("ascii", "ignore"))
            except (ssl.SSLError, ValueError) as error:
                raise ConfigError(f"the authorities of clients cannot be read: {error}") from error
            context.verify_mode = ssl.CERT_OPTIONAL
        load_pair(context, pair)
        return context

    def _chosen(self, connection: ssl.SSLObject, name: str | None, _first: ssl.SSLContext) -> None:
        self.look()
        wanted = (name or "").lower()
        found = next((context for names, context in self._contexts[1:] if _fits(wanted, names)), self._contexts[0][1])
        connection.context = found

    def look(self) -> None:
        """Builds anew what has changed. Whether a connection is asked for a certificate is decided before the callback:
        so this is called as soon as other authorities are known."""
        now, trusted = self._now(), self._authorities()
        known, before = self._seen
        marks = known
        if now - self._looked >= LOOK:
            self._looked, marks = now, self._marks()
        if (marks, trusted) == self._seen:
            return
        self._seen = marks, trusted  # what cannot be used is not tried again before it is another
        if trusted != before:
            self._rebuild(lambda: self._pairs, trusted)
        if marks != known and self._rebuild(self._read, self._trusted):
            _log.info("the serving certificate was read again")

    def _rebuild(self, read: Callable[[], list[KeyPair]], trusted: bytes) -> bool:
        """Whether that could be done; else all stays."""
        try:
            pairs = read()
            self._contexts = self._built(pairs, trusted)
        except ConfigError as error:
            _log.warning(entry("cannot use new certificates, the old ones stay", error=str(error)))
            return False
        self._pairs, self._trusted = pairs, trusted
        self.context.verify_mode = ssl.CERT_OPTIONAL if trusted else ssl.CERT_NONE
        return True


def _sources(options: ServingOptions, hosts: Sequence[str]) -> list[_Source]:
    certificate, key = options.tls_cert_file, options.tls_private_key_file
    if bool(certificate) != bool(key):
        raise ConfigError("--tls-cert-file and --tls-private-key-file are given together or not at all")
    more = [_Source(Path(cert), Path(key), names) for cert, key, names in options.tls_sni_cert_keys]
    if certificate and key:
        return [_Source(Path(certificate), Path(key)), *more]
    if options.cert_dir:
        return [_in_folder(Path(options.cert_dir), hosts), *more]
    if more:
        raise ConfigError("--tls-sni-cert-key needs --tls-cert-file and --tls-private-key-file, for all other names")
    return []


def _in_folder(folder: Path, hosts: Sequence[str]) -> _Source:
    """The pair in it; made there if there is none. Raises ConfigError."""
    source = _Source(folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key")
    if not source.certificate.exists() and not source.key.exists():
        made = _made(hosts)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            source.key.touch(0o600)
            source.key.write_bytes(made.key)
            source.certificate.write_bytes(made.certificate)
        except OSError as error:
            raise ConfigError(f"--cert-dir {folder}: no certificate can be written: {error.strerror}") from error
    return source


def _made(hosts: Sequence[str]) -> KeyPair:
    """For these names and addresses, by an authority that nobody has. What no certificate can be for is left out: a
    computer may be called so."""
    issued = trustme.CA().issue_cert(*(host for host in dict.fromkeys(hosts) if ":" in host or _DNS.fullmatch(host)))
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    return KeyPair(chain, issued.private_key_pem.bytes(), "the serving certificate that was made")


def _names_in(pair: KeyPair) -> tuple[str, ...]:
    """Raises ConfigError."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    except ValueError as error:
        raise ConfigError(f"{pair.what} cannot be read: {error}") from error
    return tuple(name.lower() for name in found.get_values_for_type(x509.DNSName))


def _fits(wanted: str, names: Sequence[str]) -> bool:
    """`*.example.org` stands for one label more."""
    rest = wanted.partition(".")[2]
    return bool(wanted) and any(name == wanted or (rest and name == f"*.{rest}") for name in names)


def _mark(path: Path) -> object:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
