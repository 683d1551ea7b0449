"""A trace as objects of the API, for the demo's server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.openb import load_openb

Json = dict[str, Any]
NO_IMAGE = "none"
"""The API asks for an image; a trace names none."""


def write_trace(folder: Path, pods: int | None, file: Path) -> set[str]:
    """Writes nodes and pods of an openb trace as one List; the uids of the pods. Raises ManifestError."""
    trace = load_openb(folder)
    arrivals = trace.arrivals[:pods]
    items = [*_items("Node", trace.nodes), *_items("Pod", (arrival.pod for arrival in arrivals))]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return {arrival.pod.metadata.uid for arrival in arrivals}


def _items(kind: str, objects: Iterable[Node | Pod]) -> Iterator[Json]:
    for each in objects:
        found: Json = {"apiVersion": "v1", "kind": kind} | _pruned(msgspec.to_builtins(each))
        for container in found.get("spec", {}).get("containers", ()):
            container.setdefault("image", NO_IMAGE)
        yield found


def _pruned(value: Any) -> Any:
    """Without what is empty: the structs have a value for each field, and an object has those that were set."""
    match value:
        case dict():
            kept = {key: _pruned(each) for key, each in value.items()}
            return {key: each for key, each in kept.items() if each not in (None, "", False, [], {})}
        case list() | tuple():
            return [_pruned(each) for each in value]
        case _:
            return value
