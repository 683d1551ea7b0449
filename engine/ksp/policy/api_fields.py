"""The fields of a pod that say where it may run, as of Kubernetes 1.36: each with a test of whether a pod uses it.

A field counts as used if it changes what the pod asks for: `minDomains: 1` and `nodeTaintsPolicy: Ignore` do not. The
API server puts what `matchLabelKeys` and `mismatchLabelKeys` say into the labelSelector beside them (of affinity terms
since they exist, of spread constraints since 1.34); then they ask for nothing more.

Not here are what the machinery sees to by itself (amounts, with those of sidecars and of the pod as a whole; overhead,
gates, priority), and what kube-scheduler does not look at either (`spec.os`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ksp.compile.fields import ELEMENT
from ksp.model.info import PodInfo
from ksp.model.meta import LabelSelector
from ksp.model.pod import PodAffinityTerm, TopologySpreadConstraint


class Without(Enum):
    """What the pod is without the field.

    BROKEN: a guarantee of the API does not hold. WORSE: a wish is not heard. LEFT_OUT: a demand that kube-scheduler
    1.19 knows is not heard. The shipped policies read those; who leaves out the rule has decided so, as in a Policy of
    kube-scheduler.
    """

    BROKEN = "broken"
    WORSE = "worse off"
    LEFT_OUT = "left out"


Used = Callable[[PodInfo], bool]


@dataclass(frozen=True, slots=True)
class ApiField:
    """`path` is as in a manifest, with [] for any element; `when` says where it counts. `part` is the attribute of the
    PodSpec in which it lies: where that is empty, the field is not used. `also` are other paths to what it says."""

    path: str
    part: str
    without: Without
    used: Used
    meaning: str
    when: str = ""
    also: tuple[str, ...] = ()

    def is_in(self, paths: Iterable[str]) -> bool:
        """One of the paths, as footprints have them, leads to the field or into it."""
        own = [path.replace("[]", ELEMENT) for path in (self.path, *self.also)]
        return any(path == mine or path.startswith((f"{mine}.", f"{mine}[")) for path in paths for mine in own)


# ---- spread constraints

Constraint = Callable[[TopologySpreadConstraint, PodInfo], bool]


def _spread(name: str, used: Constraint, meaning: str, *, wish: bool = True) -> Iterator[ApiField]:
    """A field of the constraints, which is a demand of some and, if that can be, a wish of others."""

    def asks(action: str) -> Used:
        return lambda pod: any(
            c.when_unsatisfiable == action and used(c, pod) for c in pod.spec.topology_spread_constraints
        )

    path, part = f"spec.topologySpreadConstraints[].{name}", "topology_spread_constraints"
    yield ApiField(path, part, Without.BROKEN, asks("DoNotSchedule"), meaning, "DoNotSchedule")
    if wish:
        yield ApiField(path, part, Without.WORSE, asks("ScheduleAnyway"), meaning, "ScheduleAnyway")


def _is_merged(key: str, operator: str, selector: LabelSelector) -> bool:
    return any(r.key == key and r.operator == operator and r.values for r in selector.match_expressions)


def _asks_more(keys: tuple[str, ...], operator: str, selector: LabelSelector | None, pod: PodInfo) -> bool:
    """The keys say something that the selector does not: of labels that the pod does not have they say nothing."""
    if not keys or selector is None:
        return False
    return any(key in pod.labels and not _is_merged(key, operator, selector) for key in keys)


# ---- terms of inter-pod affinity

Term = Callable[[PodAffinityTerm, PodInfo], bool]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _required(kind: str) -> Callable[[PodInfo], tuple[PodAffinityTerm, ...]]:
    def terms(pod: PodInfo) -> tuple[PodAffinityTerm, ...]:
        affinity = pod.spec.affinity
        side = (
            None if affinity is None else affinity.pod_affinity if kind == "podAffinity" else affinity.pod_anti_affinity
        )
        return () if side is None else side.required_during_scheduling_ignored_during_execution

    return terms


def _preferred(kind: str) -> Callable[[PodInfo], tuple[PodAffinityTerm, ...]]:
    def terms(pod: PodInfo) -> tuple[PodAffinityTerm, ...]:
        affinity = pod.spec.affinity
        side = (
            None if affinity is None else affinity.pod_affinity if kind == "podAffinity" else affinity.pod_anti_affinity
        )
        weighted = () if side is None else side.preferred_during_scheduling_ignored_during_execution
        return tuple(term.pod_affinity_term for term in weighted)

    return terms


def _of_terms(name: str, used: Term, meaning: str) -> Iterator[ApiField]:
    """A field of all four kinds of terms."""

    def asks(terms: Callable[[PodInfo], tuple[PodAffinityTerm, ...]]) -> Used:
        return lambda pod: any(used(term, pod) for term in terms(pod))

    for kind in ("podAffinity", "podAntiAffinity"):
        path = f"spec.affinity.{kind}.{REQUIRED}[].{name}"
        yield ApiField(path, "affinity", Without.BROKEN, asks(_required(kind)), meaning)
        path = f"spec.affinity.{kind}.{PREFERRED}[].podAffinityTerm.{name}"
        yield ApiField(path, "affinity", Without.WORSE, asks(_preferred(kind)), meaning)


# ---- the table


def _present(pod: PodInfo) -> bool:
    """Its part of the spec is not empty, which was looked at before."""
    return True


def _demands_of_nodes(pod: PodInfo) -> bool:
    affinity = pod.spec.affinity
    node = None if affinity is None else affinity.node_affinity
    return node is not None and node.required_during_scheduling_ignored_during_execution is not None


FIELDS: Final[tuple[ApiField, ...]] = (
    ApiField(
        "spec.resourceClaims", "resource_claims", Without.BROKEN, _present,
        "devices that are allocated to the pod before it can start",
    ),
    ApiField(
        "spec.schedulingGroup", "scheduling_group", Without.BROKEN, _present,
        "the pods of the group start together or not at all",
    ),
    ApiField(
        "spec.workloadRef", "workload_ref", Without.BROKEN, _present,
        "the same, as alpha versions of 1.35 wrote it",
    ),
    ApiField(
        "spec.volumes[].ephemeral", "volumes", Without.BROKEN,
        lambda pod: any(volume.ephemeral is not None for volume in pod.spec.volumes),
        "a claim made for the pod: its volume must be reachable from the node", also=("claimNames",),
    ),
    *_spread(
        "minDomains", lambda c, _: c.min_domains is not None and c.min_domains > 1,
        "with fewer domains than that, the emptiest counts as empty", wish=False,
    ),
    *_spread(
        "matchLabelKeys", lambda c, pod: _asks_more(c.match_label_keys, "In", c.label_selector, pod),
        "only pods with the same values of these labels count",
    ),
    *_spread(
        "nodeAffinityPolicy", lambda c, _: c.node_affinity_policy not in (None, "", "Honor"),
        "Ignore: nodes count that the pod's selector and affinity leave out",
    ),
    *_spread(
        "nodeTaintsPolicy", lambda c, _: c.node_taints_policy not in (None, "", "Ignore"),
        "Honor: nodes do not count whose taints the pod does not tolerate",
    ),
    *_of_terms(
        "namespaceSelector", lambda term, _: term.namespace_selector is not None,
        "pods of the namespaces with these labels count, of all if it is `{}`",
    ),
    *_of_terms(
        "matchLabelKeys", lambda term, pod: _asks_more(term.match_label_keys, "In", term.label_selector, pod),
        "only pods with the same values of these labels count",
    ),
    *_of_terms(
        "mismatchLabelKeys", lambda term, pod: _asks_more(term.mismatch_label_keys, "NotIn", term.label_selector, pod),
        "only pods with other values of these labels count",
    ),
    ApiField(
        "spec.tolerations[].operator", "tolerations", Without.WORSE,
        lambda pod: any(toleration.operator in ("Lt", "Gt") for toleration in pod.spec.tolerations),
        "taints with a number as value are tolerated up to, or from, a limit", "Lt, Gt",
    ),
    # what kube-scheduler 1.19 knows
    ApiField(
        "spec.nodeSelector", "node_selector", Without.LEFT_OUT, _present, "labels that the node must have",
    ),
    ApiField(
        f"spec.affinity.nodeAffinity.{REQUIRED}", "affinity", Without.LEFT_OUT, _demands_of_nodes,
        "what the node must be like",
    ),
    ApiField(
        f"spec.affinity.podAffinity.{REQUIRED}", "affinity", Without.LEFT_OUT,
        lambda pod: bool(_required("podAffinity")(pod)), "pods to be near to", also=("requiredAffinity",),
    ),
    ApiField(
        f"spec.affinity.podAntiAffinity.{REQUIRED}", "affinity", Without.LEFT_OUT,
        lambda pod: bool(_required("podAntiAffinity")(pod)), "pods to be away from", also=("requiredAntiAffinity",),
    ),
    ApiField(
        "spec.topologySpreadConstraints", "topology_spread_constraints", Without.LEFT_OUT,
        lambda pod: any(c.when_unsatisfiable == "DoNotSchedule" for c in pod.spec.topology_spread_constraints),
        "how evenly like pods must spread", "DoNotSchedule",
    ),
    ApiField(
        "spec.containers[].ports[].hostPort", "containers", Without.LEFT_OUT, lambda pod: bool(pod.host_ports),
        "ports of the node that the pod must have for itself", also=("hostPorts",),
    ),
    ApiField(
        "spec.volumes[].persistentVolumeClaim", "volumes", Without.LEFT_OUT,
        lambda pod: any(volume.persistent_volume_claim is not None for volume in pod.spec.volumes),
        "a claim whose volume must be reachable from the node", also=("claimNames",),
    ),
)  # fmt: skip

# Those of a running pod that keep newcomers away from it.
PROTECTING: Final = tuple(
    field
    for field in FIELDS
    if field.path.startswith("spec.affinity.podAntiAffinity.required") and field.without is Without.BROKEN
)
