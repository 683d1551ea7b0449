"""Makes sample.jsonl.gz from the public file of recorded decisions: `python -m tests.golden.make_sample`.

The choice depends on the file alone. First come the special cases: all in which the attempt ends in an error or before
any node is looked at, and for each mark (see `marks`) the smallest case that bears it. Then each family is filled up
evenly with its smallest cases, as far as the size allows. The cases keep their text and their order.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.recorded import SAMPLE, Case

SOURCE = Path(__file__).resolve().parents[3] / "shared" / "golden" / "public-1.19.jsonl.gz"
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """A line of the file: its place, its text, what is special about it, and whether it must be taken."""

    place: int
    line: str
    family: str
    marks: frozenset[str]
    always: bool


def read(path: Path) -> list[Recorded]:
    found = []
    with gzip.open(path, "rt") as lines:
        for place, line in enumerate(lines):
            case = json.loads(line)
            expected = case["expected"]
            always = bool(expected["error"] or expected["preFilter"] or expected.get("preemptionPanics"))
            found.append(Recorded(place, line, case["family"], frozenset(marks(case)), always))
    return found


def marks(case: Case) -> Iterator[str]:
    """What a case shows: each distinct reason, outcome by family, plugin argument, provider and preemption result, and
    each name, kind of argument and setting of a Policy."""
    family, expected = case["family"], case["expected"]
    for status in expected["filters"].values():
        yield f"{family}: {status and status['plugin']}"
        for reason in (status or {}).get("reasons", ()):
            yield f"reason: {reason}"
    for plugin, arguments in (case.get("pluginConfig") or {}).items():
        yield f"arguments: {plugin} {json.dumps(arguments, sort_keys=True)}"
    if isinstance(case["provider"], str):
        yield f"{family}: {case['provider']}"
    else:
        yield from policy_marks(case["provider"], expected["fitErrorMessage"] is not None)
    if expected["fitErrorMessage"]:
        yield f"{family}: nothing fits, {len(expected['fitErrorMessage'].split(', '))} kinds of reasons"
    for name in ("preemptionEligible", "scoringSkipped"):
        yield f"{family}: {name} {expected[name]}"
    if expected["preemption"]:
        yield f"preemption: {len(expected['preemption']['victims'])} victims"
    if expected["error"]:
        yield "error: " + re.sub('"[^"]*"', '""', expected["error"])


def policy_marks(policy: Mapping[str, Any], unfit: bool) -> Iterator[str]:
    for field in ("predicates", "priorities"):
        if not policy.get(field):
            yield f"policy: {field} {policy.get(field, 'absent')}"
        for entry in policy.get(field) or ():
            yield f"policy: {field} {next(iter(entry.get('argument', {})), entry['name'])}"
    for field in ("hardPodAffinitySymmetricWeight", "alwaysCheckAllPredicates"):
        if policy.get(field):
            yield f"policy: {field}, {'nothing fits' if unfit else 'something fits'}"


def special(recorded: list[Recorded]) -> set[int]:
    """The places of the cases that must be taken."""
    chosen = {case.place for case in recorded if case.always}
    seen = {mark for case in recorded if case.always for mark in case.marks}
    for case in sorted(recorded, key=lambda case: (len(case.line), case.place)):
        if case.marks - seen:
            chosen.add(case.place)
            seen |= case.marks
    return chosen


def filled(recorded: list[Recorded], chosen: set[int], each: int) -> set[int]:
    """`chosen`, and of each family the smallest cases until it has `each`."""
    by_family: dict[str, list[Recorded]] = defaultdict(list)
    for case in sorted(recorded, key=lambda case: (case.place not in chosen, len(case.line), case.place)):
        by_family[case.family].append(case)
    return chosen | {case.place for family in by_family.values() for case in family[:each]}


def packed(recorded: list[Recorded], chosen: set[int]) -> bytes:
    text = "".join(case.line for case in recorded if case.place in chosen)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def sample(recorded: list[Recorded], most_bytes: int = MOST_BYTES) -> bytes:
    """The largest even filling that keeps the size."""
    chosen = special(recorded)
    low, high = 0, len(recorded)
    while low < high:
        middle = (low + high + 1) // 2
        if len(packed(recorded, filled(recorded, chosen, middle))) <= most_bytes:
            low = middle
        else:
            high = middle - 1
    return packed(recorded, filled(recorded, chosen, low))


if __name__ == "__main__":
    SAMPLE.write_bytes(sample(read(SOURCE)))
