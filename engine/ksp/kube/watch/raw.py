"""Objects that keep the bytes that they were read from, for extenders, which are told all that the server holds, and
not only what scheduling reads of it.

Bytes are kept in the informers' stores, so that they are of the same version as what handlers were told, and go with
it. They cost memory: 2 to 6 KB a pod, 5 to 20 KB a node. So they are kept of what some extender may be sent whole
(`Kept`), and of nothing where there is none. Who already was in the store when it began to be kept has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.extender import Extender


class RawPod(Pod, frozen=True, kw_only=True, gc=False):
    """A pod, and its JSON."""

    raw: bytes


class RawNode(Node, frozen=True, kw_only=True, gc=False):
    """A node, and its JSON."""

    raw: bytes


def has_bytes(value: object) -> TypeGuard[RawPod | RawNode]:
    return isinstance(value, RawPod | RawNode)


@dataclass(slots=True)
class Kept:
    """Of whom bytes are kept: of pods that wait for a node, of all pods, of nodes. It may change at any time, for what
    is read from then on."""

    waiting: bool = False
    pods: bool = False
    nodes: bool = False

    def use(self, extenders: Iterable[Extender]) -> None:
        """Keep what these may be sent. One that only binds is sent names alone; one that is `node_cache_capable` is
        sent the pod that is decided, and names of others."""
        asked = [each for each in extenders if each.filter_verb or each.prioritize_verb or each.preempt_verb]
        whole = [each for each in asked if not each.node_cache_capable]
        self.waiting = bool(asked)
        self.pods = any(each.preempt_verb for each in whole)
        self.nodes = any(each.filter_verb or each.prioritize_verb for each in whole)

    def pod(self, value: Pod, data: bytes) -> Pod:
        """The pod, perhaps with its bytes."""
        if not (self.pods or (self.waiting and not value.spec.node_name)):
            return value
        return RawPod(metadata=value.metadata, spec=value.spec, status=value.status, raw=bytes(data))

    def node(self, value: Node, data: bytes) -> Node:
        """The node, perhaps with its bytes."""
        if not self.nodes:
            return value
        return RawNode(metadata=value.metadata, spec=value.spec, status=value.status, raw=bytes(data))
