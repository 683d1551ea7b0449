"""What goes between the scheduler and the child process that tries a policy for it.

To the child goes a pickle: it is the same program, and texts in it are texts. From the child comes JSON, since it has
run what others wrote.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Final

import msgspec

from ksp.policy.assemble import Settings
from ksp.policy.texts import PolicyTexts

MOST_ANSWER: Final = 256 * 1024
"""Bytes of a verdict."""
MOST_TEXT: Final = 16 * 1024
"""Characters of rendered diagnostics that are kept."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What the child may use: seconds of processor time, bytes of memory (address space), seconds on the clock."""

    cpu: int = 30
    memory: int = 2 * 1024**3
    seconds: float = 60.0
    files: int = 64


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be tried."""

    texts: PolicyTexts
    settings: Settings
    limits: ChildLimits


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the policy may run. If not, `stage` says what failed (`check`, `test`, `decide`, or `child` for the
    process itself), and `message` why, as people read it. `passed` and `failed` count expectations of tests; `seconds`
    and `memory` (bytes, at most) are what it took."""

    ok: bool
    stage: str = ""
    message: str = ""
    sha256: str = ""
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    memory: int = 0


def encoded_trial(trial: Trial) -> bytes:
    """For the child's standard input."""
    texts = trial.texts
    parts = texts.name, dict(texts.files), texts.roots, texts.legacy, texts.shown
    return pickle.dumps((parts, trial.settings))


def decoded_trial(data: bytes) -> tuple[PolicyTexts, Settings]:
    """In the child. It trusts who started it."""
    (name, files, roots, legacy, shown), settings = pickle.loads(data)  # noqa: S301 - from the parent, see above
    assert isinstance(settings, Settings)
    return PolicyTexts(name, files, roots, legacy, shown), settings


def bounded(text: str, most: int = MOST_TEXT) -> str:
    """The text, cut at a line where it is too long."""
    if len(text) <= most:
        return text
    return text[:most].rpartition("\n")[0] + "\n... (more is not shown)"
