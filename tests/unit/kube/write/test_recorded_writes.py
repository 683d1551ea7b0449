"""What ksp writes, against what servers of 1.19 and 1.36 said when the same was written to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import Apply, Fault, PodServer, client_of, pod_info, serving
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.write.writes import Bound, NotBound, Patched, Writer

pytestmark = pytest.mark.shared
VERSIONS = ["1.19.0", "1.36.2"]


def exchanges(shared: Path, version: str) -> Iterator[dict[str, Any]]:
    with (shared / "wire" / f"wire-{version}.jsonl").open() as lines:
        yield from map(json.loads, lines)


def exchange(shared: Path, version: str, id: str) -> dict[str, Any]:
    return next(found for found in exchanges(shared, version) if found["id"] == id)


def recorded(shared: Path, version: str, id: str) -> Fault:
    """Answers as the server did."""
    response = exchange(shared, version, id)["response"]

    async def fault(_request: web.Request, _apply: Apply) -> web.StreamResponse:
        return web.json_response(response["body"], status=response["status"])

    return fault


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("id", "node", "verdict"),
    [
        ("bind.ok", "n1", Bound()),
        ("bind.already", "n2", NotBound("the pod is on node n1 already", elsewhere=True)),
        ("bind.already.same", "n1", Bound()),
        ("bind.404", "n1", NotBound('pods "nope" not found', gone=True)),
        ("bind.namemismatch", "n1", NotBound("400 BadRequest: name in URL does not match name in Binding object")),
        (
            "bind.nobody",
            "n1",
            NotBound('403 Forbidden: pods "b8" is forbidden: User "nobody" cannot create resource "pods/binding"'),
        ),
    ],
)
async def test_recorded_answers_to_bindings(
    shared: Path, version: str, id: str, node: str, verdict: Bound | NotBound
) -> None:
    """The messages are compared as far as they go here."""
    timers = VirtualTimers()
    async with serving(PodServer()) as server, client_of(server, timers) as client:
        server.add("p", node="n1" if "already" in id else "")
        server.fault("bind", recorded(shared, version, id))
        found = await driven(timers, Writer(client, timers).bind(pod_info(), node))
    assert type(found) is type(verdict)
    if isinstance(found, NotBound) and isinstance(verdict, NotBound):
        assert found.message.startswith(verdict.message)
        assert found.gone == verdict.gone


async def test_a_binding_with_the_wrong_uid(shared: Path) -> None:
    """1.36 says 409; that the pod is another one is seen by reading it. (1.19 says 201.)"""
    timers = VirtualTimers()
    async with serving(PodServer()) as server, client_of(server, timers) as client:
        server.add("p", uid="u2")
        server.fault("bind", recorded(shared, "1.36.2", "bind.uid"))
        found = await driven(timers, Writer(client, timers).bind(pod_info(), "n1"))
    assert found == NotBound("the pod was deleted, and another has its name", gone=True)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_condition_for_another_uid(shared: Path, version: str) -> None:
    timers = VirtualTimers()
    async with serving(PodServer()) as server, client_of(server, timers) as client:
        server.fault("status", recorded(shared, version, "pod.patch.uid"))
        outcome = await driven(timers, Writer(client, timers).set_condition(pod_info(), "Unschedulable", "no"))
    assert outcome is Patched.GONE
