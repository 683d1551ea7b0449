"""Lets a request of the secure port through, or says why not. But for the paths that are always allowed, nothing is
served to somebody whom the cluster does not allow it.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from ksp.kube.errors import KubeError
from ksp.runtime.access.authentication import Authenticator
from ksp.runtime.access.reviews import AccessReviews
from ksp.runtime.log import Seldom

_log = logging.getLogger(__name__)

MASTERS: Final = "system:masters"

Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate:
    """`middleware` for a server."""

    def __init__(
        self, authenticator: Authenticator, rights: AccessReviews, always: Collection[str], now: Callable[[], float]
    ) -> None:
        """`always` are paths that need nobody's leave; one that ends in `*` means all that begin so."""
        self._authenticator = authenticator
        self._rights = rights
        self._open = frozenset(path for path in always if not path.endswith("*"))
        self._open_below = tuple(path[:-1] for path in always if path.endswith("*"))
        self._seldom = Seldom(_log, now)

    @property
    def middleware(self) -> Middleware:
        @web.middleware
        async def respond(request: web.Request, handler: Respond) -> web.StreamResponse:
            return await self._respond(request, handler)

        return respond

    def _is_open(self, path: str) -> bool:
        return path in self._open or path.startswith(self._open_below)

    async def _respond(self, request: web.Request, handler: Respond) -> web.StreamResponse:
        """Of a path that is not there it is said so without a question to the cluster: who asks for many would make it
        answer as many."""
        if request.match_info.http_exception is not None or self._is_open(request.path):
            return await handler(request)
        refused = await self._refusal(request)
        return refused if refused is not None else await handler(request)

    async def _refusal(self, request: web.Request) -> web.Response | None:
        tls = request.get_extra_info("ssl_object")
        try:
            who = await self._authenticator.identity(request.headers, tls if _is_tls(tls) else None)
        except KubeError as error:
            self._seldom.say("token", "a token cannot be reviewed", error=str(error))
            return web.Response(status=401, text="Unauthorized: the token cannot be reviewed\n")
        if who is None:
            return web.Response(status=401, text="Unauthorized\n")
        if MASTERS in who.groups:
            return None
        verb = request.method.lower()
        try:
            allowed = await self._rights.allows(who, verb, request.path)
        except KubeError as error:
            self._seldom.say("rights", "it cannot be found out what somebody may", user=who.name, error=str(error))
            return web.Response(status=500, text="the API server cannot be asked for your rights\n")
        if allowed:
            return None
        return web.Response(status=403, text=f'forbidden: User "{who.name}" cannot {verb} path "{request.path}"\n')


def _is_tls(found: object) -> bool:
    return isinstance(found, ssl.SSLObject)
