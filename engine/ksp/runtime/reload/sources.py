"""Policies in files: a file with what it imports, a folder, a legacy Policy.

All texts are of one moment. The kubelet changes a mounted ConfigMap by renaming a link, `..data`, to another folder;
other tools do the same with the folder itself. So links to the folder are followed once, everything is read below their
end, and then it is looked whether that is still where they lead, and whether any file is another one than before. If
so, all is read again.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Hashable
from pathlib import Path
from typing import Final

from ksp.policy.texts import TESTS, PolicyTexts
from ksp.runtime.reload.files import Files, marks_of, refusal
from ksp.runtime.reload.source import MAX_FILES, SourceError

DATA: Final = "..data"
"""The link in a mounted ConfigMap that says which of its folders is the present one."""
ATTEMPTS: Final = 5


class _Source(ABC):
    """What all of them share: reading until nothing changed meanwhile."""

    kind = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.read_at: Hashable = None
        self.texts: PolicyTexts | None = None
        self._looked_for: tuple[str, ...] = ()

    def read(self) -> PolicyTexts:
        """The texts as they are now, all of one moment. Raises SourceError."""
        try:
            return self._read()
        except OSError as error:
            self.read_at = self.marks()
            place = error.filename if isinstance(error.filename, str) else self.name
            raise SourceError(f"{place}: cannot be read: {error.strerror or error}") from error

    def marks(self) -> Hashable:
        """Where the files are, which there are, and what tells each from others; or why that cannot be told."""
        try:
            folder, listed = self._place()
            return str(folder), listed, marks_of(folder, self._looked_for)
        except OSError as error:
            return error.errno

    def _read(self) -> PolicyTexts:
        for _ in range(ATTEMPTS):
            folder, listed = self._place()
            files = Files(folder, self._shown())
            texts, error = None, None
            try:
                texts = self._texts(files, listed)
            except SourceError as found:
                error = found
            self._looked_for = files.looked_for
            self.read_at = str(folder), listed, files.marks
            if self.marks() != self.read_at:
                continue
            if error is not None:
                raise error
            assert texts is not None
            self.texts = texts
            return texts
        raise SourceError(f"{self.name}: the files change all the time")

    @abstractmethod
    def _place(self) -> tuple[Path, tuple[str, ...]]:
        """The folder, links followed, and the files in it that count."""

    def _shown(self) -> str:
        parent = str(Path(self.name).parent)
        return "" if parent == "." else parent

    @abstractmethod
    def _texts(self, files: Files, listed: tuple[str, ...]) -> PolicyTexts:
        """What is read below that folder. Raises SourceError."""


class FileSource(_Source):
    """`--policy-file`: a file, what it imports beside and below it, and the tests beside it (`NAME.test.ksp`)."""

    kind = "file"

    def _place(self) -> tuple[Path, tuple[str, ...]]:
        return _file_at(Path(self.name))

    def _texts(self, files: Files, listed: tuple[str, ...]) -> PolicyTexts:
        (file,) = listed
        if Path(self.name).is_dir():
            files.look_for(file)
            raise SourceError(f"{self.name} is a folder: name it with --policy-dir")
        if not file.endswith(".ksp"):
            other = "a KubeSchedulerConfiguration goes with --config, a Policy with --policy-config-file"
            raise SourceError(f"{self.name} is no policy, whose name ends in .ksp: {other}")
        files.add(file)
        if not file.endswith(TESTS):
            files.add(f"{file.removesuffix('.ksp')}{TESTS}", needed=False)
        return PolicyTexts(self.name, files.complete(), (file,), shown=self._shown())


class FolderSource(_Source):
    """`--policy-dir`: all *.ksp below a folder, and what their tests name. A mounted ConfigMap is such a folder."""

    kind = "folder"

    def _place(self) -> tuple[Path, tuple[str, ...]]:
        folder = _present(Path(self.name))
        return folder, _policies_below(folder)

    def _shown(self) -> str:
        return self.name

    def _texts(self, files: Files, listed: tuple[str, ...]) -> PolicyTexts:
        if Path(self.name).is_file():
            raise SourceError(f"{self.name} is not a folder: name a file with --policy-file")
        try:
            os.scandir(self.name).close()
        except OSError as error:
            found = refusal(self.name, f"cannot read the folder: {error.strerror}")
            raise SourceError(diagnostics=[found]) from None
        roots = tuple(each for each in listed if not each.endswith(TESTS))
        if not roots:
            raise SourceError(diagnostics=[refusal(self.name, "there is no policy (`*.ksp`) in this folder")])
        for each in listed:
            files.add(each)
        return PolicyTexts(self.name, files.complete(), roots, shown=self.name)


class LegacyFileSource(_Source):
    """`--policy-config-file`: a Policy of kube-scheduler, JSON or YAML."""

    kind = "legacy file"

    def _place(self) -> tuple[Path, tuple[str, ...]]:
        return _file_at(Path(self.name))

    def _texts(self, files: Files, listed: tuple[str, ...]) -> PolicyTexts:
        (file,) = listed
        files.add(file)
        return PolicyTexts(self.name, files.complete(), (), legacy=file, shown=self._shown())


# ---- where files are


def _file_at(path: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder that a file lies in, and its name there. Of a link to elsewhere, what it imports lies there."""
    folder = _present(path.parent)
    real = Path(os.path.realpath(path))
    if (folder / path.name).exists() and Path(os.path.realpath(folder / path.name)) == real:
        path = folder / path.name
    if real.exists() and not real.is_relative_to(Path(os.path.realpath(path.parent))):
        path = real
    return path.parent, (path.name,)


def _present(folder: Path) -> Path:
    """Where the files of a folder are at the moment."""
    data = folder / DATA
    return Path(os.path.realpath(data if data.is_symlink() else folder))


def _policies_below(folder: Path) -> tuple[str, ...]:
    """The paths of all *.ksp, sorted, without hidden ones; not all if there are more than there may be. Raises OSError
    for a folder below that cannot be looked into: without its policies the rest would be another policy."""

    def refused(error: OSError) -> None:
        if error.filename != str(folder):
            raise error

    found: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=refused):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        below = Path(parent).relative_to(folder)
        found += [(below / each).as_posix() for each in sorted(names) if each.endswith(".ksp") and each[0] != "."]
        if len(found) > MAX_FILES:
            break
    return tuple(sorted(found))
