"""`ksp bundle`: a folder of policies as a ConfigMap."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from ksp.check.together import Checking, concerns_user
from ksp.cli.terminal import counted, is_colored, width
from ksp.cli.vetting import tested, unmet
from ksp.policy.assemble import Settings, assemble
from ksp.policy.bundle import MOST_BYTES, Bundle, bundled, manifest
from ksp.policy.errors import PolicyError
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.source import SourceError
from ksp.runtime.reload.sources import FileSource, FolderSource, LegacyFileSource
from ksp.source.diagnostic import Severity

NAME: Final = "ksp-policy"
NAMESPACE: Final = "kube-system"
ANNOTATION: Final = 262_144
"""Bytes of annotations that an object can have: `kubectl apply` keeps the whole manifest in one."""
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _object_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """As the API demands it of ConfigMaps and namespaces."""
    parts, most = (rf"{_LABEL}(\.{_LABEL})*", 253) if parameter.name == "name" else (_LABEL, 63)
    if len(value) > most or re.fullmatch(parts, value) is None:
        raise click.BadParameter(f"`{value}` is no name that Kubernetes takes", ctx, parameter)
    return value


@click.command
@click.argument("path", metavar="DIR|FILE")
@click.option("-o", "--output", metavar="FILE", default="-", help="Where the manifest goes; else to standard output.")
@click.option("--name", default=NAME, show_default=True, callback=_object_name, help="What the ConfigMap is called.")
@click.option(
    "--namespace", default=NAMESPACE, show_default=True, callback=_object_name,
    help="Where it is. `ksp run` takes it from its own namespace only, unless a flag names another.",
)  # fmt: skip
def bundle(path: str, output: str, name: str, namespace: str) -> None:
    """Write a policy as the manifest of a ConfigMap, for `ksp run --policy-configmap`, or to be mounted.

    Of a DIR every *.ksp below it goes in, of a FILE that and what it imports; with their tests, and the files that
    these take objects from. Files of folders get flat names, `lib-gpu.ksp` for `lib/gpu.ksp`, and imports name them so;
    all else in a text stays. A FILE that does not end in .ksp is taken for a legacy Policy.

    Nothing is written, and ksp exits with 1, if there are errors, if a test is not met, or if it is too large.
    """
    try:
        texts = _source(path).read()
        _check(texts)
        made = bundled(texts)
        _assemble(made.texts)
    except SourceError as error:
        _refuse(PolicyError(error.diagnostics, error.messages))
    except PolicyError as error:
        _refuse(error)
    met = _tried(made)
    if made.size > MOST_BYTES:
        raise click.ClickException(f"{_sizes(made)}: leave tests out, or move their objects to smaller files")
    text = manifest(made, name, namespace)
    _write(output, text)
    where = "" if output == "-" else f" in {output}"
    click.echo(f"ConfigMap {namespace}/{name}{where}: {_sizes(made)}, {met}", err=True)
    if len(text.encode()) > ANNOTATION:
        click.echo("note: it is too large for `kubectl apply`; `kubectl apply --server-side` takes it", err=True)


def _source(path: str) -> FileSource | FolderSource | LegacyFileSource:
    if Path(path).is_dir():
        return FolderSource(path)
    return FileSource(path) if path.endswith(".ksp") else LegacyFileSource(path)


# ---- is it sound


def _check(texts: PolicyTexts) -> None:
    """Raises PolicyError for what is wrong with the files, by the names that their author knows."""
    checking = Checking(texts.origin())
    found = [each for key in (*texts.roots, *texts.tests) for each in checking.check(key)[1]]
    errors = [each for each in found if concerns_user(each) and each.severity is Severity.ERROR]
    if errors:
        raise PolicyError(errors)


def _assemble(texts: PolicyTexts) -> None:
    """As the scheduler will: of a ConfigMap every file is loaded, not one and what it imports. Raises PolicyError, but
    for files that need a configuration to be complete: that is noted."""
    try:
        assemble(texts, Settings())
    except PolicyError as error:
        if texts.legacy or error.diagnostics or _declares(texts):
            raise
        for message in error.messages:
            click.echo(f"note: it schedules only beside a KubeSchedulerConfiguration: {message}", err=True)


def _declares(texts: PolicyTexts) -> bool:
    """Some file has a profile."""
    checking = Checking(texts.origin())
    modules = [checking.check(root)[0] for root in texts.roots]
    return any(module.profiles() for module in modules if module is not None)


def _tried(made: Bundle) -> str:
    """How many expectations its tests met, as they will run where it is loaded. Ends the command if one did not."""
    results, mistakes = tested(made.texts)
    if mistakes:
        _refuse(PolicyError(mistakes))
    failed = [result for result in results if result.happened]
    if failed:
        _refuse(PolicyError(messages=unmet(failed)))
    return f"{counted(len(results), 'expectation')} met"


def _refuse(error: PolicyError) -> NoReturn:
    click.echo(error.rendered(colored=is_colored(sys.stderr), columns=width(sys.stderr)), nl=False, err=True)
    raise click.exceptions.Exit(1)


# ---- what comes of it


def _sizes(made: Bundle) -> str:
    share = f"{made.size:,} of {MOST_BYTES:,} bytes ({100 * made.size / MOST_BYTES:.1f} %)"
    return f"{counted(len(made.texts.files), 'key')}, {share}"


def _write(output: str, text: str) -> None:
    if output == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(output).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise click.ClickException(f"cannot write {output}: {error.strerror}") from None
