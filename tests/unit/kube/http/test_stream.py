from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.unit.kube.servers import CHUNKED, HEAD, LAST_CHUNK, Wire, raw_server, serving, whole
from tests.unit.kube.timers import VirtualTimers, settle

from ksp.kube.errors import ApiError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.client import Client


async def collected(lines: AsyncIterator[bytes]) -> list[bytes]:
    return [line async for line in lines]


async def test_lines_out_of_chunks() -> None:
    async def talk(wire: Wire) -> None:
        received = await wire.request()
        assert received.target == "/api/v1/pods?watch=1&labelSelector=a%3Db"
        assert received.headers["accept-encoding"] == "identity"
        euro = "€".encode()
        await wire.send(CHUNKED)
        await wire.chunk(
            b'{"a":', b'1}\n{"b":"' + euro[:1], euro[1:] + b'"}\r', b'\n\n{"c":3}\n{"d":4}\n', b'{"e":5}\n'
        )
        await wire.send(LAST_CHUNK)

    async with (
        raw_server(talk) as cluster,
        Client(cluster) as client,
        client.stream("/api/v1/pods", query={"watch": "1", "labelSelector": "a=b"}, inactivity=60) as lines,
    ):
        assert await collected(lines) == [b'{"a":1}', '{"b":"€"}'.encode(), b'{"c":3}', b'{"d":4}', b'{"e":5}']
        assert await collected(lines) == []  # it stays at its end


async def test_a_line_of_many_megabytes() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(CHUNKED)
        for _ in range(20):
            await wire.chunk(b"x" * 1_000_003)
        await wire.chunk(b"\n")
        await wire.send(LAST_CHUNK)

    async with raw_server(talk) as cluster, Client(cluster) as client, client.stream("/w", inactivity=60) as lines:
        [line] = await collected(lines)
    assert len(line) == 20_000_060


@pytest.mark.parametrize("framing", [CHUNKED, HEAD + b"Connection: close\r\n\r\n"])
async def test_a_last_line_without_newline_is_given_if_it_is_whole(framing: bytes) -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(framing)
        if framing is CHUNKED:
            await wire.chunk(b'{"a":1}\n{"b":2}')
            await wire.send(LAST_CHUNK)
        else:
            await wire.send(b'{"a":1}\n{"b":2}')

    async with raw_server(talk) as cluster, Client(cluster) as client, client.stream("/w", inactivity=60) as lines:
        assert await collected(lines) == [b'{"a":1}', b'{"b":2}']


async def test_a_last_line_that_is_cut_is_a_lost_connection() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(HEAD, b"Connection: close\r\n\r\n", b'{"a":1}\n{"b":')

    async with raw_server(talk) as cluster, Client(cluster) as client, client.stream("/w", inactivity=60) as lines:
        assert await anext(lines) == b'{"a":1}'
        with pytest.raises(OutcomeUnknownError, match="middle of a line"):
            await anext(lines)


@pytest.mark.parametrize("end", ["reset", "close"])
async def test_a_connection_lost_in_the_middle(end: str) -> None:
    read = asyncio.Event()

    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(CHUNKED)
        await wire.chunk(b'{"a":1}\n')
        await read.wait()
        if end == "reset":
            wire.reset()

    async with raw_server(talk) as cluster, Client(cluster) as client, client.stream("/w", inactivity=60) as lines:
        assert await anext(lines) == b'{"a":1}'
        read.set()
        with pytest.raises(
            OutcomeUnknownError, match=r"127\.0\.0\.1:\d+: the connection was lost in the middle of an answer$"
        ) as caught:
            await anext(lines)
        assert not caught.value.timed_out


async def test_garbage_in_the_framing() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(CHUNKED, b"7\r\n")
        await wire.send(b'{"a":1}', b"\r\nnot a length\r\n")

    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(OutcomeUnknownError):
            async with client.stream("/w", inactivity=60) as lines:
                await collected(lines)


async def test_silence_ends_the_stream() -> None:
    gone = asyncio.Event()

    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(CHUNKED)
        await wire.chunk(b'{"a":1}\n')
        await wire.closed()
        gone.set()

    timers = VirtualTimers()
    async with (
        raw_server(talk) as cluster,
        Client(cluster, timers) as client,
        client.stream("/w", inactivity=60) as lines,
    ):
        assert await anext(lines) == b'{"a":1}'
        waiting = asyncio.create_task(collected(lines))
        await settle()
        await timers.advance(59.9)
        assert not waiting.done()
        await timers.advance(0.1)
        with pytest.raises(OutcomeUnknownError, match="nothing came for 60 seconds") as caught:
            await waiting
        assert caught.value.timed_out
        await gone.wait()  # the other end, if it is there, learns of it


async def test_silence_counts_from_the_last_line_and_only_while_waiting() -> None:
    more = asyncio.Queue[bytes]()

    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(CHUNKED)
        while True:
            await wire.chunk(await more.get())

    timers = VirtualTimers()
    async with (
        raw_server(talk) as cluster,
        Client(cluster, timers) as client,
        client.stream("/w", inactivity=60) as lines,
    ):
        for number in range(5):
            waiting = asyncio.ensure_future(anext(lines))
            await settle()
            await timers.advance(50)
            more.put_nowait(b"%d\n" % number)
            assert await waiting == b"%d" % number
        await timers.advance(1000)  # the reader is busy
        waiting = asyncio.ensure_future(anext(lines))
        await settle()
        await timers.advance(59)
        more.put_nowait(b"late\n")
        assert await waiting == b"late"


async def test_entering_raises_as_a_request_does() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"message": "too old", "reason": "Expired"}, status=410)

    async with serving(answer) as cluster, Client(cluster) as client:
        with pytest.raises(ApiError) as caught:
            async with client.stream("/w", inactivity=60):
                pass
    assert (caught.value.status, caught.value.reason) == (410, "Expired")


async def test_nothing_is_repeated_by_a_stream() -> None:
    asked = 0

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.Response(status=429, headers={"Retry-After": "1"}, text="slow down")

    timers = VirtualTimers()
    async with serving(answer) as cluster, Client(cluster, timers) as client:
        with pytest.raises(ApiError) as caught:
            async with client.stream("/w", inactivity=60):
                pass
    assert (asked, caught.value.retry_after) == (1, 1.0)


async def test_a_stream_from_nowhere() -> None:
    async def talk(wire: Wire) -> None:
        raise AssertionError

    async with raw_server(talk) as cluster:
        pass
    async with Client(cluster) as client:
        with pytest.raises(UnreachableError):
            async with client.stream("/w", inactivity=60):
                pass


async def test_headers_that_never_come(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.closed()

    monkeypatch.setattr("ksp.kube.http.client.HEADERS_TIMEOUT", 0.05)
    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(OutcomeUnknownError) as caught:
            async with client.stream("/w", inactivity=60):
                pass
    assert caught.value.timed_out


@pytest.mark.parametrize("how", ["leave", "cancel", "raise"])
async def test_the_connection_is_given_up(how: str) -> None:
    gone, open_ = asyncio.Event(), asyncio.Event()

    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(CHUNKED)
        await wire.chunk(b'{"a":1}\n')
        await wire.closed()
        gone.set()

    async with raw_server(talk) as cluster, Client(cluster, timers := VirtualTimers()) as client:

        async def watch() -> None:
            async with client.stream("/w", inactivity=60) as lines:
                await anext(lines)
                open_.set()
                if how == "cancel":
                    await anext(lines)
                if how == "raise":
                    raise LookupError

        task = asyncio.create_task(watch())
        await open_.wait()
        await settle()
        if how == "cancel":
            task.cancel()
        [result] = await asyncio.gather(task, return_exceptions=True)
        assert type(result) is {"leave": type(None), "cancel": asyncio.CancelledError, "raise": LookupError}[how]
        await gone.wait()
        assert timers.sleeping == 0  # the guard has ended too


async def test_an_error_of_the_reader_stays_what_it_is() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(whole(b"{}\n"))

    async with raw_server(talk) as cluster, Client(cluster) as client:
        with pytest.raises(FileNotFoundError):
            async with client.stream("/w", inactivity=60):
                raise FileNotFoundError


async def test_a_stream_takes_a_token_at_its_start() -> None:
    async def talk(wire: Wire) -> None:
        await wire.request()
        await wire.send(whole(b"{}\n"))

    async def watch(client: Client) -> list[bytes]:
        async with client.stream("/w", inactivity=60) as lines:
            return await collected(lines)

    timers = VirtualTimers()
    async with raw_server(talk) as cluster, Client(cluster, timers, qps=1, burst=1) as client:
        assert await watch(client) == [b"{}"]
        second = asyncio.create_task(watch(client))
        assert await timers.next() == 1.0
        assert await second == [b"{}"]
