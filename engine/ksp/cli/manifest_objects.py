"""Objects of any kind from files, as they stand there, each with its file and line; called by `ksp apiserver`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from ksp.sim.documents import read_documents
from ksp.sim.texts import ManifestError, texts
from ksp.source.yaml_values import TextError


@dataclass(frozen=True, slots=True)
class Found:
    """One object, and where it starts."""

    file: str
    line: int
    value: dict[str, Any]

    def error(self, message: str) -> ManifestError:
        """That something is wrong with it."""
        meta = self.value.get("metadata")
        name = meta.get("name", "") if isinstance(meta, dict) else ""
        kind = self.value.get("kind", "object")
        return ManifestError(self.file, self.line, "", f"{kind} {name}: {message}")


def objects(paths: Iterable[str], stdin: BinaryIO) -> Iterator[Found]:
    """Those of files, folders and `-`; lists are taken apart. Raises ManifestError."""
    for path in paths:
        for file, data in texts(path, stdin):
            try:
                documents = read_documents(data)
            except TextError as error:
                raise ManifestError(file, error.line, "", error.message) from None
            for document in documents:
                yield from _listed(Found(file, document.line, _object(document.value, file, document.line)), document)


def _object(value: object, file: str, line: int) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ManifestError(file, line, "", "not an object with kind and apiVersion")


def _listed(found: Found, document: object) -> Iterator[Found]:
    """The object itself, or if it is a list those in it; items of a PodList need not say that they are pods."""
    kind, items = found.value.get("kind"), found.value.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and "items" in found.value):
        yield found
        return
    if items is not None and not isinstance(items, list):
        raise found.error("its items are not a list")
    lines: tuple[int, ...] = getattr(document, "item_lines", ())
    implied = {"kind": kind.removesuffix("List"), "apiVersion": found.value.get("apiVersion")} if kind != "List" else {}
    for index, item in enumerate(items or ()):
        line = lines[index] if index < len(lines) else found.line
        value = {**implied, **_object(item, found.file, line)}
        yield from _listed(Found(found.file, line, value), None)
