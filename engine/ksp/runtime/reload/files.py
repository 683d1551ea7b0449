"""Reading the files of a policy: what they are, how large they may be, what cannot be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ksp.policy.texts import shown_as
from ksp.runtime.reload.gathering import named
from ksp.runtime.reload.source import MAX_BYTES, MAX_FILES, SourceError
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.reading import MAX_FILE_BYTES
from ksp.source.text import Source, Span

MAX_OTHER_BYTES: Final = 1024 * 1024
"""What a file that is no policy may measure: a legacy Policy, or objects of tests."""

Mark = tuple[int, int, int, int] | None
"""What tells a file from another one, and from itself after a change; None if there is none."""


class Files:
    """The texts that were read below a folder, by path. `shown` is put before a path to name it to the user."""

    def __init__(self, folder: Path, shown: str) -> None:
        self._folder = folder
        self._shown = shown
        self._texts: dict[str, str] = {}
        self._marks: dict[str, Mark] = {}
        self._wrong: list[Diagnostic] = []
        self._bytes = 0

    @property
    def looked_for(self) -> tuple[str, ...]:
        """What was read, and what is not there, but may be one day."""
        return tuple(self._marks)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Of all these, from just before they were read."""
        return tuple(self._marks.values())

    def complete(self) -> dict[str, str]:
        """All texts. Raises SourceError if one cannot be read that is needed."""
        if self._wrong:
            raise SourceError(diagnostics=self._wrong)
        return self._texts

    def look_for(self, path: str) -> None:
        """What is there is no file, and may be one some day."""
        self._marks[path] = mark_of(self._folder / path)

    def add(self, path: str, *, needed: bool = True) -> None:
        """A file, and all that it names, and so on. Raises SourceError where all together are too much."""
        pending = [path]
        while pending:
            current = pending.pop()
            if current in self._marks:
                continue
            text = self._read(current, needed=needed and current == path)
            if text is not None:
                self._texts[current] = text
                pending += named(text, current) if current.endswith(".ksp") else ()

    def _read(self, path: str, *, needed: bool) -> str | None:
        """None for one that cannot be read. One that is not there is no mistake unless it is `needed`: the checker says
        of an import that it is missing."""
        target = self._folder / path
        self._marks[path] = mark_of(target)
        if self._marks[path] is None and not needed:
            return None
        if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(self._folder)):
            return self._refuse(path, "cannot read the file: it is a link out of the folder", silent=not needed)
        content, why = _content(target, MAX_FILE_BYTES if path.endswith(".ksp") else MAX_OTHER_BYTES)
        if why:
            return self._refuse(path, f"cannot read the file: {why}")
        self._bytes += len(content)
        if self._bytes > MAX_BYTES:
            raise SourceError(f"the files of the policy are larger than {MAX_BYTES // 2**20} MiB all together")
        if len(self._texts) >= MAX_FILES:
            raise SourceError(f"the policy has more than {MAX_FILES} files")
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            return self._refuse(path, f"the file is not UTF-8 text: line {line}", "KSP0103")

    def _refuse(self, path: str, message: str, code: str = "KSP0101", *, silent: bool = False) -> str | None:
        """There is no text, and why."""
        if not silent:
            self._wrong.append(refusal(shown_as(self._shown, path), message, code))
        return None


def marks_of(folder: Path, paths: Iterable[str]) -> tuple[Mark, ...]:
    """Of files below a folder, as they are now."""
    return tuple(mark_of(folder / path) for path in paths)


def mark_of(path: Path) -> Mark:
    """Links are followed."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def refusal(name: str, message: str, code: str = "KSP0101") -> Diagnostic:
    """Of a file that is not quoted."""
    return Diagnostic(code, Severity.ERROR, message, Span(Source(name, ""), 0, 0))


def _content(path: Path, most: int) -> tuple[bytes, str]:
    """The bytes, or why they cannot be had. A pipe or a device is not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(handle).st_mode
            if not stat.S_ISREG(mode):
                return b"", "it is a directory" if stat.S_ISDIR(mode) else "it is a pipe or a device"
            with open(handle, "rb", closefd=False) as file:
                content = file.read(most + 1)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return b"", f"{reason[:1].lower()}{reason[1:]}"
    return (content, "") if len(content) <= most else (b"", f"it is larger than {most // 1024} KiB")
