"""From a file to what runs: read, check, compile. Where a newcomer starts.

origin, key -> check.program -> typed rules and providers -> compile.program -> profiles -> core
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ksp.check import typed
from ksp.check.program import Checker, Module
from ksp.policy.profile import PluginArguments, Profile, ProfileBuilder
from ksp.source.diagnostic import Diagnostic
from ksp.source.origin import SHIPPED, Folder, Origin

DEFAULT = f"{SHIPPED}default.ksp"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A policy file, checked. `module` is None if the file could not be read or has errors."""

    module: Module | None
    diagnostics: tuple[Diagnostic, ...]
    failed: bool


def load_file(path: Path) -> Loaded:
    """A file; its imports are looked for beside and below it, and in the shipped library."""
    return load(Folder(path.parent, "" if str(path.parent) == "." else str(path.parent)), path.name)


def load(origin: Origin, key: str) -> Loaded:
    """A file of an origin, or, with `ksp:` before its path, of the shipped library."""
    checker = Checker(origin)
    module = checker.check(key)
    failed = module is None or checker.report.failed
    return Loaded(None if failed else module, tuple(checker.report.found), failed)


def profiles(module: Module, plugins: PluginArguments | None = None) -> list[Profile]:
    """All profiles that the file and its imports declare."""
    builder = ProfileBuilder()
    return [builder.of(profile, plugins) for profile in module.profiles()]


def provider_named(module: Module, name: str) -> typed.Provider | None:
    """A provider by name."""
    return module.providers().get(name)
