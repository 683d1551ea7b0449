"""YAML and JSON texts as documents: plain values, with the line of each object.

Called by `manifests`. The limits (here and in `ksp.source.yaml_values`) hold for each text. The lines of single fields
are looked up only when there is something to say about them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

from ksp.sim.texts import MAX_BYTES
from ksp.source.yaml_values import MAX_DEPTH, Document, TextError, ValuePath, value_lines, yaml_documents

_BEFORE_VALUE = re.compile(rb'[\s{,]*"(?:[^"\\]|\\.)*"\s*:\s*')
_SEPARATORS = re.compile(rb"[\s\[,]*")


def read_documents(data: bytes) -> list[Document]:
    """The documents of a text that are not empty. Raises TextError."""
    if len(data) > MAX_BYTES:
        raise TextError(1, f"larger than {MAX_BYTES // 1024**2} MiB")
    text = _decoded(data)
    if text.lstrip()[:1] == "{":
        try:
            return [_json_document(text)]
        except msgspec.DecodeError as error:
            return _yaml_or_json_error(text, error)
    return list(yaml_documents(text))


def field_lines(data: bytes, wanted: Collection[ValuePath]) -> dict[ValuePath, int]:
    """The lines of these values; where one is not there, of the innermost value around it that is."""
    prefixes = {path[:n] for path in wanted for n in range(1, len(path) + 1)}
    seen: dict[ValuePath, int] = {}
    try:
        for path, line in value_lines(_decoded(data)):
            if path in prefixes:
                seen.setdefault(path, line)
    except TextError:
        pass  # JSON may hold what YAML does not take; what was seen until there stands
    return {path: next((seen[path[:n]] for n in range(len(path), 0, -1) if path[:n] in seen), 0) for path in wanted}


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(data.count(b"\n", 0, error.start) + 1, "not UTF-8 text") from None


def _json_document(text: str) -> Document:
    """A text that is one JSON object, as `kubectl get -o json` writes it."""
    data = text.encode()
    start = len(text) - len(text.lstrip())
    line = text.count("\n", 0, start) + 1
    try:
        value = msgspec.json.decode(data)
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except RecursionError:
        raise TextError(line, f"nested deeper than {MAX_DEPTH} levels") from None
    if _depth(value) > MAX_DEPTH:
        raise TextError(line, f"nested deeper than {MAX_DEPTH} levels")
    items = msgspec.json.decode(raw["items"], type=list[msgspec.Raw]) if isinstance(value.get("items"), list) else []
    return Document(0, line, value, tuple(_item_lines(data, _items_start(data, start, raw), items)))


def _items_start(data: bytes, position: int, members: dict[str, msgspec.Raw]) -> int:
    """Where the value of `items` starts in an object that starts at `position`."""
    for key, raw in members.items():
        position = _after(_BEFORE_VALUE, data, position)
        if key == "items":
            break
        position += len(bytes(raw))
    return position


def _item_lines(data: bytes, position: int, items: list[msgspec.Raw]) -> Iterator[int]:
    """The line on which each item of the list at `position` starts: they follow each other."""
    line = data.count(b"\n", 0, position) + 1
    for item in items:
        start = _after(_SEPARATORS, data, position)
        line += data.count(b"\n", position, start)
        yield line
        position = start + len(bytes(item))
        line += data.count(b"\n", start, position)


def _after(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.match(data, position)
    return match.end() if match else position


def _depth(value: object) -> int:
    """How deep lists and maps are nested; stops looking past the limit."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        level = [inner for outer in level for inner in _elements(outer)]
        depth += 1
    return depth


def _elements(value: object) -> Collection[object]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
    return ()


def _yaml_or_json_error(text: str, error: msgspec.DecodeError) -> list[Document]:
    """A text that starts like JSON and is not: YAML in flow style, or a mistake, told as JSON's."""
    try:
        return list(yaml_documents(text))
    except TextError:
        where = re.search(r"\(byte (\d+)\)", str(error))
        start = text.encode()[: int(where[1])] if where else b""
        message = re.sub(r"\s*\(byte \d+\)", "", str(error))
        raise TextError(start.count(b"\n") + 1, f"not JSON: {message}") from None
