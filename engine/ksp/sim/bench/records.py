"""Measurements as JSON: one object for each run, and one for the medians of each kind of run.

`benchmark` is "core"; `versions` and `machine` say what ran where. An object of `runs` has the fields of Conditions and
of Figures side by side. One of `medians` has the same, and `runs`, how many there were, and `spread`, the least and the
most of each figure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import msgspec

from ksp.sim.bench.figures import Conditions, Figures, Run, Summary, summaries
from ksp.sim.bench.rule_times import RuleTimes

BENCHMARK: Final = "core"


class RecordError(Exception):
    """A file is no record of measurements; says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Record:
    """Runs, with the versions of what ran and the machine that it ran on. `rules` has, for runs that watched them, the
    times of the rules, by the run's place."""

    runs: Sequence[Run]
    versions: Mapping[str, str | int] = field(default_factory=dict)
    machine: Mapping[str, str | int] = field(default_factory=dict)
    rules: Mapping[int, Sequence[RuleTimes]] = field(default_factory=dict)

    def summaries(self) -> list[Summary]:
        return summaries(self.runs)


def text_of(record: Record) -> str:
    """The record as JSON, indented."""
    runs = [{**flat(run), **_rules(record.rules.get(i))} for i, run in enumerate(record.runs)]
    value = {
        "benchmark": BENCHMARK,
        "versions": dict(record.versions),
        "machine": dict(record.machine),
        "runs": runs,
        "medians": [_median(each) for each in record.summaries()],
    }
    return json.dumps(value, indent=2)


def flat(run: Run) -> dict[str, Any]:
    """Conditions and figures in one object."""
    return {**asdict(run.conditions), **asdict(run.figures)}


def run_of(value: object) -> Run:
    """The inverse of `flat`. Raises RecordError."""
    try:
        return Run(msgspec.convert(value, Conditions), msgspec.convert(value, Figures))
    except msgspec.ValidationError as error:
        raise RecordError(str(error)) from error


def record_of(text: str | bytes) -> Record:
    """Reads what `text_of` wrote. Raises RecordError."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not valid JSON: {error}") from error
    if not isinstance(value, dict) or value.get("benchmark") != BENCHMARK or not isinstance(value.get("runs"), list):
        raise RecordError("not a record of `ksp bench --core --json`")
    runs: list[Run] = []
    rules: dict[int, Sequence[RuleTimes]] = {}
    for i, each in enumerate(value["runs"]):
        try:
            runs.append(run_of(each))
            if "rules" in each:
                rules[i] = _times_of(each["rules"])
        except RecordError as error:
            raise RecordError(f"run {i + 1}: {error}") from error
    if not runs:
        raise RecordError("there are no runs in it")
    return Record(runs, _texts(value.get("versions")), _texts(value.get("machine")), rules)


def _no_number(text: str) -> float:
    """Python reads NaN and Infinity, which are no JSON."""
    raise ValueError(f"{text} is no number")


def _texts(value: object) -> dict[str, str | int]:
    found = value.items() if isinstance(value, dict) else ()
    return {str(name): each for name, each in found if isinstance(each, str | int)}


def _times_of(value: object) -> list[RuleTimes]:
    try:
        return msgspec.convert(value, list[RuleTimes])
    except msgspec.ValidationError as error:
        raise RecordError(f"rules: {error}") from error


def _rules(times: Sequence[RuleTimes] | None) -> dict[str, Any]:
    return {} if times is None else {"rules": [{**asdict(each), "selectivity": each.selectivity} for each in times]}


def _median(each: Summary) -> dict[str, Any]:
    spread = {name: [found.least, found.most] for name, found in each.spread.items()}
    return {**asdict(each.conditions), **asdict(each.median), "runs": each.runs, "spread": spread}
