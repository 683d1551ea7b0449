"""What two real API servers sent over watches and as lists is read as the reflector needs it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ksp.kube.errors import ApiError
from ksp.kube.watch.objects import Readable
from ksp.kube.watch.pages import read_page
from ksp.kube.watch.recovery import history_is_lost
from ksp.kube.watch.resources import RESOURCES, Resource
from ksp.kube.watch.watch_events import Bookmark, Changed, Deleted, read_line

both = pytest.mark.parametrize("version", ["1.19.0", "1.36.2"])
PLURALS = {row.plural: row for row in RESOURCES.values()}


def exchanges(shared: Path, version: str) -> Iterator[tuple[Resource, dict[str, str], dict[str, Any]]]:
    """The resource, the query and the answer of each successful exchange in JSON about a kind of ours."""
    with (shared / "wire" / f"wire-{version}.jsonl").open() as lines:
        for text in lines:
            exchange = json.loads(text)
            url = urlsplit(exchange["request"]["path"])
            resource = PLURALS.get(url.path.rstrip("/").split("/")[-1])
            accept = exchange["request"]["headers"].get("Accept", "")
            if resource is None or exchange["response"]["status"] != 200 or "as=" in accept or "protobuf" in accept:
                continue
            yield resource, {key: found[0] for key, found in parse_qs(url.query).items()}, exchange["response"]


@both
def test_events_of_real_servers(shared: Path, version: str) -> None:
    seen: Counter[str] = Counter()
    for resource, _, answer in exchanges(shared, version):
        for event in answer.get("events", []):
            line = event["line"]
            seen[line["type"]] += 1
            if line["type"] == "ERROR":
                with pytest.raises(ApiError) as raised:
                    read_line(resource, json.dumps(line).encode())
                assert history_is_lost(raised.value)
                continue
            read = read_line(resource, json.dumps(line).encode())
            meta = line["object"]["metadata"]
            match read:
                case Changed(found) | Deleted(found):
                    assert isinstance(found, Readable)
                    assert found.resource_version == meta["resourceVersion"]
                    assert found.key.split("/")[-1] == meta["name"]
                case Bookmark(position, initial_end):
                    assert position == meta["resourceVersion"]
                    assert initial_end == ("annotations" in meta)
                case _:
                    pytest.fail(f"an unknown event: {line}")
    assert seen["ADDED"] > 15
    assert min(seen["MODIFIED"], seen["DELETED"], seen["ERROR"]) >= 3


@both
def test_lists_of_real_servers(shared: Path, version: str) -> None:
    lists = 0
    for _, query, answer in exchanges(shared, version):
        body = answer.get("body")
        if "watch" in query or not isinstance(body, dict) or "items" not in body:
            continue
        page = read_page(json.dumps(body).encode())
        assert len(page.items) == len(body["items"] or [])
        assert page.resource_version == body["metadata"]["resourceVersion"]
        assert page.token == body["metadata"].get("continue", "")
        lists += 1
    assert lists > 15
