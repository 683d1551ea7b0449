"""The patch that tells a pod's user why the pod has no node: condition PodScheduled=False, and `nominatedNodeName`.

The patch is a strategic merge patch of pods/status, which merges conditions by their type. It follows
`podutil.UpdatePodCondition`: nothing is sent when nothing changes, and `lastTransitionTime` moves only with the status.
The uid goes along: a server refuses it (422, or 409) when the name stands for another pod by then.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from ksp.kube.printable import printable
from ksp.kube.wall_clock import whole_seconds
from ksp.model.info import PodInfo

POD_SCHEDULED: Final = "PodScheduled"

# metav1.Condition's limit; a pod's conditions have none, and what grows without one fills etcd.
MESSAGE_LIMIT: Final = 32768
REASON_LIMIT: Final = 1024


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """What a pod's status says, or is to say, of its being scheduled. `status` is that of the condition, "" for none.

    `nominated_node` is the node that the pod waits for, "" for none.
    """

    reason: str = ""
    message: str = ""
    nominated_node: str = ""
    status: str = "False"


def wanted(before: Unscheduled, reason: str, message: str, nominated_node: str | None) -> Unscheduled:
    """What is to stand there instead of what does. `nominated_node` None leaves that as it is."""
    node = before.nominated_node if nominated_node is None else nominated_node
    return Unscheduled(printable(reason, REASON_LIMIT), printable(message, MESSAGE_LIMIT), node)


def known(pod: PodInfo) -> Unscheduled:
    """What stands there, as far as the pod's version tells."""
    for condition in pod.status.conditions:
        if condition.type == POD_SCHEDULED:
            return Unscheduled(condition.reason, condition.message, pod.status.nominated_node_name, condition.status)
    return Unscheduled(nominated_node=pod.status.nominated_node_name, status="")


def patch(uid: str, before: Unscheduled, after: Unscheduled, now: dt.datetime) -> dict[str, Any] | None:
    """The patch that makes `after` of `before`; None where they are the same."""
    status: dict[str, Any] = {}
    if (before.status, before.reason, before.message) != (after.status, after.reason, after.message):
        status["conditions"] = [_condition(before, after, now)]
    if before.nominated_node != after.nominated_node:
        status["nominatedNodeName"] = after.nominated_node or None
    if not status:
        return None
    return {"metadata": {"uid": uid} if uid else {}, "status": status}


def _condition(before: Unscheduled, after: Unscheduled, now: dt.datetime) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "type": POD_SCHEDULED,
        "status": after.status,
        "reason": after.reason,
        "message": after.message,
    }
    if before.status != after.status:
        condition["lastProbeTime"] = None
        condition["lastTransitionTime"] = whole_seconds(now)
    return condition
