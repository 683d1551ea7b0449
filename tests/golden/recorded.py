"""Recorded cases, and how an answer compares with what was recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ksp.policy.load import load_file
from ksp.sim.cases import Evaluator, MakeCycle, new_cycle

Case = Mapping[str, Any]

HERE = Path(__file__).resolve().parent
SAMPLE = HERE / "sample.jsonl.gz"
POLICIES = HERE.parent.parent / "policies"

FIELDS = (
    "filters", "feasible", "preFilter", "scores", "total", "error", "fitErrorMessage", "preemptionEligible",
    "preemption",
)  # fmt: skip
NOT_COMPARED_AFTER_ERRORS = ("scores", "total")  # what scoring gives where the attempt fails is nobody's promise

# Cases whose field `preemption` is meant to differ, and why: all of the public file. The sample has none of them.
KNOWN = {
    "preemption-0315": "kube-scheduler 1.19 takes a terminating pod out of a spread count in which it never was, which "
    "makes room that is not there; a view of ksp takes out what it has put in",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first entry in which a field differs; `entry` is the way to it, in words."""

    case: str
    family: str
    field: str
    entry: str
    got: object
    want: object

    def __str__(self) -> str:
        return f"{self.case} {self.field}{self.entry}\n    got  {_shown(self.got)}\n    want {_shown(self.want)}"


def cases(path: Path) -> Iterator[Case]:
    """The cases of a file of JSON lines, gzipped if its name says so."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def evaluator(make_cycle: MakeCycle = new_cycle) -> Evaluator:
    """Decides with the shipped rules, by either provider or by a legacy Policy."""
    loaded = load_file(POLICIES / "legacy.ksp")
    assert loaded.module is not None
    assert not loaded.failed, loaded.diagnostics
    return Evaluator(loaded.module, make_cycle=make_cycle)


def differences(case: Case, got: Mapping[str, Any]) -> Iterator[Difference]:
    """A difference for each field that is not as recorded."""
    for field in compared(case):
        want = wanted(case, field, got)
        if got[field] != want:
            entry, found, recorded = first_difference(got[field], want)
            yield Difference(case["id"], case["family"], field, entry, found, recorded)


def compared(case: Case) -> tuple[str, ...]:
    """The fields in which a case can agree. Where kube-scheduler crashed in preemption nothing was recorded of it."""
    failed = case["expected"]["error"] is not None
    without = set(NOT_COMPARED_AFTER_ERRORS) if failed else set()
    if case["id"] in KNOWN or case["expected"].get("preemptionPanics"):
        without.add("preemption")
    return tuple(field for field in FIELDS if field not in without)


def wanted(case: Case, field: str, got: Mapping[str, Any]) -> Any:
    """What was recorded for a field. Preemption may choose any of the possible nodes, with that node's victims."""
    want = case["expected"][field]
    if field == "preemption" and want is not None and got[field] is not None:
        node = got[field]["nominatedNode"]
        if node in want["possibleNodes"]:
            return {**want, "nominatedNode": node, "victims": want["candidates"][node]["victims"]}
    return want


def first_difference(got: Any, want: Any) -> tuple[str, object, object]:
    """The way to the first entry that differs, by key, and both sides there."""
    if isinstance(got, dict) and isinstance(want, dict):
        for key in sorted({**got, **want}):
            if key not in got or key not in want:
                return f"[{key}]", got.get(key, "(no entry)"), want.get(key, "(no entry)")
            if got[key] != want[key]:
                way, found, wanted = first_difference(got[key], want[key])
                return f"[{key}]{way}", found, wanted
    return "", got, want


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
