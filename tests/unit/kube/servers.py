"""Servers on 127.0.0.1 that behave, and servers that do not. Whatever a test does inside of one is bounded in time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from ksp.kube.auth.cluster import Cluster

BOUND = 20.0
"""Real seconds that a test may take inside of a server."""


@asynccontextmanager
async def serving(
    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Cluster, None]:
    """An aiohttp server that answers every request with `answer`."""
    server = web.Server(answer)
    runner = web.ServerRunner(server, shutdown_timeout=0.01)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        async with asyncio.timeout(BOUND):
            yield Cluster(f"{'http' if tls is None else 'https'}://127.0.0.1:{port}", "a test")
    finally:
        await runner.cleanup()


async def who(request: web.BaseRequest) -> web.StreamResponse:
    """Answers with the common name of the client's certificate."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return web.Response(text=names.get("commonName", "nobody"))


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Wire:
    """One connection of a raw server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> Received:
        """The next request; IncompleteReadError when the other end has closed."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return Received(method, target, headers, body)

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self._writer.write(part)
            await self._writer.drain()

    async def chunk(self, *parts: bytes) -> None:
        """Parts of a chunked body, each in a chunk of its own."""
        await self.send(*(b"%x\r\n%s\r\n" % (len(part), part) for part in parts))

    def reset(self) -> None:
        """Ends the connection with an RST."""
        self._writer.transport.abort()

    async def closed(self) -> None:
        """Returns when the other end has closed."""
        while await self._reader.read(65536):
            pass


@asynccontextmanager
async def raw_server(
    talk: Callable[[Wire], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Cluster, None]:
    """A server that does with each connection what `talk` does, and then closes it.

    What `talk` asserts is raised at the end.
    """
    talks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            await talk(Wire(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed the connection
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(BOUND):
            yield Cluster(f"{'http' if tls is None else 'https'}://127.0.0.1:{port}", "a test")
    finally:
        server.close()
        for task in talks:
            task.cancel()
        faults = await asyncio.gather(*talks, return_exceptions=True)
        await server.wait_closed()
    for fault in faults:
        if isinstance(fault, Exception):
            raise fault


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def whole(body: bytes, status: bytes = b"200 OK") -> bytes:
    """An answer with its length."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
