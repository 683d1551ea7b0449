"""An API server that does what a test tells it to, over real sockets: the failures of servers, proxies and networks.

Each list and each watch takes the next answer that was planned for it, and the last one for all further ones. A probe,
a list of one object, is told a version that is far ahead, unless something else was planned.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

from aiohttp import web
from tests.unit.kube.api_objects import Json, line, listed

from ksp.kube.auth.cluster import Cluster
from ksp.kube.http.client import Client
from ksp.kube.timers import Timers

What = Literal["list", "probe", "watch"]
Answer = Callable[["Stream"], Awaitable[None]]

CORE = {"pods": "Pod", "nodes": "Node", "services": "Service"}
VERBS = ["get", "list", "watch"]
FAR_AHEAD = 10**9


class Stream:
    """One request, and the way to answer it."""

    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.response: web.StreamResponse | None = None

    async def reply(self, body: Json | str, code: int = 200, **headers: str) -> None:
        """A whole answer."""
        text, kind = (body, "text/plain") if isinstance(body, str) else (json.dumps(body), "application/json")
        self.response = web.Response(text=text, content_type=kind, status=code, headers=_dashed(headers))

    async def send(self, *values: Json | str | bytes) -> None:
        """Events of a watch (or bytes as they are); the first call sends the header."""
        if self.response is None:
            self.response = web.StreamResponse(headers={"Content-Type": "application/json"})
            self.response.enable_chunked_encoding()
            await self.response.prepare(self.request)
        for value in values:
            await self.response.write(value if isinstance(value, bytes) else line(value))

    async def stay(self) -> None:
        """Says nothing more, and keeps the connection open until the server stops."""
        await self.send()
        await asyncio.Event().wait()

    async def reset(self) -> None:
        """Breaks the connection."""
        self.abort()
        await asyncio.Event().wait()

    def abort(self) -> None:
        if self.request.transport is not None:
            self.request.transport.abort()


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def reply(body: Json | str, code: int = 200, **headers: str) -> Answer:
    """Answers with a body. Underscores in names of headers become dashes."""

    async def answer(stream: Stream) -> None:
        await stream.reply(body, code, **headers)

    return answer


def events(*values: Json | str | bytes, then: Literal["end", "stay", "reset"] = "stay") -> Answer:
    """Answers with lines, and then ends well, stays open, or breaks."""

    async def answer(stream: Stream) -> None:
        await stream.send(*values)
        if then == "stay":
            await stream.stay()
        elif then == "reset":
            await stream.reset()

    return answer


class Live:
    """A watch that a test feeds while it runs. Planned for several requests, each goes on with the next values."""

    def __init__(self) -> None:
        self._values: asyncio.Queue[Json | str | bytes] = asyncio.Queue()

    async def __call__(self, stream: Stream) -> None:
        await stream.send()
        while True:
            value = await self._values.get()
            if value == "end":
                return
            if value == "reset":
                await stream.reset()
            await stream.send(value)

    def put(self, *values: Json | str | bytes) -> None:
        """Sends lines, or the words `end` and `reset`."""
        for value in values:
            self._values.put_nowait(value)


class HostileServer:
    """`asked` are the queries of all lists and watches of pods, `paths` all paths that were asked for, in order."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: dict[What, list[dict[str, str]]] = {"list": [], "probe": [], "watch": []}
        self.paths: list[str] = []
        self.discovery: dict[str, Json | tuple[int, str]] = _discovery()
        self._plans: dict[What, deque[Answer]] = defaultdict(deque)
        self.plan("probe", reply(listed(version=FAR_AHEAD)))
        self._changed = asyncio.Condition()
        self._stopping = asyncio.Event()
        self._runner: web.AppRunner | None = None

    def plan(self, what: What, *answers: Answer) -> None:
        """What happens at the next lists, or watches, of pods."""
        self._plans[what].clear()
        self._plans[what].extend(answers)

    async def start(self) -> None:
        """On the port that it had before, if any."""
        self._stopping = asyncio.Event()
        app = web.Application()
        app.router.add_get("/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Connections are refused from now on, and the open ones are closed."""
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def seen(self, what: What, count: int) -> None:
        """Returns when that many lists, or watches, have been asked for."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: len(self.asked[what]) >= count)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        if request.path in self.discovery:
            found = self.discovery[request.path]
            return web.json_response(found) if isinstance(found, dict) else web.Response(status=found[0], text=found[1])
        if request.path != "/api/v1/pods":
            return web.Response(status=404, text="404 page not found\n")
        what = _what(request.query)
        async with self._changed:
            self.asked[what].append(dict(request.query))
            self._changed.notify_all()
        plan = self._plans[what]
        stream = Stream(request)
        await self._unless_stopped(stream, plan.popleft() if len(plan) > 1 else plan[0])
        return stream.response or web.Response(status=500)

    async def _unless_stopped(self, stream: Stream, answer: Answer) -> None:
        """A server that stops breaks the connections that it has."""
        working = asyncio.ensure_future(answer(stream))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            stopping.cancel()
            await working
            return
        stream.abort()
        working.cancel()
        await asyncio.wait({working})


def _what(query: Mapping[str, str]) -> What:
    if query.get("watch") == "true":
        return "watch"
    return "probe" if query.get("limit") == "1" else "list"


def _discovery() -> dict[str, Json | tuple[int, str]]:
    return {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": groups(),
        "/api/v1": resources(**CORE),
    }


def groups(*versions: str) -> Json:
    """The answer of /apis: `policy/v1`, ..."""
    named: dict[str, list[Json]] = defaultdict(list)
    for version in versions:
        named[version.split("/")[0]].append({"groupVersion": version})
    return {"kind": "APIGroupList", "groups": [{"name": name, "versions": found} for name, found in named.items()]}


def resources(**kinds: str) -> Json:
    """The answer of a group version: plural to kind."""
    return {"kind": "APIResourceList", "resources": [{"name": p, "kind": k, "verbs": VERBS} for p, k in kinds.items()]}


@asynccontextmanager
async def hostile_server() -> AsyncGenerator[HostileServer, None]:
    server = HostileServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def client_of(server: HostileServer, timers: Timers | None = None) -> AsyncGenerator[Client, None]:
    """A client without a rate limit. Without `timers`, silence is measured by the computer's clock."""
    cluster = Cluster(f"http://127.0.0.1:{server.port}", "the test")
    async with Client(cluster, timers, qps=0) as client:
        yield client
