"""The text of a legacy Policy, JSON or YAML, as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ksp.policy.field_errors import Steps
from ksp.policy.legacy.mistakes import LegacyPolicyError, Mistake, mistake
from ksp.policy.texts import LEGACY_KEY
from ksp.source.yaml_values import TextError, yaml_documents

MAX_CHARACTERS: Final = 1024 * 1024
"""As much as a ConfigMap holds."""
_DEEP: Final = "nested too deeply"


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys stood twice."""

    twice: tuple[str, ...] = ()


def policy_in(text: str, name: str) -> tuple[Any, str]:
    """The value in a text, and its name. A manifest of a ConfigMap may stand in the place of a Policy: kube-scheduler
    finds that in its key `policy.cfg`, which the name then has too. Raises LegacyPolicyError."""
    value = read_value(text, name)
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return value, name
    data = value.get("data")
    inner = data.get(LEGACY_KEY) if isinstance(data, dict) else None
    if not isinstance(inner, str):
        said = f'missing policy config map value at key "{LEGACY_KEY}"'
        raise LegacyPolicyError(name, [mistake(said, ("data", LEGACY_KEY))])
    within = f"{name}[{LEGACY_KEY}]"
    return read_value(inner, within), within


def read_value(text: str, name: str) -> Any:
    """The one document of a text. Raises LegacyPolicyError: no JSON or YAML, several documents, a key that stands
    twice."""
    if len(text) > MAX_CHARACTERS:
        raise LegacyPolicyError(name, [Mistake(f"larger than {MAX_CHARACTERS:,} characters", "")])
    stripped = text.removeprefix("\ufeff")
    if stripped.lstrip()[:1] == "{":
        return _json(stripped, name)
    return _yaml(stripped, name)


def _json(text: str, name: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_object)
        twice = tuple(_twice(value, ()))
    except RecursionError:
        raise LegacyPolicyError(name, [Mistake(_DEEP, "")]) from None
    except ValueError as error:
        return _yaml_or(error, text, name)
    if twice:
        raise LegacyPolicyError(name, twice)
    return value


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        made.twice = tuple(dict.fromkeys(key for key in keys if keys.count(key) > 1))
    return made


def _twice(value: Any, steps: Steps) -> Iterator[Mistake]:
    if isinstance(value, _Object):
        for key in value.twice:
            yield mistake(f"`{key}` stands twice in the same object", (*steps, key))
    for step, inner in _inside(value):
        yield from _twice(inner, (*steps, step))


def _inside(value: Any) -> Iterable[tuple[str | int, Any]]:
    match value:
        case dict():
            return value.items()
        case list():
            return enumerate(value)
    return ()


def _yaml_or(error: ValueError, text: str, name: str) -> Any:
    """A text that starts like JSON and is not: YAML in flow style, or a mistake, told as JSON's."""
    try:
        return _yaml(text, name)
    except LegacyPolicyError:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise LegacyPolicyError(name, [Mistake(f"not JSON: {said}{where}", "")]) from None


def _yaml(text: str, name: str) -> Any:
    try:
        documents = [document.value for document in yaml_documents(text)]
    except TextError as error:
        raise LegacyPolicyError(name, [Mistake(f"line {error.line}: {error.message}", "")]) from None
    if len(documents) != 1:
        raise LegacyPolicyError(name, [Mistake("empty" if not documents else "several documents; a Policy is one", "")])
    return documents[0]
