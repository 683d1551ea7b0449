"""JSON patches (RFC 6902): a list of operations, all of which succeed or none."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import msgspec

COPY_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of JSON that the copies of one patch may add: a few that copy what was copied would fill any memory."""


class PatchOperationError(ValueError):
    """An operation that cannot be carried out on this document."""


def apply(original: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The document after all operations; `original` stays as it is. Raises PatchOperationError."""
    document = deepcopy(original)
    room = COPY_LIMIT
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                room -= len(msgspec.json.encode(_get(document, _pointer(operation, "from"))))
                if room < 0:
                    raise PatchOperationError("the copies are too large")
            document = _apply_one(document, operation)
    except RecursionError:
        raise PatchOperationError("nested too deep") from None
    return document


def _apply_one(document: Any, operation: Mapping[str, Any]) -> Any:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(document, path, deepcopy(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _get(document, path)
            return _put(document, path, deepcopy(_value(operation)))
        case "move":
            source = _pointer(operation, "from")
            moved = _get(document, source)
            return _add(_remove(document, source), path, moved)
        case "copy":
            return _add(document, path, deepcopy(_get(document, _pointer(operation, "from"))))
        case "test":
            return _test(document, path, operation.get("value"))
        case other:
            raise PatchOperationError(f"Unexpected kind: {other}")


def _pointer(operation: Mapping[str, Any], name: str) -> list[str]:
    """The steps of a JSON pointer; none for the whole document."""
    text = operation.get(name)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchOperationError(f"operation without a usable {name}")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchOperationError("operation without a value")
    return operation["value"]


def _get(document: Any, path: Sequence[str]) -> Any:
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step)]
        else:
            raise PatchOperationError(f"missing path: {'/'.join(path)}")
    return document


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        at = len(parent) if path[-1] == "-" else _index(parent, path[-1], one_more=True)
        parent.insert(at, value)
        return document
    return _put(document, path, value)


def _put(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1])] = value
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchOperationError(f"missing path: {'/'.join(path)}")
    return document


def _remove(document: Any, path: Sequence[str]) -> Any:
    _get(document, path)
    if not path:
        return None
    parent = _get(document, path[:-1])
    del parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]]
    return document


def _test(document: Any, path: Sequence[str], wanted: Any) -> Any:
    """What is not there is equal to null."""
    try:
        found = _get(document, path)
    except PatchOperationError:
        found = None
    if found != wanted:
        raise PatchOperationError(f"testing value {'/'.join(path)} failed")
    return document


_DIGITS: Final = 9


def _index(items: Sequence[Any], step: str, *, one_more: bool = False) -> int:
    if not step.isdecimal() or len(step) > _DIGITS or int(step) >= len(items) + one_more:
        raise PatchOperationError(f"invalid array index {step}")
    return int(step)
