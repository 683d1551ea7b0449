"""`ksp test`: the tests of policies."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ksp.cli.policy_files import PolicyFile, check_paths
from ksp.cli.terminal import GREEN, RED, counted, is_colored, paint, width
from ksp.policy.tracing import Observation
from ksp.sim.policy_tests import Result, Runner
from ksp.sim.scenes import Scene, scene_of
from ksp.source.diagnostic import Diagnostic
from ksp.source.render import render_json, render_text

MOST = 12  # conditions shown of one expectation


@click.command
@click.argument("paths", nargs=-1, required=True, metavar="DIR|FILE...")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def test(ctx: click.Context, paths: tuple[str, ...], output_format: str) -> None:
    """Run the `test` blocks of policies; of a DIR those of every *.ksp below it.

    For an expectation that is not met it prints what happened instead, and the values that the rule compared. Nothing
    runs if a policy has errors. Exits 1 if there are errors, if an expectation is not met, or if there are no tests.
    """
    checked = check_paths(paths)
    scenes, mistakes = _scenes(checked.files)
    errors = [*checked.errors, *mistakes]
    runner = Runner()
    results = [] if errors else [result for scene in scenes for result in runner.run(scene)]
    failed = [result for result in results if result.happened]
    if output_format == "json":
        click.echo(json.dumps(_object(errors, results), indent=2))
    else:
        _print(errors, results, failed, paths)
    if errors or failed or not results:
        ctx.exit(1)


def _scenes(files: Sequence[PolicyFile]) -> tuple[list[Scene], list[Diagnostic]]:
    """The tests of the files, each once."""
    scenes: list[Scene] = []
    mistakes: list[Diagnostic] = []
    seen: set[Path] = set()
    for file in files:
        path = (file.folder / Path(file.module.key).name).resolve()
        if path in seen:
            continue
        seen.add(path)
        for each in file.module.tests:
            scene, wrong = scene_of(each, file.folder)
            mistakes += wrong
            scenes += [scene] if scene is not None else []
    return scenes, mistakes


# ---- for people


def _print(
    errors: Sequence[Diagnostic], results: Sequence[Result], failed: Sequence[Result], paths: Sequence[str]
) -> None:
    color = is_colored(sys.stdout)
    if errors:
        click.echo(render_text(errors, color, width(sys.stdout)), nl=False)
        click.echo(f"{counted(len(errors), 'error')}; no test was run", err=True)
        return
    if not results:
        click.echo(f"there are no tests in {', '.join(paths)}", err=True)
        return
    for result in failed:
        click.echo("\n".join(_lines(result, color=color)))
    passed = f"{len(results) - len(failed):,} passed"
    lost = f"{len(failed):,} failed"
    click.echo(f"{paint(passed, GREEN, color=color)}, {paint(lost, RED, color=color and bool(failed))}")


def _lines(result: Result, *, color: bool) -> Iterator[str]:
    head = f'{result.expect.span.where}: {paint("failed", RED, color=color)}: "{result.test.name}"'
    yield f"{head}: expected {_expected(result)}: {result.happened}"
    for seen in result.conditions[:MOST]:
        values = f": {seen.values}" if seen.values else ""
        yield f"    {seen.span.where}: `{_one_line(seen.span.text)}`{values} is {str(seen.holds).lower()}"
    if len(result.conditions) > MOST:
        yield f"    and {len(result.conditions) - MOST:,} more conditions"


def _expected(result: Result) -> str:
    return _one_line(result.expect.span.text).removeprefix("expect ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ---- for programs


def _object(errors: Sequence[Diagnostic], results: Sequence[Result]) -> dict[str, object]:
    failed = [result for result in results if result.happened]
    return {
        "passed": len(results) - len(failed),
        "failed": len(failed),
        "failures": [_failure(result) for result in failed],
        "diagnostics": json.loads(render_json(errors)),
    }


def _failure(result: Result) -> dict[str, object]:
    span = result.expect.span
    return {
        "file": span.source.name,
        "line": span.source.place(span.start)[0],
        "test": result.test.name,
        "expected": _expected(result),
        "happened": result.happened,
        "conditions": [_condition(seen) for seen in result.conditions],
    }


def _condition(seen: Observation) -> dict[str, object]:
    return {
        "file": seen.span.source.name,
        "line": seen.span.source.place(seen.span.start)[0],
        "condition": _one_line(seen.span.text),
        "values": seen.values,
        "holds": seen.holds,
    }
