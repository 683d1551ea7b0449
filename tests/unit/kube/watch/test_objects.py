from __future__ import annotations

import json
import tracemalloc

from tests.unit.kube import api_objects

from ksp.kube.watch.objects import Readable, read_object
from ksp.kube.watch.pages import read_page
from ksp.kube.watch.resources import RESOURCES
from ksp.kube.watch.watch_events import Changed, read_line

PODS = RESOURCES["Pod"]
COUNT, BALLAST = 100, 20_000


def heavy(name: str) -> api_objects.Json:
    """A pod whose greatest part is what a scheduler does not read."""
    value = api_objects.pod(name, 1, labels={"app": name})
    value["metadata"]["managedFields"] = [{"manager": "x" * BALLAST}]
    return value


def test_nothing_is_kept_of_the_text_of_objects() -> None:
    tracemalloc.start()
    try:
        body = json.dumps(api_objects.listed(*(heavy(f"a{i}") for i in range(COUNT)), version=1)).encode()
        lines = [api_objects.line(api_objects.added(heavy(f"b{i}"))) for i in range(COUNT)]
        found = [read_object(PODS, item) for item in read_page(body).items]
        events = [read_line(PODS, line) for line in lines]
        del body, lines
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(isinstance(one, Readable) for one in found)
    assert all(isinstance(event, Changed) and isinstance(event.found, Readable) for event in events)
    assert most > 2 * COUNT * BALLAST
    assert kept < most / 5
