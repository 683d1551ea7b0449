"""The wire format of extenders: k8s.io/kube-scheduler/extender/v1.

Its Go types have no JSON tags. So names of fields are those of Go (`Pod`, `NodeNames`, `FailedNodes`), and absent
pointers are sent as null. Pods and nodes in them are as the API server wrote them: bytes that nobody here looks into.

Answers are read as Go reads them: names of fields in any case, of several the last, unknown ones skipped, null like
absent. What Go would refuse (a text for a number, 5.0 for an integer) is refused. The names of nodes are keys of maps,
and exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeVar

import msgspec

from ksp.model.int64 import MAX, MIN

T = TypeVar("T")

Fields = Mapping[str, msgspec.Raw]
Int64 = Annotated[int, msgspec.Meta(ge=MIN, le=MAX)]

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)
_TEXT: Final = msgspec.json.Decoder(str | None)
_TEXTS: Final = msgspec.json.Decoder(list[str | None] | None)
_REASONS: Final = msgspec.json.Decoder(dict[str, str | None] | None)
_NUMBER: Final = msgspec.json.Decoder(Int64 | None)


class _Meta(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Node(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta = _Meta()


class _Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: dict[str, msgspec.Raw] | None = None
    items: tuple[_Node, ...] | None = None


class _Filtered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """ExtenderFilterResult as Go programs write it."""

    Nodes: _Nodes | None = None
    NodeNames: tuple[str, ...] | None = None
    FailedNodes: dict[str, str] | None = None
    FailedAndUnresolvableNodes: dict[str, str] | None = None
    Error: str = ""


_FILTERED: Final = msgspec.json.Decoder(_Filtered)
_encode = msgspec.json.encode


class MalformedAnswerError(ValueError):
    """An answer is not what the wire format says; the text says where."""


@dataclass(frozen=True, slots=True)
class NodeBodies:
    """Nodes that an extender is asked about: their names; and, for one that keeps no nodes itself, `items`, the JSON of
    each, with commas between them."""

    names: Sequence[str]
    items: bytes | None = None


@dataclass(frozen=True, slots=True)
class VictimBodies:
    """Who would have to leave a node: their uids; and, for an extender that keeps no pods itself, their JSON."""

    uids: Sequence[str]
    violations: int
    pods: Sequence[bytes] | None = None


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The nodes that are left, by name, and why others are not; `error` is why there is no answer."""

    names: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Removal:
    """Who has to leave a node, by uid, and how many of them violate disruption budgets."""

    uids: tuple[str, ...]
    violations: int


# ---- what is sent


def extender_args(pod: bytes, nodes: NodeBodies) -> bytes:
    """ExtenderArgs: for the verbs that filter and prioritize."""
    if nodes.items is None:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, _encode(list(nodes.names)))
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, nodes.items)


def preemption_args(pod: bytes, victims: Mapping[str, VictimBodies], *, by_uid: bool) -> bytes:
    """ExtenderPreemptionArgs: the victims by node, as uids or whole."""
    entries = b",".join(
        b'%b:{"Pods":[%b],"NumPDBViolations":%d}' % (_encode(name), _victims(each, by_uid=by_uid), each.violations)
        for name, each in victims.items()
    )
    one, other = (b"NodeNameToMetaVictims", b"NodeNameToVictims") if by_uid else (
        b"NodeNameToVictims", b"NodeNameToMetaVictims",
    )  # fmt: skip
    return b'{"Pod":%b,"%b":{%b},"%b":null}' % (pod, one, entries, other)


def _victims(victims: VictimBodies, *, by_uid: bool) -> bytes:
    if by_uid:
        return b",".join(b'{"UID":%b}' % _encode(uid) for uid in victims.uids)
    return b",".join(victims.pods or ())


def binding_args(name: str, namespace: str, uid: str, node: str) -> bytes:
    """ExtenderBindingArgs."""
    return _encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


# ---- what is answered


def read_filter(body: bytes, *, by_name: bool) -> FilterResult:
    """ExtenderFilterResult. Which nodes are left an extender that is asked `by_name` says by names, else by nodes, and
    any other by nodes alone; where that is absent, none are. That one of the others names nodes and shows none cannot
    be meant, and is malformed; kube-scheduler takes it for none."""
    try:
        usual = _usual(_FILTERED.decode(body), by_name=by_name)
    except (msgspec.DecodeError, ValueError, RecursionError):
        usual = None
    return _read_filter(body, by_name=by_name) if usual is None else usual


def _usual(found: _Filtered, *, by_name: bool) -> FilterResult | None:
    """Answers with the names that Go programs write are read at once: of 5,000 nodes in a quarter of the time. None if
    a node has no name so, or there is something wrong."""
    if found.Error:
        return FilterResult(error=found.Error)
    names = found.NodeNames if by_name else None
    if names is None:
        if found.Nodes is None and found.NodeNames:
            return None
        items = found.Nodes.items if found.Nodes is not None else None
        names = tuple([node.metadata.name for node in items or ()])
        if not all(names):
            return None
    return FilterResult(names, found.FailedNodes or {}, found.FailedAndUnresolvableNodes or {})


def _read_filter(body: bytes, *, by_name: bool) -> FilterResult:
    found = _fields(body, "the answer")
    error = _text(found, "Error")
    if error:
        return FilterResult(error=error)
    return FilterResult(
        _node_names(found, by_name=by_name),
        _reasons(found, "FailedNodes"),
        _reasons(found, "FailedAndUnresolvableNodes"),
    )


def _node_names(found: Fields, *, by_name: bool) -> Sequence[str]:
    names = _get(found, "NodeNames", _TEXTS)
    if by_name and names is not None:
        return tuple(name or "" for name in names)
    nodes = found.get("nodes")
    if names and (nodes is None or bytes(nodes) == b"null"):
        raise MalformedAnswerError("it has NodeNames and no Nodes, which it may if it is nodeCacheCapable")
    items = None if nodes is None else _get(_fields(nodes, "Nodes"), "items", _LIST)
    return () if items is None else tuple(map(_name_of, items))


def _name_of(node: msgspec.Raw) -> str:
    metadata = _fields(node, "a node").get("metadata")
    return "" if metadata is None else _text(_fields(metadata, "a node's metadata"), "name")


def read_priorities(body: bytes) -> Mapping[str, int]:
    """HostPriorityList: scores by node. Of a node that is named more than once they are added up, as kube-scheduler
    does."""
    scores: dict[str, int] = {}
    for entry in _decode(_LIST, body, "the answer") or ():
        found = _fields(entry, "a host's priority")
        host = _text(found, "Host")
        scores[host] = scores.get(host, 0) + (_get(found, "Score", _NUMBER) or 0)
    return scores


def read_preemption(body: bytes) -> Mapping[str, Removal]:
    """ExtenderPreemptionResult: who has to leave which node."""
    nodes = _get(_fields(body, "the answer"), "NodeNameToMetaVictims", _FIELDS)
    return {name: _removal(name, raw) for name, raw in (nodes or {}).items()}


def _removal(name: str, raw: msgspec.Raw) -> Removal:
    if bytes(raw) == b"null":
        raise MalformedAnswerError(f"NodeNameToMetaVictims has null for the node {name}")
    found = _fields(raw, "NodeNameToMetaVictims")
    pods = _get(found, "Pods", _LIST) or ()
    return Removal(tuple(_text(_fields(pod, "Pods"), "UID") for pod in pods), _number(found, "NumPDBViolations"))


def read_binding(body: bytes) -> str:
    """ExtenderBindingResult: why the pod was not bound; "" if it was."""
    return _text(_fields(body, "the answer"), "Error")


# ---- fields in any case


def _fields(raw: bytes | msgspec.Raw, where: str) -> Fields:
    found = _decode(_FIELDS, raw, where)
    return {name.lower(): value for name, value in (found or {}).items()}


def _get(found: Fields, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    raw = found.get(name.lower())
    return None if raw is None else _decode(decoder, raw, name)


def _text(found: Fields, name: str) -> str:
    return _get(found, name, _TEXT) or ""


def _number(found: Fields, name: str) -> int:
    return _get(found, name, _NUMBER) or 0


def _reasons(found: Fields, name: str) -> Mapping[str, str]:
    reasons = _get(found, name, _REASONS)
    return {node: reason or "" for node, reason in (reasons or {}).items()}


def _decode(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, where: str) -> T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedAnswerError(f"{where}: {error}") from error
