"""Kubernetes objects from files: manifests, and what `kubectl get -o yaml` or `-o json` prints.

`load` reads files, folders (all *.yaml, *.yml and *.json below, in order, without hidden ones) and `-` (standard
input). A text may hold several documents, and lists of objects. What is not valid raises `ManifestError`, which
names file, line and field, or is collected where the caller asks to go on without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from ksp.model.decode import CLUSTER_SCOPED, KINDS, DecodeError, convert, kind_of
from ksp.model.policy import PodDisruptionBudget, as_in_v1
from ksp.sim.documents import field_lines, read_documents
from ksp.sim.texts import ManifestError, texts
from ksp.sim.validation import first_mistake
from ksp.source.yaml_values import TextError, ValuePath

__all__ = ["TEMPLATES", "Loaded", "ManifestError", "Manifests", "load", "load_text"]

TEMPLATES = frozenset(
    {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob", "PodTemplate"}
)
"""Kinds whose pods a controller makes; here they are counted, and no pods are made from them."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One object, with the file and line where it starts; `has_status` if it says what became of it."""

    kind: str
    namespace: str
    name: str
    value: msgspec.Struct
    file: str
    line: int
    has_status: bool = False


@dataclass(slots=True)
class Manifests:
    """What was read, in order: `objects`, how many of each kind are not scheduled here (templates) or not known, and
    the mistakes, if the caller asked to go on without those objects.
    """

    objects: list[Loaded] = field(default_factory=list)
    templates: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    invalid: list[ManifestError] = field(default_factory=list)


def load(paths: Iterable[str], *, stdin: BinaryIO | None = None, skip_invalid: bool = False) -> Manifests:
    """Reads all of `paths`. Raises ManifestError for the first mistake; with `skip_invalid` goes on without what is not
    valid (an object, or a text that cannot be parsed), and raises only for a path that cannot be read.
    """
    reading = _Reading(skip_invalid)
    for path in paths:
        for name, data in texts(path, stdin):
            reading.text(name, data)
    return reading.result


def load_text(name: str, text: str) -> Manifests:
    """The same of a text in memory. Raises ManifestError for the first mistake."""
    reading = _Reading(skip_invalid=False)
    reading.text(name, text.encode("utf-8", "surrogatepass"))
    return reading.result


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A value that should be an object: its place in the text, and the kind that the list around it implies."""

    path: ValuePath
    line: int
    value: object
    implied: str = ""


@dataclass(frozen=True, slots=True)
class _Mistake:
    """What is wrong with a candidate."""

    candidate: _Candidate
    error: DecodeError

    @property
    def path(self) -> ValuePath:
        return (*self.candidate.path, *self.error.steps)


def _candidates(data: bytes) -> Iterator[_Candidate]:
    for document in read_documents(data):
        whole = _Candidate((document.number,), document.line, document.value)
        yield from _listed(whole, document.item_lines)


def _listed(whole: _Candidate, lines: tuple[int, ...] = ()) -> Iterator[_Candidate]:
    """The candidate itself, or if it is a list those in it, and so on: `kubectl` flattens lists of lists."""
    match whole.value:
        case {"kind": str(kind), "items": None} if kind.endswith("List"):
            return
        case {"kind": str(kind), "items": list(items)} if kind.endswith("List"):
            for i, item in enumerate(items):
                line = lines[i] if i < len(lines) else whole.line
                yield from _listed(_Candidate((*whole.path, "items", i), line, item, kind.removesuffix("List")))
        case _:
            yield whole


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    skip_invalid: bool
    result: Manifests = field(default_factory=Manifests)
    seen: dict[tuple[str, str, str], Loaded] = field(default_factory=dict)

    def text(self, file: str, data: bytes) -> None:
        """Takes the objects of one text."""
        mistakes: list[_Mistake] = []
        try:
            for candidate in _candidates(data):
                try:
                    self._take(candidate, file)
                except DecodeError as error:
                    mistakes.append(_Mistake(candidate, error))
                    if not self.skip_invalid:
                        break
        except TextError as error:
            self._report(ManifestError(file, error.line, "", error.message))
        for mistake in _located(file, data, mistakes):
            self._report(mistake)

    def _report(self, error: ManifestError) -> None:
        if not self.skip_invalid:
            raise error
        self.result.invalid.append(error)

    def _take(self, candidate: _Candidate, file: str) -> None:
        """Decodes one object, or counts it."""
        kind, version, fields = _kind(candidate)
        struct = kind_of(version, kind) if version else KINDS.get(kind)
        if kind in TEMPLATES:
            self.result.templates[kind] += 1
        if struct is not None:
            self._decode(candidate, kind, version, struct, fields, file)
        elif kind not in TEMPLATES:
            self.result.unknown[_full_kind(version, kind)] += 1

    def _decode(
        self, candidate: _Candidate, kind: str, version: str, struct: type[msgspec.Struct], fields: dict[str, object],
        file: str,
    ) -> None:  # fmt: skip
        namespace, name = _identity(kind, fields)
        first = self.seen.get((kind, namespace, name))
        if first:
            full = f"{namespace}/{name}" if namespace else name
            message = f"{kind} {full} stands twice: first at {first.file}:{first.line}"
            raise DecodeError(("metadata", "name"), message)
        value = convert(struct, _placed(fields, namespace, name))
        mistake = first_mistake(value)
        if mistake is not None:
            raise mistake
        if isinstance(value, PodDisruptionBudget):
            value = as_in_v1(value, version)
        loaded = Loaded(kind, namespace, name, value, file, candidate.line, bool(fields.get("status")))
        self.seen[kind, namespace, name] = loaded
        self.result.objects.append(loaded)


def _kind(candidate: _Candidate) -> tuple[str, str, dict[str, object]]:
    """The kind of an object, its apiVersion ("" if it has none, as in the items of a PodList), and its fields."""
    if not isinstance(candidate.value, dict):
        raise DecodeError((), "not a Kubernetes object: a map with `kind` and `metadata` is expected")
    kind = candidate.value.get("kind") or candidate.implied
    version = candidate.value.get("apiVersion") or ""
    if not kind:
        raise DecodeError(("kind",), "missing")
    if not isinstance(kind, str):
        raise DecodeError(("kind",), "text is expected")
    if not isinstance(version, str):
        raise DecodeError(("apiVersion",), "text is expected")
    if kind.endswith("List") and "items" in candidate.value:
        raise DecodeError(("items",), "a list is expected")
    return kind, version, candidate.value


def _full_kind(version: str, kind: str) -> str:
    """The kind with its group, where it has one."""
    group = version.rpartition("/")[0]
    return f"{kind}.{group}" if group else kind


def _identity(kind: str, fields: dict[str, object]) -> tuple[str, str]:
    """The namespace of an object ("" if its kind has none), and its name."""
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise DecodeError(("metadata",), "a map is expected")
    name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
    if name in (None, ""):
        hint = " (`generateName` needs an API server)" if metadata.get("generateName") else ""
        raise DecodeError(("metadata", "name"), f"missing{hint}")
    if not isinstance(name, str):
        raise DecodeError(("metadata", "name"), "text is expected; put it in quotes")
    if not isinstance(namespace, str):
        raise DecodeError(("metadata", "namespace"), "text is expected; put it in quotes")
    return ("" if kind in CLUSTER_SCOPED else namespace), name


def _placed(fields: dict[str, object], namespace: str, name: str) -> dict[str, object]:
    """The same object with its namespace written out, and with a uid: namespace and name, where it has none."""
    metadata = fields["metadata"]
    assert isinstance(metadata, dict)
    uid = metadata.get("uid") or (f"{namespace}/{name}" if namespace else name)
    return {**fields, "metadata": {**metadata, "namespace": namespace, "uid": uid}}


def _located(file: str, data: bytes, mistakes: list[_Mistake]) -> Iterator[ManifestError]:
    """The mistakes of a text with the lines of their fields, looked up in one go."""
    lines = field_lines(data, [mistake.path for mistake in mistakes]) if mistakes else {}
    for mistake in mistakes:
        line = max(lines[mistake.path], mistake.candidate.line)
        field_path = mistake.error.path.removeprefix("$").removeprefix(".")
        yield ManifestError(file, line, field_path, mistake.error.message)
