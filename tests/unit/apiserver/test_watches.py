"""Watches over HTTP: beginnings, selectors, bookmarks, ends."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from tests.unit.apiserver.over_http import CONFIG_MAPS, Http, serving, until

from ksp.apiserver import server
from ksp.apiserver.handlers import watches

VERSIONS = pytest.mark.parametrize("version", ["1.19", "1.36"])
WATCH = f"{CONFIG_MAPS}?watch=true"


async def label(http: Http, name: str, **labels: str | None) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    code, _ = await http.ask("PATCH", f"{CONFIG_MAPS}/{name}", {"metadata": {"labels": labels}}, headers)
    assert code == 200


@VERSIONS
async def test_from_the_start_all_that_is_there_comes_first(version: str) -> None:
    async with serving(version) as http:
        await http.make("a")
        async with http.watching(WATCH) as lines:
            assert await lines.take(1) == [("ADDED", "a")]
            await http.make("b")
            await http.ask("DELETE", f"{CONFIG_MAPS}/a")
            assert await lines.take(2) == [("ADDED", "b"), ("DELETED", "a")]


async def test_from_a_version_what_happened_since_is_told_again() -> None:
    async with serving() as http:
        made = await http.make("a")
        await label(http, "a", x="1")
        await http.make("b")
        async with http.watching(f"{WATCH}&resourceVersion={made['metadata']['resourceVersion']}") as lines:
            assert await lines.take(2) == [("MODIFIED", "a"), ("ADDED", "b")]


async def test_an_object_that_leaves_the_selector_is_deleted_as_it_was() -> None:
    async with serving() as http:
        await http.make("a", s="1")
        async with http.watching(f"{WATCH}&labelSelector=s%3D1") as lines:
            await lines.next()
            await label(http, "a", s="2")
            left = await lines.next()
            assert left["type"] == "DELETED"
            assert left["object"]["metadata"]["labels"] == {"s": "1"}
            _, now = await http.ask("GET", f"{CONFIG_MAPS}/a")
            assert left["object"]["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
            await label(http, "a", s="1")
            assert await lines.take(1) == [("ADDED", "a")]


async def test_nothing_is_sent_for_a_change_that_changes_nothing() -> None:
    async with serving() as http:
        await http.make("a", s="1")
        async with http.watching(WATCH) as lines:
            await lines.next()
            await label(http, "a", s="1")
            await http.make("b")
            assert await lines.take(1) == [("ADDED", "b")]


@VERSIONS
async def test_too_old_is_an_error_in_the_stream(version: str) -> None:
    async with serving(version) as http:
        await http.make("a")
        await http.server.restart()
        async with http.watching(f"{WATCH}&resourceVersion=1") as lines:
            events = await lines.rest()
        assert [event["type"] for event in events] == ["ERROR"]
        assert events[0]["object"]["code"] == 410
        assert events[0]["object"]["message"].startswith("too old resource version: 1 (")


async def test_a_kind_without_a_cache_knows_compactions() -> None:
    async with serving("1.36", uncached=["configmaps"]) as http:
        made = await http.make("a")
        await http.make("b")
        http.server.compact()
        async with http.watching(f"{WATCH}&resourceVersion={made['metadata']['resourceVersion']}") as lines:
            events = await lines.rest()
        assert events[0]["object"]["message"] == "The resourceVersion for the provided watch is too old."


async def test_a_compaction_does_not_end_open_watches() -> None:
    async with serving() as http, http.watching(WATCH) as lines:
        http.server.compact()
        await http.make("a")
        assert await lines.take(1) == [("ADDED", "a")]


@VERSIONS
async def test_bookmarks_come_each_minute_and_before_the_end(version: str) -> None:
    async with serving(version) as http:
        path = f"{WATCH}&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=150"
        async with http.watching(path) as lines:
            http.clock.advance(151)
            events = await lines.rest()
        assert [event["type"] for event in events] == ["BOOKMARK"] * 3
        assert int(events[0]["object"]["metadata"]["resourceVersion"]) >= http.server.state.store.revision


async def test_a_list_in_the_form_of_a_watch() -> None:
    async with serving() as http:
        await http.make("a")
        options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with http.watching(f"{WATCH}&{options}") as lines:
            assert await lines.take(1) == [("ADDED", "a")]
            end = await lines.next()
            assert end["type"] == "BOOKMARK"
            assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            await http.make("b")
            assert await lines.take(1) == [("ADDED", "b")]


async def test_the_older_version_does_not_know_it() -> None:
    async with serving("1.19") as http:
        code, body = await http.ask("GET", f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        assert (code, body["reason"]) == (422, "Invalid")


async def test_a_table_names_its_columns_once() -> None:
    async with serving() as http:
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        await http.make("a")
        await http.make("b")
        async with http.watching(WATCH, headers) as lines:
            first, second = await lines.events(2)
        assert len(first["object"]["columnDefinitions"]) == 3
        assert second["object"]["columnDefinitions"] is None


async def test_a_watch_ends_when_its_time_is_over() -> None:
    async with serving() as http, http.watching(f"{WATCH}&timeoutSeconds=10") as lines:
        http.clock.advance(9)
        await http.make("a")
        assert await lines.take(1) == [("ADDED", "a")]
        http.clock.advance(2)
        assert await lines.rest() == []


async def test_a_watch_without_a_timeout_ends_within_an_hour() -> None:
    async with serving() as http, http.watching(WATCH) as lines:
        http.clock.advance(1799)
        await http.make("a")
        assert await lines.take(1) == [("ADDED", "a")]
        http.clock.advance(1802)
        assert await lines.rest() == []


async def test_watchers_that_went_away_are_forgotten() -> None:
    async with serving() as http:
        listeners = http.server.state.store.kind("configmaps").listeners
        async with http.watching(WATCH) as lines:
            assert len(listeners) == 1
            lines.response.close()
        await until(lambda: not listeners)


async def test_one_line_is_made_for_all_watchers() -> None:
    async with serving() as http, http.watching(WATCH) as one, http.watching(WATCH) as other:
        await http.make("a")
        assert await one.next() == await other.next()


async def test_tables_with_and_without_objects_are_not_mixed() -> None:
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with (
        serving() as http,
        http.watching(f"{WATCH}&includeObject=None", headers) as bare,
        http.watching(f"{WATCH}&includeObject=Object", headers) as whole,
    ):
        for name in ("a", "b"):
            await http.make(name)
        for _ in range(2):
            assert (await bare.next())["object"]["rows"][0]["object"] is None
            assert (await whole.next())["object"]["rows"][0]["object"]["kind"] == "ConfigMap"


async def test_a_table_names_its_columns_in_its_first_line_whatever_happens_meanwhile() -> None:
    async with serving() as http:
        await http.make("a")
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        async with http.watching(WATCH, headers) as lines:
            await http.make("b")
            first, second = await lines.events(2)
    assert first["object"]["rows"][0]["cells"][0] == "a"
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] is None


# --- watchers that are slow, dead or many ----------------------------------------------------------------------------


async def test_what_is_there_may_be_more_than_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "BACKLOG", 1000)
    monkeypatch.setattr(watches, "SLICE", 2)
    async with serving() as http:
        names = [f"a{number}" for number in range(10)]
        made = [await http.make(name) for name in names]
        async with http.watching(WATCH) as lines:
            assert await lines.take(10) == [("ADDED", name) for name in names]
        async with http.watching(f"{WATCH}&resourceVersion={made[0]['metadata']['resourceVersion']}") as lines:
            assert await lines.take(9) == [("ADDED", name) for name in names[1:]]


def filled(http: Http, name: str) -> None:
    """A large configmap, without a request."""
    meta = {"name": name, "namespace": "default", "uid": name}
    http.server.state.store.put("configmaps", {"apiVersion": "v1", "metadata": meta, "data": {"a": "x" * 300_000}})


async def test_a_watcher_that_does_not_read_costs_no_more_than_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """And holds up neither the writer nor another watcher."""
    monkeypatch.setattr(watches, "BACKLOG", 1_500_000)
    async with serving() as http, http.watching(WATCH), http.watching(WATCH) as reader:
        open_ones = list(http.server._watches)
        for number in itertools.count():
            filled(http, f"a{number}")
            assert all(sum(map(len, watch._lines)) <= 1_500_000 for watch in open_ones)
            assert await reader.take(1) == [("ADDED", f"a{number}")]
            if any(watch.ended for watch in open_ones):
                break
        assert [sum(map(len, watch._lines)) for watch in open_ones if watch.ended] == [0]


async def test_a_watcher_that_takes_nothing_is_disconnected() -> None:
    async with serving() as http, http.watching(WATCH) as dead:
        (watch,) = http.server._watches
        for number in itertools.count():
            filled(http, f"a{number}")
            for _ in range(20):
                await asyncio.sleep(0)
            if watch._lines:  # nobody fetches them: the socket takes no more
                break
        http.clock.advance(server.PATIENCE + 1)
        await until(lambda: not http.server._watches)
        assert not http.server.state.store.kind("configmaps").listeners
        dead.response.close()


async def test_there_is_a_limit_to_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_WATCHES", 1)
    async with serving() as http, http.watching(WATCH):
        code, status = await http.ask("GET", WATCH)
        assert (code, status["reason"]) == (429, "TooManyRequests")
        assert (await http.ask("GET", CONFIG_MAPS))[0] == 200


async def test_a_fault_in_a_watch_is_not_that_of_the_writer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as http, http.watching(WATCH) as lines:

        def broken(*_: object) -> None:
            raise RuntimeError("a fault")

        monkeypatch.setattr(watches, "public", broken)
        await http.make("a")
        (event,) = await lines.rest()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
    assert "a fault" in caplog.text


async def test_lines_of_the_past_are_not_kept() -> None:
    async with serving() as http:
        made = await http.make("a")
        await http.make("b")
        async with http.watching(f"{WATCH}&resourceVersion={made['metadata']['resourceVersion']}") as lines:
            assert await lines.take(1) == [("ADDED", "b")]
        assert not any(event.encoded for event in http.server.state.store.kind("configmaps").log)


async def test_a_kind_without_a_cache_does_not_tell_half_of_what_happened() -> None:
    """A log that does not reach back is as a compaction: nothing is skipped in silence."""
    async with serving("1.36", uncached=["configmaps"]) as http:
        made = await http.make("a")
        await http.make("b")
        http.server.state.store.kind("configmaps").forget(http.server.state.store.revision)
        async with http.watching(f"{WATCH}&resourceVersion={made['metadata']['resourceVersion']}") as lines:
            (event,) = await lines.rest()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
