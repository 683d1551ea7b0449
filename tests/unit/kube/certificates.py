"""Certificates for tests, made on the spot."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass, field

import trustme

from ksp.kube.auth.tls import Pem, Trust


@dataclass(frozen=True)
class Authority:
    """Issues certificates of servers and of clients."""

    ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def pem(self) -> bytes:
        return bytes(self.ca.cert_pem.bytes())

    @property
    def trust(self) -> Trust:
        return Trust(Pem("the authority", self.pem))

    def server(
        self, name: str = "127.0.0.1", expires: dt.datetime | None = None, clients: Authority | None = None
    ) -> ssl.SSLContext:
        """A server's TLS under `name`; with `clients`, it demands a certificate that they issued."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(name, not_after=expires).configure_cert(context)
        if clients is not None:
            clients.ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self, name: str) -> tuple[bytes, bytes]:
        """Certificate and key of a client, as PEM; `name` is its common name."""
        issued = self.ca.issue_cert(common_name=name)
        return b"".join(blob.bytes() for blob in issued.cert_chain_pems), bytes(issued.private_key_pem.bytes())
