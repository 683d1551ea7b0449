"""An API server without HTTP: a history of changes to pods, served as lists and watches, with faults on request."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tests.unit.kube import api_objects
from tests.unit.kube.api_objects import Json

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError

Cut = Literal["reset", "half a line", "clean", "silence", "error", "nonsense", "old bookmark"]


@dataclass(frozen=True)
class Body:
    body: bytes


class ModelServer:
    """`pods` is the truth, by key. `pause`: turns of the loop between two events."""

    def __init__(self, *, streams_lists: bool, compares: bool) -> None:
        self.pods: dict[str, Json] = {}
        self.version = 100
        self.idle = False
        self.failures: deque[KubeError] = deque()
        self.expiries = 0
        self.replays = 0
        self.pause = 0
        self._streams_lists = streams_lists
        self._compares = compares
        self._history: list[tuple[int, Json]] = []
        self._compacted = 0
        self._cut: Cut | None = None
        self._cut_after = 0
        self._changed = asyncio.Event()

    # --- what happens to the cluster ---------------------------------------------------------------------------------

    def change(self, type: str, value: Json | None, key: str) -> None:
        """One write: `value` is the object from now on, or None; the event shows it as it was at last."""
        self.version += 1
        shown = json.loads(json.dumps(value if value is not None else self.pods[key]))
        shown["metadata"]["resourceVersion"] = self.written(self.version)
        if value is None:
            del self.pods[key]
        else:
            self.pods[key] = shown
        self._history.append((self.version, {"type": type, "object": shown}))
        self._wake()

    def written(self, version: int) -> str:
        """Versions that are no numbers must do as well, as long as nothing is repeated."""
        return str(version) if self._compares else f"v{version}"

    def bookmark(self) -> None:
        """An event of its own: it makes no version."""
        self._history.append((self.version, api_objects.bookmark(self.written(self.version))))
        self._wake()

    def unknown_event(self) -> None:
        self._history.append((self.version, {"type": "RENAMED", "object": {}}))
        self._wake()

    def compact(self) -> None:
        self._compacted = self.version

    def cut(self, how: Cut) -> None:
        """The open watch, if there is one, ends like that; it shows nothing of what comes later."""
        self._cut, self._cut_after = how, len(self._history)
        self._wake()

    # --- ksp.kube.http.reader.Reader ---------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,  # noqa: ASYNC109 - as the client has it
        retry: bool = True,
    ) -> Body:
        await asyncio.sleep(0)
        answers: dict[str, Json] = {
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": []},
            "/api/v1": {"resources": [{"name": "pods", "verbs": ["list", "watch"]}]},
        }
        if path in answers:
            return Body(json.dumps(answers[path]).encode())
        self._fail()
        return Body(json.dumps(self._page(dict(query or {}))).encode())

    def _page(self, query: dict[str, str]) -> Json:
        """Pages show one moment: the token holds what is left, and its version."""
        assert "resourceVersion" not in query
        if "continue" in query:
            left, version = json.loads(query["continue"])
            if self.expiries:
                self.expiries -= 1
                raise ApiError(410, "Expired", "too old")
        else:
            left, version = [*self.pods.values()], self.written(self.version)
        size = int(query.get("limit", len(left) or 1))
        token = json.dumps([left[size:], version]) if left[size:] else ""
        return api_objects.listed(*left[:size], version=version, token=token)

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], inactivity: float
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        await asyncio.sleep(0)
        self._fail()
        if "sendInitialEvents" in query and not self._streams_lists:
            raise ApiError(422, "Invalid", "forbidden")
        self._cut = None
        try:
            yield self._lines(dict(query))
        finally:
            self.idle = False

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.popleft()

    async def _lines(self, query: dict[str, str]) -> AsyncIterator[bytes]:
        if "sendInitialEvents" in query:
            for value in [*self.pods.values()]:
                yield api_objects.line(api_objects.added(value))
            position = self.version
            yield api_objects.line(api_objects.bookmark(self.written(position), initial_end=True))
        else:
            position = int(query["resourceVersion"].removeprefix("v"))
            if position < self._compacted:
                yield api_objects.line(api_objects.too_old())
                return
            position = max(0, position - self._taken_replays())
        async for text in self._follow(position):
            yield text

    def _taken_replays(self) -> int:
        back, self.replays = self.replays, 0
        return back if self._compares else 0

    async def _follow(self, position: int) -> AsyncIterator[bytes]:
        sent = next((i for i, (version, _) in enumerate(self._history) if version > position), len(self._history))
        while True:
            while sent < (len(self._history) if self._cut is None else self._cut_after):
                yield api_objects.line(self._history[sent][1])
                sent += 1
                for _ in range(self.pause):
                    await asyncio.sleep(0)
            if self._cut is not None:
                for text in self._ending():
                    yield text
                return
            self.idle = True
            self._changed.clear()
            await self._changed.wait()
            self.idle = False

    def _ending(self) -> list[bytes]:
        """The last lines of a watch that is cut, or what is raised in their place."""
        cut, self._cut = self._cut, None
        match cut:
            case "reset" | "half a line":
                raise OutcomeUnknownError("reset")
            case "silence":
                raise OutcomeUnknownError("nothing came", timed_out=True)
            case "error":
                return [api_objects.line(api_objects.error(500, "InternalError"))]
            case "nonsense":
                return [b"<html>"]
            case "old bookmark":
                return [api_objects.line(api_objects.bookmark("1"))] if self._compares else []
            case _:
                return []

    def _wake(self) -> None:
        self._changed.set()


def failure(code: int) -> KubeError:
    """0: no connection; 1: a lost one; else an HTTP status."""
    match code:
        case 0:
            return UnreachableError("refused")
        case 1:
            return OutcomeUnknownError("reset")
        case 429:
            return ApiError(429, "TooManyRequests", "busy", retry_after=2.0)
        case _:
            return ApiError(code, "Reason", "words")


def content(name: str, uid: str, *, good: bool) -> dict[str, Any]:
    return api_objects.pod(name, 0, uid) if good else api_objects.broken(name, 0, uid)
