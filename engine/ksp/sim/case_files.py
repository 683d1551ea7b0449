"""Files of recorded cases: JSON lines, compressed or not, and the answers to them, one for each line.

A line that is no case is answered with nulls and with `invalid`, which names the field and says what is wrong with it;
the others go on.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import msgspec

from ksp.core.errors import StateError
from ksp.model.decode import DecodeError, convert
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.legacy import LegacyPolicyError
from ksp.policy.plugins import UnknownPluginError
from ksp.policy.values import ArgumentError
from ksp.sim.cases import FIELDS, OBJECTS, Evaluator

GZIP = b"\x1f"
"""The first byte of a gzip file, with which no JSON text starts."""


class CaseFileError(Exception):
    """The file cannot be read to its end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON line that answers the case of a line of the file, and why that is no case, "" if it is one."""

    line: int
    text: bytes
    invalid: str


def answers(stream: BinaryIO, evaluator: Evaluator) -> Iterator[Answer]:
    """The answers, in order; empty lines have none. Raises CaseFileError, or OSError."""
    for number, line in enumerate(_lines(stream), 1):
        if line.strip():
            yield _answer(number, line, evaluator)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))
    compressed = buffered.peek(1)[:1] == GZIP
    try:
        yield from gzip.GzipFile(fileobj=buffered) if compressed else buffered
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CaseFileError(f"the compressed data is damaged: {error}") from error


def _answer(number: int, line: bytes, evaluator: Evaluator) -> Answer:
    case: dict[str, Any] = {}
    try:
        case = _decoded(line)
        _check(case)
        return Answer(number, msgspec.json.encode(evaluator.evaluate(case)), "")
    except _InvalidCaseError as error:
        invalid = str(error)
    except DecodeError as error:
        invalid = _located(case) or str(error)
    except ArgumentError as error:
        invalid = f"pluginConfig.{error}"
    except LegacyPolicyError as error:
        invalid = "; ".join(f"provider: {each}" for each in error.errors)
    except UnknownPluginError as error:
        invalid = f"provider: {error}"
    except StateError as error:
        invalid = f"cluster: {error}"
    except Exception as error:  # noqa: BLE001 - the other cases are to be answered whatever happens with this one
        invalid = f"internal error of ksp: {type(error).__name__}: {error}"
    nothing = {"id": case.get("id"), **dict.fromkeys(FIELDS), "invalid": invalid}
    return Answer(number, msgspec.json.encode(nothing), invalid)


# ---- what is no case


class _InvalidCaseError(Exception):
    """What is wrong, with the field."""


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        case = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _InvalidCaseError(f"not valid JSON: {reason.removeprefix('JSON is malformed: ')}") from error
    if not isinstance(case, dict):
        raise _InvalidCaseError("a case is an object")
    return case


def _check(case: Mapping[str, Any]) -> None:
    """The shape of a case, down to its objects."""
    if not isinstance(case.get("pod"), dict):
        raise _InvalidCaseError("pod: an object is expected" if "pod" in case else "pod: missing")
    cluster, plugins = case.get("cluster"), case.get("pluginConfig")
    for name, value in (("cluster", cluster), ("pluginConfig", plugins)):
        if not isinstance(value, dict | None):
            raise _InvalidCaseError(f"{name}: an object is expected")
    for kind, values in (cluster or {}).items():
        if not isinstance(values, list | None):
            raise _InvalidCaseError(f"cluster.{kind}: a list is expected")
    for plugin, arguments in (plugins or {}).items():
        if not isinstance(arguments, dict):
            raise _InvalidCaseError(f"pluginConfig.{plugin}: an object is expected")


def _located(case: Mapping[str, Any]) -> str:
    """The field that cannot be decoded, seen from the case, and why; "" if all can."""
    cluster = case.get("cluster") or {}
    kinds: dict[str, type] = {"nodes": Node, "pods": Pod, "nominatedPods": Pod, **OBJECTS}
    objects = [
        (f"cluster.{name}[{i}]", kind, value)
        for name, kind in kinds.items()
        for i, value in enumerate(cluster.get(name) or ())
    ]
    for place, kind, value in [*objects, ("pod", Pod, case["pod"])]:
        try:
            convert(kind, value)
        except DecodeError as error:
            return f"{place}{error.path.removeprefix('$')}: {error.message}"
    return ""
