"""Lists as streams (sendInitialEvents): where they are served, where not, and where they break."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from tests.unit.kube.api_objects import (
    Json,
    added,
    bookmark,
    broken,
    deleted,
    error,
    listed,
    modified,
    pod,
    status,
    too_old,
)
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.hostile_server import Answer, HostileServer, Live, events, hostile_server, reply
from tests.unit.kube.running import informers_at
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.watch.reflector import ReflectorSettings

STREAMS = ReflectorSettings()

# As 1.19 refuses, word for word (wt.sie).
REFUSED_BY_1_19 = status(
    422,
    "Invalid",
    'ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for '
    "watch, resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided]",
)


@pytest.fixture
async def server() -> AsyncGenerator[HostileServer, None]:
    async with hostile_server() as server:
        server.plan("list", reply(listed(pod("paged", 3), version=10)))
        yield server


async def test_list_comes_as_a_stream_that_goes_on_as_the_watch(server: HostileServer) -> None:
    live = Live()
    server.plan("watch", live)
    async with informers_at(server, settings=STREAMS) as running:
        live.put(added(pod("b", 9)), added(pod("a", 3)))
        await running.told("+w/b@9", "+w/a@3")
        assert not running.informers.has_synced
        assert running.informers.waiting_for() == [("pods", "listing")]
        live.put(bookmark(12, initial_end=True))
        await running.until(lambda: running.informers.has_synced)
        live.put(modified(pod("a", 13)), "reset")
        await running.told("+w/b@9", "+w/a@3", "w/a@3>13")
        await server.seen("watch", 2)
        assert server.asked["list"] == []
        assert server.asked["watch"] == [
            {
                "watch": "true",
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
                "allowWatchBookmarks": "true",
                "timeoutSeconds": "300",
                "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
            },
            {
                "watch": "true",
                "resourceVersion": "13",
                "allowWatchBookmarks": "true",
                "timeoutSeconds": "300",
                "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
            },
        ]
        assert running.notes.lists == [2]


async def test_what_changes_while_the_list_comes_in_counts(server: HostileServer) -> None:
    live = Live()
    server.plan("watch", live)
    async with informers_at(server, settings=STREAMS) as running:
        live.put(added(pod("a", 3)), added(pod("b", 4)), modified(pod("a", 11)), deleted(pod("b", 12)))
        live.put(bookmark(12, initial_end=True))
        await running.until(lambda: running.informers.has_synced)
        assert running.versions == {"w/a": "11"}


async def test_relist_as_a_stream_deletes_what_it_does_not_have_and_keeps_what_cannot_be_read(
    server: HostileServer,
) -> None:
    end = bookmark(30, initial_end=True)
    server.plan(
        "watch",
        events(added(pod("a", 3)), added(pod("b", 4)), added(pod("c", 5)), bookmark(10, initial_end=True), too_old()),
        events(added(pod("a", 20)), added(broken("c", 21)), end),
    )
    async with informers_at(server, settings=STREAMS) as running:
        await running.until(lambda: running.notes.lists == [3, 2] and len(running.handler.told) >= 5)
        assert running.handler.told == ["+w/a@3", "+w/b@4", "+w/c@5", "w/a@3>20", "-?w/b@4"]
        assert running.notes.bad[0][0] == "w/c"


# --- servers that do not serve them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(REFUSED_BY_1_19, 422), id="422, as 1.19"),
        pytest.param(reply("bad request", 400), id="400"),
        pytest.param(events(added(pod("other", 4)), bookmark(10)), id="an ordinary bookmark"),
        pytest.param(events(added(pod("other", 4)), then="end"), id="the stream ends"),
        pytest.param(events(bookmark("", initial_end=True)), id="a bookmark without a version"),
        pytest.param(events(error(500, "InternalError")), id="an ERROR line"),
        pytest.param(reply(listed(pod("other", 4), version=10)), id="a list, for the parameters were ignored"),
        pytest.param(events("<html>"), id="no events at all"),
    ],
)
async def test_server_without_streamed_lists_is_asked_for_pages_at_once_and_from_then_on(
    server: HostileServer, answer: Answer
) -> None:
    timers = EagerTimers()
    server.plan("watch", answer, events(too_old()), events())
    async with informers_at(server, timers, settings=STREAMS) as running:
        await server.seen("watch", 3)
        assert running.versions == {"w/paged": "3"}
        assert ["sendInitialEvents" in query for query in server.asked["watch"]] == [True, False, False]
        assert len(server.asked["list"]) == 2
        assert timers.slept == [0.0]


async def test_stream_that_falls_silent_before_its_end_is_followed_by_pages(server: HostileServer) -> None:
    timers = VirtualTimers()
    server.plan("watch", events(added(pod("other", 4))), events())
    async with informers_at(server, settings=STREAMS, client_timers=timers) as running:
        await running.told("+w/other@4")
        await timers.advance(60)
        await running.told("+w/other@4", "+w/paged@3", "-?w/other@4")


async def test_stream_that_is_cut_is_asked_for_again_but_not_for_ever(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", *[events(added(pod("other", 4)), then="reset")] * 3, events())
    async with informers_at(server, timers, settings=STREAMS) as running:
        await server.seen("watch", 4)
        assert ["sendInitialEvents" in query for query in server.asked["watch"]] == [True, True, True, False]
        assert len(server.asked["list"]) == 1
        assert timers.slept == [0.8, 1.5]
        assert running.handler.told == ["+w/other@4", "+w/paged@3", "-?w/other@4"]


async def test_server_that_comes_back_as_a_newer_one_is_asked_for_a_stream_again(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", reply(REFUSED_BY_1_19, 422), events())
    async with informers_at(server, timers, settings=STREAMS) as running:
        await running.until(lambda: running.notes.watches == 1)
        await server.stop()
        server.plan("watch", events(too_old()), events(bookmark(50, initial_end=True)))
        await running.until(lambda: len(timers.slept) > 2)
        await server.start()
        await running.told("+w/paged@3", "-?w/paged@3")
        assert "sendInitialEvents" in server.asked["watch"][-1]


@pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
async def test_refusal_that_says_nothing_of_streams_is_no_reason_to_give_them_up(
    server: HostileServer, code: int
) -> None:
    failing: Json = status(code, "Reason", "words")
    server.plan("watch", reply(failing, code), reply(failing, code), events(bookmark(10, initial_end=True)))
    async with informers_at(server, settings=STREAMS) as running:
        await running.until(lambda: running.informers.has_synced)
        assert len(running.notes.failures) == 2
        assert server.asked["list"] == []
