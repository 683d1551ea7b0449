"""What is wrong with a legacy Policy, or does nothing in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Steps = tuple[str | int, ...]
"""The way from the Policy to what lies in it: fields, and positions in lists."""

LONGEST = 2000
"""Characters of a line that tells of one of them."""
FAILED = "couldn't create scheduler from policy: "
"""What kube-scheduler puts before the first of them."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong (or, as a warning, without effect): `message` as kube-scheduler words it where it does,
    `pointer` to it (RFC 6901), `hint` what may have been meant or what to do; "" for none."""

    message: str
    pointer: str
    hint: str = ""

    def __str__(self) -> str:
        """In one line, and not endless, whatever names the Policy has."""
        said = f"{self.message}: {self.hint}" if self.hint else self.message
        return _line(f"{said} ({self.pointer})" if self.pointer else said)


def _line(text: str) -> str:
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text[:LONGEST])
    return shown if len(text) <= LONGEST else f"{shown}…"


def mistake(message: str, steps: Steps, hint: str = "") -> Mistake:
    return Mistake(message, pointer(steps), hint)


def pointer(steps: Steps) -> str:
    """As RFC 6901 has it; "" is the whole Policy."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


class LegacyPolicyError(Exception):
    """All that keeps a Policy from being used. `name` is that of its file."""

    def __init__(self, name: str, errors: Iterable[Mistake]) -> None:
        self.name = name
        self.errors = tuple(errors)
        super().__init__("; ".join(self.messages))

    @property
    def messages(self) -> tuple[str, ...]:
        """A line for each, ready to print."""
        return tuple(f"{self.name}: {each}" for each in self.errors)
