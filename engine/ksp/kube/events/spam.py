"""No object is spoken about too often: a bucket of tokens for each source and object.

As client-go's `EventSourceObjectSpamFilter`: 25 at once, then one every five minutes; the least recently used of 4096
buckets is forgotten, and full again when it comes back.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

BURST: Final = 25
REFILL: Final = 300.0
OBJECTS: Final = 4096


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class SpamFilter:
    """`refill` is in seconds for each token."""

    def __init__(self, burst: int = BURST, refill: float = REFILL, objects: int = OBJECTS) -> None:
        self._burst = float(burst)
        self._refill = refill
        self._buckets: LRUCache[Hashable, _Bucket] = LRUCache(objects)

    def admits(self, key: Hashable, now: float) -> bool:
        """Take a token, if there is one. `now` is in seconds and never goes back."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) / self._refill)
        bucket.at = now
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True
