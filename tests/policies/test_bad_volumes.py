"""Claims, volumes and classes that are not as they should be: what the pod's user is told, in kube-scheduler's words.

An error ends the attempt, and the pod is tried again after its backoff; a denial leaves it unschedulable. Claims that
rules never see are in `tests/unit/core/test_claim_errors.py`."""

from __future__ import annotations

import pytest
from tests.state.storage import claim, node, storage_class, volume
from tests.unit.core.scheduling import default_profile, pod, scheduler, stepped

from ksp.core.changes import Bind, BindVolumes, Effect, Report, SetNode, SetObject, SetPod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.source.origin import Texts

Object = PersistentVolume | PersistentVolumeClaim | StorageClass
KINDS = {
    PersistentVolume: "persistentVolumes", PersistentVolumeClaim: "persistentVolumeClaims",
    StorageClass: "storageClasses",
}  # fmt: skip
LOCAL = storage_class("local")
IMMEDIATE = "0/1 nodes are available: 1 pod has unbound immediate PersistentVolumeClaims."
NOT_FOUND = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
PREFILTER = 'prefilter plugin "VolumeBinding" failed for pod "p": '
FILTER = 'running "VolumeBinding" filter plugin for pod "p": '


def outcome(*objects: Object, profile: Profile | None = None) -> Effect:
    """What comes of a pod that uses the claim `c`, on a cluster of one node."""
    subject = scheduler(profile or default_profile())
    subject.on(SetNode(node("n")), 0.0)
    for each in objects:
        subject.on(SetObject(KINDS[type(each)], each.metadata.namespace, each.metadata.name, each), 0.0)
    subject.on(SetPod(pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])), 0.0)
    (effect,) = stepped(subject).effects
    return effect


UNSCHEDULABLE: dict[str, tuple[list[Object], str]] = {
    "a class that is gone": ([claim("c", of="gone")], IMMEDIATE),
    "no class at all": ([claim("c", of=None)], IMMEDIATE),
    "a binding that is not complete": ([LOCAL, claim("c", volume="v", complete=False)], IMMEDIATE),
    "a volume without capacity": ([LOCAL, volume("v", size="0"), claim("c")], NOT_FOUND),
    "a capacity that is no amount": ([LOCAL, volume("v", size="much"), claim("c")], NOT_FOUND),
    "a size that is no amount": ([LOCAL, volume("v"), claim("c", size="lots")], NOT_FOUND),
    "a volume on its way out": (
        [LOCAL, volume("v", deletionTimestamp="2020-01-01T00:00:00Z"), claim("c")], NOT_FOUND,
    ),
    "a node promised that is gone": ([LOCAL, volume("v"), claim("c", selected="gone")], NOT_FOUND),
}  # fmt: skip
ERRORS: dict[str, tuple[list[Object], str]] = {
    "no claim": ([], 'persistentvolumeclaim "c" not found'),
    "a class without a binding mode": (
        [storage_class("odd", mode=None), claim("c", of="odd")],
        f'{PREFILTER}VolumeBindingMode not set for StorageClass "odd"',
    ),
    "a bound volume that is gone": (
        [LOCAL, claim("c", volume="gone")], f'{FILTER}could not find v1.PersistentVolume "gone"',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "message"), UNSCHEDULABLE.values(), ids=UNSCHEDULABLE)
def test_a_pod_is_unschedulable(objects: list[Object], message: str) -> None:
    told = outcome(*objects)
    assert isinstance(told, Report)
    assert (told.reason, told.message) == ("Unschedulable", message)


@pytest.mark.parametrize(("objects", "message"), ERRORS.values(), ids=ERRORS)
def test_an_attempt_ends_with_an_error(objects: list[Object], message: str) -> None:
    told = outcome(*objects)
    assert isinstance(told, Report)
    assert (told.reason, told.message) == ("SchedulerError", message)


def test_a_volume_without_capacity_takes_a_claim_that_asks_for_nothing() -> None:
    """As in kube-scheduler: 0 is not below 0."""
    found = outcome(LOCAL, volume("v", size="0"), claim("c", size="0"))
    assert isinstance(found, BindVolumes)
    assert [(v.metadata.name, c.metadata.name) for v, c in found.volumes.static] == [("v", "c")]


def test_a_negative_timeout_is_an_error_that_names_it() -> None:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    (profile,) = profiles(module, {"VolumeBinding": {"bindTimeoutSeconds": -1}})
    told = outcome(claim("c", volume="v"), volume("v"), profile=profile)
    assert isinstance(told, Report)
    assert (told.reason, told.message) == ("SchedulerError", f"{PREFILTER}bindTimeoutSeconds must not be negative")


def test_what_is_as_it_should_be_is_bound() -> None:
    assert isinstance(outcome(LOCAL, volume("v"), claim("c", volume="v")), Bind)
    assert isinstance(outcome(LOCAL, volume("v"), claim("c")), BindVolumes)
