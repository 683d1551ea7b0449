"""The model against kube-scheduler's recorded verdicts, for the filters that are little more than the model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.requests import BASIC
from ksp.model.selector import node_selector_term_matches_node, toleration_tolerates

FAMILIES = ("resources_fit", "node_affinity", "taints", "host_ports", "edge")


def recorded(shared: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(shared / "golden" / "public-1.19.jsonl.gz", "rt") as lines:
        for line in lines:
            if line.startswith(tuple(f'{{"id":"{family}-' for family in FAMILIES)):
                case = json.loads(line)
                if case["expected"]["filters"] and isinstance(case["provider"], str):
                    yield case


def nodes_of(cluster: dict[str, Any]) -> dict[str, NodeInfo]:
    nodes = {node["metadata"]["name"]: NodeInfo.of(convert(Node, node)) for node in cluster["nodes"]}
    for raw in cluster["pods"]:
        pod = PodInfo.of(convert(Pod, raw))
        if pod.status.phase not in ("Succeeded", "Failed") and pod.spec.node_name in nodes:
            nodes[pod.spec.node_name].add_pod(pod)
    return nodes


def lacking(pod: PodInfo, node: NodeInfo) -> list[str]:
    reasons = ["Too many pods"] if node.pod_count + 1 > node.allocatable["pods"] else []
    if any(name not in BASIC or n for name, n in pod.requests.items()):
        reasons += [
            f"Insufficient {name}"
            for name, n in pod.requests.items()
            if n > node.allocatable.get(name, 0) - node.requested.get(name, 0)
        ]
    return sorted(reasons)


def selects(pod: PodInfo, node: NodeInfo) -> bool:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return pod.spec.node_selector.items() <= node.labels.items() and (
        not required or any(node_selector_term_matches_node(term, node) for term in required.node_selector_terms)
    )


def tolerates(pod: PodInfo, node: NodeInfo) -> bool:
    return all(
        taint.effect == "PreferNoSchedule" or any(toleration_tolerates(t, taint) for t in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def ports_free(pod: PodInfo, node: NodeInfo) -> bool:
    return not any(
        (mine.port, mine.protocol) == (theirs.port, theirs.protocol)
        and (mine.ip == theirs.ip or "0.0.0.0" in (mine.ip, theirs.ip))
        for mine in pod.host_ports
        for theirs in node.host_ports
    )


def test_filters_as_recorded(shared: Path) -> None:
    seen = 0
    for case in recorded(shared):
        pod = PodInfo.of(convert(Pod, case["pod"]))
        for name, node in nodes_of(case["cluster"]).items():
            failures = case["expected"]["allFailures"].get(name) or {}
            seen += 1
            assert lacking(pod, node) == sorted(failures.get("NodeResourcesFit", [])), (case["id"], name)
            assert selects(pod, node) == ("NodeAffinity" not in failures), (case["id"], name)
            assert tolerates(pod, node) == ("TaintToleration" not in failures), (case["id"], name)
            assert ports_free(pod, node) == ("NodePorts" not in failures), (case["id"], name)
    assert seen > 5000
