"""A folder of policies as the keys of a ConfigMap.

Keys are flat, so files of folders get names of one part, and what names them (`import`, and `from` in tests) is
rewritten where it stands; every other character of a text stays. Nothing is checked here: a reference that leads
nowhere is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import PurePosixPath
from typing import Final

import yaml

from ksp.policy.texts import LEGACY_KEY, TESTS, PolicyTexts
from ksp.source.origin import SHIPPED, resolve
from ksp.source.text import Source, Span
from ksp.syntax import tree
from ksp.syntax.parser import parse

POLICY: Final = ".ksp"
MOST_BYTES: Final = 1024 * 1024
"""What the values of a ConfigMap may measure together, in UTF-8."""
LONGEST_KEY: Final = 253
_OTHER_BREAKS: Final = re.compile("[\x85\u2028\u2029\ufeff]")  # which some readers of YAML take for ends of lines
_NOT_IN_KEYS: Final = re.compile(r"[^-._a-zA-Z0-9]")


@dataclass(frozen=True, slots=True)
class Bundle:
    """`texts` are the same policy under its keys; `keys` says which key each file has."""

    texts: PolicyTexts
    keys: Mapping[str, str]

    @property
    def size(self) -> int:
        """What it takes of a ConfigMap, in bytes."""
        return sum(len(text.encode()) for text in self.texts.files.values())


def bundled(texts: PolicyTexts) -> Bundle:
    """The policy with all that it needs, under flat names. A legacy Policy is the key `policy.cfg`."""
    if texts.legacy:
        keys = {texts.legacy: LEGACY_KEY}
        files = {LEGACY_KEY: texts.files[texts.legacy]}
        return Bundle(PolicyTexts(texts.name, files, (), legacy=LEGACY_KEY), keys)
    keys = keys_of(texts.files)
    files = {
        keys[path]: rewritten(text, path, keys) if path.endswith(POLICY) else text for path, text in texts.files.items()
    }
    roots = tuple(sorted(key for key in files if key.endswith(POLICY) and not key.endswith(TESTS)))
    return Bundle(PolicyTexts(texts.name, dict(sorted(files.items())), roots), keys)


# ---- names


def keys_of(paths: Iterable[str]) -> dict[str, str]:
    """A key for each path, `lib-gpu.ksp` for `lib/gpu.ksp`. Paths that are keys already stay; no two get one key."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(paths, key=lambda path: (_flat(path) != path, path)):
        found[path] = next(key for key in _candidates(path) if key not in taken)
        taken.add(found[path])
    return found


def _flat(path: str) -> str:
    """Valid in a ConfigMap, and as the name of a file that is not hidden."""
    flat = _NOT_IN_KEYS.sub("_", path.replace("/", "-"))
    flat = f"_{flat[1:]}" if flat.startswith(".") else flat
    if len(flat) > LONGEST_KEY:
        mark, ending = sha256(path.encode()).hexdigest()[:8], _ending(path)
        flat = f"{flat[: LONGEST_KEY - len(mark) - len(ending) - 1]}-{mark}{ending}"
    return f"file-{flat}" if flat == LEGACY_KEY else flat


def _candidates(path: str) -> Iterator[str]:
    flat, ending = _flat(path), _ending(path)
    yield flat
    stem = flat.removesuffix(ending)[: LONGEST_KEY - len(ending) - 8]
    for number in count(2):
        yield f"{stem}-{number}{ending}"


def _ending(path: str) -> str:
    """What says of what kind a file is."""
    if path.endswith(TESTS):
        return TESTS
    return _NOT_IN_KEYS.sub("_", PurePosixPath(path).suffix)[:16]


# ---- references


def rewritten(text: str, path: str, keys: Mapping[str, str]) -> str:
    """The text of a file, naming others by their keys."""
    made, end = [], 0
    for span, target in _references(text, path):
        key = keys.get(target)
        if key is not None and not _leads_to(span, key):
            made += [text[end : span.start], f'"{key}"']
            end = span.end
    return "".join([*made, text[end:]])


def _leads_to(literal: Span, key: str) -> bool:
    """From a file at the top, too."""
    return literal.text[1:-1] == key


def _references(text: str, path: str) -> Iterator[tuple[Span, str]]:
    """The literals that name other files, in order, and the paths that they name."""
    for declared in parse(Source(path, text)).file.declarations:
        if isinstance(declared, tree.Import):
            target, refusal = resolve(declared.path, path)
            if not refusal and not target.startswith(SHIPPED):
                yield declared.path_span, target
        elif isinstance(declared, tree.Test):
            for given in declared.objects:
                if given.path is not None:
                    yield given.path.span, str(PurePosixPath(path).parent / _plain(given.path))


def _plain(literal: tree.StringLiteral) -> str:
    return "".join(part for part in literal.parts if isinstance(part, str))


# ---- the manifest


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are, where YAML keeps every character of them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _OTHER_BREAKS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def manifest(bundle: Bundle, name: str, namespace: str) -> str:
    """The ConfigMap as YAML. Equal bundles give equal texts."""
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": dict(sorted(bundle.texts.files.items())),
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
