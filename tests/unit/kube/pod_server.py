"""An API server for the tests of writes: it knows pods and events, and does on request what a bad network does."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from ksp.kube.auth.config import Cluster
from ksp.kube.http.client import Client
from ksp.kube.timers import Timers
from ksp.model.info import PodInfo
from ksp.model.meta import ObjectMeta
from ksp.model.pod import Pod, PodCondition, PodSpec, PodStatus

Apply = Callable[[], web.Response]
Fault = Callable[[web.Request, Apply], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    method: str
    path: str
    content_type: str
    body: Any


@dataclass
class PodServer:
    """`seen` are all requests. `faults` are what happens to the next ones, by kind (see `fault`)."""

    url: str = ""
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    version: int = 100
    checks_uid: bool = True
    most_in_flight: int = 0
    arrival: asyncio.Event = field(default_factory=asyncio.Event)
    _in_flight: int = 0

    def add(self, name: str, uid: str = "u1", node: str = "", **metadata: str) -> None:
        spec = {"nodeName": node} if node else {}
        metadata = {"name": name, "uid": uid, **metadata}
        self.pods[f"w/{name}"] = {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}

    def fault(self, kind: str, *faults: Fault) -> None:
        """`kind`: bind, read, status, delete, event, or series (the patch of an event)."""
        self.faults[kind].extend(faults)

    def sent(self, kind: str) -> list[Seen]:
        return [seen for seen in self.seen if _kind(seen.method, seen.path) == kind]

    async def received(self, count: int) -> None:
        """Until so many requests have come."""
        async with asyncio.timeout(10):
            while len(self.seen) < count:
                self.arrival.clear()
                await self.arrival.wait()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.text()
        body = json.loads(raw) if raw else None
        self.seen.append(Seen(request.method, request.path, request.content_type, body))
        self.arrival.set()
        kind = _kind(request.method, request.path)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            apply = self.effect(request, body)
            if self.faults[kind]:
                return await self.faults[kind].popleft()(request, apply)
            return apply()
        finally:
            self._in_flight -= 1

    def effect(self, request: web.Request, body: Any) -> Apply:
        """What the request does if nothing goes wrong."""
        kind, segments = _kind(request.method, request.path), request.path.split("/")
        return lambda: getattr(self, f"_{kind}")(segments, body)

    def _bind(self, segments: list[str], body: Any) -> web.Response:
        name = segments[6]
        pod = self.pods.get(f"w/{name}")
        if pod is None:
            return status(404, "NotFound", f'pods "{name}" not found')
        if self.checks_uid and body["metadata"].get("uid") not in {None, pod["metadata"]["uid"]}:
            return status(409, "Conflict", "Precondition failed: UID in precondition")
        if pod["metadata"].get("deletionTimestamp") or pod["spec"].get("nodeName"):
            return status(409, "Conflict", f"pod {name} is already assigned to a node")
        pod["spec"]["nodeName"] = body["target"]["name"]
        return web.json_response({"kind": "Status", "status": "Success", "code": 201}, status=201)

    def _read(self, segments: list[str], _body: Any) -> web.Response:
        pod = self.pods.get(f"w/{segments[6]}")
        return status(404, "NotFound", "pods not found") if pod is None else web.json_response(pod)

    def _status(self, segments: list[str], body: Any) -> web.Response:
        pod = self.pods.get(f"w/{segments[6]}")
        if pod is None:
            return status(404, "NotFound", "pods not found")
        if body["metadata"].get("uid") not in {None, pod["metadata"]["uid"]}:
            causes = [{"field": "metadata.uid", "reason": "FieldValueInvalid"}]
            return status(422, "Invalid", "metadata.uid: field is immutable", {"causes": causes})
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        old = {condition["type"]: condition for condition in pod["status"].get("conditions", [])}
        for condition in body["status"].get("conditions", []):
            old[condition["type"]] = {**old.get(condition["type"], {}), **condition}
        pod["status"] = {**pod["status"], **body["status"], "conditions": list(old.values())}
        return web.json_response(pod)

    def _delete(self, segments: list[str], body: Any) -> web.Response:
        """A pod on a node is marked, as one with a grace period; a pod on none is gone."""
        pod = self.pods.get(f"w/{segments[6]}")
        if pod is None:
            return status(404, "NotFound", f'pods "{segments[6]}" not found')
        uid = ((body or {}).get("preconditions") or {}).get("uid")
        if uid not in {None, pod["metadata"]["uid"]}:
            return status(409, "Conflict", f"the UID in the precondition ({uid}) does not match the UID in record")
        pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
        if not pod["spec"].get("nodeName"):
            del self.pods[f"w/{segments[6]}"]
        return web.json_response(pod)

    def _event(self, _segments: list[str], body: Any) -> web.Response:
        if body["metadata"]["name"] in self.events:
            return status(409, "AlreadyExists", "events already exists")
        self.events[body["metadata"]["name"]] = dict(body)
        return web.json_response(body, status=201)

    def _series(self, segments: list[str], body: Any) -> web.Response:
        event = self.events.get(segments[-1])
        if event is None:
            return status(404, "NotFound", f'events "{segments[-1]}" not found')
        event.update(body)
        return web.json_response(event)


def _kind(method: str, path: str) -> str:
    if "/events" in path:
        return "event" if method == "POST" else "series"
    if "/persistentvolume" in path:
        return "look" if method == "GET" else "change"
    return {"POST": "bind", "GET": "read", "PATCH": "status", "DELETE": "delete"}[method]


def status(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response({**body, "details": details or {}}, status=code)


# ---- faults


def answers(code: int, reason: str = "", message: str = "it failed") -> Fault:
    """Nothing is done."""

    async def fault(_request: web.Request, _apply: Apply) -> web.StreamResponse:
        return status(code, reason, message)

    return fault


def says(text: str, code: int = 201, *, done: bool = False) -> Fault:
    """A text that is no JSON, perhaps after having done it."""

    async def fault(_request: web.Request, apply: Apply) -> web.StreamResponse:
        if done:
            apply()
        return web.Response(text=text, status=code)

    return fault


def fails(code: int) -> Fault:
    """It is done, and the answer is an error."""

    async def fault(_request: web.Request, apply: Apply) -> web.StreamResponse:
        apply()
        return status(code, "InternalError", "etcdserver: request timed out")

    return fault


NESTED = says('{"x": ' + "[" * 100_000, 200)
"""What no decoder follows to its end."""


async def proceeds(_request: web.Request, apply: Apply) -> web.StreamResponse:
    """No fault."""
    return apply()


async def closes_before(request: web.Request, _apply: Apply) -> web.StreamResponse:
    """The connection is lost, nothing is done."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def closes_after(request: web.Request, apply: Apply) -> web.StreamResponse:
    """It is done, and the connection is lost."""
    apply()
    return await closes_before(request, apply)


async def answers_by_half(request: web.Request, apply: Apply) -> web.StreamResponse:
    """It is done, and the connection is lost in the middle of the answer."""
    whole = apply()
    response = web.StreamResponse(status=whole.status, headers={"Content-Length": "500"})
    await response.prepare(request)
    await response.write(b'{"kind": "Status"')
    assert request.transport is not None
    request.transport.close()
    return response


def when(event: asyncio.Event, arrived: asyncio.Event | None = None) -> Fault:
    """It is done when the event happens."""

    async def fault(_request: web.Request, apply: Apply) -> web.StreamResponse:
        if arrived is not None:
            arrived.set()
        async with asyncio.timeout(10):
            await event.wait()
        return apply()

    return fault


# ---- the client's side


@asynccontextmanager
async def serving(server: PodServer) -> AsyncGenerator[PodServer]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def client_of(server: PodServer, timers: Timers) -> Client:
    return Client(Cluster(server.url, "test"), timers, qps=0)


def pod_info(name: str = "p", uid: str = "u1", version: str = "1", *, nominated: str = "", **condition: str) -> PodInfo:
    """A pod of namespace w; with a PodScheduled condition if one is given."""
    conditions = (PodCondition(type="PodScheduled", **condition),) if condition else ()
    meta = ObjectMeta(name=name, namespace="w", uid=uid, resource_version=version)
    pod_status = PodStatus(conditions=conditions, nominated_node_name=nominated)
    return PodInfo.of(Pod(metadata=meta, spec=PodSpec(scheduler_name="default-scheduler"), status=pod_status))
