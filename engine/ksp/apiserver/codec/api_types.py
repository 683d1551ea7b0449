"""The types of the Kubernetes API as a table: which fields there are, of what type, and how a patch joins their items.

Read from `data/types.txt`, whose head explains the form. What clients send is judged by `codec`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

SCALARS: Final = frozenset(
    ("string", "bool", "int32", "int64", "float64", "bytes", "quantity", "time", "microtime", "intstr", "raw")
)

SERVED_AS: Final = {
    f"{group}.v1beta1": f"{group}.v1"
    for group in ("batch", "coordination", "discovery", "events", "node", "policy", "rbac", "scheduling", "storage")
}
"""Group versions whose types are those of another one, as far as they are read here."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of SCALARS."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: "Type"


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys."""

    value: "Type"


@dataclass(frozen=True, slots=True)
class StructRef:
    """A struct by its id in the table, `core.v1.PodSpec`."""

    id: str


Type = Scalar | ListOf | MapOf | StructRef


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    name: str
    type: Type
    pointer: bool
    """Whether a zero is a value like any other (a pointer to a scalar in Go)."""
    always: bool
    """Whether it is written even without a value."""
    merge: bool
    merge_key: str
    """Of the items of a list that is merged; empty for a list of scalars."""
    retain_keys: bool

    @property
    def go_name(self) -> str:
        """`Spec` of `spec`; metadata is embedded in Go."""
        return _GO_NAMES.get(self.name) or self.name[:1].upper() + self.name[1:]


_GO_NAMES: Final = {
    "metadata": "ObjectMeta",
    "apiVersion": "APIVersion",
    "uid": "UID",
    "httpGet": "HTTPGet",
    "tcpSocket": "TCPSocket",
}


@dataclass(frozen=True, slots=True)
class Struct:
    """A type with fields, in the order in which they are written."""

    id: str
    fields: Mapping[str, Field]

    @property
    def name(self) -> str:
        """`PodSpec`."""
        return self.id.rpartition(".")[2]

    @property
    def go_type(self) -> str:
        """`v1.PodSpec`."""
        return ".".join(self.id.split(".")[-2:])


Types = Mapping[str, Struct]


@cache
def types_of(minor: int) -> Types:
    """All structs with the fields that version 1.`minor` has, by id."""
    structs: dict[str, Struct] = {}
    fields: dict[str, Field] = {}
    text = files("ksp.apiserver").joinpath("data/types.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        name, *words = line.split()
        if not words:
            fields = {}
            structs[name] = Struct(name, fields)
        elif _since(words) <= minor:
            fields[name] = _field(name, words, minor)
    return structs


@cache
def find(group: str, version: str, kind: str, minor: int) -> Struct | None:
    """The type of a kind, None for a kind that the table does not have."""
    prefix = f"{group.partition('.')[0] or 'core'}.{version}"
    return types_of(minor).get(f"{SERVED_AS.get(prefix, prefix)}.{kind}")


def _since(words: list[str]) -> int:
    return next((int(word[6:]) for word in words if word.startswith("since=")), 0)


def _field(name: str, words: list[str], minor: int) -> Field:
    type_text, *marks = words
    merge = next((mark for mark in marks if mark.partition("=")[0] == "merge"), "")
    return Field(
        name=name,
        type=_type(type_text.removeprefix("*")),
        pointer=type_text.startswith("*"),
        always="!" in marks or f"!{minor}" in marks,
        merge=bool(merge),
        merge_key=merge.partition("=")[2],
        retain_keys="retainKeys" in marks,
    )


def _type(text: str) -> Type:
    if text.startswith("[]"):
        return ListOf(_type(text[2:]))
    if text.startswith("map:"):
        return MapOf(_type(text[4:]))
    return Scalar(text) if text in SCALARS else StructRef(text)
