"""What flags of `ksp run` come to, without running anything."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from ksp.cli.feature_gates import feature_gates
from ksp.cli.run import run
from ksp.cli.run_options import log_settings, options_of, settings_of
from ksp.cli.scheduler_flags.command import SchedulerCommand
from ksp.cli.scheduler_flags.given import Given
from ksp.runtime import process
from ksp.runtime.log import LogSettings
from ksp.runtime.options import Options

SMALL = """\
predicate Any { deny "never" when false }
provider Small { predicates { Any } }
profile "small" uses Small { }
"""
"""A policy that is assembled in no time."""


def parsed(*arguments: str) -> Given:
    """What the command line makes of the flags."""
    found: list[Given] = []
    result = CliRunner().invoke(SchedulerCommand("run", found.append, ""), list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (given,) = found
    return given


class Told:
    """What flags come to, but for the policy."""

    def __init__(self, *arguments: str) -> None:
        given = parsed(*arguments)
        gates = feature_gates(given["feature-gates"])
        self.options: Options = options_of(given, None, gates, settings_of(given, None, ""), None, None, "")
        self.log: LogSettings = log_settings(given)


class Started:
    """A `ksp run` that was stopped where it would have connected: with what options, and how the log was set up."""

    def __init__(self, arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.all_options: list[Options] = []
        self.all_logs: list[LogSettings] = []
        monkeypatch.setattr(process, "run_process", self.all_options.append)
        monkeypatch.setattr("ksp.runtime.log.set_up", self.all_logs.append)
        self.result: Result = CliRunner().invoke(run, list(arguments), catch_exceptions=False)

    @property
    def options(self) -> Options:
        (options,) = self.all_options
        return options

    @property
    def log(self) -> LogSettings:
        (log,) = self.all_logs
        return log
