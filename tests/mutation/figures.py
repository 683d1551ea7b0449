"""What came of changes, rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.mutation.reads import Part


@dataclass(slots=True)
class Figures:
    """Of one rule: changes that were tried, those that gave another answer (`effective`), and what was `missed`.

    How precise its footprint is: `parts` and `events` that it names, how often they changed, and how often that
    mattered; `leaves` that it names, and of how many of them some change mattered; how often it would wake a pod that
    the rule had denied (`woken`), and how often that `helped`. Changes that were made because they matter do not count
    in the last four.
    """

    tried: int = 0
    effective: int = 0
    missed: list[str] = field(default_factory=list)
    parts: Counter[Part] = field(default_factory=Counter)
    parts_mattered: Counter[Part] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    events_helped: Counter[str] = field(default_factory=Counter)
    leaves: int = 0
    leaves_mattered: int = 0
    woken: int = 0
    helped: int = 0

    def named(self, parts: Iterable[Part], *, effective: bool) -> None:
        """Parts of the footprint changed."""
        for part in parts:
            self.parts[part] += 1
            self.parts_mattered[part] += effective

    def woke(self, events: Iterable[str], *, helped: bool) -> None:
        """Events of the footprint happened while a pod waited."""
        for event in events:
            self.events[event] += 1
            self.events_helped[event] += helped


HEAD: Final = ("rule", "tried", "effective", "missed", "leaves", "mattered", "parts", "mattered", "woken", "helped")


def table(figures: Mapping[str, Figures]) -> str:
    """A line for each rule. Of the leaves, parts and wakings that its footprint names, the share that mattered."""
    rows: list[tuple[str, ...]] = [HEAD, *(_row(name, of_rule) for name, of_rule in sorted(figures.items()))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def _row(name: str, of_rule: Figures) -> tuple[str, ...]:
    mattered = sum(of_rule.parts_mattered[part] > 0 for part in of_rule.parts)
    return (
        name, str(of_rule.tried), str(of_rule.effective), str(len(of_rule.missed)),
        str(of_rule.leaves), _share(of_rule.leaves_mattered, of_rule.leaves),
        str(len(of_rule.parts)), _share(mattered, len(of_rule.parts)),
        str(of_rule.woken), _share(of_rule.helped, of_rule.woken),
    )  # fmt: skip


def _share(some: int, of_all: int) -> str:
    return f"{100 * some / of_all:.0f}%" if of_all else "-"


def in_vain(figures: Mapping[str, Figures]) -> Iterator[str]:
    """By rule, parts and events of its footprint that changed, and never mattered."""
    for name, of_rule in sorted(figures.items()):
        parts = sorted(f"{part} ({n})" for part, n in of_rule.parts.items() if not of_rule.parts_mattered[part])
        events = sorted(f"{event} ({n})" for event, n in of_rule.events.items() if not of_rule.events_helped[event])
        if parts or events:
            yield f"{name}: {', '.join([*parts, *events])}"


def all_missed(figures: Mapping[str, Figures]) -> list[str]:
    """What was missed, with the rule that missed it."""
    return [f"{name}: {text}" for name, of_rule in sorted(figures.items()) for text in of_rule.missed]
