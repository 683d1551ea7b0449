"""An embedded server on a socket, in virtual time, and a client of it."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp

from ksp.apiserver import ApiServer
from ksp.apiserver.clock import VirtualClock

Json = dict[str, Any]
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE = 5.0
"""Seconds of real time after which a test gives up."""


async def until(condition: Callable[[], object]) -> None:
    """Gives the loop turns until something holds."""
    async with asyncio.timeout(PATIENCE):
        for _ in itertools.repeat(None):
            if condition():
                return
            await asyncio.sleep(0)


class Http:
    """One server and a session with it."""

    def __init__(self, server: ApiServer, clock: VirtualClock, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.clock = clock
        self.session = session

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        headers = {"Content-Type": "application/json"} | (headers or {})
        async with (
            asyncio.timeout(PATIENCE),
            self.session.request(method, self.server.url + path, data=data, headers=headers) as response,
        ):
            text = await response.text()
            return response.status, json.loads(text) if "json" in response.content_type else text

    async def make(self, name: str, **labels: str) -> Json:
        """A configmap."""
        status, body = await self.ask("POST", CONFIG_MAPS, config_map(name, **labels))
        assert status == 201, body
        assert isinstance(body, dict)
        return body

    @asynccontextmanager
    async def watching(self, path: str, headers: dict[str, str] | None = None) -> AsyncIterator[Lines]:
        async with self.session.get(self.server.url + path, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield Lines(response)


class Lines:
    """The events of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Json:
        async with asyncio.timeout(PATIENCE):
            line = await self.response.content.readline()
        assert line.endswith(b"\n"), "the stream has ended"
        found: Json = json.loads(line)
        return found

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Types and names."""
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in await self.events(count)]

    async def events(self, count: int) -> list[Json]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Json]:
        """All until the stream ends."""
        async with asyncio.timeout(PATIENCE):
            return [json.loads(line) for line in (await self.response.content.read()).splitlines()]


def config_map(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}}


@asynccontextmanager
async def serving(version: str = "1.36", **options: Any) -> AsyncIterator[Http]:
    clock = VirtualClock(START)
    server = ApiServer(version, clock=clock, seed=1, **options)
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Http(server, clock, session)
    finally:
        await server.stop()
