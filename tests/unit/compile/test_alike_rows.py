"""What alike rows contribute is found out once, and is what each would contribute by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.unit.core.scheduling import cluster, info, node

from ksp.compile.alike_rows import MANY, contributions

ROWS = 4 * MANY
NODES = {
    f"n{i}": made
    for i, made in enumerate(
        cluster(
            *(
                node(f"n{i}", labels={"zone": "abc"[i % 3], **({"disk": "ssd"} if i % 2 else {}), "host": f"n{i}"})
                for i in range(ROWS)
            )
        ).node_list()
    )
}


def zone(row: Any) -> Sequence[Any]:
    return [(row.labels.get("zone", ""),)]


def zone_of_ssd(row: Any) -> Sequence[Any]:
    return [(row.labels["zone"],)] if "disk" in row.labels and row.labels["disk"] == "ssd" else ()


def paired(row: Any) -> Sequence[Any]:
    return [("a",)] if {("zone", "a")} <= row.labels.items() else []


def host(row: Any) -> Sequence[Any]:
    return [(row.labels["host"],)]


def name(row: Any) -> Sequence[Any]:
    return [(row.name,)]


def all_labels(row: Any) -> Sequence[Any]:
    return [(key,) for key in row.labels]


@pytest.mark.parametrize("contribute", [zone, zone_of_ssd, paired, host, name, all_labels])
def test_rows_contribute_what_each_does_by_itself(contribute: Callable[[Any], Sequence[Any]]) -> None:
    expected = {key: tuple(found) for key, row in NODES.items() if (found := contribute(row))}
    each, times = contributions(contribute, NODES)
    assert each == expected
    assert {entries: n for entries, n in times.items() if entries} == Counter(expected.values())


@pytest.mark.parametrize(("contribute", "most"), [(zone, 8), (zone_of_ssd, 12), (paired, 8)])
def test_few_of_the_alike_rows_are_asked(contribute: Callable[[Any], Sequence[Any]], most: int) -> None:
    asked = []

    def counted(row: Any) -> Sequence[Any]:
        asked.append(row)
        return contribute(row)

    contributions(counted, NODES)
    assert len(asked) <= most


def test_pods_are_told_apart_by_their_labels_and_those_of_their_nodes() -> None:
    state = cluster(*(node(f"n{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)))
    for i in range(ROWS):
        state.add_pod(info(f"p{i}", labels={"app": "xyz"[i % 3], "own": str(i)}), f"n{i % 4}")
    asked = []

    def near(pod: Any) -> Sequence[Any]:
        asked.append(pod)
        return [(pod.node.labels["zone"],)] if pod.namespace == "default" and pod.labels.get("app") == "x" else ()

    each, times = contributions(near, state.pods)
    few = len(asked)
    assert each == {key: tuple(found) for key, pod in state.pods.items() if (found := near(pod))}
    assert {entries: n for entries, n in times.items() if entries} == Counter(each.values())
    assert few <= 16
