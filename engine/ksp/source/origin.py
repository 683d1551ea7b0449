"""Where policy files come from: a folder, a set of named texts (the keys of a ConfigMap), the shipped library.

An import names a file of the same origin, seen from the importing file, or, with `ksp:`, of the shipped library;
nothing else can be reached: no absolute path, no `..`, no link that leaves the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol

from ksp.source.diagnostic import Diagnostic
from ksp.source.reading import read_source
from ksp.source.text import Source

SHIPPED = "ksp:"
SHIPPED_ROOT = Path(__file__).parent.parent / "policies"


class Origin(Protocol):
    """A tree of files by relative path, with `/` between the parts."""

    def read(self, path: str) -> Source | Diagnostic | None:
        """The file; None if there is none; a diagnostic if it cannot be read as text."""
        ...

    def files(self) -> Iterator[str]:
        """The paths of all policy files, sorted."""
        ...


class Texts:
    """Policy files in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._sources = {name: Source(name, text) for name, text in texts.items()}

    def read(self, path: str) -> Source | Diagnostic | None:
        return self._sources.get(path)

    def files(self) -> Iterator[str]:
        return iter(sorted(self._sources))


class Folder:
    """Policy files below a folder. `shown` is put before a path to name it to the user."""

    def __init__(self, root: Path, shown: str | None = None) -> None:
        self.root = root
        self.shown = str(root) if shown is None else shown

    def read(self, path: str) -> Source | Diagnostic | None:
        target = self.root / path
        try:
            inside = target.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError, ValueError):
            return None
        if not inside or not target.is_file():
            return None
        return read_source(target, shown=self._name(path))

    def _name(self, path: str) -> str:
        if self.shown.endswith(":"):
            return self.shown + path
        return path if self.shown in ("", ".") else str(PurePosixPath(self.shown) / path)

    def files(self) -> Iterator[str]:
        found = (p.relative_to(self.root) for p in self.root.rglob("*.ksp") if p.is_file())
        return iter(sorted(p.as_posix() for p in found if not any(part.startswith(".") for part in p.parts)))


def shipped() -> Folder:
    """The policies that come with ksp."""
    return Folder(SHIPPED_ROOT, SHIPPED)


def resolve(path: str, importer: str) -> tuple[str, str]:
    """The key of an imported file, and why it cannot be imported ("" if it can). Keys of the shipped library start
    with `ksp:`."""
    scheme = SHIPPED if path.startswith(SHIPPED) or importer.startswith(SHIPPED) else ""
    rest = path.removeprefix(SHIPPED)
    pure = PurePosixPath(rest)
    if not rest or pure.is_absolute() or "\\" in rest or ":" in rest or "\0" in rest:
        return "", "it is not a relative path with `/`"
    if ".." in pure.parts:
        return "", "`..` leaves the folder"
    if pure.suffix != ".ksp":
        return "", "it does not end in `.ksp`"
    base = PurePosixPath() if path.startswith(SHIPPED) else PurePosixPath(importer.removeprefix(SHIPPED)).parent
    return scheme + str(base / pure), ""
