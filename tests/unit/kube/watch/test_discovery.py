from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.unit.kube.api_objects import Json, listed, pod, status
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.hostile_server import HostileServer, client_of, events, groups, hostile_server, reply, resources
from tests.unit.kube.running import informers_at

from ksp.kube.errors import ApiError, KubeError
from ksp.kube.http.reader import MalformedError
from ksp.kube.watch.discovery import WANTED, Discovery
from ksp.kube.watch.reflector import GONE_AFTER
from ksp.kube.watch.resources import RESOURCES, GroupVersion

BUDGETS = RESOURCES["PodDisruptionBudget"]
NOT_FOUND = status(404, "NotFound", "the server could not find the requested resource")

OLD: dict[str, Json | tuple[int, str]] = {
    "/apis": groups("apps/v1", "policy/v1beta1", "events.k8s.io/v1", "events.k8s.io/v1beta1", "storage.k8s.io/v1"),
    "/apis/policy/v1beta1": resources(poddisruptionbudgets="PodDisruptionBudget"),
    "/apis/events.k8s.io/v1": resources(events="Event"),
    "/apis/events.k8s.io/v1beta1": resources(events="Event"),
    "/apis/storage.k8s.io/v1": resources(storageclasses="StorageClass"),
    "/apis/apps/v1": resources(replicasets="ReplicaSet", statefulsets="StatefulSet"),
}


@pytest.fixture
async def server() -> AsyncGenerator[HostileServer, None]:
    async with hostile_server() as server:
        server.plan("list", reply(listed(pod("a", 3), version=10)))
        server.plan("watch", events())
        yield server


async def discovered(server: HostileServer) -> Discovery:
    async with client_of(server) as client:
        discovery = Discovery(client)
        await discovery.refresh()
        return discovery


async def test_best_version_that_is_served(server: HostileServer) -> None:
    server.discovery |= OLD
    discovery = await discovered(server)
    assert discovery.resolve(BUDGETS) == GroupVersion("policy", "v1beta1")
    assert discovery.serves("policy", "v1beta1", "poddisruptionbudgets")
    assert not discovery.serves("policy", "v1", "poddisruptionbudgets")
    assert discovery.serves("events.k8s.io", "v1", "events")
    assert discovery.serves("", "v1", "pods")
    assert not discovery.serves("", "v1", "events")
    server.discovery |= {
        "/apis": groups("policy/v1beta1", "policy/v1"),
        "/apis/policy/v1": resources(poddisruptionbudgets="PodDisruptionBudget"),
    }
    assert (await discovered(server)).resolve(BUDGETS) == GroupVersion("policy", "v1")


async def test_only_versions_that_ksp_can_use_are_looked_into(server: HostileServer) -> None:
    server.discovery |= OLD | {"/apis": groups("apps/v1", "batch/v1", "policy/v1beta1", "apps/v1beta1")}
    await discovered(server)
    assert server.paths == ["/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/policy/v1beta1"]
    assert GroupVersion("events.k8s.io", "v1") in WANTED


def test_paths() -> None:
    assert GroupVersion("", "v1").prefix == "/api/v1"
    assert GroupVersion("policy", "v1").prefix == "/apis/policy/v1"


@pytest.mark.parametrize("answer", [(404, "404 page not found\n"), (404, str(NOT_FOUND))], ids=["text", "Status"])
@pytest.mark.parametrize("path", ["/apis/policy/v1", "/apis"])
async def test_404_in_any_form_means_not_served(server: HostileServer, path: str, answer: tuple[int, str]) -> None:
    server.discovery |= {"/apis": groups("policy/v1")} | {path: answer}
    discovery = await discovered(server)
    assert discovery.resolve(BUDGETS) is None
    assert discovery.resolve(RESOURCES["Pod"]) is not None


@pytest.mark.parametrize("code", [401, 403, 500, 503])
@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/policy/v1"])
async def test_failure_is_not_an_answer(server: HostileServer, path: str, code: int) -> None:
    server.discovery |= {"/apis": groups("policy/v1")} | {path: (code, "no")}
    with pytest.raises(ApiError, match=str(code)):
        await discovered(server)


async def test_unreachable_server_is_not_an_answer_and_what_was_known_stays(server: HostileServer) -> None:
    async with client_of(server) as client:
        discovery = Discovery(client)
        known = [discovery.known]
        await discovery.refresh()
        known.append(discovery.known)
        assert known == [False, True]
        await server.stop()
        with pytest.raises(KubeError, match="127"):
            await discovery.refresh()
        assert discovery.serves("", "v1", "pods")


@pytest.mark.parametrize("body", ["<html>", "[]", '{"groups":[{"versions":7}]}', '{"groups":"\\ud800"}'])
async def test_nonsense_is_not_an_answer(server: HostileServer, body: str) -> None:
    server.discovery["/apis"] = (200, body)
    with pytest.raises(MalformedError, match="/apis"):
        await discovered(server)


@pytest.mark.parametrize("answer", [(404, "default backend - 404"), {"versions": []}, {"versions": None}])
async def test_whatever_has_no_core_is_no_api_server(server: HostileServer, answer: Json | tuple[int, str]) -> None:
    server.discovery["/api"] = answer
    with pytest.raises(MalformedError, match="no Kubernetes API server"):
        await discovered(server)


async def test_nulls_are_empty(server: HostileServer) -> None:
    server.discovery |= {"/apis": {"groups": None}, "/api": {"versions": ["v1"]}, "/api/v1": {"resources": None}}
    assert (await discovered(server)).resolve(RESOURCES["Pod"]) is None


async def test_resource_that_cannot_be_watched_is_not_served_to_reflectors(server: HostileServer) -> None:
    server.discovery["/api/v1"] = {"resources": [{"name": "pods", "verbs": ["get", "list"]}, {"name": "nodes"}]}
    discovery = await discovered(server)
    assert discovery.resolve(RESOURCES["Pod"]) is None
    assert discovery.resolve(RESOURCES["Node"]) is None
    assert discovery.serves("", "v1", "pods")


async def test_many_who_ask_at_once_share_one_answer(server: HostileServer) -> None:
    async with client_of(server) as client:
        discovery = Discovery(client)
        await asyncio.gather(*(discovery.refresh() for _ in range(5)))
        assert server.paths == ["/api", "/apis", "/api/v1"]
        await discovery.refresh()
        assert len(server.paths) == 6


async def test_many_who_ask_at_once_share_one_failure(server: HostileServer) -> None:
    server.discovery["/api"] = (500, "boom")
    async with client_of(server) as client:
        discovery = Discovery(client)
        found = await asyncio.gather(*(discovery.refresh() for _ in range(5)), return_exceptions=True)
        assert [isinstance(result, KubeError) for result in found] == [True] * 5
        assert server.paths == ["/api"]


async def test_cancelled_attempt_answers_nobody(server: HostileServer) -> None:
    async with client_of(server) as client:
        discovery = Discovery(client)
        first = asyncio.create_task(discovery.refresh())
        second = asyncio.create_task(discovery.refresh())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert discovery.serves("", "v1", "pods")


GONE = "the API server does not serve pods any more"

# --- kinds that are missing ------------------------------------------------------------------------------------------


async def test_missing_kind_is_an_empty_synced_informer(server: HostileServer) -> None:
    timers = EagerTimers()
    async with informers_at(server, timers, kinds=["Pod", "PodDisruptionBudget", "CSINode"]) as running:
        async with asyncio.timeout(5):
            await running.informers.wait_for_sync()
        assert running.informers.informer("PodDisruptionBudget").lister.list() == []
        assert running.informers.waiting_for() == running.informers.troubles() == []


async def test_missing_kind_is_looked_for_again_after_a_while(server: HostileServer) -> None:
    timers = EagerTimers(jitter=0.5)
    server.discovery["/api/v1"] = resources(nodes="Node")
    async with informers_at(server, timers) as running:
        waits = [15.0, 30.0, 60.0, 120.0, 240.0, 450.0, 450.0]
        for count in range(4, len(waits) + 1):
            await asyncio.wait_for(timers.resting.wait(), 5)
            assert timers.slept == waits[:count]
            assert running.informers.has_synced
            if count < len(waits):
                timers.release()
        server.discovery["/api/v1"] = resources(pods="Pod")
        timers.release()
        await running.told("+w/a@3")


async def test_missing_kind_is_looked_for_again_after_a_reconnect(server: HostileServer) -> None:
    """The kind is one that the server got with its restart; the pods' reflector notices that the server was away."""
    timers = EagerTimers()
    async with informers_at(server, timers, kinds=["Pod", "PodDisruptionBudget"]) as running:
        await asyncio.wait_for(timers.resting.wait(), 5)
        await server.seen("watch", 1)
        await server.stop()
        await running.until(lambda: len(timers.slept) > 3)
        server.discovery |= OLD
        await server.start()
        await running.until(lambda: server.paths[-1] == "/apis/policy/v1beta1/poddisruptionbudgets")


async def test_kind_that_vanishes_is_empty_and_its_objects_are_deleted(server: HostileServer) -> None:
    timers = EagerTimers()
    gone = reply(NOT_FOUND, 404)
    server.plan("watch", gone)
    server.plan("list", reply(listed(pod("a", 3), version=10)), gone)
    async with informers_at(server, timers) as running:
        await running.told("+w/a@3")
        server.discovery["/api/v1"] = resources(nodes="Node")
        await running.told("+w/a@3", "-?w/a@3")
        await asyncio.wait_for(timers.resting.wait(), 5)
        assert running.informers.troubles() == []
        assert running.notes.failures[-1] == GONE
        assert timers.slept[:7] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 10.0]  # looked for all the while, and then seldom


async def test_kind_that_vanishes_for_a_moment_loses_nothing(server: HostileServer) -> None:
    """An API server that starts knows not all groups at first."""
    timers = EagerTimers()
    gone = reply(NOT_FOUND, 404)
    server.plan("watch", gone)
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply(listed(pod("a", 3), version=20)))
    served = server.discovery["/api/v1"]
    async with informers_at(server, timers) as running:
        await running.told("+w/a@3")
        server.discovery["/api/v1"] = resources(nodes="Node")
        await running.until(lambda: running.informers.troubles() == [("pods", GONE)])
        server.discovery["/api/v1"] = served
        await running.until(lambda: running.notes.lists == [1, 1])
        await running.told("+w/a@3")
        assert running.informers.troubles() == []
        assert sum(timers.slept) < GONE_AFTER


async def test_proxy_that_knows_no_path_empties_no_cache(server: HostileServer) -> None:
    server.plan("watch", reply("default backend - 404", 404))
    server.plan("list", reply(listed(pod("a", 3), version=10)), reply("default backend - 404", 404))
    timers = EagerTimers()
    async with informers_at(server, timers) as running:
        await running.told("+w/a@3")
        server.discovery = dict.fromkeys(server.discovery, (404, "default backend - 404"))
        await running.until(lambda: len(timers.slept) > 20)
        assert running.versions == {"w/a": "3"}
        assert "no Kubernetes API server" in running.informers.troubles()[0][1]


async def test_kind_that_is_watched_is_not_given_up_for_a_gap_in_discovery(server: HostileServer) -> None:
    server.plan("watch", events(then="reset"))
    timers = EagerTimers()
    async with informers_at(server, timers, kinds=["Pod", "CSINode"]) as running:
        await running.told("+w/a@3")
        await timers.resting.wait()
        server.discovery["/api/v1"] = resources(nodes="Node")
        timers.release()
        await running.until(lambda: not running.informers.discovery.serves("", "v1", "pods"))
        await server.seen("watch", len(server.asked["watch"]) + 2)
        assert running.versions == {"w/a": "3"}


async def test_kind_that_moves_to_another_version_is_listed_there(server: HostileServer) -> None:
    """As an upgrade beyond 1.24 does to policy/v1beta1."""
    timers = EagerTimers()
    server.discovery |= OLD
    async with informers_at(server, timers, kinds=["Pod", "PodDisruptionBudget"]) as running:
        await running.until(lambda: "/apis/policy/v1beta1/poddisruptionbudgets" in server.paths)
        server.discovery |= {
            "/apis": groups("policy/v1"),
            "/apis/policy/v1": resources(poddisruptionbudgets="PodDisruptionBudget"),
        }
        await running.until(lambda: "/apis/policy/v1/poddisruptionbudgets" in server.paths)
