"""The API of an emulated version without sockets: a request is a call, time stands until a test moves it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

from ksp.apiserver import ApiServer
from ksp.apiserver.clock import VirtualClock
from ksp.apiserver.dispatch import Request, dispatch
from ksp.apiserver.state import Answer
from ksp.apiserver.status import ApiStatusError

Json = dict[str, Any]

VERSIONS = ("1.19", "1.36")
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Api:
    """`code, body = api.post(path, object)`; `warnings` are those of the last request."""

    def __init__(self, version: str = "1.36") -> None:
        self.clock = VirtualClock(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        self.server = ApiServer(version, clock=self.clock, seed=1)
        self.warnings: list[str] = []

    def get(self, path: str, **headers: str) -> tuple[int, Json]:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, body: Json | str) -> tuple[int, Json]:
        return self.ask("POST", path, body, {"Content-Type": "application/json"})

    def put(self, path: str, body: Json) -> tuple[int, Json]:
        return self.ask("PUT", path, body, {"Content-Type": "application/json"})

    def patch(self, path: str, body: Json | list[Json] | str, content_type: str = MERGE) -> tuple[int, Json]:
        return self.ask("PATCH", path, body, {"Content-Type": content_type})

    def delete(self, path: str, body: Json | None = None) -> tuple[int, Json]:
        return self.ask("DELETE", path, body, {"Content-Type": "application/json"})

    def ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Json]:
        raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.warnings = []
        try:
            answer = asyncio.run(self._dispatch(Request(method, path, headers, raw)))
        except ApiStatusError as error:
            return error.code, error.status
        assert isinstance(answer.body, dict)
        return answer.code, answer.body

    def answer(self, method: str, path: str) -> Answer:
        """Of a path that need not be answered by JSON; a Status of a refusal is raised."""
        return asyncio.run(self._dispatch(Request(method, path, {}, b"")))

    async def _dispatch(self, request: Request) -> Answer:
        answer = await dispatch(self.server.state, self.server.access, request, "127.0.0.1:1", self.warnings)
        assert isinstance(answer, Answer)
        return answer


def pod(name: str = "p", **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def causes(status: Json) -> list[str]:
    """`field: message` of each cause."""
    return [f"{each.get('field', '')}: {each['message']}" for each in status["details"]["causes"]]
