"""From the flags of `ksp run` to the rules that schedule, and the hash of their files.

The rules come from one place: a file, a folder, or one of kube-scheduler's two providers. Of a folder all profiles
count that its files declare, or import; so its files can be the keys of a ConfigMap. A file that declares a profile
anew which it imports replaces it, here as elsewhere; any other two profiles of one name are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import click

from ksp.check.program import Module
from ksp.check.typed import Profile as Declared
from ksp.cli.policy_files import TESTS, check_paths, give_up, place_of
from ksp.policy.load import DEFAULT
from ksp.policy.profile import Profile, ProfileBuilder
from ksp.runtime.options import Policy
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.render import in_order

PROVIDERS = {"DefaultProvider": DEFAULT, "ClusterAutoscalerProvider": "ksp:cluster-autoscaler.ksp"}
DEFAULT_SCHEDULER = "default-scheduler"

_Key = tuple[str, int]


def chosen_policy(
    file: str | None, folder: str | None, provider: str | None, scheduler_name: str | None, percentage: int | None
) -> Policy:
    """The rules that the flags name. Errors of a policy go to stderr as `ksp check` shows them, with exit 1; warnings
    come with the rules."""
    given = {"--policy-file": file, "--policy-dir": folder, "--algorithm-provider": provider}
    flags = [flag for flag, value in given.items() if value is not None]
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(flags)} exclude each other: the rules come from one place")
    if provider is not None:
        policy = _of_provider(provider, scheduler_name or DEFAULT_SCHEDULER)
    elif folder is not None:
        policy = _of_folder(folder, scheduler_name)
    else:
        policy = _of_file(file or DEFAULT, scheduler_name)
    for profile in policy.profiles:
        if profile.bind_timeout_error:
            raise click.ClickException(f'the profile "{profile.scheduler_name}": {profile.bind_timeout_error}')
    if percentage is None:
        return policy
    return replace(policy, profiles=tuple(replace(each, percentage=percentage) for each in policy.profiles))


def _of_provider(name: str, scheduler_name: str) -> Policy:
    (module,), _ = _sound(PROVIDERS[name])
    profile = ProfileBuilder().build(module.providers()[name], scheduler_name=scheduler_name)
    return Policy(name, hash_of([module]), (profile,))


def _of_file(path: str, scheduler_name: str | None) -> Policy:
    if Path(path).is_dir():
        raise click.UsageError(f"{path} is a folder: name it with --policy-dir")
    return _policy(path, scheduler_name)


def _of_folder(path: str, scheduler_name: str | None) -> Policy:
    if not Path(path).is_dir():
        raise click.UsageError(f"{path} is not a folder: name a file with --policy-file")
    return _policy(path, scheduler_name)


def _policy(path: str, scheduler_name: str | None) -> Policy:
    """All that a file or a folder declares. Files of tests are none of it, unless one is named."""
    modules, warnings = _sound(path)
    if Path(path).is_dir():
        modules = [module for module in modules if not module.source.name.endswith(TESTS)]
        warnings = [found for found in warnings if not found.span.source.name.endswith(TESTS)]
    return Policy(path, hash_of(modules), tuple(_profiles(path, modules, scheduler_name)), tuple(warnings))


def _sound(path: str) -> tuple[list[Module], list[Diagnostic]]:
    """What the path names, and what `ksp check` warns of in it."""
    checked = check_paths([path])
    if checked.errors:
        give_up(checked.errors)
    warnings = [found for found in in_order(checked.diagnostics) if found.severity is Severity.WARNING]
    return [file.module for file in checked.files], warnings


# ---- profiles


def _profiles(path: str, modules: Sequence[Module], scheduler_name: str | None) -> list[Profile]:
    """Those that are declared, under the names they have; a single one takes `scheduler_name`."""
    declared = _declared(modules)
    builder = ProfileBuilder()
    if not declared:
        return [_only_provider(path, modules, builder, scheduler_name or DEFAULT_SCHEDULER)]
    found = [builder.of(each) for each in declared]
    if scheduler_name is None:
        return found
    if len(found) > 1:
        names = ", ".join(each.scheduler_name for each in found)
        raise click.UsageError(f"{path} declares several profiles ({names}): --scheduler-name would rename all of them")
    return [replace(found[0], scheduler_name=scheduler_name)]


def _declared(modules: Iterable[Module]) -> list[Declared]:
    """All profiles, but those that an importing file replaces. Two of one name are an error."""
    found: dict[_Key, Declared] = {}
    replaced: set[_Key] = set()
    for module in modules:
        for profile in module.profiles():
            found.setdefault(_key(profile), profile)
        replaced.update(_replaced(module))
    by_name: dict[str, Declared] = {}
    for key, profile in found.items():
        if key in replaced:
            continue
        other = by_name.setdefault(profile.name, profile)
        if other is not profile:
            places = f"{place_of(other.span)} and {place_of(profile.span)}"
            raise click.ClickException(f'the profile "{profile.name}" is declared twice: {places}')
    return list(by_name.values())


def _replaced(module: Module) -> Iterator[_Key]:
    """The profiles that the file imports and declares anew."""
    for imported in module.imports.values():
        for profile in imported.profiles():
            if f'"{profile.name}"' in module.own:
                yield _key(profile)


def _key(profile: Declared) -> _Key:
    """Where it stands: a file that is checked twice declares the same profile."""
    return profile.span.source.name, profile.span.start


def _only_provider(path: str, modules: Sequence[Module], builder: ProfileBuilder, name: str) -> Profile:
    """Where there is no profile, but one provider, that one is meant."""
    names = [provider for module in modules for provider in module.own if provider in module.providers()]
    if len(names) != 1:
        listed = f"has the providers {', '.join(names)}" if names else "no provider"
        raise click.ClickException(f'{path} declares no profile and {listed}: add profile "{name}" uses PROVIDER {{ }}')
    module = next(module for module in modules if names[0] in module.own)
    return builder.build(module.providers()[names[0]], scheduler_name=name)


# ---- the hash


def hash_of(modules: Iterable[Module]) -> str:
    """SHA-256 over the names and texts of the files and of all that they import, in hexadecimal. The same files give
    the same hash wherever their folder lies."""
    files: dict[str, str] = {}
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module.key not in files:
            files[module.key] = module.source.text
            pending += module.imports.values()
    digest = sha256()
    for key, text in sorted(files.items()):
        for part in (key.encode(), text.encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
