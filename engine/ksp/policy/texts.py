"""The texts of a policy: a value, read once. What is tried in another process is byte for byte what is used in this
one, whatever happens to the files meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Final

from ksp.source.diagnostic import Diagnostic
from ksp.source.origin import Texts
from ksp.source.reading import source_of
from ksp.source.text import Source

TESTS: Final = ".test.ksp"
"""How the names of files end that hold only tests."""
LEGACY_KEY: Final = "policy.cfg"
"""The key of a ConfigMap that holds a legacy Policy, as kube-scheduler looks for it."""


@dataclass(frozen=True, slots=True)
class PolicyTexts:
    """What a policy is made of.

    `name` is what the user calls it by. `files` are texts by their path below the folder, or by their key of the
    ConfigMap: policies, tests, and what tests name with `from`. `roots` are the policies to load: one file, or all of a
    folder but the tests; one that begins with `ksp:` is of the shipped library. `legacy` is the key of a legacy Policy
    (JSON or YAML); then there are no roots. `shown` is put before a path to name it in diagnostics.
    """

    name: str
    files: Mapping[str, str]
    roots: tuple[str, ...]
    legacy: str = ""
    shown: str = ""
    sha256: str = field(init=False)
    """Over all of that but `name` and `shown`, in hexadecimal: equal texts are equal wherever they lie. (That of a
    policy is another: it counts only what its roots import, and the shipped library with it.)"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", _digest(self.files, self.roots, self.legacy))

    def origin(self) -> TextsOrigin:
        """Where the checker finds them."""
        return TextsOrigin(self.files, self.shown)

    @property
    def tests(self) -> tuple[str, ...]:
        """The paths of the files that hold only tests, sorted."""
        return tuple(sorted(path for path in self.files if path.endswith(TESTS)))


class TextsOrigin(Texts):
    """The files of PolicyTexts, under the names that users know. A text that is no policy is a diagnostic, as where it
    is read from a file."""

    def __init__(self, files: Mapping[str, str], shown: str) -> None:
        super().__init__({})
        self._read = {path: source_of(text, shown_as(shown, path)) for path, text in files.items() if _is_policy(path)}

    def read(self, path: str) -> Source | Diagnostic | None:
        return self._read.get(path)

    def files(self) -> Iterator[str]:
        return iter(sorted(self._read))


def shown_as(shown: str, path: str) -> str:
    """The name of a file in diagnostics."""
    if not shown or shown.endswith(":"):
        return shown + path
    return path if shown == "." else str(PurePosixPath(shown) / path)


def _is_policy(path: str) -> bool:
    return path.endswith(".ksp")


def _digest(files: Mapping[str, str], roots: tuple[str, ...], legacy: str) -> str:
    digest = sha256()
    named = [part for path, text in sorted(files.items()) for part in (path, text)]
    for part in (*named, legacy, *roots):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
