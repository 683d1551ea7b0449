"""Volumes and the nodes that reach them; what is looked up by label is what a look at every volume gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksp.model.decode import convert
from ksp.model.reach import RankedVolumes, is_reached
from ksp.model.storage import PersistentVolume

KEYS = ("host", "zone")
VALUES = ("a", "b", "c")


def volume(name: str, terms: list[dict[str, Any]] | None = None) -> PersistentVolume:
    """With a node affinity of these terms, or without any."""
    affinity = None if terms is None else {"required": {"nodeSelectorTerms": terms}}
    return convert(PersistentVolume, {"metadata": {"name": name}, "spec": {"nodeAffinity": affinity}})


def needs(operator: str, *values: str, key: str = "host") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


requirements = st.builds(
    lambda operator, values, key: needs(operator, *values, key=key),
    st.sampled_from(["In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Near"]),
    st.lists(st.sampled_from(VALUES), max_size=2),
    st.sampled_from(KEYS),
)
names = st.builds(needs, st.sampled_from(["In", "NotIn"]), st.sampled_from(VALUES), key=st.just("metadata.name"))
terms = st.fixed_dictionaries(
    {"matchExpressions": st.lists(requirements, max_size=2), "matchFields": st.lists(names, max_size=1)}
)
affinities = st.none() | st.lists(terms, max_size=2)
nodes = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


@settings(max_examples=300)
@given(st.lists(affinities, max_size=6), nodes, st.sets(st.integers(0, 5)))
def test_the_best_is_the_first_that_the_node_reaches(
    wanted: list[list[dict[str, Any]] | None], labels: dict[str, str], taken: set[int]
) -> None:
    volumes = [volume(f"v{i}", each) for i, each in enumerate(wanted)]
    left = [v for v in volumes if v.metadata.name not in {f"v{i}" for i in taken}]
    expected = next((v for v in left if is_reached(v, labels)), None)
    assert RankedVolumes(volumes).best(labels, {f"v{i}" for i in taken}) is expected


@pytest.mark.parametrize(
    ("affinity", "reached"),
    [
        (None, True),
        ([], False),
        ([{}], False),
        ([{"matchExpressions": [needs("In", "a")]}], True),
        ([{"matchExpressions": [needs("In", "b")]}], False),
        ([{"matchExpressions": [needs("In", "b")]}, {"matchExpressions": [needs("NotIn", "b")]}], True),
        ([{"matchExpressions": [needs("In", "a"), needs("Exists", key="zone")]}], False),
    ],
)
def test_a_volume_without_affinity_is_reached_from_everywhere(affinity: Any, reached: bool) -> None:
    assert is_reached(volume("v", affinity), {"host": "a"}) is reached


def test_a_node_looks_at_its_own_volumes_only() -> None:
    """Else each of thousands of nodes would look at the volumes of all the others."""
    volumes = [volume(f"v{i}", [{"matchExpressions": [needs("In", f"n{i}")]}]) for i in range(50)]
    looked_at: list[str] = []

    class Taken:
        def __contains__(self, name: object) -> bool:
            looked_at.append(str(name))
            return False

    assert RankedVolumes(volumes).best({"host": "n7"}, Taken()) is volumes[7]
    assert looked_at == ["v7"]
