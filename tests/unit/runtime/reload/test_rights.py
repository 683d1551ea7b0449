"""What a policy in a ConfigMap needs of rights: to get, list and watch that one, by its name; and kinds that a policy
reads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from tests.cluster.brisk import BriskTimers
from tests.cluster.reloads import rules, until
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.embedded import WITHIN, Said, Server, kubeconfig, served
from tests.unit.runtime.reload.driving import Vetter

from ksp.apiserver.server import STATIC_USERS
from ksp.kube.auth.config import load_cluster
from ksp.kube.http.client import Client
from ksp.kube.timers import SystemTimers
from ksp.kube.watch.shared_informers import SharedInformers
from ksp.policy.assemble import Settings, assemble
from ksp.policy.texts import PolicyTexts
from ksp.runtime.app import App, running
from ksp.runtime.options import Options
from ksp.runtime.reload import reloading
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.kinds import WITHIN as PATIENCE
from ksp.runtime.reload.kinds import WatchedKinds

TOKENS = {f"token-of-{name}": user for name, user in STATIC_USERS.items()}
READABLE = "extension-apiserver-authentication"
"""A ConfigMap of kube-system that kube-scheduler may get, list and watch by its name, and no other."""


def app_of(server: Server, folder: Path, name: str) -> App:
    source = ConfigMapSource(name, "kube-system")
    path = kubeconfig(folder, server, "system:kube-scheduler")
    return App(Options(None, str(path), port=None, seed=1, source=source), timers=BriskTimers(), environ={})


async def patched(server: Server, text: str) -> None:
    url = f"{server.url}/api/v1/namespaces/kube-system/configmaps/{READABLE}"
    headers = {"Authorization": "Bearer token-of-admin", "Content-Type": "application/merge-patch+json"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.patch(url, json={"data": {"rooms.ksp": text}}) as answer,
    ):
        assert answer.status == 200, await answer.text()


async def test_rights_by_its_name_suffice_to_follow_a_config_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "Child", lambda *_: Vetter())
    async with served(Server(tokens=TOKENS)) as server:
        await patched(server, rules("one"))
        async with running(app_of(server, tmp_path, READABLE)) as app:
            assert set(app.scheduler.cycles) == {"one"}
            await patched(server, rules("two"))
            await until(app, lambda app: app.status.status.generation == 2)
            assert set(app.scheduler.cycles) == {"two"}


async def test_without_the_right_it_waits_and_names_the_rule_that_is_missing(tmp_path: Path) -> None:
    async with served(Server(tokens=TOKENS)) as server:
        app, stop = app_of(server, tmp_path, "policy"), asyncio.Event()
        with Said() as said:
            task = asyncio.create_task(app.run(stop))
            await said.until("waiting for the policy")
            stop.set()
            await task
    (line,) = [line for line in said.messages if "waiting for the policy" in line]
    assert "cannot get configmaps in the namespace kube-system: add to the Role of the namespace kube-system" in line
    assert 'resourceNames: [\\"policy\\"], verbs: [\\"get\\",\\"list\\",\\"watch\\"]' in line


async def test_a_kind_that_nobody_watched_is_watched_and_one_that_cannot_be_is_waited_for_in_vain(
    tmp_path: Path,
) -> None:
    texts = PolicyTexts("x", {"a.ksp": rules("one", where='"default" in cluster.namespaces')}, ("a.ksp",))
    profiles, changes = assemble(texts, Settings()).profiles, list[object]()
    async with served() as server, asyncio.timeout(WITHIN):
        timers = VirtualTimers()
        async with Client(load_cluster(None, server.url, {}), SystemTimers()) as client:
            informers = SharedInformers(client, SystemTimers(), kinds=["Pod"])
            kinds = WatchedKinds(informers, changes.append, timers)
            task = asyncio.create_task(informers.run())
            try:
                server.hold("/namespaces")
                waiting = asyncio.create_task(kinds.watch(profiles))
                await server.until_held()
                await timers.advance(PATIENCE)
                assert "listing" in await waiting
                server.release("/namespaces")
                assert await kinds.watch(profiles) == ""
                assert "Namespace" in informers.kinds
                assert any(getattr(change, "kind", "") == "namespaces" for change in changes)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
