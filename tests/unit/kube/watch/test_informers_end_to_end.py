"""Informers of all kinds against both versions of the embedded API server: resets, restarts, compactions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.kube.api_objects import Json
from tests.unit.kube.eager_timers import EagerTimers
from tests.unit.kube.running import Running, informers_of

from ksp.apiserver import ApiServer
from ksp.kube.auth.cluster import Cluster
from ksp.kube.http.client import Client
from ksp.kube.watch.reflector import ReflectorSettings
from ksp.kube.watch.resources import RESOURCES, GroupVersion, Resource, key_of
from ksp.model.selector import LabelSelector

PODS = "/api/v1/namespaces/w/pods"
MERGE = "application/merge-patch+json"

both = pytest.mark.parametrize("version", ["1.19", "1.36"])


def thing(api_version: str, kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "w"}} | fields


def new_pod(name: str) -> Json:
    return thing("v1", "Pod", name, spec={"containers": [{"name": "c", "image": "i"}]})


SELECTOR = {"matchLabels": {"a": "b"}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def cluster_of(version: str) -> list[Json]:
    """One object, or more, of most kinds."""
    budgets = "policy/v1beta1" if version == "1.19" else "policy/v1"
    objects = [
        thing("v1", "Node", "n1"),
        thing("v1", "Service", "s", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]}),
        thing("v1", "ReplicationController", "rc", spec={"selector": {"a": "b"}, "template": TEMPLATE}),
        thing("apps/v1", "ReplicaSet", "rs", spec={"selector": SELECTOR, "template": TEMPLATE}),
        thing("apps/v1", "StatefulSet", "sts", spec={"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}),
        thing("storage.k8s.io/v1", "StorageClass", "fast", provisioner="p"),
        thing("storage.k8s.io/v1", "CSINode", "n1", spec={"drivers": []}),
        thing(budgets, "PodDisruptionBudget", "pdb", spec={"selector": SELECTOR, "minAvailable": 1}),
        thing(budgets, "PodDisruptionBudget", "empty", spec={"selector": {}, "minAvailable": 1}),
        *(new_pod(f"p{i}") for i in range(7)),
    ]
    for value in objects:
        if not RESOURCES[value["kind"]].namespaced:
            del value["metadata"]["namespace"]
    return objects


def client_of(server: ApiServer) -> Client:
    return Client(Cluster(server.url, "the test"), qps=0)


@dataclass
class Bench:
    server: ApiServer
    client: Client
    running: Running
    timers: EagerTimers

    async def equal(self) -> None:
        """Comes to show just what the server has, of every kind."""
        try:
            async with asyncio.timeout(10):
                while await self._listed() != self._known():
                    continue
        except TimeoutError:
            assert self._known() == await self._listed()
        assert self.running.handler.held == {
            key: (uid, version) for (kind, key), (uid, version) in self._known().items() if kind == "Pod"
        }

    def _known(self) -> dict[tuple[str, str], tuple[str, str]]:
        return {
            (kind, key_of(value.metadata)): (value.metadata.uid, value.metadata.resource_version)
            for kind in RESOURCES
            for value in self.running.informers.informer(kind).lister.list()
        }

    async def _listed(self) -> dict[tuple[str, str], tuple[str, str]]:
        return {
            (kind, f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]): (
                meta["uid"],
                meta["resourceVersion"],
            )
            for kind, row in RESOURCES.items()
            for meta in [item["metadata"] for item in await self._items(row)]
        }

    async def _items(self, row: Resource) -> list[Json]:
        version = self.running.informers.discovery.resolve(row)
        assert version is not None, row.kind
        query = {"fieldSelector": row.fields} if row.fields else {}
        answer = await self.client.request("GET", f"{version.prefix}/{row.plural}", query=query)
        items: list[Json] = json.loads(answer.body)["items"]
        return items

    async def write(self, method: str, path: str, body: Json | None = None, content_type: str = MERGE) -> None:
        """By a client of its own, whose connections nobody has broken."""
        text = None if body is None else json.dumps(body).encode()
        async with client_of(self.server) as client:
            await client.request(method, path, body=text, content_type=content_type)

    async def churn(self, name: str) -> None:
        """Creates, changes, finishes, deletes, and makes again."""
        await self.write("POST", PODS, new_pod(name), "application/json")
        await self.write("PATCH", f"{PODS}/{name}", {"metadata": {"labels": {"x": "y"}}})
        await self.write("POST", PODS, new_pod(f"{name}-done"), "application/json")
        await self.write("PATCH", f"{PODS}/{name}-done/status", {"status": {"phase": "Succeeded"}})
        await self.write("DELETE", f"{PODS}/p1", {"gracePeriodSeconds": 0}, "application/json")
        await self.write("POST", PODS, new_pod("p1"), "application/json")


@asynccontextmanager
async def bench(version: str, settings: ReflectorSettings | None = None) -> AsyncGenerator[Bench, None]:
    server, timers = ApiServer(version), EagerTimers()
    server.load(cluster_of(version))
    await server.start()
    try:
        async with (
            client_of(server) as client,
            informers_of(
                client, timers, kinds=RESOURCES, settings=settings or ReflectorSettings(page_size=3)
            ) as running,
        ):
            async with asyncio.timeout(10):
                await running.informers.wait_for_sync()
            yield Bench(server, client, running, timers)
    finally:
        await server.stop()


@both
async def test_all_kinds_come_in_and_follow(version: str) -> None:
    async with bench(version) as made:
        await made.equal()
        assert made.running.informers.informer("Service").lister.get("w/s") is not None
        await made.churn("q")
        await made.equal()
        assert made.running.informers.troubles() == []
        assert made.running.notes.failures == []
        assert made.running.notes.bad == []


@both
async def test_versions_and_forms_of_lists_are_those_of_the_server(version: str) -> None:
    async with bench(version) as made:
        discovery = made.running.informers.discovery
        assert discovery.resolve(RESOURCES["PodDisruptionBudget"]) == GroupVersion(
            "policy", "v1beta1" if version == "1.19" else "v1"
        )
        # 1.36 streams its lists; 1.19 refuses to, and is asked for pages.
        assert len(made.running.notes.lists) == len(RESOURCES)
        await made.running.until(lambda: made.running.notes.watches == len(RESOURCES))


@both
async def test_an_empty_selector_of_a_budget_means_what_it_means_in_its_version(version: str) -> None:
    async with bench(version) as made:
        budgets = made.running.informers.informer("PodDisruptionBudget").lister
        api, meant = ("v1", LabelSelector()) if version == "1.36" else ("v1beta1", None)
        path = f"/apis/policy/{api}/namespaces/w/poddisruptionbudgets"
        await made.write("POST", path, {"metadata": {"name": "later"}, "spec": {"selector": {}}}, "application/json")
        await made.equal()
        assert [budget.spec.selector for name in ("empty", "later") if (budget := budgets.get(f"w/{name}"))] == [
            meant, meant,
        ]  # fmt: skip


@both
async def test_resets_cost_nothing_but_a_watch(version: str) -> None:
    async with bench(version) as made:
        for name in ("q", "r", "s"):
            made.server.drop_connections()
            await made.churn(name)
            await made.equal()
        assert made.running.notes.relists == []
        assert len(made.running.notes.lists) == len(RESOURCES)


@both
async def test_restarts_are_survived(version: str) -> None:
    async with bench(version) as made:
        for name in ("q", "r"):
            await made.server.restart()
            await made.churn(name)
            await made.equal()


@both
async def test_what_was_missed_beyond_a_compaction_is_listed_again(version: str) -> None:
    async with bench(version) as made:
        await made.server.stop()
        made.server.load([new_pod("while-away")])
        made.server.compact()
        await made.server.start(port=made.server.port)
        await made.churn("q")
        await made.equal()
        assert "w/while-away" in made.running.versions


async def test_pages_where_streams_are_not_wanted() -> None:
    async with bench("1.36", ReflectorSettings(page_size=3, watch_list=False)) as made:
        await made.equal()
        await made.churn("q")
        await made.equal()
