"""Labels that tell which of them are looked at, so that what was made of them is known to be good for others, too."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from typing import Any


class WatchedLabels(Mapping[str, str]):
    """The labels; `asked` is told each key that is looked up, and None if they are looked at as a whole."""

    def __init__(self, labels: Mapping[str, str], asked: Callable[[str | None], None]) -> None:
        self._labels = labels
        self._asked = asked

    def __getitem__(self, key: str) -> str:
        self._asked(key)
        return self._labels[key]

    def __iter__(self) -> Iterator[str]:
        self._asked(None)
        return iter(self._labels)

    def __len__(self) -> int:
        self._asked(None)
        return len(self._labels)

    def items(self) -> ItemsView[str, str]:
        return _Items(self)


class _Items(ItemsView[str, str]):
    """`pairs <= labels.items()` looks up the pairs' keys only."""

    def __ge__(self, pairs: Iterable[Any]) -> bool:
        return all(pair in self for pair in pairs)
