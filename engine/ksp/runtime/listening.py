"""Listens where health and metrics are served, so that nobody who connects can keep others from it.

Whoever connects and says nothing, or says it slowly, costs others nothing: he is the first to go when there are many.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from typing import Final

from aiohttp import web

EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - to compare with
"""All addresses, whichever of them is said, as in Go: those of the other family too."""
HANDSHAKE: Final = 10.0
"""Seconds that TLS may take to begin."""
CONNECTIONS: Final = 200
"""At a time; for one more the oldest is closed."""


async def listening(server: web.Server, host: str, port: int, tls: ssl.SSLContext | None) -> asyncio.Server:
    """The port is chosen by the system if it is 0. Raises OSError."""

    def connection() -> asyncio.Protocol:
        present = server.connections
        for old in present[: max(0, len(present) - CONNECTIONS + 1)]:
            old.force_close()
        return server()

    loop, handshake = asyncio.get_running_loop(), HANDSHAKE if tls is not None else None
    if host in EVERYWHERE and (both := _everywhere(port)) is not None:
        return await loop.create_server(connection, sock=both, ssl=tls, ssl_handshake_timeout=handshake)
    return await loop.create_server(connection, host, port, ssl=tls, ssl_handshake_timeout=handshake)


def port_of(listener: asyncio.Server) -> int:
    return int(listener.sockets[0].getsockname()[1])


def _everywhere(port: int) -> socket.socket | None:
    """For IPv4 and IPv6; None where there is no IPv6. Raises OSError if the port cannot be had."""
    if not socket.has_dualstack_ipv6():
        return None
    try:
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
