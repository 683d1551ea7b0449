"""What is wrong with a legacy Policy, or does nothing in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ksp.policy.field_errors import Steps, in_one_line, pointer

LONGEST = 2000
"""Characters of a line that tells of one of them."""
MOST = 100
"""Lines that tell of them."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong (or, as a warning, without effect): `message` as kube-scheduler words it where it does,
    `pointer` to it (RFC 6901), `hint` what may have been meant or what to do; "" for none."""

    message: str
    pointer: str
    hint: str = ""

    def __str__(self) -> str:
        said = f"{self.message}: {self.hint}" if self.hint else self.message
        return in_one_line(f"{said} ({self.pointer})" if self.pointer else said, LONGEST)


def mistake(message: str, steps: Steps, hint: str = "") -> Mistake:
    return Mistake(message, pointer(steps), hint)


class LegacyPolicyError(Exception):
    """All that keeps a Policy from being used. `name` is that of its file."""

    def __init__(self, name: str, errors: Iterable[Mistake]) -> None:
        self.name = name
        self.errors = tuple(errors)
        super().__init__("; ".join(self.messages))

    @property
    def messages(self) -> tuple[str, ...]:
        """A line for each, ready to print; of very many the first."""
        shown = tuple(f"{self.name}: {each}" for each in self.errors[:MOST])
        left = len(self.errors) - len(shown)
        return (*shown, f"{self.name}: {left} more are not shown") if left else shown


# ---- how Go writes values into its messages


def quoted(text: str) -> str:
    """As %q."""
    return json.dumps(text, ensure_ascii=False)


def listed(texts: Iterable[str]) -> str:
    """As %v of a list of strings."""
    return f"[{' '.join(texts)}]"
