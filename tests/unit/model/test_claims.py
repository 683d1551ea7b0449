"""Which claims a pod uses, whose they are, and what their classes can make."""

from __future__ import annotations

from typing import Any

import pytest
from tests.state import storage

from ksp.model.claims import can_provision, claim_names_of, claim_uses, class_name, is_bound, is_made_for
from ksp.model.decode import convert
from ksp.model.pod import Pod
from ksp.model.storage import StorageClass

HERE = {"host": "a", "disk": "ssd"}


def test_claims_are_named_by_volumes_in_order() -> None:
    pod = storage.pod("p", "b", "a", "b", ephemeral=["scratch"])
    assert list(claim_uses(pod.metadata, pod.spec)) == [
        ("b", False), ("a", False), ("b", False), ("p-scratch", True),
    ]  # fmt: skip
    assert claim_names_of(pod.metadata, pod.spec) == ("b", "a", "b", "p-scratch")


def test_other_volumes_bring_no_claim_and_of_two_sources_the_named_claim_counts() -> None:
    volumes = [
        {"name": "disk", "gcePersistentDisk": {"pdName": "d"}},
        {"name": "both", "persistentVolumeClaim": {"claimName": "named"}, "ephemeral": {}},
    ]
    pod = convert(Pod, {"metadata": {"name": "p"}, "spec": {"volumes": volumes}})
    assert list(claim_uses(pod.metadata, pod.spec)) == [("named", False)]


def owner(uid: str, *, controller: bool = True) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": controller}


@pytest.mark.parametrize(
    ("owners", "made"),
    [
        ([], False),
        ([owner("uid-p")], True),
        ([owner("uid-p", controller=False)], False),
        ([owner("another")], False),
        ([owner("another"), owner("uid-p")], False),  # the first controller is the controller
        ([owner("another", controller=False), owner("uid-p")], True),
    ],
)
def test_a_claim_is_made_for_the_pod_that_controls_it(owners: list[dict[str, Any]], made: bool) -> None:
    claim = storage.claim("p-scratch", ownerReferences=owners)
    assert is_made_for(claim, storage.pod("p").metadata) is made


def test_a_claim_is_bound_once_the_controller_has_done_both_sides() -> None:
    assert not is_bound(storage.claim("c"))
    assert not is_bound(storage.claim("c", volume="v", complete=False))
    assert is_bound(storage.claim("c", volume="v"))


def test_the_class_of_an_annotation_wins_even_if_empty() -> None:
    assert class_name(storage.claim("c", of="fast")) == "fast"
    assert class_name(storage.claim("c", of=None)) == ""
    old = {"volume.beta.kubernetes.io/storage-class": ""}
    assert class_name(storage.claim("c", of="fast", annotations=old)) == ""


def terms(*each: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]} for term in each
    ]


@pytest.mark.parametrize(
    ("provisioner", "topologies", "can"),
    [
        ("", [], False),
        ("kubernetes.io/no-provisioner", [], False),
        ("example.com/disks", [], True),
        ("example.com/disks", terms({}), False),
        ("example.com/disks", terms({"host": ["a", "b"]}), True),
        ("example.com/disks", terms({"host": ["b"]}), False),
        ("example.com/disks", terms({"host": ["b"]}, {"disk": ["ssd"]}), True),
        ("example.com/disks", terms({"host": ["a"], "disk": ["hdd"]}), False),
        ("example.com/disks", terms({"zone": [""]}), False),
        ("kubernetes.io/no-provisioner", terms({"host": ["a"]}), False),
    ],
)
def test_where_a_class_can_make_volumes(provisioner: str, topologies: list[Any], can: bool) -> None:
    raw = {"metadata": {"name": "k"}, "provisioner": provisioner, "allowedTopologies": topologies}
    assert can_provision(convert(StorageClass, raw), HERE) is can
