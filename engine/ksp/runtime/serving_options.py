"""How health, metrics and configuration are served over TLS, and to whom: kube-scheduler's flags under their names.

Fields that kube-scheduler has too have its defaults, but for `secure_port`: without more, nothing is served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SECURE_PORT: Final = 10259
"""kube-scheduler's, and the flag's default."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """`--requestheader-*`: a proxy that says in headers for whom it asks. It is believed only with a client certificate
    of `client_ca_file`, or, without that, of what the cluster says; and one of `allowed_names`, empty for any."""

    client_ca_file: str | None = None
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class Authentication:
    """Who asks. Times are in seconds. `kubeconfig`: of the server that reviews tokens, None for the scheduler's own.
    `skip_lookup`: the cluster's ConfigMap extension-apiserver-authentication is not read. `tolerate_lookup_failure`:
    if it cannot be read, it is done without; else the start fails."""

    kubeconfig: str | None = None
    token_cache_ttl: float = 10.0
    skip_lookup: bool = False
    tolerate_lookup_failure: bool = True
    client_ca_file: str | None = None
    request_header: RequestHeader = field(default_factory=RequestHeader)


@dataclass(frozen=True, slots=True)
class Authorization:
    """What they may. `always_allow_paths` need nobody's leave; one that ends in `*` means all that begin so."""

    kubeconfig: str | None = None
    authorized_ttl: float = 10.0
    unauthorized_ttl: float = 10.0
    always_allow_paths: tuple[str, ...] = ("/healthz", "/livez", "/readyz")


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """`secure_port`: None is none, 0 any that is free. Without certificate files, one is looked for in `cert_dir`
    (`kube-scheduler.crt`, `kube-scheduler.key`), and made there if there is none; without `cert_dir` in memory, new at
    each start. `tls_min_version` is VersionTLS10 to VersionTLS13; `tls_cipher_suites` are IANA's names, empty for the
    defaults. `tls_sni_cert_keys` are pairs of files and the names that they are for, empty for the certificate's own.
    """

    bind_address: str = "0.0.0.0"  # noqa: S104 - kube-scheduler's default: probes and Prometheus come from elsewhere
    secure_port: int | None = None
    cert_dir: str | None = None
    tls_cert_file: str | None = None
    tls_private_key_file: str | None = None
    tls_min_version: str | None = None
    tls_cipher_suites: tuple[str, ...] = ()
    tls_sni_cert_keys: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    authentication: Authentication = field(default_factory=Authentication)
    authorization: Authorization = field(default_factory=Authorization)
