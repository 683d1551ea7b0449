"""Shapes of fields, and values that are held against them: all that does not fit is told of, and left out.

Decoding is strict, as kube-scheduler's is: a field that the shape does not have is a problem. null is as if the field
was not there. Values come out plain: durations in seconds, base64 decoded.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ksp.check.report import did_you_mean
from ksp.policy.durations import DurationError, seconds_of
from ksp.policy.field_errors import Problem, Steps, path_of


@dataclass(frozen=True, slots=True)
class Scalar:
    """`name` is the type's name in messages, `read` gives the value. It raises WrongType or ValueError. `zero` is what
    null is in a list."""

    name: str
    read: Callable[[object], object]
    zero: object


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Object:
    """A map with these fields. One that is `whole` is a type of the core API, of which docs do not list the fields.
    Of a `lenient` one names of fields match in any case, and others are ignored, as Go's own decoder of JSON does."""

    fields: Mapping[str, Shape]
    whole: bool = False
    lenient: bool = False

    def name_of(self, written: str) -> str | None:
        """The name of the field that is meant; None if there is none."""
        if written in self.fields or not self.lenient:
            return written if written in self.fields else None
        return next((name for name in self.fields if name.lower() == written.lower()), None)


@dataclass(frozen=True, slots=True)
class Anything:
    """What is decoded later, when it is known what it is."""


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
UNKNOWN: Final = "unknown field"
SUGGESTIONS: Final = 50
"""Problems after which names that may have been meant are not looked for."""

Shape = Scalar | ListOf | Object | Anything


class WrongType(TypeError):  # noqa: N818 - it is a verdict on a value, caught where the value is read
    """The value is of another type."""


def decoded(shape: Shape, value: Any, at: Steps, problems: list[Problem]) -> Any:
    """The value; None for null, and for what does not fit, which is added to the problems."""
    if value is None:
        return None
    match shape:
        case Scalar():
            return _scalar(shape, value, at, problems)
        case ListOf(item):
            if not isinstance(value, list):
                problems.append(_mismatch(at, value, "a list"))
                return None
            found = [decoded(item, each, (*at, i), problems) for i, each in enumerate(value)]
            return [_zero(item) if each is None else each for each in found]
        case Object():
            return _object(shape, value, at, problems)
        case Anything():
            return value


def _zero(shape: Shape) -> Any:
    match shape:
        case Scalar():
            return shape.zero
        case ListOf():
            return []
        case Object():
            return {}
        case Anything():
            return None


def _scalar(shape: Scalar, value: object, at: Steps, problems: list[Problem]) -> object:
    try:
        return shape.read(value)
    except WrongType:
        problems.append(_mismatch(at, value, f"a value of type {shape.name}"))
    except ValueError as error:
        problems.append(Problem(at, str(error)))
    return None


def _object(shape: Object, value: object, at: Steps, problems: list[Problem]) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        problems.append(_mismatch(at, value, "an object"))
        return None
    result = {}
    for written, inner in value.items():
        name, here = shape.name_of(written), (*at, written)
        if name is None:
            known = shape.fields if len(problems) < SUGGESTIONS else {}
            problems.append(unknown_field(here, written, known, is_ignored=shape.lenient))
            continue
        made = decoded(shape.fields[name], inner, here, problems)
        if made is not None:
            result[name] = made
    return result


def unknown_field(at: Steps, name: str, known: Mapping[str, Any], *, is_ignored: bool = False) -> Problem:
    meant = did_you_mean(name, known)
    said = f'{UNKNOWN} "{path_of(at)}"'
    said = f"{said} is ignored" if is_ignored else f"strict decoding error: {said}"
    return Problem(at, f"{said}; {meant}" if meant else said, is_ignored)


def _mismatch(at: Steps, value: object, wanted: str) -> Problem:
    return Problem(at, f"strict decoding error: json: cannot unmarshal {kind_of(value)} into {wanted}")


def kind_of(value: object) -> str:
    """What JSON calls a value of that kind."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number" if abs(value) >= 1e30 else f"number {value}"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def field_paths(shape: Shape, prefix: str = "") -> Iterator[str]:
    """The paths of all fields, as docs write them: `extenders[].urlPrefix`."""
    match shape:
        case Object(fields, whole) if not whole:
            for name, inner in fields.items():
                path = f"{prefix}.{name}" if prefix else name
                yield path
                yield from field_paths(inner, path)
        case ListOf(item):
            yield from field_paths(item, f"{prefix}[]")


# ---- scalars


def _string(value: object) -> object:
    if not isinstance(value, str):
        raise WrongType
    if _SURROGATE.search(value):
        raise ValueError("strict decoding error: half of a surrogate pair is no text")
    return value


def _bool(value: object) -> object:
    if not isinstance(value, bool):
        raise WrongType
    return value


def _integer(bits: int) -> Callable[[object], object]:
    """YAML's `1.0` and `1e3` are integers too, as where YAML is made JSON before it is read."""

    def read(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise WrongType
        return value

    return read


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 3.4e38:
        raise WrongType
    return float(value)


def _duration(value: object) -> object:
    if not isinstance(value, str):
        raise WrongType
    try:
        return seconds_of(value)
    except DurationError as error:
        raise ValueError(f"strict decoding error: {error}") from error


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        raise WrongType
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except binascii.Error as error:
        raise ValueError("strict decoding error: illegal base64 data") from error


STRING: Final = Scalar("string", _string, "")
BOOL: Final = Scalar("bool", _bool, zero=False)
INT32: Final = Scalar("int32", _integer(32), 0)
INT64: Final = Scalar("int64", _integer(64), 0)
FLOAT32: Final = Scalar("float32", _number, 0.0)
DURATION: Final = Scalar("string", _duration, 0.0)
BYTES: Final = Scalar("string", _bytes, b"")
STRINGS: Final = ListOf(STRING)
ANYTHING: Final = Anything()
