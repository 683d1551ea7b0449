"""Lists by pages that misbehave: each test is one way in which a list fails, and what the cache makes of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator

import pytest
from tests.unit.kube.api_objects import Json, broken, listed, pod, status, too_old
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.hostile_server import Answer, HostileServer, events, hostile_server, reply
from tests.unit.kube.recorder import Recorder
from tests.unit.kube.running import informers_at
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.watch.resources import Object

FIELDS = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


@pytest.fixture
async def server() -> AsyncGenerator[HostileServer, None]:
    async with hostile_server() as server:
        server.plan("watch", events())
        yield server


def then_relist(server: HostileServer, *lists: Answer) -> None:
    """After the first list the watch is too old; the others follow."""
    server.plan("list", *lists)
    server.plan("watch", events(too_old(), then="end"), events())


# --- pages -----------------------------------------------------------------------------------------------------------


async def test_list_comes_in_pages_of_500_at_a_quorum(server: HostileServer) -> None:
    server.plan(
        "list",
        reply(listed(pod("a", 3), version=10, token="t1")),
        reply(listed(pod("b", 4), version=10, token="t2")),
        reply(listed(pod("c", 5), version=10)),
    )
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@4", "+w/c@5")
        await server.seen("watch", 1)
        assert server.asked["list"] == [
            {"limit": "500", **FIELDS},
            {"limit": "500", "continue": "t1", **FIELDS},
            {"limit": "500", "continue": "t2", **FIELDS},
        ]
        assert server.asked["watch"][0]["resourceVersion"] == "10"
        assert running.notes.lists == [3]


async def test_position_is_that_of_the_first_page_if_the_server_does_not_keep_to_it(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", 3), version=10, token="t")), reply(listed(pod("b", 20), version=25)))
    async with informers_at(server):
        await server.seen("watch", 1)
        assert server.asked["watch"][0]["resourceVersion"] == "10"


async def test_list_that_expires_between_two_pages_begins_again(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan(
        "list",
        reply(listed(pod("a", 3), pod("x", 4), version=10, token="t1")),
        reply(status(410, "Expired", "The provided continue parameter is too old"), 410),
        reply(listed(pod("a", 3), version=20)),
    )
    async with informers_at(server, timers) as running:
        await running.until(lambda: running.informers.has_synced)
        assert running.versions == {"w/a": "3"}
        assert "continue" not in server.asked["list"][2]
        assert server.asked["list"][2]["limit"] == "500"
        assert timers.slept == [0.0]


async def test_list_that_expires_twice_is_asked_for_in_one_page(server: HostileServer) -> None:
    first, expired = reply(listed(pod("a", 3), version=10, token="t1")), reply(status(410, "Expired"), 410)
    server.plan("list", first, expired, first, expired, reply(listed(pod("a", 3), version=20)))
    async with informers_at(server) as running:
        await server.seen("watch", 1)
        assert [query.get("limit") for query in server.asked["list"]] == ["500", "500", "500", "500", None]
        assert running.handler.told == ["+w/a@3"]


async def test_token_that_leads_to_itself_ends_the_attempt(server: HostileServer) -> None:
    timers = EagerTimers()
    endless = reply(listed(version=10, token="t1"))
    server.plan("list", endless, endless, reply(listed(version=20)))
    async with informers_at(server, timers) as running:
        await server.seen("watch", 1)
        assert "its continue token leads to itself" in running.notes.failures[0]
        assert timers.slept == [0.8]


async def test_lost_page_is_asked_for_again(server: HostileServer) -> None:
    async def lost(stream: object) -> None:
        await stream.reset()  # type: ignore[attr-defined]

    server.plan(
        "list",
        reply(listed(pod("a", 3), version=10, token="t1")),
        lost,
        reply(listed(pod("b", 4), version=10)),
    )
    async with informers_at(server, client_timers=EagerTimers()) as running:
        await running.told("+w/a@3", "+w/b@4")
        assert [query.get("continue") for query in server.asked["list"]] == [None, "t1", "t1"]


# --- lists that are none ---------------------------------------------------------------------------------------------


async def test_items_null_is_an_empty_list(server: HostileServer) -> None:
    server.plan("list", reply(listed(version=10) | {"items": None}))
    async with informers_at(server) as running:
        await running.until(lambda: running.informers.has_synced)
        assert running.versions == {}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("<html>Welcome</html>", id="a page of HTML"),
        pytest.param("", id="nothing"),
        pytest.param('{"kind":"PodList","metadata":{"resourceVersion":"20"},"items":[{', id="half a list"),
        pytest.param(status(200, "Success"), id="a Status"),
        pytest.param(pod("a", 20), id="an object"),
        pytest.param({"kind": "PodList", "metadata": {"resourceVersion": "20"}}, id="a list without items"),
        pytest.param({"kind": "PodList", "items": []}, id="a list without metadata"),
        pytest.param(listed(version=""), id="a list without a version"),
        pytest.param(listed(version=20, kind="Pods"), id="a kind that is no list"),
        pytest.param([], id="an array"),
    ],
)
async def test_answer_that_is_no_list_deletes_nothing(server: HostileServer, answer: Json | str) -> None:
    then_relist(server, reply(listed(pod("a", 3), version=10)), reply(answer), reply(listed(pod("a", 30), version=31)))
    async with informers_at(server) as running:
        await running.told("+w/a@3", "w/a@3>30")
        assert len(running.notes.failures) == 2


# --- objects that cannot be read -------------------------------------------------------------------------------------


async def test_bad_item_of_a_list_keeps_its_last_good_version_and_stops_no_other(server: HostileServer) -> None:
    then_relist(
        server,
        reply(listed(pod("a", 3), broken("never", 4), version=10)),
        reply(listed(broken("a", 20), pod("b", 21), broken("never", 22), version=30)),
    )
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@21")
        await server.seen("watch", 2)
        assert running.versions == {"w/a": "3", "w/b": "21"}
        assert [key for key, _ in running.notes.bad] == ["w/never", "w/a", "w/never"]
        assert running.notes.bad[0][1] == '$.spec.containers: expected a list, got the string "none"'


async def test_bad_item_of_another_uid_ends_the_object_before(server: HostileServer) -> None:
    then_relist(
        server, reply(listed(pod("a", 3), version=10)), reply(listed(broken("a", 20, uid="second"), version=30))
    )
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-?w/a@3")


async def test_item_without_a_name_may_be_any_object_so_none_is_deleted(server: HostileServer) -> None:
    then_relist(
        server,
        reply(listed(pod("a", 3), pod("b", 4), version=10)),
        reply(listed({"metadata": {"name": 7}}, pod("b", 20), version=30)),
    )
    async with informers_at(server) as running:
        await running.told("+w/a@3", "+w/b@4", "w/b@4>20")
        await server.seen("watch", 2)
        assert running.versions == {"w/a": "3", "w/b": "20"}
        assert running.notes.bad[0][0] == ""


async def test_item_that_is_not_valid_utf8(server: HostileServer) -> None:
    good, bad = listed(pod("a", 3), pod("b", 4), version=10), b'"name": "b"'

    async def answer(stream: object) -> None:
        await stream.send(json.dumps(good).encode().replace(b'"image": "i"', b'"image": "\xff"', 1))  # type: ignore[attr-defined]

    assert bad in str(good).replace("'", '"').encode()
    server.plan("list", answer)
    async with informers_at(server) as running:
        await running.told("+w/b@4")
        assert running.notes.bad[0][0] == "w/a"
        assert "not valid UTF-8" in running.notes.bad[0][1]


async def test_finished_pod_that_the_server_lists_all_the_same_is_not_there(server: HostileServer) -> None:
    then_relist(
        server,
        reply(listed(pod("a", 3), pod("done", 4, phase="Succeeded"), version=10)),
        reply(listed(pod("a", 20, phase="Failed"), version=30)),
    )
    async with informers_at(server) as running:
        await running.told("+w/a@3", "-?w/a@3")


# --- relists ---------------------------------------------------------------------------------------------------------


async def test_relist_tells_what_was_added_changed_and_deleted_and_of_nothing_else(server: HostileServer) -> None:
    then_relist(
        server,
        reply(listed(pod("same", 1), pod("changed", 2), pod("gone", 3), pod("again", 4), version=10)),
        reply(listed(pod("same", 1), pod("changed", 20), pod("again", 21, uid="second"), pod("new", 22), version=30)),
    )
    async with informers_at(server) as running:
        await running.told(
            "+w/same@1",
            "+w/changed@2",
            "+w/gone@3",
            "+w/again@4",
            "w/changed@2>20",
            "-?w/again@4",
            "+w/again@21",
            "+w/new@22",
            "-?w/gone@3",
        )


async def test_list_older_than_what_is_known_is_believed_for_it_is_a_read_at_a_quorum(server: HostileServer) -> None:
    then_relist(server, reply(listed(pod("a", 300), version=400)), reply(listed(pod("a", 3), version=4)))
    async with informers_at(server) as running:
        await running.told("+w/a@300", "w/a@300>3")
        await server.seen("watch", 2)
        assert server.asked["watch"][1]["resourceVersion"] == "4"


async def test_list_that_breaks_off_deletes_nothing(server: HostileServer) -> None:
    timers = EagerTimers(longest=0.5)
    then_relist(
        server,
        reply(listed(pod("a", 3), pod("b", 4), version=10)),
        reply(listed(pod("a", 3), version=30, token="t")),
        reply("", 400),
    )
    async with informers_at(server, timers) as running:
        await timers.resting.wait()
        assert running.versions == {"w/a": "3", "w/b": "4"}
        timers.release()


# --- refusals --------------------------------------------------------------------------------------------------------

FORBIDDEN = 'pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope'


async def test_forbidden_list_names_verb_resource_and_the_rule_to_add(server: HostileServer) -> None:
    timers = VirtualTimers()
    server.plan("list", reply(status(403, "Forbidden", FORBIDDEN), 403), reply(listed(pod("a", 3), version=10)))
    async with informers_at(server, timers) as running:
        await timers.asleep()
        assert running.informers.waiting_for() == [
            (
                "pods",
                (
                    'cannot list pods in all namespaces: add to the ClusterRole: apiGroups: [""], resources: ["pods"], '
                    f'verbs: ["get","list","watch"] (the server says: 403 {FORBIDDEN})'
                ),
            )
        ]
        assert not running.informers.has_synced
        await timers.next()
        await running.told("+w/a@3")
        assert running.informers.waiting_for() == []


async def test_refused_credentials_say_what_to_check(server: HostileServer) -> None:
    timers = VirtualTimers()
    server.plan("list", reply(status(401, "Unauthorized"), 401))
    async with informers_at(server, timers) as running:
        await timers.asleep()
        [(resource, why)] = running.informers.waiting_for()
        assert resource == "pods"
        assert why.startswith(
            "cannot list pods in all namespaces: the API server does not accept the credentials: check the token, "
            "certificate or exec plugin of the kubeconfig"
        )


async def test_busy_server_is_asked_when_it_says(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("list", *[reply("too many", 429, Retry_After="5")] * 3, reply(listed(version=10)))
    async with informers_at(server, timers) as running:
        await server.seen("watch", 1)
        assert timers.slept == [5.0, 5.0, 5.0]
        assert "is busy and wants to be asked later" in running.notes.failures[0]


async def test_server_that_fails_is_asked_less_and_less_often(server: HostileServer) -> None:
    timers = EagerTimers()
    server.plan("list", reply("boom", 500))
    async with informers_at(server, timers):
        await server.seen("list", 9)
    assert timers.slept[:8] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


async def test_server_that_is_not_there_is_waited_for(server: HostileServer) -> None:
    server.plan("list", reply(listed(pod("a", 3), version=10)))
    await server.stop()
    timers = EagerTimers()
    async with informers_at(server, timers) as running:
        await running.until(lambda: len(timers.slept) > 5)
        [(_, why)] = running.informers.waiting_for()
        assert why.startswith(f"cannot find out what the API server serves: http://127.0.0.1:{server.port}: ")
        await server.start()
        await running.told("+w/a@3")


# --- sync and turns --------------------------------------------------------------------------------------------------


async def test_sync_comes_only_after_the_handlers_have_been_told(server: HostileServer) -> None:
    server.plan("list", reply(listed(*(pod(f"p{i}", i + 1) for i in range(500)), version=1000)))
    async with informers_at(server) as running:
        seen: list[bool] = []

        class Watcher(Recorder):
            def on_add(self, obj: Object) -> None:
                seen.append(running.informers.has_synced)

        running.informers.informer("Pod").add_handler(Watcher())
        async with asyncio.timeout(5):
            await running.informers.wait_for_sync()
        assert len(running.handler.told) == 500
        assert seen == [False] * 500


async def test_long_list_gives_others_their_turns(server: HostileServer) -> None:
    server.plan("list", reply(listed(*(pod(f"p{i}", i + 1) for i in range(2_000)), version=5000)))
    async with informers_at(server) as running:
        await running.until(lambda: len(running.handler.held) > 0)
        assert len(running.handler.held) < 2_000
        held: list[int] = []
        while not running.informers.has_synced:
            held.append(len(running.handler.held))
            await asyncio.sleep(0)
        assert max(later - sooner for sooner, later in itertools.pairwise(held)) <= 50
