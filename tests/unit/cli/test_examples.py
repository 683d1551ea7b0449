"""The examples: a server takes them, and they go as their page and their comments say."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.commands import ksp

from ksp.apiserver import ApiServer
from ksp.cli.manifest_objects import objects

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("folder", ["cluster", "workload", "preemption", "volumes"])
def test_a_server_takes_them(folder: str) -> None:
    given = [found.value for found in objects([str(EXAMPLES / folder)], BytesIO())]
    assert ApiServer().load(given) == len(given) > 0


@pytest.mark.parametrize("folder", ["preemption", "volumes"])
def test_what_arrives_has_its_namespace_in_the_cluster(folder: str) -> None:
    """`kubectl apply` makes none."""
    cluster, arriving = (
        [found.value for found in objects([str(EXAMPLES / folder / name)], BytesIO())]
        for name in ("cluster.yaml", "arriving.yaml")
    )
    made = {each["metadata"]["name"] for each in cluster if each["kind"] == "Namespace"}
    assert {each["metadata"]["namespace"] for each in arriving} == made


def _outcome(folder: str) -> dict[str, Any]:
    result = ksp("simulate", EXAMPLES / folder, "--output-format", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert not found["notes"]
    return found


def _nodes(found: dict[str, Any]) -> dict[str, str]:
    return {pod["name"]: pod["node"] or pod["fate"] for pod in found["pods"]}


def test_preemption() -> None:
    found = _outcome("preemption")
    assert _nodes(found) == {"payments": "node-a", "search": "node-d", "report": "node-b", "web-3": "waiting"}
    assert [(each["pod"], each["by"]) for each in found["evictions"]] == [
        ("bank/batch-0", "bank/payments"),
        ("bank/web-1", "bank/search"),
        ("bank/web-2", "bank/search"),
        ("bank/batch-1", "bank/web-3"),
        ("bank/batch-2", "bank/web-3"),
    ]


def test_volumes() -> None:
    assert _nodes(_outcome("volumes")) == {
        "database-0": "node-a1",
        "database-1": "node-a2",
        "database-2": "waiting",
        "cache": "node-b1",
        "build": "node-b1",
        "reader": "waiting",
    }
