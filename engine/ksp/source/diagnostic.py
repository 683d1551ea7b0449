"""What is wrong with a text: data, made by the pass that finds it, rendered elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ksp.source.text import Span


class Severity(Enum):
    """An error stops a policy from being loaded; advice never does."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Note:
    """A second place that explains the first, such as an earlier declaration."""

    span: Span | None
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake.

    `code` is a key of `ksp.source.catalogue`; `message` says what is wrong in one line, without a final period;
    `label` stands beside the caret; `help` says how to mend it.
    """

    code: str
    severity: Severity
    message: str
    span: Span
    label: str = ""
    notes: tuple[Note, ...] = ()
    help: str = ""
