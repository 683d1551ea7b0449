"""`ksp evaluate`: answers to recorded cases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import BinaryIO

import click

from ksp.check.program import Module
from ksp.check.report import did_you_mean
from ksp.check.typed import Profile
from ksp.cli.policy_files import sound_policy
from ksp.cli.terminal import counted
from ksp.sim.case_files import CaseFileError, answers
from ksp.sim.cases import Evaluator

SHIPPED = "ksp:legacy.ksp"  # imports both providers, and has every rule that a legacy Policy can name
STEP = 0.2  # seconds between two signs of life


@click.command
@click.argument("cases")
@click.option("--policy", metavar="FILE", default=SHIPPED, show_default=True, help="Declares the providers.")
@click.option("--provider", metavar="NAME", help="The provider for all cases, instead of what each names.")
@click.option("--profile", metavar="NAME", help="The profile for all cases, with its arguments and settings.")
@click.option("--output", metavar="FILE", default="-", help="Where the answers go; without it to standard output.")
@click.pass_context
def evaluate(
    ctx: click.Context, cases: str, policy: str, provider: str | None, profile: str | None, output: str
) -> None:
    """Answer the recorded scheduling cases in CASES: JSON lines, compressed with gzip or not; `-` is standard input.

    Writes a JSON line for each case, in the shapes of the case's own `expected`; what ksp cannot give is null. A line
    that is no case is named on stderr, answered with nulls and `invalid`, and makes ksp exit with 1.
    """
    module = sound_policy(policy).module
    if provider is not None and provider not in module.providers():
        raise click.UsageError(_no_provider(module, provider, policy))
    if provider is not None and profile is not None:
        raise click.UsageError("--provider and --profile exclude each other: a profile has a provider")
    declared = None if profile is None else _declared(module, profile, policy)
    if _same_file(cases, output):
        raise click.UsageError(f"the answers would overwrite the cases in {cases}")
    with _reading(cases) as source, _writing(output) as target:
        try:
            evaluator = Evaluator(module, provider, profile=declared)
            failed = _answer_all(source, target, evaluator, "<stdin>" if cases == "-" else cases)
        except CaseFileError as error:
            click.echo(f"{cases}: {error}", err=True)
            failed = True
    if failed:
        ctx.exit(1)


def _answer_all(source: BinaryIO, target: BinaryIO, evaluator: Evaluator, name: str) -> bool:
    """Writes all answers, and a summary to stderr; were there lines that are no cases?"""
    progress = _Progress()
    try:
        for answer in answers(source, evaluator):
            target.write(answer.text + b"\n")
            progress.step(valid=not answer.invalid)
            if answer.invalid:
                progress.clear()
                click.echo(f"{name}:{answer.line}: {answer.invalid}", err=True)
        target.flush()
    finally:
        progress.clear()
    progress.end()
    return progress.invalid > 0


class _Progress:
    """Counts cases; on a terminal it shows how many there are so far."""

    def __init__(self) -> None:
        self.cases = 0
        self.invalid = 0
        self.started = perf_counter()
        self.due = self.started + STEP if sys.stderr.isatty() else None

    def step(self, *, valid: bool) -> None:
        self.cases += 1
        self.invalid += not valid
        if self.due is not None and perf_counter() >= self.due:
            self.due = perf_counter() + STEP
            click.echo(f"\r{self._text()}", nl=False, err=True)

    def clear(self) -> None:
        if self.due is not None:
            click.echo(f"\r{' ' * len(self._text())}\r", nl=False, err=True)

    def end(self) -> None:
        invalid = f", {self.invalid:,} of them not valid" if self.invalid else ""
        click.echo(self._text() + invalid, err=True)

    def _text(self) -> str:
        seconds = perf_counter() - self.started
        rate = f", {self.cases / seconds:,.0f} a second" if seconds > 0 else ""
        return f"{counted(self.cases, 'case')}{rate}"


def _declared(module: Module, name: str, policy: str) -> Profile:
    declared = {each.name: each for each in module.profiles()}
    if name not in declared:
        meant = did_you_mean(name, declared) or f"it has {', '.join(declared) or 'none'}"
        raise click.UsageError(f'there is no profile "{name}" in {policy}: {meant}')
    return declared[name]


def _no_provider(module: Module, name: str, policy: str) -> str:
    meant = did_you_mean(name, module.providers()) or f"it has {', '.join(module.providers()) or 'none'}"
    return f"there is no provider `{name}` in {policy}: {meant}"


def _same_file(cases: str, output: str) -> bool:
    a, b = Path(cases), Path(output)
    return a.exists() and b.exists() and a.samefile(b)


@contextmanager
def _reading(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as stream:
        yield stream


@contextmanager
def _writing(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdout.buffer
        return
    with Path(name).open("wb") as stream:
        yield stream
