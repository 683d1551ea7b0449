"""What is counted of equivalence classes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Of decisions, how many found their class known and how many did not; and how often a rule had to be asked about
    all nodes again for a key that was known."""

    hits: int = 0
    misses: int = 0
    invalidations: int = 0
