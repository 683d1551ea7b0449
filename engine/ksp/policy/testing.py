"""The objects of `test` blocks as structs. The checker has seen to their fields and types; amounts are read here."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ksp.check.typed import Test, TestObject
from ksp.model.decode import KINDS, DecodeError, convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.source.diagnostic import Diagnostic, Severity


def object_mistakes(test: Test) -> Iterator[Diagnostic]:
    """Amounts that cannot be read, in the objects that the test writes out. Those from files are not looked at."""
    for given in test.objects:
        made = None if given.path else decoded(given)
        error = amount_error(made) if made is not None else ""
        if error:
            yield mistake(given, f"`{given.name}`: {error}")


def decoded(given: TestObject) -> msgspec.Struct | None:
    """The object that a test writes out; None if it is not of its kind, which the checker reports."""
    try:
        return convert(KINDS[given.kind], given.value)
    except DecodeError:
        return None


def amount_error(value: msgspec.Struct) -> str:
    """Why the amounts of a pod or node cannot be read, "" if they can."""
    match value:
        case Pod():
            return PodInfo.of(value).error
        case Node():
            return NodeInfo.of(value).error
    return ""


def mistake(given: TestObject, message: str, label: str = "not a valid object") -> Diagnostic:
    """A mistake in an object of a test, shown at its name."""
    return Diagnostic("KSP0602", Severity.ERROR, message, given.span, label)
