"""What the core is told, and what it asks for.

Changes come from the watch of a cluster, from a trace, from a test; effects are carried out by whoever drives the core,
and their outcomes come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.policy.extender import Extender


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
class PodVolumes:
    """What is to be done for a pod's claims before it can be bound: `static` are volumes that exist, each with the
    claim that gets it, `dynamic` the claims for which a volume is to be made for the pod's node. All as the API has
    them."""

    static: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    dynamic: tuple[PersistentVolumeClaim, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.static or self.dynamic)


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the pod to the node, or have the `extender` do that; then tell `bind_succeeded` or `bind_failed`."""

    pod: PodInfo
    node: str
    extender: Extender | None = None


@dataclass(frozen=True, slots=True)
class BindVolumes:
    """Promise each volume to its claim, and ask for volumes on the node; then tell `volumes_written` or `bind_failed`.
    The `Bind` follows once the watch shows that the claims are bound."""

    pod: PodInfo
    node: str
    volumes: PodVolumes


@dataclass(frozen=True, slots=True)
class Evict:
    """Delete the victims, in order, if they are still the pods that they were, so that the preemptor finds room on the
    node; then tell `evictions_ended` of the preemptor. The first `violations` of them have a disruption budget that
    does not allow it."""

    preemptor: PodInfo
    node: str
    victims: tuple[PodInfo, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class ClearNomination:
    """The pod has lost its claim on a node: its status names none any more."""

    pod: PodInfo


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the pod's user why it has no node. `reason` is the condition's: Unschedulable or SchedulerError.
    `nominated_node` names the node that the pod waits for, "" takes the name away, None leaves it."""

    pod: PodInfo
    reason: str
    message: str
    nominated_node: str | None = None


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the pod's user, by a Warning event, of something that does not work as they may think: `fields` of the pod
    that the policy does not read, each told once, a budget that cannot be read, or that its scheduler has no profile
    any more. The pod is not always the one that the step is about."""

    pod: PodInfo
    reason: str
    fields: tuple[str, ...]
    message: str


Effect = Bind | BindVolumes | Evict | ClearNomination | Report | Warn
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
UNREAD_FIELD = "UnreadField"
UNREADABLE_BUDGET = "UnreadableDisruptionBudget"
PROFILE_REMOVED = "ProfileRemoved"
