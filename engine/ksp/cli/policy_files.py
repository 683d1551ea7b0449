"""From paths on the command line to checked policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

import click

from ksp.check.program import Module
from ksp.check.reach import warn_of_unreached
from ksp.check.report import Report, did_you_mean
from ksp.check.together import Checking, concerns_user, unreadable
from ksp.check.typed import Rule
from ksp.cli.terminal import is_colored, width
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.origin import SHIPPED, Folder, Origin, Texts, shipped
from ksp.source.reading import MAX_FILE_BYTES, read_source, source_in
from ksp.source.render import in_order, render_text

STDIN: Final = "<stdin>"


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A checked file. `folder` is where it lies."""

    module: Module
    folder: Path


@dataclass(slots=True)
class Checked:
    """What became of the paths: the files that could be read, and all diagnostics, of imported files too."""

    files: list[PolicyFile] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in in_order(self.diagnostics) if d.severity is Severity.ERROR]


def check_paths(paths: Iterable[str]) -> Checked:
    """Checks files, and all policies below folders; `-` is standard input. Imports are looked for below the folder, or
    that of the file; those of standard input are of the shipped library."""
    result = Checked()
    folders: dict[str, _Root] = {}
    for given in dict.fromkeys(paths):
        path = Path(given)
        if not given:
            raise click.UsageError("an empty path names no policy")
        if given.startswith(SHIPPED):
            root = folders.setdefault(SHIPPED, _Root(shipped(), shipped().root, prefix=SHIPPED))
            root.check(given.removeprefix(SHIPPED), result)
        elif given == "-":
            _check_stdin(result)
        elif path.is_dir():
            _check_folder(path, result)
        else:
            _check_file(path, folders, result)
    report = Report()
    warn_of_unreached(report, [file.module for file in result.files])
    result.diagnostics += report.found
    return result


def _check_stdin(result: Checked) -> None:
    source = source_in(sys.stdin.buffer.read(MAX_FILE_BYTES + 1), STDIN)
    if isinstance(source, Diagnostic):
        result.diagnostics.append(source)
        return
    _Root(Texts({STDIN: source.text}), Path()).check(STDIN, result)


def _check_folder(path: Path, result: Checked) -> None:
    try:
        os.scandir(path).close()
    except OSError as error:
        result.diagnostics.append(unreadable(str(path), f"cannot read the folder: {error.strerror}"))
        return
    folder = Folder(path)
    root = _Root(folder, path)
    keys = list(folder.files())
    if not keys:
        result.diagnostics.append(unreadable(str(path), "there is no policy (`*.ksp`) in this folder"))
    for key in keys:
        root.check(key, result)


def _check_file(path: Path, folders: dict[str, _Root], result: Checked) -> None:
    source = read_source(path)
    if isinstance(source, Diagnostic):
        result.diagnostics.append(source)
        return
    if not path.resolve().is_relative_to(path.parent.resolve()):
        path = path.resolve()  # a link to elsewhere: its imports lie there
    parent = str(path.parent)
    folders.setdefault(parent, _Root(Folder(path.parent), path.parent)).check(path.name, result)


class _Root:
    """Checks files of one origin, for the user who named them."""

    def __init__(self, origin: Origin, folder: Path, prefix: str = "") -> None:
        self.folder = folder
        self.prefix = prefix
        self.checking = Checking(origin)

    def check(self, key: str, result: Checked) -> None:
        module, found = self.checking.check(self.prefix + key)
        result.diagnostics += found if self.prefix else [each for each in found if concerns_user(each)]
        if module is not None:
            result.files.append(PolicyFile(module, (self.folder / key).parent))
        elif not any(d.severity is Severity.ERROR for d in found):
            name = str(self.folder / key) if not self.prefix else self.prefix + key
            why = "there is no such file in the shipped library" if self.prefix else "it is a link out of the folder"
            result.diagnostics.append(unreadable(name, f"cannot read the file: {why}"))


# ---- one policy, for commands that need it without errors


def sound_policy(path: str) -> PolicyFile:
    """The file, or its errors on stderr and exit 1."""
    checked = check_paths([path])
    if checked.errors:
        give_up(checked.errors)
    if len(checked.files) != 1:
        raise click.UsageError(f"{path} is a folder: name one file")
    return checked.files[0]


def give_up(errors: Iterable[Diagnostic]) -> NoReturn:
    """The errors on stderr, and exit 1."""
    click.echo(render_text(errors, is_colored(sys.stderr), width(sys.stderr)), nl=False, err=True)
    raise click.exceptions.Exit(1)


def chosen_rules(module: Module, name: str | None, *, imported: bool) -> list[Rule]:
    """The rule of that name, or all that the file declares, with `imported` also those that it imports."""
    rules = module.rules()
    if name is None:
        return list(rules.values()) if imported else module.own_rules()
    if name not in rules:
        meant = did_you_mean(name, rules)
        raise click.UsageError(f"there is no rule `{name}` in {module.source.name}{': ' + meant if meant else ''}")
    return [rules[name]]
