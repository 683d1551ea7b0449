"""Which fields of a pod are to be compared, so that pods with equal ones have equal keys for certain rules.

A footprint names what a rule reads by paths: `spec.tolerations`, `requests["cpu"]`. Compared are whole fields: of the
pod, or of its `metadata`, `spec` or `status`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final

import msgspec

from ksp.check.schema import fields_of
from ksp.check.types import Struct
from ksp.compile.tables import identity
from ksp.model.info import PodInfo

# Fields in which pods of one controller tend to differ. Rules that read the same ones of these are looked up together,
# so that a pod of a known kind with a name, a label or a claim of its own costs those rules only that read it.
OWN: Final = frozenset(
    {"metadata", "name", "uid", "labels", "annotations", "status", "spec.volumes", "claimNames", "spec.affinity"}
)
_NESTED: Final = frozenset({"metadata", "spec", "status"})
_WHOLE: Final = frozenset({"*", "node"})

_ENCODER: Final = msgspec.msgpack.Encoder()


def compared(paths: Iterable[str]) -> frozenset[str]:
    """The fields to compare, of which the paths lead to parts."""
    return frozenset(_field(path) for path in paths)


def _field(path: str) -> str:
    head, *rest = path.split("[", maxsplit=1)[0].split(".")
    return f"{head}.{rest[0]}" if head in _NESTED and rest else head


def own_of(fields: Iterable[str]) -> frozenset[str]:
    """Those in which pods that are otherwise alike tend to differ."""
    return frozenset(field for field in fields if field in OWN or field.split(".", maxsplit=1)[0] == "metadata")


def fingerprint_of(fields: frozenset[str]) -> Callable[[PodInfo], bytes]:
    """What gives equal bytes only for pods that have equal fields."""
    encode = _ENCODER.encode
    if not fields:
        return lambda _: b""
    if fields & _WHOLE:
        return lambda pod: encode((identity(pod), *_derived(pod)))
    values = attrgetter(*sorted(_attribute(field) for field in fields))
    return lambda pod: encode(values(pod))


def _derived(pod: PodInfo) -> tuple[Any, ...]:
    """What a pod has that is not in the object of the API, or is followed from more than that."""
    return pod.requests, pod.nonzero_requests, pod.host_ports


def _attribute(field: str) -> str:
    """The Python attributes that lead to a field."""
    owner, path = "Pod", list[str]()
    for name in field.split("."):
        info = fields_of(owner)[name]
        path += info.path
        owner = info.type.name if isinstance(info.type, Struct) else ""
    return ".".join(path)
