"""The words of kube-scheduler for what is wrong with a field: k8s.io/apimachinery's `field.Error`.

A problem is the path of a field (`profiles[0].schedulerName`) and what is said of it. Where the field stands in the
file is added when problems are rendered.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

Steps = tuple[str | int, ...]
"""The way from the document to a value: keys, and positions in lists."""


class Problem(NamedTuple):
    """What is wrong (or, as a warning, odd) with the field at `steps`. One that `is_ignored` is no error: nobody reads
    the field."""

    steps: Steps
    text: str
    is_ignored: bool = False

    def __str__(self) -> str:
        path = path_of(self.steps)
        return f"{path}: {self.text}" if path else self.text


def pointer(steps: Sequence[str | int]) -> str:
    """The path as RFC 6901 has it: `/extenders/0/managedResources`; "" is the whole document."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def in_one_line(text: str, longest: int) -> str:
    """Without line breaks and control characters, and not endless, whatever names a file has."""
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:longest])
    return shown if len(text) <= longest else f"{shown}…"


def path_of(steps: Sequence[str | int]) -> str:
    """The path as Kubernetes writes it: `extenders[0].managedResources[1].name`."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def invalid(steps: Steps, value: object, detail: str) -> Problem:
    return Problem(steps, f"Invalid value: {shown(value)}: {detail}" if detail else f"Invalid value: {shown(value)}")


def required(steps: Steps, detail: str = "") -> Problem:
    return Problem(steps, f"Required value: {detail}" if detail else "Required value")


def duplicate(steps: Steps, value: object) -> Problem:
    return Problem(steps, f"Duplicate value: {shown(value)}")


def not_supported(steps: Steps, value: object, supported: Sequence[str]) -> Problem:
    listed = ", ".join(json.dumps(each) for each in supported)
    return Problem(steps, f"Unsupported value: {shown(value)}: supported values: {listed}")


def forbidden(steps: Steps, detail: str) -> Problem:
    return Problem(steps, f"Forbidden: {detail}")


def shown(value: object) -> str:
    """A value as Go's `%v` has it, text in quotes; what is long is cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else text[:197] + "..."
