"""What docs/run.md says of flags, rights and metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import yaml
from prometheus_client import CollectorRegistry
from tests.unit.core.scheduling import scheduler

from ksp.cli.run import run
from ksp.kube.watch.resources import RESOURCES
from ksp.runtime.changes import KINDS
from ksp.runtime.edge import EventWatch, ReflectorWatch, RequestWatch, WriteWatch
from ksp.runtime.metrics import BuildInfo, CoreMetrics, SchedulerMetrics

PAGE = (Path(__file__).parents[3] / "docs" / "run.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")]


def test_all_flags_are_told_of() -> None:
    told = {flag for cell in first_cells(section("Flags")) for flag in re.findall(r"(?<![\w-])--?[a-z][\w-]*", cell)}
    assert told == {flag for option in run.params if isinstance(option, click.Option) for flag in option.opts}


def test_the_role_lets_ksp_read_all_that_it_watches_and_no_more() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    rules: list[dict[str, Any]] = yaml.safe_load(text)["rules"]
    read = {
        (group, resource)
        for rule in rules
        if rule["verbs"] == ["get", "list", "watch"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert read == {(RESOURCES[kind].group, RESOURCES[kind].plural) for kind in KINDS}


def test_all_metrics_are_told_of_with_their_labels() -> None:
    registry = CollectorRegistry()
    for make in (ReflectorWatch, WriteWatch, EventWatch):
        make(registry, lambda: 0.0)
    RequestWatch(registry)
    SchedulerMetrics(registry)
    registry.register(CoreMetrics(scheduler(), lambda: 0, lambda: 0))
    registry.register(BuildInfo("", ""))
    suffixes = {"counter": "_total", "info": "_info"}
    made = {family.name + suffixes.get(family.type, "") for family in registry.collect()}
    assert {cell.strip("`") for cell in first_cells(section("Metrics"))} == made
