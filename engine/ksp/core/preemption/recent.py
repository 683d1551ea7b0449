"""What is remembered by kinds of pods, within bounds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

KINDS: Final = 256


class Recent:
    """Maps by kind. The least recently used kinds give way if there are too many, or if all together have more entries
    than `most`: counted when one is asked for, which is filled afterwards."""

    def __init__(self, most: int, kinds: int = KINDS) -> None:
        self._most = most
        self._kinds = kinds
        self._maps: dict[Hashable, dict[Any, Any]] = {}  # the least recently used first

    def of(self, kind: Hashable) -> dict[Any, Any]:
        """The map of the kind: empty if it was never asked for, or not for long."""
        found = self._maps.pop(kind, {})
        entries = len(found) + sum(map(len, self._maps.values()))
        while self._maps and (entries > self._most or len(self._maps) >= self._kinds):
            entries -= len(self._maps.pop(next(iter(self._maps))))
        if entries > self._most:
            found = {}
        self._maps[kind] = found
        return found

    def clear(self) -> None:
        self._maps.clear()
