"""Where the bytes come from that extenders are sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.unit.core.scheduling import info

from ksp.kube.errors import ApiError
from ksp.kube.watch.informer import Informer
from ksp.kube.watch.objects import Readable, read_object
from ksp.kube.watch.raw import Kept
from ksp.kube.watch.resources import RESOURCES
from ksp.runtime.bodies import Bodies


@dataclass
class Body:
    body: bytes


@dataclass
class World:
    """Informers, and a server that lists what `held` says, by path."""

    held: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)
    selectors: list[str] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    informers: dict[str, Informer[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.informers = {kind: Informer(RESOURCES[kind]) for kind in ("Pod", "Node")}

    def informer(self, kind: str) -> Informer[Any]:
        return self.informers[kind]

    def tell(self, kind: str, value: dict[str, Any]) -> None:
        """The watch shows it; its bytes are kept if they are to be."""
        keep = self.kept.pod if kind == "Pod" else self.kept.node
        found = read_object(replace(RESOURCES[kind], with_bytes=keep), json.dumps(value).encode())
        assert isinstance(found, Readable)
        self.informers[kind].fifo.put(found.key, found.value)
        self.informers[kind].deliver_some(10)

    def forget(self, kind: str, key: str) -> None:
        self.informers[kind].fifo.delete(key, None)
        self.informers[kind].deliver_some(10)

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **_: Any) -> Body:
        self.lists.append(path)
        self.selectors.append((query or {}).get("fieldSelector", ""))
        await asyncio.sleep(0)
        if path not in self.held:
            raise ApiError(403, "Forbidden", "no")
        page = {"kind": "List", "metadata": {"resourceVersion": "9"}, "items": self.held[path]}
        return Body(json.dumps(page).encode())

    def stream(
        self, path: str, *, query: Mapping[str, str], inactivity: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise AssertionError("nothing is watched")


def thing(name: str, *, version: str = "1", uid: str | None = None, **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": version}
    return {"metadata": meta, **fields}


def node(name: str, **fields: Any) -> dict[str, Any]:
    made = thing(name, **fields)
    del made["metadata"]["namespace"]
    return made


@pytest.fixture
def world() -> World:
    return World()


def names(joined: bytes) -> list[str]:
    return [each["metadata"]["name"] for each in json.loads(b"[%b]" % joined)]


async def test_nodes_come_from_the_store_and_are_put_together_once(world: World) -> None:
    world.kept.nodes = True
    bodies = Bodies(world, world, world.kept)
    for name in "abc":
        world.tell("Node", node(name))
    first = await bodies.nodes(("a", "c", "gone"))
    assert names(first) == ["a", "c"]
    assert await bodies.nodes(("a", "c", "gone")) is first
    world.tell("Node", node("b", version="2"))
    assert await bodies.nodes(("a", "c", "gone")) is not first
    world.forget("Node", "a")
    assert names(await bodies.nodes(("a", "c"))) == ["c"]
    assert world.lists == []


async def test_who_was_there_before_bytes_were_kept_is_listed_once(world: World) -> None:
    bodies = Bodies(world, world, world.kept)
    for name in "ab":
        world.tell("Node", node(name))
    world.kept.nodes = True
    world.tell("Node", node("b", version="2", spec={"newer": True}))
    world.held["/api/v1/nodes"] = [node("a", spec={"unheard": 1}), node("b"), node("later")]
    for asked in (("a", "b"), ("b", "a")):
        found = json.loads(b"[%b]" % await bodies.nodes(asked))
        by_name = {each["metadata"]["name"]: each.get("spec") for each in found}
        assert by_name == {"a": {"unheard": 1}, "b": {"newer": True}}
    assert world.lists == ["/api/v1/nodes"]


async def test_two_who_miss_the_same_list_it_once(world: World) -> None:
    bodies = Bodies(world, world, world.kept)
    world.tell("Node", node("a"))
    world.kept.nodes = True
    world.held["/api/v1/nodes"] = [node("a")]
    assert [names(each) for each in await asyncio.gather(*[bodies.nodes(("a",)) for _ in range(3)])] == [["a"]] * 3
    assert world.lists == ["/api/v1/nodes"]


@pytest.mark.parametrize(("all_of_them", "listed"), [(False, ["waits"]), (True, ["waits", "runs"])])
async def test_pods_that_run_are_listed_only_for_an_extender_that_may_be_sent_them(
    world: World, all_of_them: bool, listed: list[str]
) -> None:
    """Of a large cluster they take a gigabyte, and a minute in which nothing is decided."""
    bodies = Bodies(world, world, world.kept)
    pods = [thing("waits"), thing("runs", spec={"nodeName": "n"})]
    for each in pods:
        world.tell("Pod", each)
    world.kept.waiting, world.kept.pods = True, all_of_them
    world.held["/api/v1/pods"] = pods  # by a server that does not heed the selector
    assert await bodies.pod(info("waits")) is not None
    assert ("spec.nodeName=" in world.selectors[0]) is not all_of_them
    assert [key.partition("/")[2] for key in bodies._pods._listed] == listed


async def test_what_is_not_kept_any_more_goes(world: World) -> None:
    bodies = Bodies(world, world, world.kept)
    world.tell("Node", node("a"))
    world.kept.nodes = True
    world.held["/api/v1/nodes"] = [node("a")]
    await bodies.nodes(("a",))
    world.tell("Node", node("a", version="2"))
    await bodies.nodes(("a",))
    assert not bodies._nodes._listed  # the store has it by now
    bodies.forget()
    assert bodies._joined[2] == b""


async def test_who_is_in_no_list_is_left_out_and_not_looked_for_again_and_again(world: World) -> None:
    bodies = Bodies(world, world, world.kept)
    world.tell("Node", node("a"))
    world.held["/api/v1/nodes"] = []
    for asked in (("a",), ("a", "gone"), ("a",)):
        assert await bodies.nodes(asked) == b""
    assert world.lists == ["/api/v1/nodes"]
    world.tell("Node", node("b"))
    for asked in (("b",), ("a",), ("b",)):
        assert await bodies.nodes(asked) == b""
    assert world.lists == ["/api/v1/nodes"] * 2


async def test_a_pod_is_the_one_of_its_uid(world: World) -> None:
    world.kept.waiting = True
    bodies = Bodies(world, world, world.kept)
    world.tell("Pod", thing("p", uid="new", spec={"unheard": 1.5}))
    body = await bodies.pod(info("p", metadata={"uid": "new"}))
    assert body is not None
    assert json.loads(body)["spec"] == {"unheard": 1.5}
    assert await bodies.pod(info("p", metadata={"uid": "old"})) is None
    assert await bodies.pod(info("gone")) is None


async def test_pods_that_others_would_have_to_leave_for(world: World) -> None:
    world.kept.pods = True
    bodies = Bodies(world, world, world.kept)
    world.tell("Pod", thing("a", spec={"nodeName": "n"}))
    found = await bodies.pods([info("a"), info("gone")])
    assert list(found) == ["a"]


async def test_a_list_that_fails_is_told(world: World) -> None:
    bodies = Bodies(world, world, world.kept)
    world.tell("Pod", thing("p"))
    world.kept.waiting = True
    with pytest.raises(ApiError):
        await bodies.pod(info("p"))
