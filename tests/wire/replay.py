"""Replays a transcript against an embedded server over HTTP, in virtual time, and says where the two agree."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy
from tests.wire.compare import HEADERS, differences, folded, unfolded
from tests.wire.mapping import Mapping
from tests.wire.transcript import Exchange, transcript
from yarl import URL

from ksp.apiserver import ApiServer
from ksp.apiserver.clock import VirtualClock
from ksp.apiserver.strategy import User

START = datetime(2026, 11, 20, 10, 42, 40, tzinfo=UTC)
PATIENCE = 5.0
"""Seconds of real time that an answer may take."""
SLOW = 2_500
"""Milliseconds from which a recorded answer was waiting for something."""
QUIET = 0.004
"""Seconds of real time in which a watch that should be silent might still say something."""

LATE = 1.0
"""Seconds of real time in which a line that should come may be late."""

USERS = {
    "admin": User("admin", ("system:masters", "system:authenticated"), "admin"),
    "scheduler": User("system:kube-scheduler", ("system:authenticated",), "sched"),
    "nobody": User("nobody", ("system:authenticated",), "nobody"),
}
FORK_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "openshift-kube-apiserver.18e9bad76cc9cf40", "namespace": "default"},
    "involvedObject": {
        "kind": "Namespace",
        "namespace": "default",
        "name": "openshift-kube-apiserver",
        "apiVersion": "v1",
    },
    "reason": "KubeAPIReadyz",
    "message": "readyz=true",
    "source": {"component": "apiserver", "host": "<host>"},
    "firstTimestamp": "2026-11-20T10:42:40Z",
    "lastTimestamp": "2026-11-20T10:42:40Z",
    "count": 1,
    "type": "Warning",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""What the downstream fork that was recorded as 1.36 writes when it is ready."""


APPLIED = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "ssa", "namespace": "w"},
    "data": {"a": "2"},
}
"""What server-side apply left behind, for the lists that come after it."""


@dataclass
class Result:
    """One exchange replayed."""

    exchange: Exchange
    answer: dict[str, Any]
    differences: list[str]


@dataclass
class Replay:
    """A run: results by id, in the order of the transcript."""

    version: str
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def agreeing(self) -> set[str]:
        return {id for id, result in self.results.items() if not result.differences}


@dataclass
class _Stream:
    """A watch that is open."""

    response: aiohttp.ClientResponse
    rest: bytes = b""
    lines: list[tuple[float, Any]] = field(default_factory=list)


class _Run:
    def __init__(self, version: str) -> None:
        self.version = version
        self.clock = VirtualClock(START)
        self.server = ApiServer(
            version,
            clock=self.clock,
            seed=1,
            tokens={f"<token:{name}>": user for name, user in USERS.items()},
        )
        if version == "1.36":
            self.server.load([FORK_EVENT])
        self.exchanges = transcript(version)
        self.mapping = Mapping()
        self.streams: dict[str, _Stream] = {}
        self.results: dict[str, Result] = {}
        self.first_during: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            if exchange.during:
                self.first_during.setdefault(exchange.during[0], []).append(exchange)

    async def run(self) -> None:
        await self.server.start()
        timeout = aiohttp.ClientTimeout(total=None, sock_read=PATIENCE)
        connector = aiohttp.TCPConnector(limit=0)
        skipped = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
        try:
            async with aiohttp.ClientSession(
                timeout=timeout, connector=connector, auto_decompress=False, skip_auto_headers=skipped
            ) as self.session:
                for exchange in self.exchanges:
                    await self._exchange(exchange)
                for stream in self.streams.values():
                    stream.response.close()
        finally:
            await self.server.stop()

    async def _exchange(self, exchange: Exchange) -> None:
        self._time_passes(exchange)
        await self._events_of_the_scenario(exchange)
        for watch in self.first_during.get(exchange.id, []):
            await self._open(watch)
        if exchange.streams:
            answer = await self._watch(exchange)
        else:
            answer = await self._plain(exchange)
        key = "events" if exchange.streams else "body"
        if exchange.response.get("body_omitted"):
            self.mapping.not_kept(exchange.request["path"], answer.get("body"))
        self.mapping.learn(exchange.response.get(key), answer.get(key))
        self.results[exchange.id] = Result(exchange, answer, differences(exchange, answer))

    def _time_passes(self, exchange: Exchange) -> None:
        behind = START + timedelta(milliseconds=exchange.at_ms) - self.clock.now()
        if behind > timedelta(0) and not self.streams:
            self.clock.advance(behind.total_seconds())

    async def _events_of_the_scenario(self, exchange: Exchange) -> None:
        """What happened to the server itself at this point."""
        if exchange.id == "wt.do.after-compact":
            self.server.compact()
        if exchange.id == "ssa.no-manager":
            self.server.load([APPLIED])
        if exchange.id == "rs.old.1":
            self.server.state.uncached.add("replicationcontrollers")
            await self.server.restart()

    # --- plain exchanges

    async def _until_it_waits(self, task: asyncio.Future[aiohttp.ClientResponse]) -> None:
        """Until the server has set its alarm for the answer, or has answered."""
        alarms = self.clock.waiting
        async with asyncio.timeout(PATIENCE):
            while self.clock.waiting == alarms and not task.done():
                await asyncio.wait([task], timeout=QUIET)

    async def _plain(self, exchange: Exchange) -> dict[str, Any]:
        task = asyncio.ensure_future(self._send(exchange))
        if exchange.took_ms >= SLOW:
            await self._until_it_waits(task)
            self.clock.advance(exchange.took_ms / 1000)
        async with asyncio.timeout(PATIENCE):
            response = await task
        async with response:
            if response.status == 200 and "chunked" in response.headers.get("Transfer-Encoding", "") and exchange.watch:
                return {"status": 200, "headers": _kept(response.headers), "body": "a stream"}
            return await _read(response)

    async def _send(self, exchange: Exchange) -> aiohttp.ClientResponse:
        request = exchange.request
        headers = dict(request["headers"])
        if exchange.auth != "none":
            headers["Authorization"] = f"Bearer <token:{exchange.auth}>"
        path, body = request["path"], request["body"]
        normalised = tuple(request.get("normalised", ()))
        if "path" in normalised:
            path = self.mapping.path(path, exchange.id)
        if "$.preconditions.uid" in normalised:
            await self._learn_uid(path, body["preconditions"]["uid"])
        if isinstance(body, dict) and body.get("kind") == "Binding" and "$.metadata.uid" in normalised:
            await self._learn_uid(path.removesuffix("/binding"), body["metadata"]["uid"])
        body = self.mapping.body(body, normalised)
        data: io.BytesIO | None = None
        if body is not None:
            data = io.BytesIO(unfolded(body if isinstance(body, str) else json.dumps(body)).encode())
        url = URL(self.server.url + path, encoded=True)
        return await self.session.request(request["method"], url, headers=headers, data=data)

    async def _learn_uid(self, path: str, recorded: str) -> None:
        """Of an object whose creation was not kept whole."""
        if self.mapping.knows(recorded):
            return
        headers = {"Authorization": "Bearer <token:admin>"}
        async with self.session.get(self.server.url + path, headers=headers) as response:
            self.mapping.know(recorded, (await response.json())["metadata"]["uid"])

    # --- watches

    async def _open(self, exchange: Exchange) -> None:
        async with asyncio.timeout(PATIENCE):
            response = await self._send(exchange)
        self.streams[exchange.id] = _Stream(response)

    async def _watch(self, exchange: Exchange) -> dict[str, Any]:
        if exchange.id not in self.streams:
            await self._open(exchange)
        stream = self.streams.pop(exchange.id)
        response = stream.response
        if response.status != 200 or "chunked" not in response.headers.get("Transfer-Encoding", ""):
            async with response:
                return await _read(response)
        began = self.clock.now()
        ended = exchange.response["ended"]
        wanted = sum(not _is_periodic(event.get("line")) for event in exchange.response["events"])
        await self._lines(stream, wanted, began)
        if ended["how"].startswith("server ended") and ended["after_ms"] >= 900:
            await self._until_end(stream, ended["after_ms"] / 1000, began)
        response.close()
        events = [{"after_ms": after, "line": line} for after, line in stream.lines]
        return {"status": response.status, "headers": _kept(response.headers), "events": events}

    async def _until_end(self, stream: _Stream, seconds: float, began: datetime) -> None:
        """Lets time pass in steps as long as a bookmark's, so that each line has its moment."""
        left = seconds + 0.5
        while left > 0:
            step = min(left, 10.0)
            self.clock.advance(step)
            left -= step
            await self._lines(stream, 0, began)
        await self._lines(stream, 1_000_000, began)

    async def _lines(self, stream: _Stream, wanted: int, began: datetime) -> None:
        """Reads until so many lines are there and no more come."""
        while True:
            patience = QUIET if len(stream.lines) >= wanted else LATE
            try:
                async with asyncio.timeout(patience):
                    chunk = await stream.response.content.readany()
            except TimeoutError:
                return
            if not chunk:
                return
            *lines, stream.rest = (stream.rest + chunk).split(b"\n")
            after = (self.clock.now() - began).total_seconds() * 1000
            stream.lines += [(after, json.loads(line)) for line in lines]


def _is_periodic(line: Any) -> bool:
    """A bookmark that comes with time, not with the initial events."""
    return isinstance(line, dict) and line.get("type") == "BOOKMARK" and "annotations" not in str(line)


async def _read(response: aiohttp.ClientResponse) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        data = await response.read()
    if response.headers.get("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    body: Any = None
    if data:
        text = data.decode("utf-8", "replace").replace(f":{response.url.port}", ":6443")
        try:
            body = json.loads(text) if "json" in response.headers.get("Content-Type", "") else text
        except ValueError:
            body = text
    return {"status": response.status, "headers": _kept(response.headers), "body": folded(body)}


def _kept(headers: CIMultiDictProxy[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in HEADERS:
        values = headers.getall(name, [])
        if values:
            found[name] = values[0] if len(values) == 1 else values
    return found


async def replay(version: str) -> Replay:
    run = _Run(version)
    await run.run()
    return Replay(version, {exchange.id: run.results[exchange.id] for exchange in run.exchanges})
