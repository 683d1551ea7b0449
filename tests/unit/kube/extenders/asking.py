"""What tests of an extender's client share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.kube.extender_server import Json

from ksp.kube.extenders import ExtenderClient, ExtenderError, NodeBodies
from ksp.kube.timers import SystemTimers
from ksp.policy.extender import Extender

POD = b'{"metadata":{"name":"p"}}'
NODES = NodeBodies(["a", "b"], b'{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}')
VERBS = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt", "bind_verb": "bind"}
Told = list[tuple[str, str]]


@asynccontextmanager
async def asking(
    url: str, told: Told | None = None, environ: Mapping[str, str] | None = None, **fields: Any
) -> AsyncGenerator[ExtenderClient, None]:
    """A client of the extender there; `told` hears of verbs and outcomes."""
    extender = Extender(url, **{**VERBS, "timeout": 10.0, **fields})
    heard = [] if told is None else told
    client = ExtenderClient(extender, SystemTimers(), environ or {}, lambda *about: heard.append(about[1:3]))
    try:
        yield client
    finally:
        await client.close()


async def failure(url: str, **fields: Any) -> ExtenderError:
    """What comes of asking that extender to filter; its text names the extender."""
    told: Told = []
    async with asking(url, told, **fields) as client:
        with pytest.raises(ExtenderError) as caught:
            await client.filter(POD, NODES)
    assert str(caught.value).startswith(f"extender {url}: ")
    assert told == [("filter", caught.value.outcome)]
    return caught.value


def good(_: Json) -> Json:
    """What an extender says that leaves the first of the nodes."""
    return {"Nodes": {"items": [{"metadata": {"name": "a"}}]}}
