"""What makes pods: replication controllers, replica sets, stateful sets, deployments, daemon sets."""

from typing import ClassVar

from ksp.apiserver.status import Cause, forbidden_field, invalid_value, not_supported, required
from ksp.apiserver.strategies.base import Defaults, Kind
from ksp.apiserver.strategies.defaults import fill
from ksp.apiserver.strategies.label_selectors import matches
from ksp.apiserver.strategies.pod_defaults import default_pod_spec
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation.metadata import not_negative, quoted, shown, validate_labels, validate_selector
from ksp.apiserver.validation.pods import validate_pod_spec


class Workload(Kind):
    """A selector, a template whose labels it selects, and how many."""

    generation = True
    fixed: ClassVar[tuple[str, ...]] = ("selector",)
    """Fields of the spec that cannot change."""

    def default(self, obj: Json, context: Context) -> None:
        super().default(obj, context)
        template = obj["spec"].get("template")
        if template is not None:
            default_pod_spec(template["spec"], host_ports=context.version.host_ports_in_templates)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        spec, version = obj["spec"], context.version
        found = not_negative(spec.get("replicas"), "spec.replicas")
        found += self.check_selector(spec, context)
        template = spec.get("template")
        if template is None:
            return [*found, required("spec.template")]
        labels = template["metadata"].get("labels") or {}
        if not self.selects(spec, labels):
            text = "`selector` does not match template `labels`"
            found.append(invalid_value("spec.template.metadata.labels", shown(labels), text))
        found += validate_labels(labels, "spec.template.metadata.labels", version)
        found += self.check_template(template["spec"], context)
        policy = template["spec"].get("restartPolicy")
        if policy in {"OnFailure", "Never"}:
            found.append(
                not_supported("spec.template.spec.restartPolicy", quoted(policy), 'supported values: "Always"')
            )
        return found

    def check_template(self, spec: Json, context: Context) -> list[Cause]:
        return validate_pod_spec(spec, "spec.template.spec", context.version)

    def check_selector(self, spec: Json, context: Context) -> list[Cause]:
        selector = spec.get("selector")
        if selector is None:
            return [required("spec.selector")]
        if not selector:
            text = "empty selector is invalid for deployment"
            return [invalid_value("spec.selector", "{}", text)]
        return validate_selector(selector, "spec.selector", context.version)

    def selects(self, spec: Json, labels: dict[str, str]) -> bool:
        """Whether the selector selects the template's labels."""
        return matches(spec.get("selector") or {}, labels)

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        found: list[Cause] = []
        for name in self.fixed:
            if new["spec"].get(name) != old["spec"].get(name):
                value = shown(new["spec"].get(name))
                found.append(invalid_value(f"spec.{name}", value, "field is immutable"))
        return found


class ReplicaSets(Workload):
    """apps/v1."""

    spec_defaults: ClassVar[Defaults] = {"replicas": 1}
    initial_status: ClassVar[Json | None] = {"replicas": 0}


class ReplicationControllers(Workload):
    """core/v1: selector and labels default to the labels of the template."""

    core = True
    default_propagation = "Orphan"
    fixed = ()
    spec_defaults: ClassVar[Defaults] = {"replicas": 1}
    initial_status: ClassVar[Json | None] = {"replicas": 0}

    def default_more(self, obj: Json, context: Context) -> None:
        labels = (obj["spec"].get("template") or {}).get("metadata", {}).get("labels")
        if labels:
            fill(obj["spec"], {"selector": labels})
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)

    def check_selector(self, spec: Json, context: Context) -> list[Cause]:
        selector = spec.get("selector") or {}
        return validate_labels(selector, "spec.selector", context.version) if selector else [required("spec.selector")]

    def selects(self, spec: Json, labels: dict[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in (spec.get("selector") or {}).items())


class StatefulSets(Workload):
    """apps/v1."""

    spec_defaults: ClassVar[Defaults] = {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
    }

    def default_more(self, obj: Json, context: Context) -> None:
        spec = obj["spec"]
        strategy = spec["updateStrategy"]
        fill(strategy, {"type": "RollingUpdate"})
        if strategy["type"] == "RollingUpdate":
            fill(strategy, {"rollingUpdate": {}})
            fill(strategy["rollingUpdate"], {"partition": 0})
        if context.version.claim_retention:
            fill(spec, {"persistentVolumeClaimRetentionPolicy": {}})
            fill(spec["persistentVolumeClaimRetentionPolicy"], {"whenDeleted": "Retain", "whenScaled": "Retain"})
        for claim in spec.get("volumeClaimTemplates") or ():
            fill(claim["spec"], {"volumeMode": "Filesystem"})
            fill(claim["status"], {"phase": "Pending"})

    def check_template(self, spec: Json, context: Context) -> list[Cause]:
        """Nothing, as in the real server: volumes come from the claim templates, too."""
        return []

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        super().prepare_for_create(obj, context)
        if not context.loading:
            obj["status"] = {"replicas": 0, **({"availableReplicas": 0} if context.version.claim_retention else {})}

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        free = {"replicas", "template", "updateStrategy"}
        if context.version.claim_retention:
            free |= {"ordinals", "minReadySeconds", "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}
        fixed = [{name: value for name, value in each["spec"].items() if name not in free} for each in (new, old)]
        if fixed[0] == fixed[1]:
            return []
        return [forbidden_field("spec", _STATEFUL_NEW if context.version.claim_retention else _STATEFUL_OLD)]


_STATEFUL_OLD = (
    "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden"
)
_STATEFUL_NEW = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class Deployments(Workload):
    """apps/v1."""

    spec_defaults: ClassVar[Defaults] = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
    initial_status: ClassVar[Json | None] = {}

    def default_more(self, obj: Json, context: Context) -> None:
        _default_rolling(obj["spec"]["strategy"], {"maxUnavailable": "25%", "maxSurge": "25%"})


class DaemonSets(Workload):
    """apps/v1."""

    spec_defaults: ClassVar[Defaults] = {"revisionHistoryLimit": 10}
    initial_status: ClassVar[Json | None] = dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    )

    def default_more(self, obj: Json, context: Context) -> None:
        surge = {"maxSurge": 0} if context.version.minor >= 22 else {}
        _default_rolling(obj["spec"]["updateStrategy"], {"maxUnavailable": 1, **surge})


def _default_rolling(strategy: Json, defaults: dict[str, int | str]) -> None:
    fill(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill(strategy, {"rollingUpdate": {}})
        fill(strategy["rollingUpdate"], defaults)
