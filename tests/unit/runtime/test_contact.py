from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from tests.unit.kube.driving import driven
from tests.unit.kube.servers import Wire, raw_server, serving
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.auth.cluster import Cluster
from ksp.kube.errors import ConfigError
from ksp.kube.http.client import Client
from ksp.runtime.contact import first_contact, is_since

VERSION = {"major": "1", "minor": "30", "gitVersion": "v1.30.1"}


class Answers:
    """Gives these (status, body) for /version one after another, the last one for ever; /api is there."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/api":
            return web.json_response({"versions": ["v1"]})
        self.asked += 1
        status, body = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type="application/json")


@asynccontextmanager
async def client_of(cluster: Cluster, timers: VirtualTimers) -> AsyncIterator[Client]:
    async with Client(cluster, timers, qps=0) as client:
        yield client


async def contact(answers: Answers) -> tuple[str, VirtualTimers]:
    timers = VirtualTimers()
    async with serving(answers) as cluster, client_of(cluster, timers) as client:
        return await driven(timers, first_contact(client, timers)), timers


def refusal(status: int, reason: str, message: str) -> tuple[int, object]:
    return status, {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}


async def test_the_version() -> None:
    version, timers = await contact(Answers((200, VERSION)))
    assert version == "v1.30.1"
    assert timers.slept == []


@pytest.mark.parametrize("answer", [(200, {}), (200, "hello"), refusal(403, "Forbidden", "you may not see it")])
async def test_a_version_that_is_not_told_is_no_obstacle(answer: tuple[int, object]) -> None:
    assert (await contact(Answers(answer)))[0] == "unknown"


async def test_a_server_that_is_starting_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    unavailable = refusal(503, "ServiceUnavailable", "etcd is not there")
    answers = Answers(*[unavailable] * 6, (200, VERSION))
    version, timers = await contact(answers)
    assert version == "v1.30.1"
    assert answers.asked == 7
    assert timers.slept == [0.5, 1, 2, 3, 3, 3]
    assert all("waiting for the API server" in message for message in caplog.messages)
    assert "503 ServiceUnavailable: etcd is not there" in caplog.messages[0]
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusal(401, "Unauthorized", "Unauthorized"), "does not accept the credentials"),
        ((404, "<!DOCTYPE html><title>Not found</title>"), "is no Kubernetes API server: it answers 404"),
        (refusal(403, "Forbidden", 'User "system:anonymous" cannot get path "/api"'), "there are no credentials"),
    ],
)
async def test_what_waiting_cannot_mend_is_an_error(answer: tuple[int, object], said: str) -> None:
    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        status, body = answer if request.path == "/api" else (200, VERSION)
        return web.json_response(body, status=status)

    timers = VirtualTimers()
    async with serving(respond) as cluster, client_of(cluster, timers) as client:
        with pytest.raises(ConfigError, match=said):
            await first_contact(client, timers)


async def test_it_can_be_cancelled_while_it_waits() -> None:
    timers = VirtualTimers()
    unavailable = refusal(503, "ServiceUnavailable", "no")
    async with serving(Answers(unavailable)) as cluster, client_of(cluster, timers) as client:
        waiting = asyncio.create_task(first_contact(client, timers))
        await timers.asleep()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()


async def test_a_server_that_hangs_up_on_plain_http_may_want_tls(caplog: pytest.LogCaptureFixture) -> None:
    async def hang_up(wire: Wire) -> None:
        return

    timers = VirtualTimers()
    async with raw_server(hang_up) as cluster, client_of(cluster, timers) as client:
        waiting = asyncio.create_task(first_contact(client, timers))
        await timers.asleep()
        waiting.cancel()
        await asyncio.wait([waiting])
    assert "if the server speaks TLS, its address begins with https://" in caplog.text


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("v1.26.0", True),
        ("v1.25.9", False),
        ("v1.36.2+k3s1", True),
        ("v2.0.0", True),
        ("1.19", False),
        ("unknown", True),
    ],
)
def test_versions_are_compared_by_number(version: str, since: bool) -> None:
    assert is_since(version, (1, 26)) is since
