"""Pods: priority and tolerations by admission, status by the server, what an update may change, grace periods."""

from typing import Final

from ksp.apiserver.admission.priority import admit_priority
from ksp.apiserver.status import Cause, forbidden_field
from ksp.apiserver.strategies.base import Kind
from ksp.apiserver.strategies.label_keys import merge_label_keys
from ksp.apiserver.strategies.pod_conditions import set_condition
from ksp.apiserver.strategies.pod_defaults import default_pod
from ksp.apiserver.strategies.pod_qos import class_of
from ksp.apiserver.strategy import Context, Json, keep
from ksp.apiserver.validation.pods import validate_pod_spec, validate_pod_update

UNREACHABLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that every pod tolerates for a while."""
TOLERATION_SECONDS: Final = 300

TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class Pods(Kind):
    """core/v1."""

    core = True
    returns_deleted = True

    def default_more(self, obj: Json, context: Context) -> None:
        default_pod(obj["spec"])
        status = obj["status"]
        if status.get("podIP") and not status.get("podIPs"):
            status["podIPs"] = [{"ip": status["podIP"]}]

    def admit_create(self, obj: Json, context: Context) -> None:
        admit_priority(obj, context)
        _tolerate_for_a_while(obj["spec"])
        if context.version.copies_topology and obj["spec"].get("nodeName"):
            copy_topology(obj["metadata"], obj["spec"]["nodeName"], context)

    def complete(self, obj: Json, context: Context) -> None:
        admit_priority(obj, context)

    def admit_update(self, new: Json, old: Json, context: Context) -> None:
        if not context.subresource:
            _tolerate_for_a_while(new["spec"])
            for name in ("priority", "preemptionPolicy"):
                if name in old["spec"]:
                    new["spec"].setdefault(name, old["spec"][name])

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        if context.version.pod_generation:
            obj["metadata"]["generation"] = 1
        if context.version.merges_label_keys and not context.loading:
            merge_label_keys(obj)
        status = obj["status"] if context.loading else {}
        status.setdefault("phase", "Pending")
        if obj["spec"].get("schedulingGates"):
            set_condition(status, _GATED, context)
        status["qosClass"] = class_of(obj["spec"])
        obj["status"] = status

    def check(self, obj: Json, context: Context) -> list[Cause]:
        return validate_pod_spec(obj["spec"], "spec", context.version)

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        return validate_pod_update(new["spec"], old["spec"], context.version)

    def prepare_for_update(self, new: Json, old: Json, context: Context) -> None:
        keep(new, old, "status")
        if context.version.pod_generation and new["spec"] != old["spec"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_for_status_update(self, new: Json, old: Json, context: Context) -> None:
        super().prepare_for_status_update(new, old, context)
        keep(new["metadata"], old["metadata"], "ownerReferences")
        keep(new["status"], old["status"], "qosClass")

    def check_status(self, new: Json, old: Json, context: Context) -> list[Cause]:
        if new["spec"].get("nodeName", "") == old["spec"].get("nodeName", ""):
            return []
        return [forbidden_field("status.nodeName", "may not be changed directly")]

    def grace_period(self, obj: Json, wanted: int | None, context: Context) -> int | None:
        spec = obj["spec"]
        if not spec.get("nodeName") or obj["status"].get("phase") in {"Succeeded", "Failed"}:
            return 0
        seconds = spec.get("terminationGracePeriodSeconds", 0) if wanted is None else wanted
        return 1 if seconds < 0 and context.version.negative_grace_is_1 else int(seconds)


_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def copy_topology(meta: Json, node_name: str, context: Context) -> None:
    """The region and the zone of its node become labels of a pod when it gets the node."""
    node = context.objects.get("nodes", "", node_name)
    labels = (node or {}).get("metadata", {}).get("labels") or {}
    copied = {name: labels[name] for name in TOPOLOGY_LABELS if name in labels}
    if copied:
        meta["labels"] = dict(sorted({**(meta.get("labels") or {}), **copied}.items()))


def _tolerate_for_a_while(spec: Json) -> None:
    """DefaultTolerationSeconds: a pod that says nothing stays for 300 seconds on a node that is not ready."""
    tolerations: list[Json] = spec.get("tolerations") or []
    added = [_toleration(key) for key in UNREACHABLE if not any(_tolerates(each, key) for each in tolerations)]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}


def _toleration(key: str) -> Json:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
