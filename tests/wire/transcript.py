"""Recorded exchanges: reading them, what they say about themselves."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILES = {"1.19": "wire-1.19.0.jsonl", "1.36": "wire-1.36.2.jsonl"}
REPOSITORY = Path(__file__).resolve().parent.parent.parent
FOLDER = REPOSITORY.parent / "shared" / "wire"
EXCLUSIONS = Path(__file__).with_name("exclusions.txt")


@dataclass(frozen=True)
class Exchange:
    """One request and what the real server answered."""

    id: str
    version: str
    auth: str
    request: dict[str, Any]
    response: dict[str, Any]
    at_ms: int
    took_ms: int
    watch: bool
    during: tuple[str, ...]

    @property
    def family(self) -> str:
        return self.id.partition(".")[0]

    @property
    def streams(self) -> bool:
        """A watch that was not refused."""
        return "events" in self.response

    @property
    def in_any_order(self) -> bool:
        """1.19 gives what comes from its watch cache in an order that is another at each call."""
        from_cache = "resourceVersion=" in self.request["path"] or self.watch
        return self.version.startswith("1.19") and from_cache

    @property
    def normalised(self) -> tuple[str, ...]:
        return tuple(self.response.get("normalised", ()))


def transcript(version: str) -> list[Exchange]:
    lines = (FOLDER / FILES[version]).read_text(encoding="utf-8").splitlines()
    return [_exchange(json.loads(line)) for line in lines]


def _exchange(row: dict[str, Any]) -> Exchange:
    return Exchange(
        id=row["id"],
        version=row["version"],
        auth=row["auth"],
        request=row["request"],
        response=row["response"],
        at_ms=row["at_ms"],
        took_ms=row.get("took_ms", 0),
        watch=row.get("watch", False),
        during=tuple(one["id"] for one in row.get("during", ())),
    )


# --- paths of what varies --------------------------------------------------------------------------------------------

_STEP = re.compile(r'\.([A-Za-z0-9_]+)|\[\*\]|\["([^"]*)"\]')
Steps = tuple[str, ...]
EACH = "[*]"


@cache
def steps(path: str) -> Steps:
    """`$.items[*].metadata.uid` as its steps."""
    return tuple(match[1] or match[2] or EACH for match in _STEP.finditer(path.removeprefix("$")))


def values_at(value: Any, path: Steps) -> list[tuple[Any, Any, Any]]:
    """(container, key, value) of all places that a path names."""
    if not path:
        return []
    head, rest = path[0], path[1:]
    keys: list[Any] = []
    if head == EACH and isinstance(value, list):
        keys = list(range(len(value)))
    elif isinstance(value, dict) and head in value:
        keys = [head]
    if not rest:
        return [(value, key, value[key]) for key in keys]
    return [place for key in keys for place in values_at(value[key], rest)]


# --- exclusions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exclusion:
    """What the embedded server leaves out: an id or, with a star at its end, all that begin so."""

    pattern: str
    version: str
    """Empty: both."""
    reason: str

    def covers(self, version: str, id: str) -> bool:
        if self.version not in {"", version}:
            return False
        return id.startswith(self.pattern[:-1]) if self.pattern.endswith("*") else id == self.pattern


def exclusions() -> list[Exclusion]:
    """Lines of the file: `pattern [@version]  reason`; paragraphs begin with `#`."""
    found: list[Exclusion] = []
    for line in EXCLUSIONS.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        pattern, _, reason = text.partition(" ")
        name, _, version = pattern.partition("@")
        found.append(Exclusion(name, version, reason.strip()))
    return found
