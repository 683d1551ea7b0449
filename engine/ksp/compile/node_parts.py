"""The parts of a node, as what changes and what is read are compared: by the heads of their paths.

A *part* is a field of a node in the words of the language, without the key of an entry: `labels`, `allocatable`,
`podCount`, and below `spec`, `status` and `metadata` one step more: `spec.taints`, `status.conditions`. What can be
said in two ways has one name: `metadata.labels` is `labels`, `metadata.name` is `name`. `status.allocatable`, as the
API writes it, and `allocatable`, the amounts, are two: `1` may become `1000m`.

The journal says of each change of a node which parts differ; `parts_read` says for a rule's footprint which parts it
reads. A change concerns the rule if the two sets meet. EVERYTHING is all parts and "*": both what changes when a node
comes or goes, and what is read of a node that is taken as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from ksp.check.schema import fields_of
from ksp.model.info import NodeInfo

ANYTHING: Final = "*"

# What `metadata` has that stands beside it in the node, too.
_SHORT: Final = ("name", "uid", "labels", "annotations")
_NESTED: Final = ("metadata", "spec", "status")

# The sums over a node's pods: they change with its pods, never with the node.
REQUESTED: Final = "requested"
NONZERO_REQUESTED: Final = "nonzeroRequested"
POD_COUNT: Final = "podCount"
HOST_PORTS: Final = "hostPorts"
SUMS: Final = frozenset({REQUESTED, NONZERO_REQUESTED, POD_COUNT, HOST_PORTS})
SUMS_WITHOUT_PORTS: Final = SUMS - {HOST_PORTS}


def _nested(group: str) -> dict[str, str]:
    """The parts in `metadata`, `spec` or `status`, and the attribute of each."""
    fields = fields_of({"metadata": "ObjectMeta", "spec": "NodeSpec", "status": "NodeStatus"}[group])
    return {
        name if group == "metadata" and name in _SHORT else f"{group}.{name}": field.path[0]
        for name, field in fields.items()
    }


_BY_GROUP: Final = {group: _nested(group) for group in _NESTED}
# Parts by the attribute that holds them, of those that stand in the node itself.
_PLAIN: Final = {name: field.path[0] for name, field in fields_of("Node").items() if name not in _NESTED}
_ALL_OF: Final = {group: frozenset(parts) for group, parts in _BY_GROUP.items()}
_BY_ATTRIBUTE: Final = {
    group: {attribute: part for part, attribute in parts.items()} for group, parts in [("", _PLAIN), *_BY_GROUP.items()]
}

NODE_PARTS: Final = frozenset(_PLAIN).union(*_ALL_OF.values())
EVERYTHING: Final = NODE_PARTS | {ANYTHING}


@cache
def parts_of(path: str) -> frozenset[str]:
    """The parts that a path of a footprint leads to: `labels["a"]` to `labels`, `spec.taints[…].key` to `spec.taints`,
    `spec` to all below it, `*` to everything. Raises KeyError for what no node has."""
    if path == ANYTHING:
        return EVERYTHING
    head, *rest = path.split("[", maxsplit=1)[0].split(".")
    if head not in _NESTED:
        _PLAIN[head]
        return frozenset({head})
    if not rest:
        return _ALL_OF[head]
    part = rest[0] if head == "metadata" and rest[0] in _SHORT else f"{head}.{rest[0]}"
    _BY_GROUP[head][part]
    return frozenset({part})


def parts_read(paths: Iterable[str]) -> frozenset[str]:
    """The parts that a footprint's paths lead to."""
    return frozenset().union(*(parts_of(path) for path in paths))


@cache
def parts_at(path: tuple[str, ...]) -> frozenset[str]:
    """The parts that a path of Python attributes of a NodeInfo leads to: ("spec", "taints") to `spec.taints`,
    ("labels", KEY) to `labels`. Raises KeyError for what no node has."""
    head, *rest = path
    if head not in _NESTED:
        return frozenset({_BY_ATTRIBUTE[""][head]})
    return frozenset({_BY_ATTRIBUTE[head][rest[0]]}) if rest else _ALL_OF[head]


Snapshot = tuple[Any, ...]


def snapshot(node: NodeInfo) -> Snapshot:
    """What `changed_parts` compares: to be taken before the node is changed in place."""
    return (node.metadata, node.spec, node.status, *(getattr(node, attribute) for attribute in _PLAIN.values()))


def changed_parts(old: Snapshot, new: Snapshot) -> frozenset[str]:
    """The parts in which the two differ."""
    parts: set[str] = set()
    for group, was, now in zip(_NESTED, old, new, strict=False):
        if was != now:
            parts.update(p for p, name in _BY_GROUP[group].items() if getattr(was, name) != getattr(now, name))
    for part, was, now in zip(_PLAIN, old[len(_NESTED) :], new[len(_NESTED) :], strict=True):
        if was != now:
            parts.add(part)
    return frozenset(parts)
