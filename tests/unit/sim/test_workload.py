"""From manifests to a workload: who runs, who arrives, and what an API server would have filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksp.core.changes import SetNode, SetObject, SetPod
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.sim.manifests import load
from ksp.sim.texts import ManifestError
from ksp.sim.workload import Workload, of_manifests

NODE = "{kind: Node, apiVersion: v1, metadata: {name: n}, status: {capacity: {cpu: 4, pods: 9}}}"


def workload(tmp_path: Path, *objects: str, skip_invalid: bool = False, interval: float = 0.0) -> Workload:
    file = tmp_path / "objects.yaml"
    file.write_text("\n---\n".join(objects))
    return of_manifests(load([str(file)]), skip_invalid=skip_invalid, interval=interval)


def pod(name: str, spec: str = "{}", metadata: str = "") -> str:
    return f"{{kind: Pod, apiVersion: v1, metadata: {{name: {name}{metadata}}}, spec: {spec}}}"


def arriving(tmp_path: Path, spec: str, *others: str) -> Pod:
    (arrival,) = workload(tmp_path, pod("p", spec), *others).arrivals
    return arrival.pod


def test_pods_with_a_node_run_and_the_others_arrive_in_order(tmp_path: Path) -> None:
    found = workload(tmp_path, pod("b"), pod("r", "{nodeName: n}"), NODE, pod("a"), interval=0.5)
    assert [(a.pod.metadata.name, a.arrives, a.leaves) for a in found.arrivals] == [("b", 0.0, None), ("a", 0.5, None)]
    node, running = found.cluster
    assert isinstance(node, SetNode)
    assert isinstance(running, SetPod)
    assert running.pod.metadata.name == "r"


def test_other_objects_bear_the_names_that_policies_use(tmp_path: Path) -> None:
    service = "{kind: Service, apiVersion: v1, metadata: {name: s, namespace: x}}"
    (change,) = workload(tmp_path, service).cluster
    assert isinstance(change, SetObject)
    assert (change.kind, change.namespace, change.name) == ("services", "x", "s")


def test_a_limit_without_a_request_is_the_request(tmp_path: Path) -> None:
    limits = "{limits: {cpu: 2, memory: 1Gi}, requests: {memory: 1Mi}}"
    found = PodInfo.of(arriving(tmp_path, f"{{containers: [{{name: c, resources: {limits}}}]}}"))
    assert (found.requests["cpu"], found.requests["memory"]) == (2000, 1024**2)


def test_ports_on_the_hosts_network_are_the_hosts(tmp_path: Path) -> None:
    found = arriving(tmp_path, "{hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}")
    assert [port.port for port in PodInfo.of(found).host_ports] == [80]


def test_priority_comes_from_the_class(tmp_path: Path) -> None:
    high = "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: high}, value: 7}"
    default = high.replace("high", "usual").replace("7", "3, globalDefault: true")
    assert arriving(tmp_path, "{priorityClassName: high}", high, default).spec.priority == 7
    assert arriving(tmp_path, "{}", high, default).spec.priority == 3
    assert arriving(tmp_path, "{}").spec.priority == 0
    assert arriving(tmp_path, "{priorityClassName: high, priority: 1}", high).spec.priority == 1
    assert arriving(tmp_path, "{priorityClassName: system-node-critical}").spec.priority == 2_000_001_000


def test_of_several_default_classes_the_lowest_counts(tmp_path: Path) -> None:
    high = "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: a}, value: 9, globalDefault: true}"
    both = [high, high.replace("name: a", "name: b").replace("value: 9", "value: 4")]
    assert arriving(tmp_path, "{}", *both).spec.priority == 4


def test_whether_a_pod_preempts_comes_from_its_class(tmp_path: Path) -> None:
    polite = (
        "{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: polite}, value: 7, "
        "preemptionPolicy: Never}"
    )
    assert arriving(tmp_path, "{priorityClassName: polite}", polite).spec.preemption_policy == "Never"
    assert arriving(tmp_path, "{}", polite).spec.preemption_policy is None
    rude = "{priorityClassName: polite, preemptionPolicy: PreemptLowerPriority}"
    assert arriving(tmp_path, rude, polite).spec.preemption_policy == "PreemptLowerPriority"
    usual = polite.replace("value: 7", "value: 7, globalDefault: true")
    assert arriving(tmp_path, "{}", usual).spec.preemption_policy == "Never"


def budget(tmp_path: Path, version: str, spec: str, status: str = "") -> PodDisruptionBudget:
    """Beside two pods of `web` that run."""
    running = [pod(f"p{i}", "{nodeName: n}", ", labels: {app: web}") for i in range(2)]
    text = f"{{kind: PodDisruptionBudget, apiVersion: policy/{version}, metadata: {{name: b}}, spec: {spec}{status}}}"
    (found,) = [
        change.value
        for change in workload(tmp_path, NODE, *running, text).cluster
        if isinstance(change, SetObject) and change.kind == "podDisruptionBudgets"
    ]
    assert isinstance(found, PodDisruptionBudget)
    return found


def test_an_empty_selector_of_a_budget_is_all_pods_or_none(tmp_path: Path) -> None:
    spec = "{selector: {}, minAvailable: 1}"
    assert budget(tmp_path, "v1", spec).spec.selector is not None
    assert budget(tmp_path, "v1", spec).status.disruptions_allowed == 1
    assert budget(tmp_path, "v1beta1", spec).spec.selector is None
    assert budget(tmp_path, "v1beta1", spec).status.disruptions_allowed == 0
    for version in ("v1", "v1beta1"):
        assert budget(tmp_path, version, "{selector: {matchLabels: {app: web}}}").spec.selector is not None


def test_a_budget_has_the_status_that_it_brings_or_that_its_controller_would_write(tmp_path: Path) -> None:
    spec = "{selector: {matchLabels: {app: web}}, maxUnavailable: 50%}"
    assert budget(tmp_path, "v1", spec).status.disruptions_allowed == 1
    assert budget(tmp_path, "v1", spec, ", status: {disruptionsAllowed: 0}").status.disruptions_allowed == 0
    assert budget(tmp_path, "v1", spec, ", status: {disruptionsAllowed: 2}").status.disruptions_allowed == 2


def test_a_class_that_is_not_there_is_noted(tmp_path: Path) -> None:
    (note,) = workload(tmp_path, pod("p", "{priorityClassName: high}")).notes
    assert "high" in note


def test_a_node_gives_what_it_has_unless_it_says_so(tmp_path: Path) -> None:
    (change,) = workload(tmp_path, NODE).cluster
    assert isinstance(change, SetNode)
    assert NodeInfo.of(change.node).allocatable["cpu"] == 4000


def test_two_pods_with_one_uid(tmp_path: Path) -> None:
    twice = [pod(name, metadata=", uid: u") for name in ("p", "q")]
    with pytest.raises(ManifestError) as caught:
        workload(tmp_path, *twice)
    assert (caught.value.line, caught.value.field) == (3, "metadata.uid")
    found = workload(tmp_path, *twice, skip_invalid=True)
    assert (len(found.arrivals), len(found.invalid)) == (1, 1)


def test_what_does_not_take_part_is_noted(tmp_path: Path) -> None:
    deployment = "{kind: Deployment, apiVersion: apps/v1, metadata: {name: d}}"
    secret = "{kind: Secret, apiVersion: v1, metadata: {name: s}}"
    odd = NODE.replace("cpu: 4", "cpu: four").replace("capacity", "allocatable")
    notes = "\n".join(workload(tmp_path, deployment, secret, odd, pod("lost", "{nodeName: gone}")).notes)
    for word in ("1 Deployment", "1 Secret", "node n ", "four", "default/lost", "gone"):
        assert word in notes


@pytest.mark.parametrize(
    ("version", "selector", "why"),
    [
        ("v1", "", "it has no selector"),
        ("v1beta1", ", selector: {}", "an empty one in policy/v1beta1"),
        ("v1", ", selector: {matchExpressions: [{key: app, operator: Inn, values: [a]}]}", "Inn"),
    ],
)
def test_a_budget_that_protects_nobody_is_noted(tmp_path: Path, version: str, selector: str, why: str) -> None:
    text = f"{{kind: PodDisruptionBudget, apiVersion: policy/{version}, metadata: {{name: b, namespace: d}}, spec: {{"
    (note,) = workload(tmp_path, f"{text}minAvailable: 1{selector}}}}}").notes
    assert "PodDisruptionBudget d/b protects no pod: " in note
    assert why in note
    assert not workload(tmp_path, f"{text}minAvailable: 1, selector: {{matchLabels: {{a: b}}}}}}}}").notes


def test_a_volume_without_capacity_and_claims_of_a_class_that_is_gone_are_noted(tmp_path: Path) -> None:
    def claim(name: str, spec: str) -> str:
        return f"{{kind: PersistentVolumeClaim, apiVersion: v1, metadata: {{name: {name}}}, spec: {{{spec}}}}}"

    volume = "{kind: PersistentVolume, apiVersion: v1, metadata: {name: v}, spec: {}}"
    claims = [claim(name, "storageClassName: gone") for name in ("a", "b")]
    others = [claim("c", "storageClassName: gone, volumeName: w"), claim("d", 'storageClassName: ""')]
    assert workload(tmp_path, volume, *claims, *others).notes == (
        "PersistentVolume v says no capacity: it counts as one of size 0",
        "there is no StorageClass gone: nothing is made for its open claims (2)",
    )


def test_a_limit_takes_the_first_arrivals(tmp_path: Path) -> None:
    assert [a.pod.metadata.name for a in workload(tmp_path, pod("b"), pod("a")).limited(1).arrivals] == ["b"]
