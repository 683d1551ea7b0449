"""`docs/performance.md`: its commands can be given, and what it names is there."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from ksp.cli import bench_plot
from ksp.cli.bench import bench
from ksp.sim.bench.figures import Conditions, Figures
from ksp.sim.bench.workloads import WORKLOADS

TEXT = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ksp bench (.+?)(?:  +#.*)?$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("command", [each for each in COMMANDS if "--list" not in each])
def test_its_commands_can_be_given(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_plot, "find_spec", lambda _name: True)
    with bench.make_context("bench", shlex.split(command)) as context:
        given = context.params
    assert given["core"] or given["compare"] or given["show"]


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 8


def test_the_workloads_and_fields_that_it_names_exist() -> None:
    known = {each.name for each in (*fields(Conditions), *fields(Figures))} | {"runs", "medians", "spread"}
    named = re.findall(r"`([A-Za-z_]+)`", TEXT)
    workloads = {name for name in named if name[0].isupper()}
    assert workloads <= {*WORKLOADS}
    assert workloads
    assert {name for name in named if "_" in name} <= known | {"bind_succeeded", "evictions_ended"}
