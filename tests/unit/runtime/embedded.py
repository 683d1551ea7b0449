"""The embedded API server for tests of the whole scheduler, with a few ways to make it slow or deaf."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from ksp.apiserver.server import ApiServer
from ksp.apiserver.strategy import User
from ksp.policy.assemble import Policy
from ksp.policy.load import DEFAULT, load, profiles
from ksp.runtime.app import App
from ksp.runtime.options import Options
from ksp.source.origin import Texts

WITHIN = 30.0
"""Real seconds that a test against a server may take."""

Json = dict[str, Any]


class Server(ApiServer):
    """Requests whose method and path contain one of `held` wait until the test lets them go."""

    def __init__(self, emulate: str = "1.36", tokens: Mapping[str, User] | None = None) -> None:
        super().__init__(emulate, tokens=tokens)
        self.held: dict[str, asyncio.Event] = {}
        self.waiting: list[str] = []
        self.arrived = asyncio.Event()

    def hold(self, part: str) -> None:
        self.held[part] = asyncio.Event()

    def release(self, part: str) -> None:
        self.held.pop(part).set()

    async def until_held(self) -> None:
        """A request waits."""
        async with asyncio.timeout(WITHIN):
            await self.arrived.wait()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        line = f"{request.method} {request.raw_path}"
        for part, event in list(self.held.items()):
            if part in line:
                self.waiting.append(line)
                self.arrived.set()
                await event.wait()
        return await super()._serve(request)


@asynccontextmanager
async def served(server: Server | None = None) -> AsyncIterator[Server]:
    """A running server."""
    server = server or Server()
    await server.start()
    try:
        async with asyncio.timeout(WITHIN):
            yield server
    finally:
        for event in server.held.values():
            event.set()
        await server.stop()


@cache
def policy() -> Policy:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    return Policy("default", "0" * 64, tuple(profiles(module)))


def app_of(server: ApiServer, folder: Path | None = None, **options: Any) -> App:
    """A scheduler of that server; with a folder it gets a kubeconfig there."""
    if folder is not None:
        options["kubeconfig"] = str(kubeconfig(folder, server))
    else:
        options["master"] = server.url
    return App(Options(policy(), **({"port": None, "seed": 1} | options)), environ={})


def kubeconfig(folder: Path, server: ApiServer, user: str = "", **user_fields: Any) -> Path:
    """A kubeconfig for that user of the server, or one with these fields of a user."""
    config = server.kubeconfig(user)
    if user_fields:
        config["users"][0]["user"] = user_fields
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def node(name: str, cpu: str = "4") -> Json:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> Json:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


async def got(url: str) -> Json:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return dict(await answer.json())


async def created(server: ApiServer, obj: Json) -> None:
    """Posts a pod or a node."""
    where = "nodes" if obj["kind"] == "Node" else "namespaces/default/pods"
    async with aiohttp.ClientSession() as session, session.post(f"{server.url}/api/v1/{where}", json=obj) as answer:
        assert answer.status == 201, await answer.text()


async def pod_until(server: ApiServer, name: str, holds: Callable[[Json], object], token: str = "") -> Json:
    """The pod, as soon as it is as wanted: looked at whenever anything happens to pods."""
    async with asyncio.timeout(WITHIN), aiohttp.ClientSession() as session:
        url = f"{server.url}/api/v1/namespaces/default/pods?watch=true&fieldSelector=metadata.name%3D{name}"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with session.get(url, headers=headers, timeout=aiohttp.ClientTimeout(total=None)) as stream:
            async for line in stream.content:
                found = json.loads(line)["object"]
                if holds(found):
                    return dict(found)
    raise AssertionError(f"the watch ended before the pod {name} was as wanted")


def node_of(found: Json) -> str:
    return str(found["spec"].get("nodeName", ""))


def scheduled(found: Json) -> Json:
    """The condition PodScheduled; empty if there is none."""
    return next((dict(c) for c in found["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})


class Said(logging.Handler):
    """What ksp says in the log while this is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._more = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self._more.set()

    async def until(self, text: str) -> None:
        """Something that contains the text has been said."""
        async with asyncio.timeout(WITHIN):
            while not any(text in message for message in self.messages):
                self._more.clear()
                await self._more.wait()

    def __enter__(self) -> Self:
        logging.getLogger("ksp").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("ksp").removeHandler(self)
