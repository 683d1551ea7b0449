"""Claims that are wrong are said of before all rules; made-for-the-pod ones in words of their own."""

from __future__ import annotations

from typing import Any

from tests.state import storage
from tests.unit.core.scheduling import cluster, cycle_of, default_profile, node

from ksp.core.cycle import claim_errors
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolumeClaim

SCRATCH = storage.pod("p", ephemeral=["scratch"])
OWNER: dict[str, Any] = {"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}


def errors(pod: PodInfo, *claims: PersistentVolumeClaim) -> list[str]:
    state = cluster(node("n"))
    for claim in claims:
        state.set_object("persistentVolumeClaims", "default", claim.metadata.name, claim)
    return list(claim_errors(pod, state))


def test_a_claim_that_is_to_be_made_for_the_pod_is_waited_for() -> None:
    assert errors(SCRATCH) == [
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    ]


def test_that_is_an_error_of_the_attempt() -> None:
    decision = cycle_of(default_profile(), cluster(node("n"))).decide(SCRATCH)
    assert decision.failed
    assert decision.message.startswith("waiting for ephemeral volume controller")


def test_a_claim_of_that_name_has_to_be_the_pods() -> None:
    message = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    older = OWNER | {"uid": "uid-of-an-older-p"}
    assert errors(SCRATCH, storage.claim("p-scratch", ownerReferences=[OWNER])) == []
    assert errors(SCRATCH, storage.claim("p-scratch")) == [message]
    assert errors(SCRATCH, storage.claim("p-scratch", ownerReferences=[older])) == [message]


def test_any_pod_may_name_a_claim_that_was_made_for_another() -> None:
    assert errors(storage.pod("other", "p-scratch"), storage.claim("p-scratch", ownerReferences=[OWNER])) == []


def test_a_claim_that_lost_its_volume_is_an_error() -> None:
    lost = storage.claim("c", volume="gone", phase="Lost")
    assert errors(storage.pod("p", "c"), lost) == [
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"'
    ]


def test_lost_comes_before_being_deleted_and_that_before_being_anothers() -> None:
    claim = storage.claim("p-scratch", phase="Lost", volume="v", deletionTimestamp="2020-01-01T00:00:00Z")
    assert errors(SCRATCH, claim) == [
        'persistentvolumeclaim "p-scratch" bound to non-existent persistentvolume "v"',
        'persistentvolumeclaim "p-scratch" is being deleted',
        "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
    ]
