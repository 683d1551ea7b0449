"""Recorded decisions: evaluates cases in the format of kube-scheduler's golden files.

A case is a cluster, a pod and a provider, by name or as a legacy Policy; what is written for it has the shapes of the
case's own `expected`. What ksp cannot give (a provider that is not there) is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ksp.check import typed
from ksp.check.program import Module
from ksp.compile.runtime import Denial, Failure
from ksp.core.cycle import NO_NODES, Cycle, claim_errors, failure_text
from ksp.core.equivalence.present import Present
from ksp.core.filter import Filtered, Nominated, Refused
from ksp.core.fit_error import fit_error
from ksp.core.nominations import Nominations
from ksp.core.preemption import Preempted, Preemption
from ksp.core.preemption.eligibility import resolvable
from ksp.core.state import ClusterState
from ksp.model.apps import ReplicaSet, ReplicationController, Service, StatefulSet
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.namespace import Namespace
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget, PriorityClass, as_in_v1
from ksp.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.legacy import configuration, policy_of
from ksp.policy.plugins import profile_of
from ksp.policy.profile import PluginArguments, Profile, ProfileBuilder
from ksp.sim.dice import FirstFace

OBJECTS: dict[str, type] = {
    "services": Service, "replicationControllers": ReplicationController, "replicaSets": ReplicaSet,
    "statefulSets": StatefulSet, "persistentVolumes": PersistentVolume, "persistentVolumeClaims": PersistentVolumeClaim,
    "storageClasses": StorageClass, "csiNodes": CSINode, "podDisruptionBudgets": PodDisruptionBudget,
    "priorityClasses": PriorityClass, "namespaces": Namespace,
}  # fmt: skip
FIELDS = (
    "filters", "feasible", "preFilter", "scores", "total", "error", "fitErrorMessage", "preemptionEligible",
    "preemption",
)  # fmt: skip
FINISHED = ("Succeeded", "Failed")
DEFAULT_SCHEDULER = "default-scheduler"


MakeCycle = Callable[[Profile, ClusterState, Nominated, PodInfo], Cycle]


def new_cycle(profile: Profile, state: ClusterState, nominated: Nominated, pod: PodInfo) -> Cycle:
    """A cycle for one decision: nothing is remembered, and rules are asked in columns where they can be."""
    return Cycle(profile, Present.of(state), nominated, FirstFace(), equivalence_classes=0)


class Evaluator:
    """Evaluates cases with the providers of one policy file, or its rules where a case has a Policy; or all of them
    with one provider, or one profile that is declared there. Profiles are made once. `make_cycle` gives who decides."""

    def __init__(
        self, module: Module, provider: str | None = None, make_cycle: MakeCycle = new_cycle,
        profile: typed.Profile | None = None,
    ) -> None:  # fmt: skip
        self.module = module
        self.provider = provider
        self.profile = profile
        self.make_cycle = make_cycle
        self._builder = ProfileBuilder()
        self._profiles: dict[str, Profile] = {}

    def evaluate(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a case. Raises DecodeError for objects that are not what they should be, LegacyPolicyError for
        a Policy that is not valid, and UnknownPluginError for one that needs other rules."""
        result: dict[str, Any] = {"id": case.get("id"), **dict.fromkeys(FIELDS)}
        profile = self._profile(case)
        if profile is not None:
            result.update(decided(profile, case, self.make_cycle))
        return result

    def _profile(self, case: Mapping[str, Any]) -> Profile | None:
        given = self.provider or case.get("provider")
        plugins = case.get("pluginConfig") or {}
        key = f"{given!r} {plugins!r}"
        if key not in self._profiles:
            made = self._made(given, plugins)
            if made is None:
                return None
            self._profiles[key] = made
        return self._profiles[key]

    def _made(self, given: object, plugins: PluginArguments) -> Profile | None:
        if self.profile is not None:
            return self._builder.of(self.profile, plugins)
        return self._legacy(given) if isinstance(given, dict) else self._named(given, plugins)

    def _named(self, name: object, plugins: PluginArguments) -> Profile | None:
        provider = self.module.providers().get(name) if isinstance(name, str) else None
        return None if provider is None else self._builder.build(provider, plugins=plugins)

    def _legacy(self, policy: Mapping[str, Any]) -> Profile:
        """As kube-scheduler, which minds no other arguments of plugins beside a Policy."""
        plugins = configuration(policy_of(policy, "provider")).plugins
        return profile_of(plugins, self.module, self._builder, DEFAULT_SCHEDULER)


def decided(profile: Profile, case: Mapping[str, Any], make_cycle: MakeCycle = new_cycle) -> dict[str, Any]:
    """What becomes of the pod of a case, whatever its provider: the fields of an answer that are not null. Raises
    DecodeError."""
    cluster = case.get("cluster") or {}
    state = cluster_state(cluster)
    pod = PodInfo.of(convert(Pod, case["pod"]))
    result: dict[str, Any] = {"filters": {}, "feasible": [], "preFilter": None, "scores": {}, "total": {}}
    error = pod.error or next(claim_errors(pod, state), "") or ("" if state.nodes else NO_NODES)
    if error:
        return {**result, "error": error}
    nominations = _nominations(cluster)
    cycle = make_cycle(profile, state, nominations.nodes, pod)
    nodes = state.node_list()
    filtered = cycle.decide(pod).filtered
    result |= _filters(filtered, nodes, pod)
    failure = filtered.failure()
    if failure is not None:
        text = failure_text(filtered, pod)
        if filtered.before is not None:
            result["preFilter"] = {"plugin": failure.plugin, "code": "Error", "reasons": [text]}
            result["filters"] = {}
        return {**result, "feasible": [], "error": text}
    if not filtered.feasible:
        reasons = [reason for node in nodes for reason in _reasons(filtered, node)]
        result["fitErrorMessage"] = fit_error(len(nodes), reasons)
        if not profile.preempts:
            return result
        return result | _preempted(Preemption(profile, cycle.present, nominations, FirstFace()), pod, filtered)
    return result | _scores(cycle, pod, filtered.feasible)


def cluster_state(cluster: Mapping[str, Any]) -> ClusterState:
    """A state with the objects of a case."""
    state = ClusterState()
    for kind, struct in OBJECTS.items():
        for value in cluster.get(kind) or ():
            made: Any = convert(struct, value)
            if isinstance(made, PodDisruptionBudget):
                made = as_in_v1(made, value.get("apiVersion", ""))
            state.set_object(kind, made.metadata.namespace, made.metadata.name, made)
    for value in cluster.get("nodes") or ():
        state.set_node(convert(Node, value))
    for value in cluster.get("pods") or ():
        placed = convert(Pod, value)
        if placed.spec.node_name and placed.status.phase not in FINISHED:
            state.add_pod(PodInfo.of(placed), placed.spec.node_name)
    return state


def _nominations(cluster: Mapping[str, Any]) -> Nominations:
    nominations = Nominations()
    for value in cluster.get("nominatedPods") or ():
        nominations.put_if_claimed(PodInfo.of(convert(Pod, value)))
    return nominations


def _filters(filtered: Filtered, nodes: list[NodeInfo], pod: PodInfo) -> dict[str, Any]:
    before = filtered.before
    if before is not None:
        status = _status(before, pod)
        return {"filters": {node.name: status for node in nodes}, "preFilter": status}
    statuses = {name: _status(refused, pod) for name, refused in filtered.refused.items()}
    return {
        "filters": {node.name: statuses.get(node.name) for node in nodes},
        "feasible": sorted(node.name for node in filtered.feasible),
    }


def _reasons(filtered: Filtered, node: NodeInfo) -> Iterator[str]:
    """All that rules say against a node: the first of them, or every one that was asked."""
    for refused in (filtered.before or filtered.refused[node.name]).each():
        if isinstance(refused.answer, Denial):
            yield from refused.answer.reasons


def _status(refused: Refused, pod: PodInfo) -> dict[str, Any]:
    match refused.answer:
        case Denial(unresolvable=unresolvable, reasons=reasons):
            code = "UnschedulableAndUnresolvable" if unresolvable else "Unschedulable"
            listed = sorted(reasons) if refused.plugin == "NodeResourcesFit" else list(reasons)
            return {"plugin": refused.plugin, "code": code, "reasons": listed}
        case Failure(message=message):
            text = f'running "{refused.plugin}" filter plugin for pod "{pod.name}": {message}'
            return {"plugin": refused.plugin, "code": "Error", "reasons": [text]}


def _scores(cycle: Cycle, pod: PodInfo, feasible: list[NodeInfo]) -> dict[str, Any]:
    """With one feasible node kube-scheduler does not score: an error in scoring is then none."""
    scored = cycle.score(pod, feasible)
    if scored.error:
        return {} if len(feasible) == 1 else {"error": scored.error}
    names = [node.name for node in feasible]
    return {
        "scores": {plugin: dict(zip(names, scores, strict=True)) for plugin, scores in scored.by_plugin.items()},
        "total": dict(zip(names, scored.total, strict=True)),
    }


def _preempted(preemption: Preemption, pod: PodInfo, filtered: Filtered) -> dict[str, Any]:
    """What comes after "no node fits": the node that is chosen, and all that could have been."""
    if not preemption.eligible(pod, filtered):
        return {"preemptionEligible": False}
    chosen = preemption.attempt(pod, filtered)
    if not isinstance(chosen, Preempted):
        return {"preemptionEligible": True}
    search, nodes = preemption.search(pod), resolvable(filtered, preemption.state)
    candidates = [option.candidate() for option in search.options(nodes)]
    outcome = {
        "nominatedNode": chosen.node,
        "victims": _names(chosen.victims),
        "possibleNodes": sorted(option.node for option in search.best(nodes)),
        "candidates": {
            candidate.node: {"victims": _names(candidate.victims), "numPDBViolations": candidate.violations}
            for candidate in candidates
        },
    }
    return {"preemptionEligible": True, "preemption": outcome}


def _names(pods: Iterable[PodInfo]) -> list[str]:
    return [f"{pod.namespace}/{pod.name}" for pod in pods]
