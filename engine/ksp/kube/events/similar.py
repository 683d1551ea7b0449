"""Events that differ in their text alone, and of which there are too many, become one.

As client-go's `EventAggregator`: from the tenth different text on one thing, with no pause longer than 10 minutes
between any two, they are combined. Used for core/v1, where the text of an event can be changed; in events.k8s.io it
cannot.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

DIFFERENT: Final = 10
PAUSE: Final = 600.0
PREFIX: Final = "(combined from similar events): "
THINGS: Final = 4096


@dataclass(slots=True)
class _Texts:
    last: float
    seen: set[int] = field(default_factory=set)  # their hashes


class SimilarEvents:
    """Remembers the latest texts on each thing."""

    def __init__(self) -> None:
        self._texts: LRUCache[Hashable, _Texts] = LRUCache(THINGS)

    def too_many(self, thing: Hashable, text: str, now: float) -> bool:
        """Whether this text on the thing is to be combined with others. `now` is in seconds."""
        texts = self._texts.get(thing)
        if texts is None or now - texts.last > PAUSE:
            texts = self._texts[thing] = _Texts(now)
        texts.last = now
        texts.seen.add(hash(text))
        if len(texts.seen) < DIFFERENT:
            return False
        texts.seen.pop()
        return True
