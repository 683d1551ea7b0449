"""YAML as plain values, read from its events without recursion; bounded whatever the text holds.

A text means what `kubectl` takes it to mean: dates stay text, `yes` and `on` are true, `1e3` is a number, `<<` merges
maps. A key that stands twice in a map is a mistake.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

MAX_DEPTH = 100
MAX_ALIASED = 1_000_000
"""How many values the aliases of one document may stand for, together."""

ValuePath = tuple[str | int, ...]
"""The way from a text to a value: the number of its document, then keys and positions."""

_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp"))
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
# Longer numbers stay text; nothing that is decoded holds one.
_INT = re.compile(
    r"[-+]?(?:0b[01][01_]{0,400}|0o?[0-7][0-7_]{0,400}|0x[0-9a-fA-F][0-9a-fA-F_]{0,400}|0|[1-9][0-9_]{0,400})"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class TextError(Exception):
    """The text is not YAML or JSON, or is past a limit. `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its number in the text, the line where it starts, its value, and the lines of its `items`."""

    number: int
    line: int
    value: object
    item_lines: tuple[int, ...] = ()


def yaml_documents(text: str, *, twice: bool = False) -> Iterator[Document]:
    """The documents that are not empty. Raises TextError. With `twice` a key may stand twice in a map, and the last
    one counts: `value_lines` then says where."""
    number, line, builder = -1, 0, _Builder(twice=twice)
    for event in _events(text):
        match event:
            case yaml.DocumentStartEvent():
                number, line, builder = number + 1, 0, _Builder(twice=twice)
            case yaml.DocumentEndEvent():
                if builder.root is not None:
                    yield Document(number, line, builder.root, tuple(builder.item_lines))
            case yaml.StreamStartEvent() | yaml.StreamEndEvent():
                pass
            case _:
                line = line or _line(event)
                builder.take(event)


@dataclass(slots=True)
class _Step:
    """Where a walk stands in an open map (its key, None before one) or list (the next position)."""

    key: str | int | None
    in_map: bool
    line: int = 0

    def advance(self) -> None:
        self.key = None if self.in_map else int(self.key or 0) + 1


def value_lines(text: str) -> Iterator[tuple[ValuePath, int]]:
    """Every value of a text with its line, in a map that of its key. Raises TextError, perhaps after some."""
    number = -1
    steps: list[_Step] = []
    for event in _events(text):
        match event:
            case yaml.DocumentStartEvent():
                number, steps = number + 1, []
            case yaml.ScalarEvent() if steps and steps[-1].key is None:
                steps[-1].key, steps[-1].line = event.value, _line(event)
            case yaml.NodeEvent():
                line = _line(event)
                yield (
                    (number, *(step.key for step in steps if step.key is not None)),
                    steps[-1].line or line if steps else line,
                )
                if isinstance(event, yaml.CollectionStartEvent):
                    in_map = isinstance(event, yaml.MappingStartEvent)
                    steps.append(_Step(None if in_map else 0, in_map))
                elif steps:
                    steps[-1].advance()
            case yaml.CollectionEndEvent():
                steps.pop()
                if steps:
                    steps[-1].advance()


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        last = text.rstrip().count("\n") + 1
        raise TextError(
            min(mark.line + 1, last) if mark else 1, f"not YAML: {error.problem or error.context}"
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 1
        raise TextError(line, f"not YAML: {error.reason}") from None


@dataclass(slots=True)
class _Frame:
    """A list or map that is being read. `size` counts the values in it, those that aliases stand for too."""

    value: dict[str, object] | list[object]
    anchor: str | None
    line: int
    key: str | None = None
    merged: list[object] = field(default_factory=list)
    size: int = 1


@dataclass(slots=True)
class _Builder:
    """Makes the value of one document from its events."""

    frames: list[_Frame] = field(default_factory=list)
    anchors: dict[str, tuple[object, int]] = field(default_factory=dict)
    aliased: int = 0
    root: object = None
    twice: bool = False
    item_lines: list[int] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        line = _line(event)
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(event, line)
            case yaml.MappingStartEvent():
                self._open({}, event.anchor, line)
            case yaml.SequenceStartEvent():
                self._open([], event.anchor, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        frame = self.frames[-1] if self.frames else None
        if frame and isinstance(frame.value, dict) and frame.key is None:
            self._set_key(frame, event.value, line)
            return
        value = _scalar_value(event, line)
        if event.anchor:
            self.anchors[event.anchor] = value, 1
        self._put(value, 1, line)

    def _set_key(self, frame: _Frame, key: str, line: int) -> None:
        if key in frame.value and not self.twice:
            raise TextError(line, f"`{_short(key)}` stands twice in the same map")
        frame.key = key

    def _alias(self, event: yaml.AliasEvent, line: int) -> None:
        name = event.anchor or ""
        known = self.anchors.get(name)
        if known is None:
            raise TextError(line, f"the alias `*{_short(name)}` has no anchor before it")
        value, size = known
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            raise TextError(line, f"aliases stand for more than {MAX_ALIASED:,} values")
        self._put(value, size, line)

    def _open(self, value: dict[str, object] | list[object], anchor: str | None, line: int) -> None:
        if len(self.frames) >= MAX_DEPTH:
            raise TextError(line, f"nested deeper than {MAX_DEPTH} levels")
        if self.frames and isinstance(self.frames[-1].value, dict) and self.frames[-1].key is None:
            raise TextError(line, "a key must be text")
        self.frames.append(_Frame(value, anchor, line))

    def _close(self) -> None:
        frame = self.frames.pop()
        if isinstance(frame.value, dict):
            _merge(frame.value, frame.merged, frame.line)
        if frame.anchor:
            self.anchors[frame.anchor] = frame.value, frame.size
        self._put(frame.value, frame.size, frame.line)

    def _put(self, value: object, size: int, line: int) -> None:
        if not self.frames:
            self.root = value
            return
        frame = self.frames[-1]
        frame.size += size
        if isinstance(frame.value, list):
            frame.value.append(value)
            if len(self.frames) == 2 and self.frames[0].key == "items":
                self.item_lines.append(line)
        elif frame.key is None:
            raise TextError(line, "a key must be text")
        else:
            if frame.key == "<<":
                frame.merged.append(value)
            else:
                frame.value[frame.key] = value
            frame.key = None


def _merge(target: dict[str, object], merged: list[object], line: int) -> None:
    """What `<<: *other` brings in: keys that are not there already."""
    for value in merged:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise TextError(line, "`<<` takes a map or a list of maps")
            for key, inner in source.items():
                target.setdefault(key, inner)


def _scalar_value(event: yaml.ScalarEvent, line: int) -> object:
    text: str = event.value
    if event.tag == "tag:yaml.org,2002:str" or (event.tag in (None, "!") and not event.implicit[0]):
        return text
    if event.tag and event.tag not in _TAGS:
        raise TextError(line, f"the tag `{_short(event.tag)}` is not supported")
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    sign = -1 if text[0] == "-" else 1
    if re.fullmatch(r"0[0-7]+", digits):
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
