"""One extender over real sockets: what it is sent, and all that can go wrong."""

from __future__ import annotations

import gc
import gzip
import tracemalloc
from typing import Any

import pytest
from aiohttp import web
from tests.unit.kube.extender_server import Json, extending
from tests.unit.kube.extenders.asking import NODES, POD, Told, asking, failure, good
from tests.unit.kube.servers import Wire, raw_server

from ksp.kube.extenders import ExtenderError, NodeBodies, VictimBodies
from ksp.kube.extenders import client as client_module
from ksp.kube.extenders.client import VALUES

# ---- good answers


async def test_each_verb_is_a_post_below_the_prefix() -> None:
    told: Told = []
    verbs = {
        "filter": lambda _: {"Nodes": {"items": [{"metadata": {"name": "a"}}]}, "FailedNodes": {"b": "full"}},
        "prioritize": lambda _: [{"Host": "a", "Score": 7}],
        "preempt": lambda _: {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "1"}]}}},
        "bind": lambda _: {},
    }
    async with extending(verbs) as server, asking(f"{server.url}/", told) as client:
        found = await client.filter(POD, NODES)
        scores = await client.prioritize(POD, NODES)
        removals = await client.preempt(POD, {"a": VictimBodies(["1"], 0, [b'{"metadata":{"uid":"1"}}'])})
        await client.bind("p", "default", "uid", "a")
    assert (found.names, found.failed) == (("a",), {"b": "full"})
    assert scores == {"a": 7}
    assert removals["a"].uids == ("1",)
    assert [(each["method"], each["path"], each["Content-Type"]) for each in server.headers] == [
        ("POST", f"/scheduler/{verb}", "application/json") for verb in verbs
    ]
    assert told == [(verb, "ok") for verb in verbs]
    items = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
    asked = {"Pod": {"metadata": {"name": "p"}}, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
    assert server.asked["filter"] == server.asked["prioritize"] == [asked]


async def test_connections_are_kept_and_closed_in_the_end() -> None:
    async with extending({"filter": good}) as server, asking(server.url) as client:
        for _ in range(3):
            await client.filter(POD, NODES)
        assert len(server.asked["filter"]) == 3
        assert len(server.peers) == 1
        client.retire()
        await client.close()
        assert client.closed


async def test_a_large_question_is_sent_whole() -> None:
    items = b",".join(b'{"metadata":{"name":"%d","filler":"%b"}}' % (i, b"x" * 10_000) for i in range(300))
    names = [str(i) for i in range(300)]
    async with extending({"filter": echo}) as server, asking(server.url) as client:
        found = await client.filter(POD, NodeBodies(names, items))
    assert list(found.names) == names


def echo(question: Json) -> Json:
    return {"Nodes": question["Nodes"]}


# ---- bad ones


async def test_its_own_error_is_told_in_one_line() -> None:
    async with extending({"filter": lambda _: {"Error": "no\ndisk\x1b[31m"}}) as server:
        error = await failure(server.url)
    assert (error.outcome, str(error)) == ("error", f"extender {server.url}: it says: no disk [31m")


@pytest.mark.parametrize("status", [201, 204, 400, 404, 500, 503])
async def test_any_other_status_is_a_failure(status: int) -> None:
    body = None if status == 204 else "a\nreason"
    async with extending({"filter": lambda _: web.Response(status=status, text=body)}) as server:
        error = await failure(server.url)
    assert error.outcome == "status"
    reason = "" if body is None else ": a reason"
    assert str(error).endswith(f"filter is answered with status {status}{reason}")


async def test_a_redirect_is_not_followed() -> None:
    async with extending({"filter": lambda _: web.Response(status=307, headers={"Location": "/other"})}) as server:
        error = await failure(server.url)
    assert "redirected (307) to /other, which is not followed; correct its urlPrefix" in str(error)
    assert list(server.asked) == ["filter"]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"Nodes":7}', "\x00"])
async def test_garbage_is_a_failure(text: str) -> None:
    async with extending({"filter": lambda _: web.Response(text=text)}) as server:
        error = await failure(server.url)
    assert error.outcome == "malformed"
    assert "cannot read its answer to filter: " in str(error)


async def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ROOM", 1000)
    async with extending({"filter": lambda _: web.Response(body=b" " * 100_000)}) as server:
        error = await failure(server.url)
    assert error.outcome == "malformed"
    assert "has more than 1" in str(error)


async def test_an_answer_of_too_many_values_is_not_looked_at() -> None:
    """To read millions takes seconds, in which the scheduler does nothing else, and may lose its lease."""
    many = b'{"FailedNodes":{"a":"%b"}}' % (b"," * (VALUES + 100))
    async with extending({"filter": lambda _: web.Response(body=many)}) as server:
        error = await failure(server.url)
        assert error.outcome == "malformed"
        assert "values, which is more than it can mean" in str(error)
        async with asking(server.url) as client:  # a question with many may have an answer with many
            found = await client.filter(POD, NodeBodies(["a"], b'{"x":[%b0]}' % (b"0," * 100)))
    assert list(found.failed) == ["a"]


async def test_who_never_answers_is_given_up_after_the_timeout() -> None:
    async with extending({}) as server:
        server.verbs["filter"] = server.never
        error = await failure(server.url, timeout=0.05)
    assert error.outcome == "timeout"
    assert "no whole answer to filter in 0.05 s" in str(error)


async def test_who_begins_to_answer_and_stops_is_given_up_too() -> None:
    async def half(wire: Wire) -> None:
        await wire.request()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await wire.closed()

    async with raw_server(half) as cluster:
        error = await failure(cluster.server, timeout=0.05)
    assert error.outcome == "timeout"


async def test_a_connection_that_is_lost_in_the_middle_is_no_answer() -> None:
    async def cut(wire: Wire) -> None:
        await wire.request()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")

    async with raw_server(cut) as cluster:
        error = await failure(cluster.server)
    assert error.outcome == "lost"
    assert "the connection was lost in the middle of an answer" in str(error)


async def raw(reply: bytes, again: bytes = b"", **fields: Any) -> ExtenderError:
    """What comes of an extender that sends this, and then the rest for as long as somebody listens."""

    async def serve(wire: Wire) -> None:
        await wire.request()
        await wire.send(reply)
        while again:
            await wire.send(again)

    async with raw_server(serve) as cluster:
        return await failure(cluster.server, **fields)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("reply", "again", "outcome"),
    [
        (CHUNKED, b"3e8\r\n" + b" " * 1000 + b"\r\n", "malformed"),  # an answer without end
        (OK + b"\r\n", b" " * 1000, "malformed"),  # the same, until the connection ends
        (OK, b"A: b\r\n" * 1000, "lost"),  # headers without end
        (OK + b"A: ", b"b" * 1000, "lost"),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", b"", "lost"),
        (OK + b"Content-Length: -1\r\n\r\n{}", b"", "lost"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", "timeout"),
        (b"HTTP/2.0 200 OK\r\n\r\n", b"", "malformed"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"", "lost"),
        (b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"3e8\r\n" + b"x" * 1000 + b"\r\n", "status"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", b"", "status"),
        (OK + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", b"", "lost"),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", b"", "lost"),
    ],
)
async def test_http_that_is_no_answer_ends(
    reply: bytes, again: bytes, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "ROOM", 100_000)
    error = await raw(reply, again, timeout=0.2 if outcome == "timeout" else 10.0)
    assert error.outcome == outcome
    assert len(str(error)) < 2000


async def test_what_unpacks_to_more_than_it_may_have_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing packed is asked for; who sends it all the same cannot fill the memory."""
    monkeypatch.setattr(client_module, "ROOM", 100_000)
    packed = gzip.compress(b" " * 2**26)
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    tracemalloc.start()
    try:
        error = await raw(head + packed)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.outcome == "malformed"
    assert most < 2**24


async def test_what_was_never_sent_is_known_as_such() -> None:
    """Who takes connections and does not speak TLS was asked nothing: a binding that he was to do is not on its way."""

    async def silent(wire: Wire) -> None:
        await wire.closed()

    async with raw_server(silent) as cluster:
        error = await failure(cluster.server.replace("http:", "https:"), timeout=1.0)
    assert error.outcome == "unreachable"
    assert "no connection in time" in str(error)


async def resets(wire: Wire) -> None:
    """In the middle of the question."""
    wire.reset()


@pytest.mark.parametrize("listens", [False, True])
async def test_a_question_that_was_not_answered_is_not_kept(listens: bool) -> None:
    """Errors of aiohttp go in circles, and the collector of a large heap runs seldom: questions have megabytes."""
    nodes = NodeBodies(["a"], b'{"x":"%b"}' % (b"x" * 4 * 2**20))
    async with raw_server(resets) as cluster, asking(cluster.server if listens else "http://127.0.0.1:1") as client:

        async def fails() -> None:
            with pytest.raises(ExtenderError):
                await client.filter(POD, nodes)

        await fails()
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(6):
                await fails()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
    assert kept < 2 * 2**20


async def test_nothing_is_told_of_who_ksp_is() -> None:
    async with extending({"filter": good}) as server, asking(server.url) as client:
        await client.filter(POD, NODES)
    (headers,) = server.headers
    assert not {"Authorization", "Cookie", "Proxy-Authorization"} & headers.keys()


async def test_nobody_listens() -> None:
    async with extending({}) as server:
        url = server.url
    error = await failure(url)
    assert error.outcome == "unreachable"
    assert "Connection refused; see that it runs and listens" in str(error)


@pytest.mark.parametrize("url", [
    "127.0.0.1:1", "ftp://127.0.0.1", "http://", "http://[", "x", "http://127.0.0.1:99999", "http://a b/",
    "http://ä.example", "http://127.0.0.1/x?y", "http://127.0.0.1/#x", "http://a..b", "http://.", "http://%zz",
    "http://" + "a" * 64, "http://256.1.1.1", "http://[fe80::1%25lo]",
])  # fmt: skip
async def test_a_prefix_that_is_no_address_is_said_so(url: str) -> None:
    error = await failure(url)
    assert error.outcome == "unreachable"
    assert "its urlPrefix is not an address like https://10.0.0.1:8888/scheduler" in str(error)


async def test_a_password_in_the_prefix_is_not_sent_nor_told() -> None:
    async with asking("http://user:secret@127.0.0.1:1/a@b") as client:
        with pytest.raises(ExtenderError) as caught:
            await client.filter(POD, NODES)
    assert str(caught.value).startswith("extender http://127.0.0.1:1/a@b: its urlPrefix is not an address")


async def test_a_proxy_of_the_environment_is_used_but_not_for_the_loopback() -> None:
    """As kube-scheduler, which takes Go's rules."""
    async with extending({"filter": good}) as server:
        proxy = {"HTTP_PROXY": "http://127.0.0.1:1"}
        async with asking(server.url, environ=proxy) as client:
            assert (await client.filter(POD, NODES)).names == ("a",)
        error = await failure("http://extender.example", environ=proxy)
    assert "proxy cannot be reached" in str(error)
