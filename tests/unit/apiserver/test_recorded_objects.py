"""The table of types against objects that real API servers wrote, where the recordings are at hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ksp.apiserver.codec.api_types import find
from ksp.apiserver.codec.decoder import FieldError, decode

Json = dict[str, Any]

RECORDINGS = [(19, "wire-1.19.0.jsonl"), (36, "wire-1.36.2.jsonl")]


def exchanges(shared: Path, name: str) -> Iterator[Json]:
    path = shared / "wire" / name
    if not path.exists():
        pytest.skip(f"there is no {path}")
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def objects(exchange: Json) -> Iterator[Json]:
    """The objects that an answer holds, of a list its items with their kind."""
    body = exchange["response"].get("body")
    events = exchange["response"].get("events") or exchange.get("events") or ()
    lines = (event["line"].get("object") for event in events if isinstance(event.get("line"), dict))
    for found in (body, *lines):
        if isinstance(found, dict) and "uid" in found.get("metadata", {}):
            yield found
        elif isinstance(found, dict) and isinstance(found.get("items"), list) and "apiVersion" in found:
            about = {"kind": found["kind"].removesuffix("List"), "apiVersion": found["apiVersion"]}
            yield from ({**about, **item} for item in found.get("items") or () if "kind" not in item)


@pytest.mark.shared
@pytest.mark.parametrize(("minor", "name"), RECORDINGS)
def test_what_a_server_wrote_reads_as_itself(shared: Path, minor: int, name: str) -> None:
    seen = set()
    for exchange in exchanges(shared, name):
        for obj in objects(exchange):
            group, _, version = obj["apiVersion"].rpartition("/")
            struct = find(group, version, obj["kind"], minor)
            if struct is not None:
                assert decode(obj, struct, minor) == (obj, []), exchange["id"]
                seen.add(obj["kind"])
    assert len(seen) >= 16


@pytest.mark.shared
@pytest.mark.parametrize(("minor", "name"), RECORDINGS)
def test_what_a_server_refused_to_read_is_refused_in_its_words(shared: Path, minor: int, name: str) -> None:
    seen = 0
    for exchange in exchanges(shared, name):
        answer, body = exchange["response"].get("body"), exchange["request"]["body"]
        message = answer.get("message", "") if isinstance(answer, dict) else ""
        kind, _, why = message.partition(' in version "v1" cannot be handled as a ')
        if not any(word in why for word in ("parsing time", "quantities", "Seconds")):
            continue
        text = body if isinstance(body, str) else json.dumps(body)
        place = exchange["request"]["path"].split("/")
        struct = find("" if place[1] == "api" else place[2], "v1", kind, minor)
        assert struct is not None
        with pytest.raises(FieldError) as caught:
            decode(json.loads(text), struct, minor)
        last = caught.value.within(text).rpartition("unmarshalerDecoder: ")[2]
        assert why.endswith(last), exchange["id"]
        seen += 1
    assert seen >= 3
