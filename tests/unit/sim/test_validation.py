"""Objects that no API server would have taken are refused, with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksp.sim.manifests import ManifestError, load

POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: main
"""
NODE = """apiVersion: v1
kind: Node
metadata: {name: a}
"""
BUDGET = """apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a}
spec:
"""
PRIORITY_CLASS = """apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: a}
value: 1
"""
STORAGE_CLASS = """apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: a}
"""
POLICIES = "`never` is not one of Never, PreemptLowerPriority"
PART = "a number of pods or a part of a hundred is expected"
RESOURCES = "spec.containers[0].resources"
NO_SUCH = "there is no such resource; one that is not Kubernetes' own has a domain, such as nvidia.com/gpu"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def resources(more: str) -> str:
    return f"{POD}    resources:\n      {more}\n"


def affinity(kind: str, weight: int) -> str:
    return f"{POD}  affinity:\n    {kind}:\n      {PREFERRED}:\n      - weight: {weight}\n"


@pytest.mark.parametrize(
    ("text", "line", "field", "message"),
    [
        (BUDGET + "  minAvailable: -1\n", 5, "spec.minAvailable", f"{PART}, not `-1`"),
        (BUDGET + "  minAvailable: 1.5\n", 5, "spec.minAvailable", f"{PART}, not `1.5`"),
        (BUDGET + "  maxUnavailable: half\n", 5, "spec.maxUnavailable", f"{PART}, not `half`"),
        (
            BUDGET + "  minAvailable: 1\n  maxUnavailable: 1\n", 6, "spec.maxUnavailable",
            "stands beside `minAvailable`: a budget has one of them",
        ),
        (POD + "  preemptionPolicy: never\n", 7, "spec.preemptionPolicy", POLICIES),
        (PRIORITY_CLASS + "preemptionPolicy: never\n", 5, "preemptionPolicy", POLICIES),
        (
            STORAGE_CLASS + "volumeBindingMode: WaitForConsumer\n", 4, "volumeBindingMode",
            "`WaitForConsumer` is not one of Immediate, WaitForFirstConsumer",
        ),
        (resources('requests: {cpu: "-1"}'), 8, f"{RESOURCES}.requests.cpu", "-1 is negative"),
        (resources("requests: {cpu: -0.5}"), 8, f"{RESOURCES}.requests.cpu", "-0.5 is negative"),
        (resources("limits: {memory: -1Gi}"), 8, f"{RESOURCES}.limits.memory", "-1Gi is negative"),
        (resources("requests: {cpuu: 1}"), 8, f"{RESOURCES}.requests.cpuu", NO_SUCH),
        (resources("requests: {pods: 1}"), 8, f"{RESOURCES}.requests.pods", NO_SUCH),
        (
            resources("requests: {a.com/gpu: 1500m}"), 8, f'{RESOURCES}.requests["a.com/gpu"]',
            "1500m is not a whole number",
        ),
        (
            resources("requests: {cpu: 2}\n      limits: {cpu: 1500m}"), 8, f"{RESOURCES}.requests.cpu",
            "2 is more than the limit 1500m",
        ),
        (POD.replace("containers", "initContainers") + "    resources: {requests: {cpu: -1}}\n", 7,
         "spec.initContainers[0].resources.requests.cpu", "-1 is negative"),
        (POD + "  overhead: {cpu: -1}\n", 7, "spec.overhead.cpu", "-1 is negative"),
        (POD + "  overhead: {gpu: 1}\n", 7, "spec.overhead.gpu", NO_SUCH),
        (POD + "  resources: {requests: {cpu: -1}}\n", 7, "spec.resources.requests.cpu", "-1 is negative"),
        (
            POD + "    ports: [{containerPort: 80, hostPort: 70000}]\n", 7, "spec.containers[0].ports[0].hostPort",
            "a port from 1 to 65535 is expected",
        ),
        (
            POD + "    ports: [{containerPort: -1}]\n", 7, "spec.containers[0].ports[0].containerPort",
            "a port from 1 to 65535 is expected",
        ),
        (
            POD + "  topologySpreadConstraints: [{maxSkew: 0, topologyKey: a}]\n", 7,
            "spec.topologySpreadConstraints[0].maxSkew", "a number above 0 is expected",
        ),
        (
            affinity("podAffinity", 0), 10, f"spec.affinity.podAffinity.{PREFERRED}[0].weight",
            "a weight from 1 to 100 is expected",
        ),
        (
            affinity("nodeAffinity", 101), 10, f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
            "a weight from 1 to 100 is expected",
        ),
        (NODE + "status:\n  allocatable: {cpu: -4}\n", 5, "status.allocatable.cpu", "-4 is negative"),
        (NODE + "status: {capacity: {pods: 1.5}}\n", 4, "status.capacity.pods", "1.5 is not a whole number"),
        (
            "kind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {resources: {requests: {storage: -1Gi}}}\n", 3,
            "spec.resources.requests.storage", "-1Gi is negative",
        ),
        (
            "kind: PersistentVolume\nmetadata: {name: a}\nspec: {capacity: {storage: -1}}\n", 3,
            "spec.capacity.storage", "-1 is negative",
        ),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_its_place(tmp_path: Path, text: str, line: int, field: str, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(ManifestError) as caught:
        load([str(file)])
    error = caught.value
    assert (error.line, error.field, error.message) == (line, field, message)


@pytest.mark.parametrize(
    "text",
    [
        resources("requests: {cpu: 0, memory: 1500m, hugepages-2Mi: 4Mi, ephemeral-storage: 1Gi, a.com/gpu: 2}"),
        resources("requests: {cpu: 1}\n      limits: {cpu: 1000m, memory: 1Gi}"),
        resources("requests: {cpu: lots}\n      limits: {cpu: more}"),
        POD + "    ports: [{containerPort: 80}]\n",
        affinity("podAntiAffinity", 100),
        NODE + "status: {allocatable: {cpu: 3920m, pods: 110, attachable-volumes-aws-ebs: 25, a.com/gpu: 2}}\n",
    ],
)
def test_what_an_api_server_takes_is_taken(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert [each.name for each in load([str(file)]).objects] == ["a"]
