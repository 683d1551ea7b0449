"""Where manifests and traces come from: files, folders and standard input; and the error that names a place in them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 64 * 1024 * 1024
"""What one text may measure."""

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


class ManifestError(Exception):
    """A file that cannot be read, or an object in it that is not valid. `line` 0 and `field` "" stand for none."""

    def __init__(self, file: str, line: int, field: str, message: str) -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {field}: {message}" if field else f"{place}: {message}")
        self.file = file
        self.line = line
        self.field = field
        self.message = message


def texts(path: str, stdin: BinaryIO | None) -> Iterator[tuple[str, bytes]]:
    """The texts that a path stands for, with the names that users see: `-` is standard input."""
    if path == "-":
        if stdin is None:
            raise ManifestError("-", 0, "", "there is no standard input")
        yield "<stdin>", stdin.read(MAX_BYTES + 1)
        return
    for file in _files(Path(path)):
        yield str(file), read_bytes(file)


def _files(path: Path) -> list[Path]:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ManifestError(str(path), 0, "", "there is no such file or folder") from None
    except OSError as error:
        raise ManifestError(str(path), 0, "", f"cannot be read: {error.strerror}") from None
    if not stat.S_ISDIR(mode):
        return [path]
    found = sorted(file for file in path.rglob("*") if _is_manifest(file) and _visible(file.relative_to(path)))
    if not found:
        raise ManifestError(str(path), 0, "", "no *.yaml, *.yml or *.json in this folder")
    return found


def _is_manifest(file: Path) -> bool:
    return file.suffix in _SUFFIXES and not file.is_dir()


def _visible(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts)


def read_bytes(file: Path) -> bytes:
    """The content of a file, of too large a one just enough to tell. Raises ManifestError."""
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ManifestError(str(file), 0, "", f"cannot be read: {error.strerror}") from None
