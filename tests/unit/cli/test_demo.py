"""`ksp demo`: the examples are placed the same way every time, and what their comments say is so."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ksp.cli.demo import demo

ENGINE = Path(__file__).resolve().parents[3] / "engine"
WITHIN = 60.0
"""Real seconds; a scheduler and a server have to start."""


@cache
def text() -> str:
    """What it says, called from another folder."""
    with contextlib.chdir(tempfile.gettempdir()):
        result = CliRunner().invoke(demo, [])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


@cache
def value(seed: int = 1) -> dict[str, Any]:
    result = CliRunner().invoke(demo, ["--seed", str(seed), "--output-format", "json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def placements() -> dict[str, str | None]:
    return {pod["name"]: pod["node"] for pod in value()["pods"]}


def placed(prefix: str) -> list[str]:
    """The nodes of the placed pods whose names begin like that."""
    return [node for name, node in placements().items() if name.startswith(prefix) and node]


def test_progress_and_report() -> None:
    lines = text().splitlines()
    assert lines[0] == "An API server as of 1.36, and the rules of ksp:default.ksp (seed 1)"
    assert sum(line.startswith(" ") and "shop/web-" in line and " general-" in line for line in lines) >= 14
    assert "63 of 78 pods placed, 15 found no node" in text()


def test_every_pod_without_a_node_is_explained() -> None:
    waiting = [pod for pod in value()["pods"] if pod["node"] is None]
    why = text().partition("Why the rest did not")[2].partition("Allocation")[0]
    for pod in waiting:
        assert pod["message"].startswith("0/17 nodes are available: ")
        assert f"  {pod['namespace']}/{pod['name']}" in why


def test_it_fits_100_columns_and_is_plain_in_a_pipe() -> None:
    assert max(map(len, text().splitlines())) <= 100
    assert "\x1b" not in text()


def test_it_is_the_same_each_time_and_from_anywhere() -> None:
    progress = text().partition("Where the pods went")[0]
    told = re.findall(r"^ *[0-9.]+  (\S+/\S+) +([a-z0-9-]+)$", progress, re.MULTILINE)
    assert dict(told) == {f"{pod['namespace']}/{pod['name']}": pod["node"] for pod in value()["pods"] if pod["node"]}


def test_another_seed_places_as_many() -> None:
    other = value(seed=2)
    assert other["counts"] == value()["counts"]
    assert [pod["node"] for pod in other["pods"]] != [pod["node"] for pod in value()["pods"]]


def test_the_comments_of_the_examples_are_true() -> None:
    assert Counter(placed("etl-")) == {"spot-a1": 4, "spot-b1": 4, "spot-c1": 4}
    assert set(placed("report-")) == {"large-a1"}
    assert len(set(placed("cache-"))) == 5
    assert set(placed("cache-")) <= {*placed("api-"), "general-a1", "general-b1", "general-a2"}
    assert Counter(node.split("-")[1][0] for node in placed("lease-")) == {"a": 1, "b": 1, "c": 1}
    assert sorted(placed("postgres-")) == ["db-a1", "db-b1"]
    assert len(placed("edge-proxy-")) == 2
    assert placements()["log-agent-general-b2"] == "general-b2"
    assert placed("train-large-") == ["gpu-b1"]
    assert placed("train-small-").count("gpu-b1") == 2
    assert "large-b1" not in placements().values()


@pytest.mark.parametrize(
    "name", ["monolith", "in-memory", "notebook", "tape-reader", "zone-d", "ledger-sidekick", "pinned", "train-huge"]
)
def test_misfits_do_not_fit(name: str) -> None:
    assert placements()[name] is None


@pytest.mark.parametrize(
    ("arguments", "last_line", "which", "code"),
    [
        ([], "An API server as of", signal.SIGTERM, 130),
        (["--keep"], "  kubectl run try", signal.SIGINT, 0),
        (["--keep"], "  time  78 pods", signal.SIGHUP, 130),
    ],
)
async def test_a_signal_ends_it_and_leaves_nothing_behind(
    tmp_path: Path, arguments: list[str], last_line: str, which: signal.Signals, code: int
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ENGINE), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ksp", "demo", *arguments]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(WITHIN):
        while not (await process.stdout.readline()).decode().startswith(last_line):
            assert process.returncode is None
        process.send_signal(which)
        await process.stdout.read()
        assert await process.wait() == code
    assert _left(tmp_path) == []


def _left(folder: Path) -> list[Path]:
    """Files in the folder, and processes that were called with one."""
    return [*folder.iterdir(), *(each for each in Path("/proc").glob("[0-9]*/cmdline") if str(folder) in _read(each))]


def _read(file: Path) -> str:
    """A file that may be gone by now."""
    try:
        return file.read_text()
    except OSError:
        return ""
