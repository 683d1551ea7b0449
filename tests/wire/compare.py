"""When an answer agrees with a recorded one: status, headers, and the body where it does not vary from run to run."""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.wire.transcript import Exchange, steps, values_at

VARIES = "<varies>"
HEADERS = (
    *("Content-Type", "Retry-After", "Warning", "Content-Encoding", "Vary", "Allow", "Location", "Www-Authenticate"),
    "X-Content-Type-Options",
)
"""What is compared. Not: Etag (of documents whose bodies are not the recorded ones), and Transfer-Encoding of plain
answers (how Go's server frames a body of some size)."""

_RUN = re.compile(r"([a-zA-Z])\1{999,}")
_FOLDED = re.compile(r"<<([a-zA-Z])\*(\d+)>>")


def folded(value: Any) -> Any:
    """Long runs of a letter as the recorder writes them."""
    match value:
        case str():
            return _RUN.sub(lambda match: f"<<{match[1]}*{len(match[0])}>>", value)
        case list():
            return [folded(one) for one in value]
        case dict():
            return {key: folded(one) for key, one in value.items()}
        case _:
            return value


def unfolded(text: str) -> str:
    return _FOLDED.sub(lambda match: match[1] * int(match[2]), text)


def differences(exchange: Exchange, answer: dict[str, Any]) -> list[str]:
    """What differs; nothing if they agree. `answer` has `status`, `headers` and `body` or `events`."""
    recorded = exchange.response
    found: list[str] = []
    if recorded["status"] != answer["status"]:
        found.append(f"status: {recorded['status']} recorded, {answer['status']} now")
    if "headers" not in exchange.normalised:
        found += _header_differences(recorded["headers"], answer["headers"])
    if recorded.get("body_omitted"):
        return found
    key = "events" if exchange.streams else "body"
    left, right = _prepared(exchange, recorded, key), _prepared(exchange, answer, key)
    if "$" not in exchange.normalised:
        found += _value_differences(left, right, "$")
    return found


def _header_differences(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [
        f"header {name}: {recorded.get(name)!r} recorded, {now.get(name)!r} now"
        for name in HEADERS
        if recorded.get(name) != now.get(name)
    ]


def _prepared(exchange: Exchange, response: dict[str, Any], key: str) -> Any:
    if key == "events":
        value: Any = {"events": _without_repeats(response.get("events", []))}
    else:
        value = response.get("body")
    value = folded(copy.deepcopy(value))
    _set_in_order(value, exchange)
    for path in exchange.normalised:
        for container, name, _ in values_at(value, steps(path)):
            container[name] = VARIES
    return value


def _set_in_order(value: Any, exchange: Exchange) -> None:
    """Sorts both sides where the order is another at each call, or hangs on names that are."""
    varies = "$.items[*].metadata.name" in exchange.normalised or exchange.in_any_order
    if varies and isinstance(value, dict) and value.get("items"):
        value["items"].sort(key=_name)
    if exchange.in_any_order and isinstance(value, dict) and "events" in value:
        events = value["events"]
        initial = next((index for index, one in enumerate(events) if one["line"].get("type") != "ADDED"), len(events))
        events[:initial] = sorted(events[:initial], key=lambda event: _name(event["line"]["object"]))


def _name(obj: dict[str, Any]) -> tuple[str, str]:
    meta = obj["metadata"] if obj.get("kind") != "Table" else obj["rows"][0]["object"]["metadata"]
    return meta.get("namespace", ""), meta.get("generateName", meta.get("name", ""))


def _without_repeats(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Periodic bookmarks that follow one another within seconds count once: how many come hangs on the moment."""
    kept: list[dict[str, Any]] = []
    last = -1e9
    for event in events:
        line = event.get("line", event.get("chunk"))
        after = event.get("after_ms", 0)
        periodic = isinstance(line, dict) and line.get("type") == "BOOKMARK" and "annotations" not in str(line)
        if periodic and kept and after - last < 5_000 and kept[-1]["line"].get("type") == "BOOKMARK":
            last = after
            continue
        if periodic:
            last = after
        kept.append({"line": line})
    return kept


def _value_differences(left: Any, right: Any, path: str) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        found: list[str] = []
        for key in sorted({*left, *right}):
            if key not in right:
                found.append(f"{path}.{key}: {_short(left[key])} recorded, nothing now")
            elif key not in left:
                found.append(f"{path}.{key}: nothing recorded, {_short(right[key])} now")
            else:
                found += _value_differences(left[key], right[key], f"{path}.{key}")
        return found
    if isinstance(left, list) and isinstance(right, list):
        found = [] if len(left) == len(right) else [f"{path}: {len(left)} recorded, {len(right)} now"]
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            found += _value_differences(one, other, f"{path}[{index}]")
        return found
    same = left == right and isinstance(left, bool) == isinstance(right, bool)
    return [] if same else [f"{path}: {_short(left)} recorded, {_short(right)} now"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:600]}…"
