"""`ksp doc`: a reference of policies, as Markdown."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path

import click

from ksp.check.program import Module
from ksp.cli.policy_files import check_paths, give_up
from ksp.cli.reference import reference_of
from ksp.cli.reference_page import page
from ksp.policy.texts import TESTS
from ksp.source.origin import SHIPPED, shipped


@click.command
@click.argument("paths", nargs=-1, metavar="[FILE|DIR]...")
@click.option("--output", metavar="FILE", help="Write the page there.")
@click.option("--check", "expected", metavar="FILE", help="Exit 1 if FILE is not the page.")
def doc(paths: tuple[str, ...], output: str | None, expected: str | None) -> None:
    """Write a reference of policies, as Markdown: of the shipped ones, if none are named.

    It has what each rule says of itself (the comments with ///, taken as Markdown), its parameters, what it reads, the
    reasons that it gives and the events that can help a denied pod; the functions; providers with their rules in order
    and their weights; profiles. Files *.test.ksp below a DIR are left out. The same policies give the same page, so it
    can be kept beside them, and --check can hold it true.
    """
    if output is not None and expected is not None:
        raise click.UsageError("--output and --check exclude each other: one writes, the other compares")
    target = output if output is not None else expected
    text = page(reference_of(_modules(paths)), Path(target).parent if target is not None else Path())
    if expected is not None:
        _compare(Path(expected), text, shlex.join(["ksp", "doc", *paths, "--output", expected]))
    elif output is not None:
        Path(output).write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=False)


def _modules(paths: tuple[str, ...]) -> list[Module]:
    """The files, checked, each once; their errors on stderr and exit 1."""
    named = paths or tuple(SHIPPED + key for key in shipped().files() if not key.endswith(TESTS))
    checked = check_paths(named)
    if checked.errors:
        give_up(checked.errors)
    modules: dict[Path, Module] = {}
    for file in checked.files:
        modules.setdefault(Path(file.module.source.name).resolve(), file.module)
    chosen = [module for module in modules.values() if not module.key.endswith(TESTS) or module.source.name in named]
    if not chosen:
        raise click.UsageError("there are only tests there, and no policy")
    return chosen


def _compare(file: Path, text: str, remedy: str) -> None:
    """Exit 1 if the file is not the text, with the lines that differ and what to run."""
    if not file.exists():
        click.echo(f"{file} does not exist; write it with\n  {remedy}", err=True)
        raise click.exceptions.Exit(1)
    there = file.read_text(encoding="utf-8", errors="replace")
    if there == text:
        return
    before, after = there.splitlines(), text.splitlines()
    changes = difflib.unified_diff(before, after, str(file), "what the policies say", n=0, lineterm="")
    click.echo("\n".join(changes), err=True)
    click.echo(f"{file} is not what the policies say; write it anew with\n  {remedy}", err=True)
    raise click.exceptions.Exit(1)
