from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from aiohttp import web
from tests.unit.kube.driving import driven
from tests.unit.kube.servers import CHUNKED, HEAD, Received, Wire, raw_server, serving, whole
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.auth.cluster import Cluster
from ksp.kube.errors import ApiError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.client import Client, Response

CHANGES = ["POST", "PUT", "PATCH", "DELETE"]

type_of_answer = tuple[int, dict[str, str], bytes]


def scripted(*answers: type_of_answer) -> tuple[list[str], Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]]:
    """The methods asked for so far, and a handler that gives these answers, the last one for ever."""
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        asked.append(request.method)
        status, headers, body = answers[min(len(asked), len(answers)) - 1]
        return web.Response(status=status, headers=headers, body=body)

    return asked, answer


def unserved() -> Cluster:
    """An address on which nobody listens."""
    return Cluster("http://127.0.0.1:1", "a test")


OK: type_of_answer = (200, {}, b"ok")


async def test_a_request_as_the_server_sees_it() -> None:
    seen: list[Received] = []

    async def talk(wire: Wire) -> None:
        seen.append(await wire.request())
        await wire.send(b"HTTP/1.1 201 Created\r\nX-Y: z\r\nContent-Length: 2\r\n\r\n{}")

    async with raw_server(talk) as cluster, Client(replace(cluster, server=f"{cluster.server}/k8s/c-1")) as client:
        response = await client.request(
            "PATCH", "/api/v1/x", query={"a": "b c"}, body=b'{"p":1}', content_type="application/merge-patch+json"
        )
    assert response == Response(201, response.headers, b"{}")
    assert response.headers["x-y"] == "z"
    [request] = seen
    assert (request.method, request.target, request.body) == ("PATCH", "/k8s/c-1/api/v1/x?a=b+c", b'{"p":1}')
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert request.headers["accept"] == "application/json"
    assert request.headers["user-agent"].startswith("ksp/")
    assert "gzip" in request.headers["accept-encoding"]
    assert "authorization" not in request.headers


async def test_a_quoted_path_arrives_as_it_is() -> None:
    seen: list[Received] = []

    async def talk(wire: Wire) -> None:
        seen.append(await wire.request())
        await wire.send(whole(b""))

    async with raw_server(talk) as cluster, Client(cluster) as client:
        await client.request("GET", "/api/a%2F..%2Fb%25")
    assert seen[0].target == "/api/a%2F..%2Fb%25"


async def test_an_unquoted_path_is_refused_before_anything_is_sent() -> None:
    async with Client(unserved()) as client:
        with pytest.raises(ValueError, match="path_of"):
            await client.request("GET", "/api/../x")


async def test_gzip_is_unpacked() -> None:
    body = b'{"items":[]}' * 100_000
    _, answer = scripted((200, {"Content-Encoding": "gzip"}, gzip.compress(body)))
    async with serving(answer) as cluster, Client(cluster) as client:
        assert (await client.request("GET", "/x")).body == body


async def test_gzip_is_not_asked_for_if_the_kubeconfig_says_so() -> None:
    seen: list[Received] = []

    async def talk(wire: Wire) -> None:
        seen.append(await wire.request())
        await wire.send(whole(b""))

    async with raw_server(talk) as cluster, Client(replace(cluster, compression=False)) as client:
        await client.request("GET", "/x")
    assert seen[0].headers["accept-encoding"] == "identity"


async def test_damaged_gzip_is_a_failure_not_data() -> None:
    _, answer = scripted((200, {"Content-Encoding": "gzip"}, b"\x1f\x8b no gzip"))
    async with serving(answer) as cluster, Client(cluster) as client:
        with pytest.raises(OutcomeUnknownError):
            await client.request("GET", "/x", retry=False)


# --- not reached -----------------------------------------------------------------------------------------------------


async def test_refused() -> None:
    async with Client(unserved()) as client:
        with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:1: .*refused") as caught:
            await client.request("GET", "/x", retry=False)
    assert caught.value.temporary


async def test_a_name_that_does_not_exist() -> None:
    async with asyncio.timeout(20), Client(Cluster("http://api.invalid:6443", "a test")) as client:
        with pytest.raises(UnreachableError, match=r"http://api\.invalid:6443: .*cannot be resolved"):
            await client.request("GET", "/x", retry=False)


@pytest.mark.parametrize("method", ["GET", *CHANGES])
async def test_whatever_was_refused_is_sent_again(method: str) -> None:
    asked, answer = scripted(OK)
    async with serving(answer) as cluster:
        timers = VirtualTimers()
        async with Client(unserved(), timers) as client:
            asking = asyncio.create_task(client.request(method, "/x"))
            await timers.asleep()
            client.cluster = cluster  # now somebody listens
            await client._connections.close()  # type: ignore[union-attr]
            client._connections = None
            await timers.next()
            assert (await asking).body == b"ok"
    assert asked == [method]


async def test_refused_ten_times_more_and_then_told() -> None:
    timers = VirtualTimers()
    async with Client(unserved(), timers) as client:
        with pytest.raises(UnreachableError):
            await driven(timers, client.request("POST", "/x", body=b""))
    assert len(timers.slept) == 10
    assert timers.now() < 15


# --- sent, and no answer ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", *CHANGES])
async def test_an_answer_that_comes_too_late(method: str) -> None:
    asked = 0

    async def talk(wire: Wire) -> None:
        nonlocal asked
        await wire.request()
        asked += 1
        await wire.closed()

    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(OutcomeUnknownError, match=r"no whole answer in 0\.05 seconds") as caught:
            await client.request(method, "/x", timeout=0.05)
    assert caught.value.timed_out
    assert asked == 1


async def drop(wire: Wire) -> None:
    """No answer at all."""


async def half_a_head(wire: Wire) -> None:
    await wire.send(HEAD)


async def half_a_body(wire: Wire) -> None:
    await wire.send(HEAD, b"Content-Length: 100\r\n\r\n", b'{"items":[')


async def half_a_chunk(wire: Wire) -> None:
    await wire.send(CHUNKED, b"64\r\n", b'{"items":[')


async def reset_in_the_body(wire: Wire) -> None:
    await wire.send(CHUNKED, b"64\r\n", b'{"items":[')
    wire.reset()


async def garbage(wire: Wire) -> None:
    await wire.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n")


async def binary(wire: Wire) -> None:
    await wire.send(bytes(range(256)) * 10)


async def endless_headers(wire: Wire) -> None:
    await wire.send(HEAD, *([b"X: " + b"y" * 8000 + b"\r\n"] * 100))


BROKEN = [drop, half_a_head, half_a_body, half_a_chunk, reset_in_the_body, garbage, binary, endless_headers]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("method", CHANGES)
async def test_a_change_without_whole_answer_is_not_sent_again(
    broken: Callable[[Wire], Awaitable[None]], method: str
) -> None:
    asked = 0

    async def talk(wire: Wire) -> None:
        nonlocal asked
        await wire.request()
        asked += 1
        await broken(wire)

    async with raw_server(talk) as cluster, Client(cluster, VirtualTimers()) as client:
        with pytest.raises(OutcomeUnknownError, match=r"127\.0\.0\.1") as caught:
            await client.request(method, "/x", body=b"{}")
    assert asked == 1
    assert not caught.value.timed_out


LOST = "the connection was lost in the middle of an answer"


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (drop, "the connection was lost before an answer came"),
        (half_a_body, LOST),
        (half_a_chunk, LOST),
        (reset_in_the_body, LOST),
        (garbage, "the answer is no HTTP that can be read: Bad status line: Expected HTTP/.*"),
    ],
)
async def test_what_went_wrong_is_said_in_plain_words(broken: Callable[[Wire], Awaitable[None]], told: str) -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await broken(wire)

    async with raw_server(talk) as cluster, Client(cluster, VirtualTimers()) as client:
        with pytest.raises(OutcomeUnknownError, match=f"^{cluster.server}: {told}$"):
            await client.request("POST", "/x", body=b"{}")


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_get_without_whole_answer_is_sent_again(broken: Callable[[Wire], Awaitable[None]]) -> None:
    asked = 0

    async def talk(wire: Wire) -> None:
        nonlocal asked
        await wire.request()
        asked += 1
        await (broken(wire) if asked < 3 else wire.send(whole(b"{}")))

    timers = VirtualTimers()
    async with raw_server(talk) as cluster, Client(cluster, timers) as client:
        response = await driven(timers, client.request("GET", "/x"))
    assert (response.body, asked, timers.slept) == (b"{}", 3, [0.05, 0.1])


@pytest.mark.parametrize("method", ["GET", *CHANGES])
async def test_a_kept_connection_that_the_server_closes_when_it_is_used_again(method: str) -> None:
    asked: list[str] = []

    async def talk(wire: Wire) -> None:
        asked.append((await wire.request()).method)
        await wire.send(whole(b"{}"))
        if len(asked) == 1:
            asked.append((await wire.request()).method)  # arrives, perhaps is processed, and is not answered

    timers = VirtualTimers()
    async with raw_server(talk) as cluster, Client(cluster, timers) as client:
        await client.request("GET", "/x")
        if method == "GET":
            await driven(timers, client.request(method, "/x"))
            assert asked == ["GET", "GET", "GET"]
            assert timers.slept == [0.05]
        else:
            with pytest.raises(OutcomeUnknownError):
                await client.request(method, "/x")
            assert asked == ["GET", method]


async def test_connections_are_kept() -> None:
    connections = 0

    async def talk(wire: Wire) -> None:
        nonlocal connections
        connections += 1
        while True:
            await wire.request()
            await wire.send(whole(b"{}"))

    async with raw_server(talk) as cluster, Client(cluster) as client:
        for _ in range(5):
            await client.request("POST", "/x", body=b"{}")
    assert connections == 1


async def test_a_cancelled_request_gives_up_its_connection() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def talk(wire: Wire) -> None:
        await wire.request()
        asked.set()
        await wire.closed()
        gone.set()

    async with raw_server(talk) as cluster, Client(cluster) as client:
        task = asyncio.create_task(client.request("GET", "/x"))
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await gone.wait()


# --- errors that the server tells ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", *CHANGES])
async def test_429_waits_as_long_as_told(method: str) -> None:
    asked, answer = scripted(
        (429, {"Retry-After": "7"}, b"Too many requests"),
        (429, {"Retry-After": "Wed, 01 Jan 2020 00:00:20 GMT"}, b""),
        (429, {}, b'{"details":{"retryAfterSeconds":3}}'),
        OK,
    )
    timers = VirtualTimers()  # 00:00:00 of that day
    async with serving(answer) as cluster, Client(cluster, timers, clock=timers) as client:
        assert (await driven(timers, client.request(method, "/x"))).body == b"ok"
    assert asked == [method] * 4
    assert timers.slept == [7, 13, 3]


async def test_429_in_text_is_told_after_ten_repeats() -> None:
    asked, answer = scripted((429, {"Retry-After": "1", "Content-Type": "text/plain"}, b"Too many requests\n"))
    timers = VirtualTimers()
    async with serving(answer) as cluster, Client(cluster, timers) as client:
        with pytest.raises(ApiError, match="Too many requests") as caught:
            await driven(timers, client.request("POST", "/x", body=b""))
    assert len(asked) == 11
    assert (caught.value.status, caught.value.retry_after) == (429, 1)


async def test_429_is_not_repeated_if_the_caller_does_not_want_it() -> None:
    asked, answer = scripted((429, {"Retry-After": "1"}, b""))
    async with serving(answer) as cluster, Client(cluster) as client:
        with pytest.raises(ApiError):
            await client.request("POST", "/x", retry=False)
    assert asked == ["POST"]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_server_errors_are_repeated_for_get_only(status: int) -> None:
    asked, answer = scripted((status, {}, b"oops"), OK)
    timers = VirtualTimers()
    async with serving(answer) as cluster, Client(cluster, timers) as client:
        assert (await driven(timers, client.request("GET", "/x"))).body == b"ok"
    assert asked == ["GET", "GET"]
    asked, answer = scripted((status, {}, b"oops"), OK)
    async with serving(answer) as cluster, Client(cluster) as client:
        with pytest.raises(ApiError, match="oops"):
            await client.request("POST", "/x", body=b"")
    assert asked == ["POST"]


async def test_a_redirect_is_not_followed() -> None:
    visited, elsewhere = scripted(OK)
    async with serving(elsewhere) as other:
        asked, answer = scripted((307, {"Location": f"{other.server}/x"}, b""))
        async with serving(answer) as cluster, Client(cluster) as client:
            with pytest.raises(ApiError, match=f"redirects to {other.server}/x") as caught:
                await client.request("GET", "/x")
    assert (caught.value.status, len(asked), visited) == (307, 1, [])


async def test_a_huge_error_body_is_not_read_to_its_end() -> None:
    sent = 0

    async def talk(wire: Wire) -> None:
        nonlocal sent
        await wire.request()
        await wire.send(CHUNKED.replace(b"200 OK", b"500 Oops"))
        while True:
            await wire.chunk(b"no " * 100_000)
            sent += 300_000

    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(ApiError, match="no no no") as caught:
            await client.request("POST", "/x")
    assert len(str(caught.value)) < 3000
    assert sent < 50_000_000


async def test_an_error_whose_body_is_cut_is_still_that_error() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 1000\r\n\r\n", b"you may not")

    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(ApiError, match="403 Forbidden: you may not"):
            await client.request("GET", "/x")


async def test_an_error_whose_body_never_ends_is_bounded_in_time() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 1000\r\n\r\n", b"you may not")
        await wire.closed()

    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(OutcomeUnknownError):
            await client.request("GET", "/x", timeout=0.05)


# --- limits ----------------------------------------------------------------------------------------------------------


async def test_the_rate_is_limited_repeats_included() -> None:
    asked, answer = scripted((429, {"Retry-After": "0"}, b""), OK)
    timers = VirtualTimers()
    async with serving(answer) as cluster, Client(cluster, timers, qps=0.1, burst=1) as client:
        await driven(timers, client.request("GET", "/x"))
    assert len(asked) == 2
    assert timers.now() == pytest.approx(10)


async def test_waiting_for_the_rate_limit_is_not_part_of_the_timeout() -> None:
    _, answer = scripted(OK)
    timers = VirtualTimers()
    async with serving(answer) as cluster, Client(cluster, timers, qps=0.001, burst=1) as client:
        await client.request("GET", "/x")
        await driven(timers, client.request("GET", "/x", timeout=5))
    assert timers.now() == pytest.approx(1000)


async def test_requests_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ksp.kube.http.client.IN_FLIGHT", 3)
    now, most, full, go = 0, 0, asyncio.Event(), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            full.set()
        await go.wait()
        now -= 1
        return web.Response()

    async with serving(answer) as cluster, Client(cluster) as client:
        asking = [asyncio.create_task(client.request("GET", "/x")) for _ in range(10)]
        await full.wait()
        go.set()
        await asyncio.gather(*asking)
    assert most == 3


async def test_a_proxy_is_used() -> None:
    seen: list[str] = []

    async def talk(wire: Wire) -> None:
        seen.append((await wire.request()).target)
        await wire.send(whole(b"{}"))

    async with (
        raw_server(talk) as proxy,
        Client(Cluster("http://api.invalid:8080", "a test", proxy=proxy.server)) as client,
    ):
        await client.request("GET", "/x")
    assert seen == ["http://api.invalid:8080/x"]


async def test_a_proxy_that_is_away() -> None:
    async with Client(Cluster("http://api.invalid", "a test", proxy="http://127.0.0.1:1")) as client:
        with pytest.raises(UnreachableError, match="proxy"):
            await client.request("GET", "/x", retry=False)


async def test_a_proxy_that_refuses() -> None:
    async def talk(wire: Wire) -> None:
        assert (await wire.request()).method == "CONNECT"
        await wire.send(whole(b"", b"403 Forbidden"))

    async with (
        raw_server(talk) as proxy,
        Client(Cluster("https://api.invalid", "a test", proxy=proxy.server)) as client,
    ):
        with pytest.raises(UnreachableError, match="the proxy answers 403"):
            await client.request("POST", "/x", retry=False)


async def test_behind_a_fence_nothing_is_sent() -> None:
    asked, answer = scripted(OK)
    left = 10.0
    async with serving(answer) as cluster, Client(cluster, fence=lambda: left) as client:
        assert (await client.request("POST", "/x", body=b"{}")).body == b"ok"
        left = 0.0
        for method in ("GET", "POST"):
            with pytest.raises(UnreachableError, match="not sent: another scheduler may lead by now"):
                await client.request(method, "/x", retry=False)
        with pytest.raises(UnreachableError):
            async with client.stream("/x", inactivity=1):
                pass
    assert asked == ["POST"]


async def test_a_fence_is_asked_when_a_request_is_sent_not_when_it_is_asked_for() -> None:
    asked, answer = scripted(OK)
    timers = VirtualTimers()
    left = 10.0
    async with serving(answer) as cluster, Client(cluster, timers, qps=1, burst=1, fence=lambda: left) as client:
        await client.request("POST", "/x")
        waiting = asyncio.create_task(client.request("POST", "/x", retry=False))
        await timers.asleep()
        left = 0.0
        await timers.advance(1)
        with pytest.raises(UnreachableError, match="not sent"):
            await waiting
    assert asked == ["POST"]


async def test_behind_a_fence_a_connection_that_comes_too_late_is_not_used() -> None:
    said = asyncio.Event()

    async def mute(wire: Wire) -> None:
        said.set()
        await asyncio.Event().wait()

    async with raw_server(mute) as plain:
        encrypted = replace(plain, server=plain.server.replace("http://", "https://"))
        async with asyncio.timeout(5), Client(encrypted, fence=lambda: 0.05) as client:
            with pytest.raises(UnreachableError, match="no connection in time"):
                await client.request("POST", "/x", retry=False)
    assert said.is_set()
