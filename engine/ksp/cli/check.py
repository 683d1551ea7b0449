"""`ksp check`: the mistakes in policies."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from ksp.cli.policy_files import PolicyFile, check_paths
from ksp.cli.terminal import counted, is_colored, width
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.render import in_order, render_github, render_json, render_text


@click.command
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("--output-format", type=click.Choice(["text", "json", "github"]), default="text", show_default=True)
@click.option("--advice/--no-advice", default=None, help="Show advice, or hide it (text hides it unless asked).")
@click.pass_context
def check(ctx: click.Context, paths: tuple[str, ...], output_format: str, advice: bool | None) -> None:
    """Find all mistakes in policies; `-` is one on standard input.

    Of a DIR every *.ksp below it is checked. Imports are looked for below the DIR, or below the folder of the FILE, and
    are checked too; so are the files from which tests take objects. Exits 1 if there are errors; warnings and advice
    leave it at 0.
    """
    checked = check_paths(paths)
    found = in_order([*checked.diagnostics, *_in_tests(checked.files)])
    with_advice = output_format != "text" if advice is None else advice
    shown = [d for d in found if with_advice or d.severity is not Severity.ADVICE]
    match output_format:
        case "json":
            click.echo(render_json(shown))
        case "github":
            click.echo(render_github(shown), nl=False)
        case _:
            click.echo(render_text(shown, is_colored(sys.stdout), width(sys.stdout)), nl=False)
    click.echo(_summary(len(checked.files), found, hidden=len(found) - len(shown)), err=True)
    if any(d.severity is Severity.ERROR for d in found):
        ctx.exit(1)


def _in_tests(files: Sequence[PolicyFile]) -> Iterator[Diagnostic]:
    """Mistakes in the objects of tests, those from files among them. No file is opened for a policy with errors, which
    may name one that lies elsewhere."""
    tested = [file for file in files if file.module.tests]
    if tested:
        from ksp.policy.testing import object_mistakes  # decodes objects: other files do without
        from ksp.sim.scenes import scene_of

        for file in tested:
            for test in file.module.tests:
                yield from object_mistakes(test) if file.module.failed else scene_of(test, file.folder)[1]


def _summary(files: int, found: Sequence[Diagnostic], hidden: int) -> str:
    by_severity = Counter(d.severity for d in found)
    parts = [
        counted(by_severity[severity], severity.value)
        for severity in (Severity.ERROR, Severity.WARNING)
        if by_severity[severity]
    ]
    if by_severity[Severity.ADVICE]:
        unseen = " (--advice shows it)" if hidden else ""
        pieces = counted(by_severity[Severity.ADVICE], "piece")
        parts.append(f"{pieces} of advice{unseen}")
    return f"{counted(files, 'file')} checked: {', '.join(parts) or 'no mistakes'}"
