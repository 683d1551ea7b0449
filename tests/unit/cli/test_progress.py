"""The progress bar is for terminals, and changes nothing of what it shows."""

from __future__ import annotations

import io
import sys

import pytest

from ksp.cli.progress import with_progress
from ksp.sim.cluster import Attempt
from ksp.sim.outcome import PodRecord


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def attempts(number: int) -> list[Attempt]:
    return [Attempt(float(i), PodRecord(f"u{i}", "default", f"p{i}", 0.0, attempts=1)) for i in range(number)]


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    given = attempts(3)
    assert list(with_progress(given, 3)) == given
    assert "3/3" in terminal.getvalue()


def test_a_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    given = attempts(3)
    assert list(with_progress(given, 3)) == given
    assert pipe.getvalue() == ""
