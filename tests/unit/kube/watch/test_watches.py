"""Watches that misbehave: each test is one way in which a watch fails, and what the cache makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.unit.kube.api_objects import (
    Json,
    added,
    bookmark,
    broken,
    deleted,
    error,
    line,
    listed,
    modified,
    pod,
    status,
    too_old,
)
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.hostile_server import HostileServer, Live, Stream, events, hostile_server, reply
from tests.unit.kube.running import Running, informers_at
from tests.unit.kube.timers import VirtualTimers


@pytest.fixture
async def server() -> AsyncGenerator[HostileServer, None]:
    async with hostile_server() as server:
        server.plan("list", reply(listed(pod("a", 3), version=10)))
        yield server


def positions(server: HostileServer) -> list[str]:
    """Where the watches were asked to begin."""
    return [query["resourceVersion"] for query in server.asked["watch"]]


# --- what a watch asks for -------------------------------------------------------------------------------------------


async def test_changes_reach_the_handlers_once_each(server: HostileServer) -> None:
    live = Live()
    server.plan("watch", live)
    async with informers_at(server) as running:
        for event, told in (
            (added(pod("b", 11)), "+w/b@11"),
            (modified(pod("b", 12)), "w/b@11>12"),
            (deleted(pod("b", 13)), "-w/b@13"),
            (deleted(pod("a", 14)), "-w/a@14"),
        ):
            live.put(event)
            await running.until(lambda told=told: told in running.handler.told)  # type: ignore[misc]
        await running.told("+w/a@3", "+w/b@11", "w/b@11>12", "-w/b@13", "-w/a@14")
        assert running.versions == {}


async def test_watches_ask_for_bookmarks_and_for_an_end_after_five_to_ten_minutes(server: HostileServer) -> None:
    server.plan("watch", events())
    for jitter, seconds in ((0.0, "300"), (0.5, "450"), (0.999, "600")):
        async with informers_at(server, EagerTimers(jitter=jitter)):
            await server.seen("watch", 1)
        assert server.asked["watch"].pop() == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "10",
            "timeoutSeconds": seconds,
            "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
        }


async def test_position_is_that_of_the_list_and_never_of_an_item(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", 3), pod("b", 99), version=10)))
    server.plan("watch", events())
    async with informers_at(server):
        await server.seen("watch", 1)
    assert positions(server) == ["10"]


# --- ends ------------------------------------------------------------------------------------------------------------


async def test_half_open_connection_is_found_by_its_silence_and_costs_no_list(server: HostileServer) -> None:
    timers = VirtualTimers()
    server.plan("watch", events(added(pod("b", 11))), events())
    async with informers_at(server, client_timers=timers) as running:
        await running.told("+w/a@3", "+w/b@11")
        await timers.asleep()
        await timers.advance(59)
        assert len(server.asked["watch"]) == 1
        await timers.advance(1)
        await server.seen("watch", 2)
        assert positions(server) == ["10", "11"]
        assert len(server.asked["list"]) == 1
        assert running.notes.endings == ["silent"]
        assert running.notes.failures == []


async def test_end_by_the_servers_timeout_is_followed_at_once_by_the_next_watch(server: HostileServer) -> None:
    timers, live = EagerTimers(), Live()
    server.plan("watch", live, events())
    async with informers_at(server, timers) as running:
        await running.until(lambda: running.notes.watches == 1)
        timers.elapse(300)
        live.put("end")
        await server.seen("watch", 2)
        assert timers.slept == []
        assert running.notes.endings == ["ended"]
        assert positions(server) == ["10", "10"]


async def test_reset_connection_is_resumed_within_two_seconds_and_without_a_list(server: HostileServer) -> None:
    timers, live = EagerTimers(jitter=0.999), Live()
    server.plan("watch", live, events(added(pod("c", 12))))
    async with informers_at(server, timers) as running:
        live.put(added(pod("b", 11)))
        await running.told("+w/a@3", "+w/b@11")
        live.put("reset")
        await running.told("+w/a@3", "+w/b@11", "+w/c@12")
        assert sum(timers.slept) < 2
        assert positions(server) == ["10", "11"]
        assert len(server.asked["list"]) == 1
        assert running.notes.endings == ["lost"]


async def test_reset_after_reset_is_resumed_within_two_seconds_if_the_watch_lived_between(
    server: HostileServer,
) -> None:
    timers, live = EagerTimers(jitter=0.999), Live()
    server.plan("watch", live)
    async with informers_at(server, timers) as running:
        for count in range(1, 6):
            await running.until(lambda count=count: running.notes.watches == count)  # type: ignore[misc]
            timers.elapse(1)
            live.put("reset")
        await server.seen("watch", 6)
        assert len(timers.slept) == 5
        assert max(timers.slept) < 2


async def test_resets_in_a_row_cost_no_list_until_they_seem_to_have_to_do_with_the_position(
    server: HostileServer,
) -> None:
    timers = EagerTimers(jitter=0.999)
    server.plan("watch", *[events(then="reset")] * 10, events())
    async with informers_at(server, timers) as running:
        await server.seen("watch", 11)
        assert len(server.asked["list"]) == 2
        assert running.notes.relists == ["no progress"]
        assert 10 < sum(timers.slept) < 30


async def test_watch_that_ends_at_once_each_time_is_no_hot_loop(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", events(then="end"))
    async with informers_at(server, timers) as running:
        await server.seen("watch", 8)
        assert timers.slept[:7] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
        assert running.notes.relists[0] == "no progress"


async def test_watch_that_brings_only_repetitions_and_ends_is_no_hot_loop(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", events(modified(pod("a", 3)), bookmark(10), then="end"))
    async with informers_at(server, timers) as running:
        await server.seen("watch", 4)
        assert timers.slept[:3] == [0.8, 1.6, 3.2]
        assert running.handler.told == ["+w/a@3"]


async def test_short_watch_that_brought_something_is_followed_at_once(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", events(added(pod("b", 11)), then="end"), events(added(pod("c", 12)), then="end"), events())
    async with informers_at(server, timers) as running:
        await server.seen("watch", 3)
        assert timers.slept == []
        await running.told("+w/a@3", "+w/b@11", "+w/c@12")


# --- too old, too new ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(status(410, "Expired", "too old"), 410), id="HTTP status 410"),
        pytest.param(events(too_old(), then="end"), id="ERROR line, Expired"),
        pytest.param(events(error(410, "Gone"), then="end"), id="ERROR line, Gone"),
        pytest.param(
            events(error(0, "Expired"), then="stay"), id="ERROR line without a code, and the stream stays open"
        ),
    ],
)
async def test_too_old_position_is_followed_at_once_by_a_list(server: HostileServer, answer: object) -> None:
    timers = EagerTimers()
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(pod("a", 20), version=30)))
    server.plan("watch", answer, events())  # type: ignore[arg-type]
    async with informers_at(server, timers) as running:
        await running.told("+w/a@3", "w/a@3>20")
        await server.seen("watch", 2)
        assert positions(server) == ["10", "30"]
        assert running.notes.relists == ["too old"]
        assert timers.slept == [0.0]


async def test_history_lost_again_a_while_later_is_followed_by_a_list_at_once(server: HostileServer) -> None:
    timers, live = EagerTimers(), Live()
    server.plan("watch", live)
    async with informers_at(server, timers) as running:
        for count in range(1, 5):
            await running.until(lambda count=count: running.notes.watches == count)  # type: ignore[misc]
            timers.elapse(6)
            live.put(too_old(), "end")
        await server.seen("watch", 5)
        assert timers.slept == [0.0] * 4


async def test_position_that_is_too_old_again_and_again_is_no_hot_loop(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", events(too_old(), then="end"))
    async with informers_at(server, timers):
        await server.seen("watch", 10)
        assert timers.slept[:9] == [0.0, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            reply(
                status(
                    504, "Timeout", "Too large resource version: 10", causes=[{"reason": "ResourceVersionTooLarge"}]
                ),
                504,
                Retry_After="1",
            ),
            id="HTTP status",
        ),
        pytest.param(
            events(error(504, "Timeout", "Timeout: Too large resource version: 10, current: 4")), id="ERROR line"
        ),
    ],
)
async def test_position_that_the_server_has_not_reached_is_given_up_for_a_list(
    server: HostileServer, answer: object
) -> None:
    server.plan("watch", answer, events())  # type: ignore[arg-type]
    async with informers_at(server) as running:
        await server.seen("watch", 2)
        assert running.notes.relists == ["too large resource version"]
        assert len(server.asked["list"]) == 2


async def test_bookmark_older_than_the_position_shows_that_history_went_back(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", 3), version=100)), reply(listed(pod("b", 2), version=5)))
    server.plan("watch", events(bookmark(4)), events())
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@2", "-?w/a@3")
        await server.seen("watch", 2)
        assert positions(server) == ["100", "5"]
        assert running.notes.relists == ["went back"]
        assert running.informers.discovery.history == 1  # so that all kinds are listed again


# --- errors ----------------------------------------------------------------------------------------------------------


async def test_error_line_of_another_kind_keeps_the_position_until_patience_ends(server: HostileServer) -> None:
    timers = EagerTimers()
    failure = events(error(500, "InternalError", "etcd event received with PrevKv=nil"), then="end")
    server.plan("watch", failure, failure, failure, events())
    async with informers_at(server, timers) as running:
        await server.seen("watch", 4)
        assert positions(server) == ["10", "10", "10", "10"]
        assert running.notes.relists == ["no progress"]
        assert len(server.asked["list"]) == 2
        assert timers.slept == [0.8, 1.6, 3.2]


async def test_error_line_that_is_no_status(server: HostileServer) -> None:
    server.plan("watch", events({"type": "ERROR", "object": None}), events({"type": "ERROR"}), events())
    async with informers_at(server) as running:
        await server.seen("watch", 3)
        assert len(running.notes.failures) == 2
        assert "an error that says nothing" in running.notes.failures[0]


@pytest.mark.parametrize("failures", [[400], [404]], ids=str)
async def test_watch_that_is_refused_for_good_is_followed_by_a_list(server: HostileServer, failures: list[int]) -> None:
    server.plan("watch", *(reply("no", code) for code in failures), events())
    async with informers_at(server) as running:
        await server.seen("watch", 2)
        assert running.notes.relists == [f"refused with {failures[0]}"]


@pytest.mark.parametrize("code", [502, 503, 504])
async def test_proxy_without_a_server_behind_it_is_asked_often_and_the_position_kept(
    server: HostileServer, code: int
) -> None:
    timers = EagerTimers(jitter=0.999)
    server.plan("watch", *[reply("no upstream", code)] * 10, events(added(pod("b", 11))))
    async with informers_at(server, timers) as running:
        await running.told("+w/a@3", "+w/b@11")
        assert set(positions(server)) == {"10"}
        assert max(timers.slept) < 3.1
        assert len(server.asked["list"]) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(status(429, "TooManyRequests"), 429, Retry_After="7"), id="HTTP status and header"),
        pytest.param(events(error(429, "TooManyRequests", retryAfterSeconds=7), then="end"), id="ERROR line"),
    ],
)
async def test_retry_after_of_a_busy_server_is_honoured(server: HostileServer, answer: object) -> None:
    timers = EagerTimers(jitter=0.5)
    server.plan("watch", answer, answer, events())  # type: ignore[arg-type]
    async with informers_at(server, timers) as running:
        await server.seen("watch", 3)
        assert timers.slept == [10.5, 10.5]
        assert running.notes.relists == []


async def test_absurd_retry_after_is_not_believed(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("watch", reply("", 429, Retry_After="86400"), reply("", 429, Retry_After="0"), events())
    async with informers_at(server, timers):
        await server.seen("watch", 3)
        assert timers.slept == [60.0, 0.8]


async def test_watch_that_is_forbidden_while_the_list_is_not_keeps_what_it_knows(server: HostileServer) -> None:
    server.plan("watch", reply(status(403, "Forbidden", "pods is forbidden"), 403), events(added(pod("b", 11))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@11")
        assert running.notes.relists == []
        assert running.notes.failures == [
            (
                'cannot watch pods in all namespaces: add to the ClusterRole: apiGroups: [""], resources: ["pods"], '
                'verbs: ["get","list","watch"] (the server says: 403 pods is forbidden)'
            )
        ]


async def test_it_never_gives_up_for_good(server: HostileServer) -> None:
    timers = EagerTimers(jitter=0.999)
    failures = [
        reply("", 500),
        reply("", 401),
        reply("", 403),
        reply("", 429),
        reply("<html>"),
        events("no event", then="end"),
    ]
    server.plan("list", *failures * 5, reply(listed(pod("a", 3), version=10)))
    server.plan("watch", *failures * 5, events(added(pod("b", 11))))
    async with informers_at(server, timers) as running:
        await running.until(lambda: "w/b" in running.handler.held)
        assert max(timers.slept) <= 60


# --- the server goes away --------------------------------------------------------------------------------------------


async def test_refused_connection_keeps_the_position_and_costs_no_list(server: HostileServer) -> None:
    timers = EagerTimers(jitter=0.999)
    server.plan("watch", events(), events(added(pod("b", 11))))
    async with informers_at(server, timers) as running:
        await server.seen("watch", 1)
        await server.stop()
        await running.until(lambda: len(timers.slept) >= 30)
        assert running.versions == {"w/a": "3"}
        assert "Cannot connect" in running.informers.troubles()[0][1] or "refused" in running.informers.troubles()[0][1]
        await server.start()
        await running.told("+w/a@3", "+w/b@11")
        assert set(positions(server)) == {"10"}
        assert len(server.asked["list"]) == 1
        assert max(timers.slept) <= 3
        assert running.informers.troubles() == []


async def test_server_that_comes_back_with_less_than_it_had_is_listed_again(server: HostileServer) -> None:
    """A watch from a version that the server has not reached is answered with 200 and silence."""
    timers = EagerTimers(jitter=0.999)
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(pod("b", 4), version=6)))
    server.plan("probe", reply(listed(pod("b", 4), version=6)))
    server.plan("watch", events(), events())
    async with informers_at(server, timers) as running:
        await server.seen("watch", 1)
        await server.stop()
        await running.until(lambda: len(timers.slept) >= 3)
        await server.start()
        await running.told("+w/a@3", "+w/b@4", "-?w/a@3")
        await server.seen("watch", 2)
        assert positions(server) == ["10", "6"]


async def test_kind_whose_position_the_server_passed_again_is_listed_again_too(server: HostileServer) -> None:
    """Another kind's reflector found that the history went back; an event of the new history shows it to this one."""
    live = Live()
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(pod("b", 4), version=30)))
    server.plan("watch", live, events())
    async with informers_at(server, EagerTimers()) as running:
        await server.seen("watch", 1)
        running.informers.discovery.went_back()
        live.put(added(pod("c", 20)))
        await running.told("+w/a@3", "+w/b@4", "-?w/a@3")


async def test_restarted_server_that_lost_its_history_is_caught_up_with_within_five_seconds(
    server: HostileServer,
) -> None:
    timers = EagerTimers(jitter=0.999)
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(pod("a", 3), pod("b", 40), version=50)))
    server.plan("watch", events(), events(too_old(), then="end"), events())
    async with informers_at(server, timers) as running:
        await server.seen("watch", 1)
        await server.stop()
        await running.until(lambda: len(timers.slept) >= 10)
        await server.start()
        waits = len(timers.slept)
        await running.told("+w/a@3", "+w/b@40")
        assert sum(timers.slept[waits:]) < 5


# --- lines -----------------------------------------------------------------------------------------------------------


async def test_line_cut_by_a_reset_is_not_an_event(server: HostileServer) -> None:
    whole = line(modified(pod("a", 12)))
    server.plan("watch", events(whole[:60], then="reset"), events(modified(pod("a", 12))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "w/a@3>12")
        assert positions(server) == ["10", "10"]


async def test_line_cut_by_a_clean_end_is_not_an_event(server: HostileServer) -> None:
    whole = line(modified(pod("a", 12)))
    server.plan("watch", events(whole[:60], then="end"), events(modified(pod("a", 12))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "w/a@3>12")
        assert positions(server) == ["10", "10"]


async def test_chunk_is_not_a_line_and_may_end_inside_a_letter(server: HostileServer) -> None:
    text = line(added(pod("b", 11, labels={"x": "größe"}))).replace(b"gr\\u00f6\\u00dfe", "größe".encode())
    assert "größe".encode() in text
    both = text + line(added(pod("c", 12)))

    async def by_bytes(stream: Stream) -> None:
        await stream.send(*(both[i : i + 1] for i in range(len(both))))
        await stream.stay()

    server.plan("watch", by_bytes)
    async with informers_at(server) as running:
        await running.until(lambda: set(running.versions) == {"w/a", "w/b", "w/c"})
        found = running.informers.informer("Pod").lister.get("w/b")
        assert found is not None
        assert found.metadata.labels == {"x": "größe"}


async def test_line_of_any_length(server: HostileServer) -> None:
    server.plan("watch", events(added(pod("b", 11, labels={"x": "y" * 3_000_000}))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@11")


async def test_line_that_is_no_event_again_and_again_is_overcome_by_a_list(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(pod("a", 3), pod("b", 11), version=11)))
    bad = events("<html>Bad Gateway</html>")
    server.plan("watch", bad, bad, bad, events())
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@11")
        await server.seen("watch", 4)
        assert positions(server) == ["10", "10", "10", "11"]
        assert running.notes.relists == ["no progress"]


# --- events ----------------------------------------------------------------------------------------------------------


async def test_bookmarks_move_the_position(server: HostileServer) -> None:
    server.plan("watch", events(bookmark(20), bookmark(20), bookmark(35), then="reset"), events())
    async with informers_at(server) as running:
        await server.seen("watch", 2)
        assert positions(server) == ["10", "35"]
        assert running.notes.positions == ["10", "20", "35"]


@pytest.mark.parametrize(
    "value",
    [
        {"metadata": {"resourceVersion": "20"}, "spec": "not a pod's", "status": []},
        {"metadata": {"resourceVersion": "20", "annotations": None, "labels": 3}},
        {"metadata": {"resourceVersion": "20", "annotations": {"x": 1}}},
    ],
)
async def test_bookmark_whose_object_does_not_decode(server: HostileServer, value: Json) -> None:
    server.plan("watch", events({"type": "BOOKMARK", "object": value}, then="reset"), events())
    async with informers_at(server) as running:
        await server.seen("watch", 2)
        assert positions(server) == ["10", "20"]
        assert running.notes.bad == []


@pytest.mark.parametrize("value", [{}, {"metadata": None}, {"metadata": {"resourceVersion": None}}, None])
async def test_bookmark_without_a_version_moves_nothing(server: HostileServer, value: Json | None) -> None:
    server.plan("watch", events({"type": "BOOKMARK", "object": value}, added(pod("b", 11))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@11")
        assert running.notes.positions == ["10", "11"]


async def test_event_of_an_unknown_type_is_reported_and_passed_over(server: HostileServer) -> None:
    server.plan("watch", events({"type": "RENAMED", "object": pod("x", 11)}, added(pod("b", 12))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@12")
        assert running.notes.bad == [("", "an event of the unknown type 'RENAMED'")]


async def test_object_that_cannot_be_decoded_keeps_its_last_good_version(server: HostileServer) -> None:
    live = Live()
    server.plan("watch", live)
    async with informers_at(server) as running:
        live.put(modified(broken("a", 11)), added(broken("b", 12)), "end")
        await server.seen("watch", 2)
        assert running.versions == {"w/a": "3"}
        assert [key for key, _ in running.notes.bad] == ["w/a", "w/b"]
        assert "$.spec.containers: expected a list" in running.notes.bad[0][1]
        assert positions(server) == ["10", "12"]
        live.put(modified(pod("a", 13)), modified(pod("b", 14)))
        await running.told("+w/a@3", "w/a@3>13", "+w/b@14")


async def test_deletion_that_cannot_be_decoded_is_a_deletion_all_the_same(server: HostileServer) -> None:
    server.plan("watch", events(deleted(broken("a", 11))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-?w/a@3")


async def test_deletion_without_a_name_is_followed_by_a_list(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(version=30)))
    server.plan("watch", events(deleted({"spec": {}})), events())
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-?w/a@3")
        assert running.notes.relists == ["a deletion without a name"]


async def test_undecodable_object_of_another_uid_ends_the_one_before(server: HostileServer) -> None:
    server.plan("watch", events(modified(broken("a", 11, uid="another"))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-?w/a@3")


@pytest.mark.parametrize("field", ["name", "uid", "resourceVersion"])
async def test_object_without_what_tells_it_apart_is_reported_and_passed_over(
    server: HostileServer, field: str
) -> None:
    bad = pod("b", 11)
    del bad["metadata"][field]
    server.plan("watch", events(added(bad), added({"kind": "Pod"}), added(pod("c", 12))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/c@12")
        assert running.notes.bad[0] == ("" if field == "name" else "w/b", f"it has no metadata.{field}")
        assert running.notes.bad[1] == ("", "it has no metadata.name")


async def test_repeated_events_are_dropped(server: HostileServer) -> None:
    live = Live()
    server.plan("watch", live)
    async with informers_at(server) as running:
        live.put(added(pod("b", 11)), modified(pod("b", 12)))
        await running.until(lambda: running.handler.held.get("w/b") == ("uid-b", "12"))
        told = list(running.handler.told)
        live.put(added(pod("b", 11)), modified(pod("b", 12)), added(pod("z", 13)))
        await running.told(*told, "+w/z@13")
        assert running.notes.repeats == 2


async def test_events_older_than_the_position_are_dropped_even_of_objects_that_are_gone(server: HostileServer) -> None:
    server.plan("watch", events(deleted(pod("a", 15)), added(pod("a", 9)), added(pod("b", 12)), added(pod("z", 16))))
    async with informers_at(server) as running:
        await running.until(lambda: "w/z" in running.handler.held)
        assert running.versions == {"w/z": "16"}
        assert running.notes.repeats == 2


async def test_versions_that_are_no_numbers_are_only_compared_for_equality(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", "zz"), version="zz")))
    server.plan("watch", events(modified(pod("a", "aa")), modified(pod("a", "aa")), added(pod("b", "m/7"))), events())
    async with informers_at(server) as running:
        await running.until(lambda: running.versions == {"w/a": "aa", "w/b": "m/7"})
        assert running.notes.repeats == 1


async def test_object_made_again_under_the_same_name_is_deleted_and_then_added(server: HostileServer) -> None:
    server.plan("watch", events(deleted(pod("a", 11)), added(pod("a", 12, uid="second"))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-w/a@11", "+w/a@12")
        assert running.handler.held == {"w/a": ("second", "12")}


async def test_object_made_again_whose_deletion_was_missed(server: HostileServer) -> None:
    server.plan("watch", events(modified(pod("a", 12, uid="second"))))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-?w/a@3", "+w/a@12")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_finished_pod_that_the_server_sends_all_the_same_is_gone(server: HostileServer, phase: str) -> None:
    server.plan("watch", events(modified(pod("a", 11, phase=phase)), added(pod("b", 12, phase=phase)), bookmark(13)))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-w/a@11")
        await running.until(lambda: running.notes.positions[-1] == "13")
        assert running.versions == {}


# --- stopping --------------------------------------------------------------------------------------------------------


async def _stopped(running: Running) -> None:
    running.task.cancel()
    async with asyncio.timeout(1):
        await asyncio.wait([running.task])
    assert running.task.cancelled()


async def test_stopping_does_not_wait_for_the_next_event(server: HostileServer) -> None:
    server.plan("watch", events())
    async with informers_at(server) as running:
        await server.seen("watch", 1)
        await _stopped(running)


async def test_stopping_does_not_wait_for_the_end_of_a_backoff(server: HostileServer) -> None:
    timers = VirtualTimers()
    server.plan("list", reply("", 500))
    async with informers_at(server, timers) as running:
        await timers.asleep()
        await _stopped(running)


async def test_stopping_does_not_wait_for_a_list(server: HostileServer) -> None:
    server.plan("list", Stream.stay)
    async with informers_at(server) as running:
        await server.seen("list", 1)
        await _stopped(running)


async def test_handler_that_raises_ends_the_informers(server: HostileServer) -> None:
    server.plan("watch", events(added(pod("b", 11))))
    with pytest.raises(ExceptionGroup) as raised:  # noqa: PT012 - it comes out of the block around the run
        async with informers_at(server) as running:
            running.handler.held["w/b"] = ("", "")  # so the handler finds fault with the addition
            await running.until(lambda: False)
    assert raised.group_contains(AssertionError, match="w/b is added twice")
