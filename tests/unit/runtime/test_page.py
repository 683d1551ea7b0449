"""What docs/run.md says of rights and metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from tests.unit.core.scheduling import scheduler
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.auth.cluster import Cluster
from ksp.kube.http.client import Client
from ksp.kube.wall_clock import SystemWallClock
from ksp.kube.watch.resources import RESOURCES
from ksp.policy.assemble import Policy
from ksp.policy.configuration.leader_election import LeaderElection
from ksp.runtime.changes import KINDS
from ksp.runtime.edge import EventWatch, ExtenderWatch, ReflectorWatch, RequestWatch, WriteWatch
from ksp.runtime.leadership import Leadership
from ksp.runtime.metrics import BuildInfo, CoreMetrics, SchedulerMetrics
from ksp.runtime.reload.metrics import PolicyInfo, ReloadMetrics
from ksp.runtime.status import StatusBoard

PAGE = (Path(__file__).parents[3] / "docs" / "run.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")]


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
    for make in (ReflectorWatch, WriteWatch, EventWatch, ExtenderWatch):
        make(registry, lambda: 0.0)
    RequestWatch(registry)
    SchedulerMetrics(registry)
    registry.register(CoreMetrics(scheduler(), lambda: 0, lambda: 0))
    registry.register(BuildInfo())
    timers, wall = VirtualTimers(), SystemWallClock()
    client = Client(Cluster("http://127.0.0.1:1", "a test"), timers)
    board = StatusBoard(wall, "me")
    board.running(1, Policy("p", "0" * 64, ()), "p")
    Leadership(client, LeaderElection(), "me", timers, wall, board, registry)
    ReloadMetrics(registry)
    registry.register(PolicyInfo(board))
    suffixes = {"counter": "_total", "info": "_info"}
    made = {family.name + suffixes.get(family.type, "") for family in registry.collect()}
    assert {cell.strip("`") for cell in first_cells(section("Metrics"))} == made
