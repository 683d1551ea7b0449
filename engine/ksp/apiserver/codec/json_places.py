"""Where a value stands in a JSON text: for refusals that quote the text around it."""

from collections.abc import Sequence
from json import JSONDecoder
from json.decoder import WHITESPACE  # type: ignore[attr-defined]

_DECODER = JSONDecoder(strict=False)


def place_of(text: str, path: Sequence[str | int]) -> tuple[int, int]:
    """The first character of the value at `path` and the one after its last. `text` is valid JSON that has it."""
    start = _skip(text, 0)
    for step in path:
        start = _member(text, start, step) if isinstance(step, str) else _item(text, start, step)
    return start, _end(text, start)


def _member(text: str, start: int, name: str) -> int:
    """Where the value of `name` begins in the object that begins at `start`; of a repeated name, the last."""
    found, at = -1, _skip(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, at) + 1)
        if key == name:
            found = value
        at = _after_comma(text, _end(text, value))
    return found


def _item(text: str, start: int, index: int) -> int:
    at = _skip(text, start + 1)
    for _ in range(index):
        at = _after_comma(text, _end(text, at))
    return at


def _after_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _skip(text: str, at: int) -> int:
    end: int = WHITESPACE.match(text, at).end()
    return end
