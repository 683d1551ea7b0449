"""Pages, versions and forms of lists, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.apiserver.over_http import CONFIG_MAPS, Http, serving, until

VERSIONS = pytest.mark.parametrize("version", ["1.19", "1.36"])
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


def names(body: Any) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


async def five(http: Http) -> None:
    for name in "abcde":
        await http.make(name, app="x" if name in "ace" else "y")


@VERSIONS
async def test_pages_are_of_one_moment(version: str) -> None:
    async with serving(version) as http:
        await five(http)
        _, first = await http.ask("GET", f"{CONFIG_MAPS}?limit=2")
        assert names(first) == ["a", "b"]
        assert first["metadata"]["remainingItemCount"] == 3
        await http.ask("DELETE", f"{CONFIG_MAPS}/c")
        await http.make("ab")
        _, second = await http.ask("GET", f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}")
        assert names(second) == ["c", "d"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        _, third = await http.ask("GET", f"{CONFIG_MAPS}?limit=2&continue={second['metadata']['continue']}")
        assert names(third) == ["e"]
        assert "continue" not in third["metadata"]


async def test_pages_over_all_namespaces() -> None:
    async with serving() as http:
        for name in ("a", "b"):
            await http.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            for item in ("x", "y"):
                await http.ask("POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": item}})
        found: list[str] = []
        path = "/api/v1/configmaps?limit=1&fieldSelector=metadata.namespace!=kube-system"
        more = ""
        while True:
            _, page = await http.ask("GET", path + more)
            found += [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in page["items"]]
            if "continue" not in page["metadata"]:
                break
            more = f"&continue={page['metadata']['continue']}"
        assert found == ["a/x", "a/y", "b/x", "b/y"]


async def test_a_selector_hides_how_many_remain() -> None:
    async with serving() as http:
        await five(http)
        _, page = await http.ask("GET", f"{CONFIG_MAPS}?limit=2&labelSelector=app%3Dx")
        assert names(page) == ["a", "c"]
        assert "remainingItemCount" not in page["metadata"]


@pytest.mark.parametrize(("version", "status"), [("1.19", 410), ("1.36", 200)])
async def test_a_page_after_a_compaction(version: str, status: int) -> None:
    async with serving(version) as http:
        await five(http)
        _, page = await http.ask("GET", f"{CONFIG_MAPS}?limit=2")
        await http.make("f")
        http.server.compact()
        code, rest = await http.ask("GET", f"{CONFIG_MAPS}?limit=5&continue={page['metadata']['continue']}")
        assert code == status
        if status == 410:
            assert rest["reason"] == "Expired"
            _, rest = await http.ask("GET", f"{CONFIG_MAPS}?limit=5&continue={rest['metadata']['continue']}")
            assert names(rest) == ["c", "d", "e", "f"]
        else:
            assert names(rest) == ["c", "d", "e"]


async def test_a_list_of_exactly_one_version() -> None:
    async with serving() as http:
        made = await http.make("a")
        await http.make("b")
        version = made["metadata"]["resourceVersion"]
        _, then = await http.ask("GET", f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
        assert names(then) == ["a"]
        _, now = await http.ask("GET", f"{CONFIG_MAPS}?resourceVersion={version}")
        assert names(now) == ["a", "b"]


@VERSIONS
async def test_a_version_in_the_future_is_waited_for(version: str) -> None:
    async with serving(version) as http:
        ahead = http.server.state.store.revision + 100
        asking = asyncio.create_task(http.ask("GET", f"{CONFIG_MAPS}?resourceVersion={ahead}"))
        await until(lambda: http.clock.waiting)
        assert not asking.done()
        http.clock.advance(3.1)
        code, body = await asking
        assert code == 504
        assert body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(("version", "code"), [("1.19", 500), ("1.36", 400)])
async def test_a_version_that_is_no_number(version: str, code: int) -> None:
    async with serving(version) as http:
        assert (await http.ask("GET", f"{CONFIG_MAPS}?resourceVersion=abc"))[0] == code


@VERSIONS
async def test_the_cache_gives_all_whatever_the_limit(version: str) -> None:
    async with serving(version) as http:
        await five(http)
        _, body = await http.ask("GET", f"{CONFIG_MAPS}?limit=2&resourceVersion=0")
        assert sorted(names(body)) == list("abcde")
        if version == "1.36":
            assert names(body) == list("abcde")


async def test_tables_and_metadata() -> None:
    async with serving() as http:
        _, nothing = await http.ask("GET", CONFIG_MAPS, headers=PARTIAL)
        assert nothing["items"] is None
        await http.make("a")
        _, table = await http.ask("GET", CONFIG_MAPS, headers=TABLE)
        assert table["kind"] == "Table"
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert table["rows"][0]["cells"] == ["a", 0, "0s"]
        _, partial = await http.ask("GET", CONFIG_MAPS, headers=PARTIAL)
        assert partial["items"][0].keys() == {"kind", "apiVersion", "metadata"}
        _, one = await http.ask("GET", f"{CONFIG_MAPS}/a", headers={"Accept": "application/yaml"})
        assert "name: a" in one


async def test_protobuf_alone_is_refused_and_json_beside_it_taken() -> None:
    async with serving() as http:
        wanted = "application/vnd.kubernetes.protobuf"
        assert (await http.ask("GET", CONFIG_MAPS, headers={"Accept": wanted}))[0] == 406
        code, body = await http.ask("GET", CONFIG_MAPS, headers={"Accept": f"{wanted},application/json"})
        assert (code, body["kind"]) == (200, "ConfigMapList")


async def test_links_are_those_of_the_older_version() -> None:
    async with serving("1.19") as http:
        made = await http.make("a")
        assert made["metadata"]["selfLink"] == f"{CONFIG_MAPS}/a"
    async with serving("1.36") as http:
        assert "selfLink" not in (await http.make("a"))["metadata"]


async def test_events_of_both_groups_are_the_same_objects() -> None:
    async with serving() as http:
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "Because",
            "message": "so",
            "type": "Normal",
        }
        assert (await http.ask("POST", "/api/v1/namespaces/default/events", event))[0] == 201
        path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp"
        _, body = await http.ask("GET", path)
        assert body["items"][0]["note"] == "so"
        _, core = await http.ask("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dq")
        assert core["items"] == []


@VERSIONS
async def test_a_version_that_the_log_does_not_reach_back_to_is_too_old(version: str) -> None:
    """And not answered with the objects of today."""
    async with serving(version) as http:
        await five(http)
        _, first = await http.ask("GET", f"{CONFIG_MAPS}?limit=2")
        await http.ask("DELETE", f"{CONFIG_MAPS}/c")
        http.server.state.store.kind("configmaps").forget(http.server.state.store.revision)
        code, status = await http.ask("GET", f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}")
        assert (code, status["reason"]) == (410, "Expired")
