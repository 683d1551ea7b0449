"""What is wrong in a case that differs: told by kind, so that one broken rule shows once and not in every family."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.golden.recorded import Case, compared, wanted

# Fields that follow from others: where those differ, they say nothing new.
FOLLOWS = {
    "feasible": ("filters", "preFilter", "error"),
    "fitErrorMessage": ("filters", "preFilter", "error"),
    "scores": ("feasible", "filters"),
    "total": ("scores", "feasible", "filters"),
    "preemptionEligible": ("filters", "preFilter", "error"),
    "preemption": ("preemptionEligible", "filters", "preFilter", "error"),
}
Differing = tuple[str, object, object]
PASSES = "the node passes"


@dataclass(frozen=True, slots=True)
class Finding:
    """The first entry of a kind in a case. `kind` is the field, of filters and scores with the plugin; `entry` the
    node, if it is about one; both sides are in words."""

    kind: str
    case: str
    family: str
    entry: str
    got: str
    want: str

    def __str__(self) -> str:
        where = f"{self.case}, node {self.entry}" if self.entry else self.case
        return f"  first in {where}\n    got  {self.got}\n    want {self.want}"


def findings(case: Case, got: Mapping[str, Any]) -> Iterator[Finding]:
    """One for each kind of difference in the case."""
    want = {field: wanted(case, field, got) for field in compared(case)}
    wrong = [field for field in want if got[field] != want[field]]
    for field in wrong:
        if not set(wrong) & set(FOLLOWS.get(field, ())):
            for kind, (entry, there, recorded) in _kinds(field, got[field], want[field]).items():
                yield Finding(kind, case["id"], case["family"], entry, *_in_words(there, recorded))


def _kinds(field: str, got: Any, want: Any) -> dict[str, Differing]:
    """By kind what differs first: the node, if it is about one, and both sides."""
    found: dict[str, Differing] = {}
    if field == "filters":
        for node, there, recorded in _entries(got, want):
            found.setdefault(f"filters: {_plugins(there, recorded)}", (node, there or PASSES, recorded or PASSES))
    elif field == "scores":
        for plugin, there, recorded in _entries(got, want):
            found[f"scores: {plugin}"] = next(_entries(there or {}, recorded or {}))
    elif field == "preemption" and got and want and got["candidates"] != want["candidates"]:
        found["preemption: candidates"] = next(_entries(got["candidates"], want["candidates"]))
    elif isinstance(got, dict) and isinstance(want, dict):
        found[field] = next(_entries(got, want))
    else:
        found[field] = "", got, want
    return found


def _entries(got: Mapping[str, Any], want: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The entries that differ, by key; a missing one is None."""
    for key in sorted({**got, **want}):
        if got.get(key) != want.get(key):
            yield key, got.get(key), want.get(key)


def _plugins(got: Mapping[str, Any] | None, want: Mapping[str, Any] | None) -> str:
    """Which plugin denies the node, here and as recorded."""
    there, recorded = (verdict["plugin"] if verdict else "no plugin" for verdict in (got, want))
    return there if there == recorded else f"{there}, not {recorded}"


def _in_words(got: object, want: object) -> tuple[str, str]:
    """Both sides; of two lists what only one of them has."""
    if isinstance(got, list) and isinstance(want, list) and sorted(got) != sorted(want):
        return _alone(got, want), _alone(want, got)
    return _text(got), _text(want)


def _alone(mine: list[str], theirs: list[str]) -> str:
    alone = ", ".join(each for each in mine if each not in theirs)
    return f"{len(mine)} entries" + (f", {alone} only here" if alone else "")


def _text(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return value
        case {"plugin": plugin, "code": code, "reasons": reasons}:
            return f"{code} by {plugin}: {'; '.join(map(str, reasons))}"
        case _:
            return json.dumps(value, ensure_ascii=False)
