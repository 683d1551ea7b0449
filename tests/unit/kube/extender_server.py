"""An extender for tests: a real HTTP server that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Answer = Callable[[Json], Any]
"""From the question to what is answered: JSON, or a response."""


@dataclass
class ExtenderServer:
    """`verbs` says what each is answered with. `asked` are the questions, by verb; `peers` the ends of the connections
    over which they came."""

    verbs: dict[str, Answer]
    url: str = ""
    asked: dict[str, list[Json]] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    peers: set[Any] = field(default_factory=set)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        verb = request.path.rpartition("/")[2]
        question = json.loads(await request.content.read())
        self.headers.append({"method": request.method, "path": request.path, **request.headers})
        async with self._news:
            self.asked.setdefault(verb, []).append(question)
            self._news.notify_all()
        answer = self.verbs[verb](question)
        if isinstance(answer, Awaitable):
            answer = await answer
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

    async def never(self, _: Json) -> Json:
        """An answer that does not come."""
        await self.let_go.wait()
        return {}

    async def was_asked(self, verb: str, times: int = 1) -> list[Json]:
        """The questions, once there are so many."""
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(lambda: len(self.asked.get(verb, ())) >= times)
            return self.asked[verb]


@asynccontextmanager
async def extending(
    verbs: dict[str, Answer], tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncGenerator[ExtenderServer, None]:
    """A running extender; its verbs may be changed meanwhile."""
    extender = ExtenderServer(verbs)
    runner = web.ServerRunner(web.Server(extender.answer), shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        extender.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{runner.addresses[0][1]}/scheduler"
        yield extender
    finally:
        extender.let_go.set()
        await runner.cleanup()
