"""A TCP relay before an API server, which can do to connections what networks do: cut them, say nothing more, or be
late with a request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class _Connection:
    """Both ends of a relayed connection. While it does not flow, nothing passes and nothing is closed."""

    ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    flows: asyncio.Event = field(default_factory=asyncio.Event)


class Relay:
    """Passes on what comes to `port`, on the loopback, to a server's port."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self._server_port = server_port
        self._connections: set[_Connection] = set()
        self._held: dict[bytes, tuple[asyncio.Event, asyncio.Event]] = {}

    def hold(self, start: bytes) -> asyncio.Event:
        """Requests that begin so wait for `release`; the event tells that one does."""
        arrived = asyncio.Event()
        self._held[start] = arrived, asyncio.Event()
        return arrived

    def release(self, start: bytes) -> None:
        """Those that wait go on, and later ones do not wait."""
        self._held.pop(start)[1].set()

    async def _late(self, data: bytes) -> None:
        for start, (arrived, released) in list(self._held.items()):
            if data.startswith(start):
                arrived.set()
                await released.wait()

    def freeze(self) -> int:
        """The connections that are open now become half-open; how many those are. New ones work."""
        for connection in self._connections:
            connection.flows.clear()
        return len(self._connections)

    def reset(self) -> int:
        """The connections that are open now are cut without a word; how many those are."""
        for connection in self._connections:
            connection.flows.set()
            for end in connection.ends:
                end.transport.abort()
        return len(self._connections)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Relay]:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.reset()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection((writer, back))
        connection.flows.set()
        self._connections.add(connection)
        try:
            await asyncio.gather(self._pump(connection, reader, back), self._pump(connection, there, writer))
        finally:
            self._connections.discard(connection)

    async def _pump(self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await connection.flows.wait()
                await self._late(data)
                writer.write(data)
                await writer.drain()
        for end in connection.ends:
            end.close()
