"""The text of a configuration as one value, and where each of its fields stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ksp.policy.configuration.configuration import Places
from ksp.policy.field_errors import Problem, Steps, path_of
from ksp.source.yaml_values import TextError, value_lines, yaml_documents

MAX_CHARACTERS: Final = 1024**2
MAX_VALUES: Final = 50_000


def read_value(text: str, name: str) -> tuple[object, Places, list[Problem]]:
    """The value of the only document, its places, and fields that stand twice. Raises TextError."""
    if len(text) > MAX_CHARACTERS:
        raise TextError(1, f"larger than {MAX_CHARACTERS:,} characters")
    text = text.removeprefix("\ufeff")
    documents = list(yaml_documents(text, twice=True))
    if len(documents) > 1:
        raise TextError(documents[1].line, "a second document: a file has one configuration")
    if not documents:
        return None, Places(name), []
    value = documents[0].value
    if not _is_small(value):
        raise TextError(1, f"more than {MAX_VALUES:,} values, with those that aliases stand for")
    lines: dict[Steps, int] = {}
    problems = list(_read_lines(text, documents[0].number, lines))
    return value, Places(name, lines), problems


def _is_small(value: object) -> bool:
    pending, count = [value], 0
    while pending and count <= MAX_VALUES:
        count += 1
        match pending.pop():
            case dict() as inner:
                pending.extend(inner.values())
            case list() as inner:
                pending.extend(inner)
    return count <= MAX_VALUES


def _read_lines(text: str, number: int, lines: dict[Steps, int]) -> Iterator[Problem]:
    """Puts in the line of each value; a field that stands twice is a problem, what it holds is not."""
    repeated: Steps | None = None
    for (document, *rest), line in value_lines(text):
        steps = tuple(rest)
        if document != number or (repeated is not None and steps[: len(repeated)] == repeated and steps != repeated):
            continue
        repeated = None
        if steps in lines:
            repeated = steps
            yield Problem(steps, f'strict decoding error: duplicate field "{path_of(steps)}"')
        lines[steps] = line
