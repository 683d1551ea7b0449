"""What a run calls otherwise: versions, uids, times, tokens of pages; learnt from answers, put into requests."""

from __future__ import annotations

import bisect
import copy
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tests.wire.transcript import steps, values_at

AHEAD = {"wt.future": 3}
"""Exchanges that ask for a version so far above that of the list before."""
TIMES = ("creationTimestamp", "deletionTimestamp", "lastPhaseTransitionTime")


def pairs(recorded: list[Any], now: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Items that are the same object, by name: the older server lists in any order. Others by their place."""
    waiting: dict[Any, list[Any]] = {}
    for other in now:
        waiting.setdefault(_label(other), []).append(other)
    for one in recorded:
        others = waiting.get(_label(one))
        if others:
            yield one, others.pop(0)


def _label(item: Any) -> Any:
    if not isinstance(item, dict):
        return None
    line = item.get("line", item)
    obj = line.get("object", line) if isinstance(line, dict) else line
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(meta, dict):
        return None
    type = line.get("type") if isinstance(line, dict) else None
    return type, meta.get("namespace"), meta.get("generateName", meta.get("name"))


class Mapping:
    """From recorded values to those of this run."""

    def __init__(self) -> None:
        self._revisions: dict[int, int] = {0: 0, 1: 1}
        self._known: list[int] = [0, 1]
        self._texts: dict[str, str] = {}
        self._times: dict[tuple[str, str], str] = {}
        self._pending: int | None = None
        self._pages: dict[str, str] = {}

    def not_kept(self, path: str, now: Any) -> None:
        """An answer whose recorded body was not kept: the next unknown version in a request is the answer's."""
        meta = now.get("metadata", {}) if isinstance(now, dict) else {}
        if meta.get("continue"):
            self._pages[path.partition("?")[0]] = meta["continue"]
        if str(meta.get("resourceVersion", "")).isdigit():
            self._pending = int(meta["resourceVersion"])

    def knows(self, text: str) -> bool:
        return text in self._texts

    def know(self, recorded: str, now: str) -> None:
        self._texts[recorded] = now

    def learn(self, recorded: Any, now: Any) -> None:
        """From two answers to the same request."""
        if isinstance(recorded, dict) and isinstance(now, dict):
            self._learn_times(recorded, now)
            for key in recorded.keys() & now.keys():
                self._learn_field(key, recorded[key], now[key])
        elif isinstance(recorded, list) and isinstance(now, list):
            for one, other in pairs(recorded, now):
                self.learn(one, other)

    def _learn_times(self, recorded: dict[str, Any], now: dict[str, Any]) -> None:
        uid = recorded.get("metadata", {}).get("uid") if isinstance(recorded.get("metadata"), dict) else None
        if uid is None or not isinstance(now.get("metadata"), dict):
            return
        for section in ("metadata", "status"):
            old, new = recorded.get(section) or {}, now.get(section) or {}
            for name in TIMES:
                if name in old and name in new:
                    self._times[uid, name] = new[name]

    def _learn_field(self, key: str, recorded: Any, now: Any) -> None:
        if isinstance(recorded, dict | list):
            self.learn(recorded, now)
        elif not isinstance(recorded, str) or not isinstance(now, str):
            return
        elif key == "resourceVersion" and recorded.isdigit() and now.isdigit():
            self._put(int(recorded), int(now))
        elif key in {"uid", "continue", "clusterIP"}:
            self._texts[recorded] = now

    def _put(self, recorded: int, now: int) -> None:
        if recorded not in self._revisions:
            bisect.insort(self._known, recorded)
        self._revisions[recorded] = now

    def revision(self, recorded: str, id: str = "") -> str:
        """One that was never seen lies as far above the next lower one as it did."""
        if not recorded.isdigit():
            return recorded
        number = int(recorded)
        if self._pending is not None and self._known[-1] < number < self._known[-1] + 10_000:
            self._put(number - AHEAD.get(id, 0), self._pending)
            self._pending = None
        below = self._known[bisect.bisect_right(self._known, number) - 1]
        return str(self._revisions[below] + number - below)

    def path(self, path: str, id: str) -> str:
        before, mark, query = path.partition("?")
        if not mark:
            return path
        found = []
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name == "resourceVersion":
                value = self.revision(value, id)
            elif name == "continue":
                value = self._texts.get(value, self._pages.get(before, value))
            found.append((name, value))
        return f"{before}?{urlencode(found)}"

    def body(self, body: Any, normalised: tuple[str, ...]) -> Any:
        """The request's body with this run's values in the places that vary."""
        if not isinstance(body, dict):
            return body
        body = copy.deepcopy(body)
        uid = body.get("metadata", {}).get("uid", "")
        for path in normalised:
            for container, key, value in values_at(body, steps(path)):
                container[key] = self._value(key, value, uid, steps(path))
        return body

    def _value(self, key: Any, value: Any, uid: str, path: tuple[str, ...]) -> Any:
        if not isinstance(value, str):
            return value
        if path[-1] == "resourceVersion":
            return self.revision(value)
        if (uid, key) in self._times:
            return self._times[uid, key]
        return self._texts.get(value, value)
