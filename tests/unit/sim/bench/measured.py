"""Runs whose figures a test says."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ksp.sim.bench.figures import Conditions, Figures, Run


def conditions(workload: str = "SchedulingBasic", **given: Any) -> Conditions:
    usual: dict[str, Any] = {"nodes": 10, "pods": 20, "existing": 2, "pending": 0, "policy": "ksp:default.ksp"}
    return Conditions(workload, **(usual | given))


def figures(rate: float = 1000.0, **given: Any) -> Figures:
    """All that is not given is 1, counts among it."""
    usual: dict[str, Any] = {each.name: 1 if "int" in str(each.type) else 1.0 for each in fields(Figures)}
    return Figures(**(usual | {"decisions_per_second": rate, "placed": 20} | given))


def runs(*rates: float, workload: str = "SchedulingBasic", **given: Any) -> list[Run]:
    return [Run(conditions(workload, **given), figures(rate)) for rate in rates]
