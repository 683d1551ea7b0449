"""Pods whose claims wait for them: the volumes are bound first, then the pod, or neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.unit.core.scheduling import node, pod, profile_of, scheduler, stepped

from ksp.core.changes import (
    Bind,
    BindVolumes,
    DeleteNode,
    DeleteObject,
    DeletePod,
    Effect,
    Report,
    SetNode,
    SetObject,
    SetPod,
)
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.model.decode import convert
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.extender import Extender

CLASSES = "storageClasses"
CLAIMS = "persistentVolumeClaims"
VOLUMES = "persistentVolumes"
TIMEOUT = 600.0


def storage_class(name: str = "late", provisioner: str = "example.com/disk") -> SetObject:
    raw = {
        "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    return SetObject(CLASSES, "", name, convert(StorageClass, raw))


def claim(
    version: str = "1", *, volume: str = "", bound: bool = False, node: str = "", name: str = "data"
) -> SetObject:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    annotations |= {"volume.kubernetes.io/selected-node": node} if node else {}
    raw: dict[str, Any] = {
        "metadata": {
            "name": name, "namespace": "default", "uid": f"claim-{name}", "resourceVersion": version,
            "annotations": annotations,
        },
        "spec": {
            "storageClassName": "late", "volumeName": volume, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }  # fmt: skip
    return SetObject(CLAIMS, "default", name, convert(PersistentVolumeClaim, raw))


def volume(version: str = "1", *, claimed: bool = False, name: str = "pv") -> SetObject:
    to = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "claim-data"}
    raw: dict[str, Any] = {
        "metadata": {"name": name, "uid": f"volume-{name}", "resourceVersion": version},
        "spec": {
            "storageClassName": "late", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "claimRef": to if claimed else None,
        },
        "status": {"phase": "Bound" if claimed else "Available"},
    }  # fmt: skip
    return SetObject(VOLUMES, "", name, convert(PersistentVolume, raw))


def user(name: str = "p", **fields: Any) -> Pod:
    return pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}], **fields)


def cluster(*objects: SetObject) -> Scheduler:
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    for change in (storage_class(), claim(), *objects):
        subject.on(change, 0.0)
    subject.on(SetPod(user()), 0.0)
    return subject


def started(*objects: SetObject) -> Scheduler:
    """The pod is decided on, and the API was told of its volumes."""
    subject = cluster(*objects)
    assert isinstance(stepped(subject).effects[0], BindVolumes)
    subject.volumes_written("p", 1.0)
    return subject


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


def only(effects: tuple[Effect, ...]) -> Effect:
    (effect,) = effects
    return effect


def test_a_volume_is_promised_first_and_the_pod_bound_once_its_claim_is() -> None:
    subject = cluster(volume())
    step = stepped(subject)
    effect = only(step.effects)
    assert isinstance(effect, BindVolumes)
    ((promised, wanting),) = effect.volumes.static
    assert (promised.metadata.name, wanting.metadata.name, effect.volumes.dynamic) == ("pv", "data", ())
    assert subject.cache.is_assumed("p")
    subject.volumes_written("p", 1.0)
    assert subject.effects() == ()
    subject.on(volume("2", claimed=True), 2.0)
    assert subject.effects() == ()
    subject.on(claim("2", volume="pv", bound=True), 3.0)
    assert subject.effects() == (Bind(step.pod, "n"),)
    subject.bind_succeeded("p", 4.0)
    subject.on(SetPod(user(on="n")), 5.0)
    assert not subject.cache.is_assumed("p")


def test_who_binds_the_pod_is_known_when_its_claims_are_bound() -> None:
    binder = Extender("http://binder", bind_verb="bind")
    subject = scheduler(extenders=[binder])
    subject.on(SetNode(node("n")), 0.0)
    for change in (storage_class(), claim(), volume()):
        subject.on(change, 0.0)
    subject.on(SetPod(user()), 0.0)
    assert isinstance(only(stepped(subject).effects), BindVolumes)
    subject.adopt(subject.generation.of(2, subject.generation.profiles, (), subject._lasting), 0.5)
    subject.volumes_written("p", 1.0)
    subject.on(volume("2", claimed=True), 2.0)
    subject.on(claim("2", volume="pv", bound=True), 3.0)
    bind = only(subject.effects())
    assert isinstance(bind, Bind)
    assert bind.extender == binder  # as was decided, though another policy decides now


def test_a_volume_is_made_where_there_is_none() -> None:
    subject = cluster()
    effect = only(stepped(subject).effects)
    assert isinstance(effect, BindVolumes)
    assert [each.metadata.name for each in effect.volumes.dynamic] == ["data"]
    subject.volumes_written("p", 1.0)
    subject.on(claim("2", node="n"), 2.0)
    subject.on(volume(claimed=True, name="made"), 3.0)
    subject.on(claim("3", node="n", volume="made", bound=True), 4.0)
    assert isinstance(only(subject.effects()), Bind)


def test_the_watch_may_be_faster_than_the_answer() -> None:
    subject = cluster(volume())
    stepped(subject)
    subject.on(volume("2", claimed=True), 0.1)
    subject.on(claim("2", volume="pv", bound=True), 0.2)
    assert subject.effects() == ()
    subject.volumes_written("p", 0.3)
    assert isinstance(only(subject.effects()), Bind)


def test_claims_that_are_bound_already_need_nothing() -> None:
    subject = cluster(volume(claimed=True), claim("2", volume="pv", bound=True))
    assert isinstance(only(stepped(subject).effects), Bind)


def test_what_takes_too_long_is_undone_and_tried_again() -> None:
    subject = started(volume())
    assert subject.next_deadline(1.0) == 1.0 + TIMEOUT
    assert subject.step(1.0 + TIMEOUT) is None
    effect = only(subject.effects())
    assert isinstance(effect, Report)
    assert effect.reason == "SchedulerError"
    assert effect.message.endswith('prebind plugin for pod "p": binding volumes: timed out waiting for the condition')
    assert place_of(subject, "p") is Place.BACKOFF
    assert "p" not in subject.cache
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is None
    assert isinstance(only(stepped(subject, 10.0 + TIMEOUT).effects), BindVolumes)


def test_what_cannot_be_written_is_undone_and_tried_again() -> None:
    subject = cluster(volume())
    stepped(subject)
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is not None
    subject.bind_failed("p", 1.0)
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is None
    assert place_of(subject, "p") is Place.BACKOFF
    subject.volumes_written("p", 1.5)  # a late answer changes nothing
    assert subject.effects() == ()
    assert subject.next_deadline(1.5) == 2.0


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        (DeleteNode("n"), "failed to get node"),
        (DeleteObject(CLAIMS, "default", "data"), "could not find v1.PersistentVolumeClaim"),
        (DeleteObject(VOLUMES, "", "pv"), 'could not find v1.PersistentVolume "pv"'),
    ],
)
def test_what_goes_while_it_is_waited_for_ends_the_waiting(gone: Any, why: str) -> None:
    subject = started(volume())
    subject.on(gone, 2.0)
    effect = only(subject.effects())
    assert isinstance(effect, Report)
    assert why in effect.message
    assert place_of(subject, "p") is Place.BACKOFF


def test_a_pod_that_goes_while_it_waits_leaves_nothing() -> None:
    subject = started(volume())
    subject.on(DeletePod("p"), 2.0)
    assert subject.effects() == ()
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is None
    assert len(subject.bindings) == 0
    assert subject.next_deadline(2.0) is None


def test_a_pod_that_others_have_bound_is_waited_for_no_more() -> None:
    subject = started(volume())
    subject.on(SetPod(user(on="n")), 2.0)
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is None
    subject.on(volume("2", claimed=True), 3.0)
    subject.on(claim("2", volume="pv", bound=True), 3.0)
    assert subject.effects() == ()
    assert len(subject.bindings) == 0


def test_a_volume_that_is_promised_is_nobody_elses() -> None:
    subject = cluster(volume(), claim(name="other"), storage_class("late", "kubernetes.io/no-provisioner"))
    stepped(subject)
    other = [{"name": "v", "persistentVolumeClaim": {"claimName": "other"}}]
    subject.on(SetPod(pod("q", volumes=other)), 0.0)
    message = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
    assert stepped(subject).decision.message == message
    subject.bind_failed("p", 1.0)  # its volume is free again
    assert stepped(subject, 1.0).pod.name == "q"


def test_two_pods_can_wait_for_one_claim() -> None:
    subject = started(volume())
    subject.on(SetPod(user("q")), 1.0)
    assert isinstance(only(stepped(subject, 1.0).effects), BindVolumes)
    subject.volumes_written("q", 1.0)
    subject.on(DeletePod("p"), 2.0)
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is not None
    subject.on(volume("2", claimed=True), 3.0)
    subject.on(claim("2", volume="pv", bound=True), 3.0)
    bind = only(subject.effects())
    assert isinstance(bind, Bind)
    assert bind.pod.name == "q"


def test_each_profile_has_its_timeout_and_without_the_rule_claims_are_left_alone() -> None:
    rules = 'import "ksp:volumes.ksp"'
    profiles = {
        "hasty": profile_of(rules, "predicates { CheckVolumeBinding(bindTimeoutSeconds: 5) }"),
        "patient": profile_of(rules, "predicates { CheckVolumeBinding }"),
        "careless": profile_of(rules, "predicates { NoDiskConflict }"),
    }
    subject = scheduler(*(replace(profile, scheduler_name=name) for name, profile in profiles.items()))
    subject.on(SetNode(node("n")), 0.0)
    for change in (storage_class(), *(claim(name=name) for name in profiles)):
        subject.on(change, 0.0)
    begun = {}
    for name in profiles:
        mounts = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        subject.on(SetPod(pod(name, volumes=mounts, schedulerName=name)), 0.0)
        begun[name] = type(only(stepped(subject).effects))
        subject.volumes_written(name, 1.0)
    assert begun == {"hasty": BindVolumes, "patient": BindVolumes, "careless": Bind}
    ends = []
    while (due := subject.bindings.next_deadline()) is not None:
        subject.step(due)
        ends += [(effect.pod.name, due) for effect in subject.effects() if isinstance(effect, Report)]
        subject.on(DeletePod(ends[-1][0]), due)
    assert ends == [("hasty", 6.0), ("patient", 1.0 + TIMEOUT)]


def test_a_claim_made_anew_while_its_volume_is_written_is_another() -> None:
    """Whatever the API was told was told of the old one."""
    subject = cluster(volume())
    stepped(subject)
    anew = stored(claim("5"))
    anew = structs.replace(anew, metadata=structs.replace(anew.metadata, uid="another"))
    subject.on(DeleteObject(CLAIMS, "default", "data"), 0.5)
    subject.on(SetObject(CLAIMS, "default", "data", anew), 0.5)
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref is None
    subject.wrote(stored(volume()), stored(volume("2", claimed=True)), 0.6)
    subject.volumes_written("p", 1.0)
    effect = only(subject.effects())
    assert isinstance(effect, Report)
    assert effect.message.endswith('could not find v1.PersistentVolumeClaim "default/data"')
    assert "p" not in subject.cache


# ---- what was written, before a watch shows it


def stored(change: SetObject) -> Any:
    return change.value


def test_what_an_attempt_wrote_before_it_failed_is_known_to_the_next_one() -> None:
    """The watch is late; another volume would do as well, and the claim would be promised two."""
    subject = cluster(volume(), volume(name="pw"))
    stepped(subject)
    subject.wrote(stored(volume()), stored(volume("2", claimed=True)), 0.5)
    subject.bind_failed("p", 1.0)
    assert subject.state.objects[VOLUMES]["pv"].spec.claim_ref.name == "data"
    subject.on(volume(name="pa"), 1.5)  # it would come first by its name
    again = stepped(subject, 2.5)
    assert isinstance(again.effects[0], BindVolumes)
    assert [promised.metadata.name for promised, _ in again.effects[0].volumes.static] == ["pv"]


@pytest.mark.parametrize("shown", [volume("3"), DeleteObject(VOLUMES, "", "pv")])
def test_what_a_watch_has_shown_since_counts_more_than_what_was_written(shown: SetObject | DeleteObject) -> None:
    subject = cluster(volume())
    stepped(subject)
    subject.on(shown, 0.5)
    subject.wrote(stored(volume()), stored(volume("2", claimed=True)), 1.0)
    subject.bind_failed("p", 1.0)
    found = subject.state.objects[VOLUMES].get("pv")
    assert (found is None) is isinstance(shown, DeleteObject)
    assert found is None or found.spec.claim_ref is None


def test_what_was_written_is_no_event_to_others() -> None:
    """They saw it from the moment of the decision."""
    subject = cluster(volume())
    stepped(subject)
    before = dict(subject.queue.incoming)
    subject.wrote(stored(volume()), stored(volume("2", claimed=True)), 0.5)
    subject.on(volume("2", claimed=True), 1.0)
    assert subject.queue.incoming == before
