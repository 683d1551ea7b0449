from __future__ import annotations

import json
import tracemalloc

import pytest
from tests.unit.kube import api_objects

from ksp.kube.watch.objects import Readable, read_object
from ksp.kube.watch.pages import read_page
from ksp.kube.watch.resources import RESOURCES, GroupVersion
from ksp.kube.watch.watch_events import Changed, read_line
from ksp.model.selector import LabelSelector

PODS = RESOURCES["Pod"]
COUNT, BALLAST = 100, 20_000


def heavy(name: str) -> api_objects.Json:
    """A pod whose greatest part is what a scheduler does not read."""
    value = api_objects.pod(name, 1, labels={"app": name})
    value["metadata"]["managedFields"] = [{"manager": "x" * BALLAST}]
    return value


@pytest.mark.parametrize(
    ("version", "selector", "meant"),
    [
        ("v1beta1", {}, None),
        ("v1", {}, LabelSelector()),
        ("v1beta1", {"matchLabels": {}}, None),
        ("v1beta1", {"matchLabels": {"a": "b"}}, LabelSelector(match_labels={"a": "b"})),
        ("v1beta1", None, None),
    ],
)
def test_a_budget_of_an_older_version_means_what_it_says_there(
    version: str, selector: api_objects.Json | None, meant: LabelSelector | None
) -> None:
    budgets = RESOURCES["PodDisruptionBudget"].served_in(GroupVersion("policy", version))
    meta = {"name": "b", "namespace": "w", "uid": "1", "resourceVersion": "7"}
    found = read_object(budgets, json.dumps({"metadata": meta, "spec": {"selector": selector}}).encode())
    assert isinstance(found, Readable)
    assert found.value.spec.selector == meant


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
