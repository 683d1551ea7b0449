"""The secure port: TLS, and the cluster's word on who may read what."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from ksp.kube.auth.cluster import Cluster
from ksp.kube.auth.config import load_cluster
from ksp.kube.http.client import Client
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import SystemWallClock
from ksp.runtime.access.authentication import Authenticator
from ksp.runtime.access.authorities import Authorities
from ksp.runtime.access.certificates import ServerTls
from ksp.runtime.access.gate import Gate
from ksp.runtime.access.reviews import AccessReviews, TokenReviews
from ksp.runtime.listening import EVERYWHERE
from ksp.runtime.serve import Guard
from ksp.runtime.serving_options import ServingOptions

QPS: Final = 50.0
BURST: Final = 100
"""Of the clients that ask who somebody is, and what he may: neither bindings nor lists wait for them."""


class SecurePort:
    """`guard` is for a StatusServer. `own` is the scheduler's cluster, which is asked unless the flags name others.
    Raises ConfigError."""

    def __init__(self, options: ServingOptions, own: Cluster, timers: Timers, environ: Mapping[str, str]) -> None:
        authentication, authorization = options.authentication, options.authorization
        self._authorities = Authorities(authentication, timers)
        self._asks_who = Client(_cluster(authentication.kubeconfig, own, environ), timers, qps=QPS, burst=BURST)
        self._asks_what = Client(_cluster(authorization.kubeconfig, own, environ), timers, qps=QPS, burst=BURST)
        tls = ServerTls(options, _hosts(options.bind_address), self._authorities.both, timers.now)
        self._authorities.changed = tls.look
        tokens = TokenReviews(self._asks_who, authentication, timers)
        rights = AccessReviews(self._asks_what, authorization, timers)
        gate = Gate(
            Authenticator(self._authorities, tokens, SystemWallClock()), rights, authorization.always_allow_paths,
            timers.now,
        )  # fmt: skip
        self.guard = Guard(tls.context, gate.middleware)

    async def open(self, stack: AsyncExitStack) -> None:
        """Loads the credentials for the questions. Raises ConfigError."""
        await stack.enter_async_context(self._asks_who)
        await stack.enter_async_context(self._asks_what)

    async def look_up(self) -> None:
        """Reads, for the first time, whose client certificates the cluster knows. Raises ConfigError if it has to be
        known, and is not."""
        await self._authorities.look_up(self._asks_who)

    async def run(self) -> None:
        """Keeps that up to date, until cancelled."""
        await self._authorities.run(self._asks_who)
        await asyncio.Event().wait()


def _cluster(kubeconfig: str | None, own: Cluster, environ: Mapping[str, str]) -> Cluster:
    return load_cluster(kubeconfig, None, environ) if kubeconfig else own


def _hosts(address: str) -> list[str]:
    """Names and addresses for a certificate that is made at the start."""
    return [platform.node() or "localhost", "localhost", "127.0.0.1", "::1", *({address} - EVERYWHERE)]
