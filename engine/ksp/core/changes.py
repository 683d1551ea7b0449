"""What the core is told, and what it asks for.

Changes come from the watch of a cluster, from a trace, from a test; effects are carried out by whoever drives the core,
and their outcomes come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod


@dataclass(frozen=True, slots=True)
class SetPod:
    """A pod came, or is different now."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class DeletePod:
    """A pod is gone. `uid` is as PodInfo has it."""

    uid: str


@dataclass(frozen=True, slots=True)
class SetNode:
    """A node came, or is different now."""

    node: Node


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """A node is gone; its pods are told of by themselves."""

    name: str


@dataclass(frozen=True, slots=True)
class SetObject:
    """Another object came, or is different now. `kind` is as policies name it: `services`, `replicaSets`, …"""

    kind: str
    namespace: str
    name: str
    value: object


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Another object is gone."""

    kind: str
    namespace: str
    name: str


Change = SetPod | DeletePod | SetNode | DeleteNode | SetObject | DeleteObject


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the pod to the node; then tell `bind_succeeded` or `bind_failed`."""

    pod: PodInfo
    node: str


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the pod's user why it has no node. `reason` is the condition's: Unschedulable or SchedulerError."""

    pod: PodInfo
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the pod's user, by a Warning event, of fields that the policy does not read. Told once for a pod and field;
    the pod is not always the one that the step is about."""

    pod: PodInfo
    reason: str
    fields: tuple[str, ...]
    message: str


Effect = Bind | Report | Warn
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
UNREAD_FIELD = "UnreadField"
