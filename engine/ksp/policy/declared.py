"""The profiles that policies declare, and the hash of their texts.

Of several files all profiles count that they declare, or import. A file that declares a profile anew which it imports
replaces it, here as elsewhere; any other two profiles of one name are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from ksp.check.program import Module
from ksp.check.typed import Profile, Provider
from ksp.source.origin import SHIPPED

_Key = tuple[str, int]


def declared_profiles(modules: Iterable[Module]) -> tuple[list[Profile], list[str]]:
    """All profiles, but those that an importing file replaces; and what is wrong: two of one name."""
    found: dict[_Key, Profile] = {}
    replaced: set[_Key] = set()
    for module in modules:
        for profile in module.profiles():
            found.setdefault(_key(profile), profile)
        replaced.update(_replaced(module))
    by_name: dict[str, Profile] = {}
    errors = []
    for key, profile in found.items():
        if key in replaced:
            continue
        other = by_name.setdefault(profile.name, profile)
        if other is not profile:
            places = f"{other.span.where} and {profile.span.where}"
            errors.append(f'the profile "{profile.name}" is declared twice: {places}')
    return list(by_name.values()), errors


def is_shipped(profile: Profile) -> bool:
    """Whether it came with a file of the library, and nobody wrote it for this cluster."""
    return profile.span.source.name.startswith(SHIPPED)


def only_provider(name: str, modules: Iterable[Module]) -> Provider | str:
    """Where there is no profile, but one provider, that one is meant; else why none is. `name` is the policy's."""
    found = [module.providers()[each] for module in modules for each in module.own if each in module.providers()]
    if len(found) == 1:
        return found[0]
    listed = f"has the providers {', '.join(each.name for each in found)}" if found else "no provider"
    return f'{name} declares no profile and {listed}: add profile "default-scheduler" uses PROVIDER {{ }}'


def _replaced(module: Module) -> Iterator[_Key]:
    """The profiles that the file imports and declares anew."""
    for imported in module.imports.values():
        for profile in imported.profiles():
            if f'"{profile.name}"' in module.own:
                yield _key(profile)


def _key(profile: Profile) -> _Key:
    """Where it stands: a file that is checked twice declares the same profile."""
    return profile.span.source.name, profile.span.start


def hash_of(modules: Iterable[Module], others: Mapping[str, str] | None = None) -> str:
    """SHA-256 over the names and texts of the files, of all that they import, and of the `others`, in hexadecimal. The
    same files give the same hash wherever their folder lies."""
    files = dict(others or {})
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
