"""Volumes of pods in flight: found, assumed, shown by the watch, undone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.state import storage
from tests.unit.core.volumes import (
    MADE,
    Object,
    P,
    Q,
    binder,
    find,
    names,
    place,
    promised_to,
    selected,
    tell,
    to_c,
    why_not,
)

from ksp.core.assume_cache import NO_EVENTS
from ksp.core.changes import PodVolumes
from ksp.core.errors import StateError
from ksp.core.volume_binder import Progress
from ksp.model.volumes import VolumeMap

VOLUME_UPDATE = frozenset({"PersistentVolumeUpdate"})
CLAIM_UPDATE = frozenset({"PersistentVolumeClaimUpdate"})
BOTH_UPDATES = VOLUME_UPDATE | CLAIM_UPDATE
WAITING, BOUND = Progress.WAITING, Progress.BOUND

# ---- what is found


def test_nothing_is_to_be_done_for_bound_claims() -> None:
    subject = binder(storage.volume("v"), storage.claim("c", volume="v"))
    assert not find(subject, P)


def test_the_smallest_claim_chooses_first_and_takes_the_smallest_volume() -> None:
    subject = binder(
        storage.volume("v3", size="3Gi"), storage.volume("v2", size="2Gi"), storage.volume("v9", size="9Gi", nodes="b"),
        storage.claim("big", size="3Gi"), storage.claim("c", size="1Gi"),
    )  # fmt: skip
    assert names(find(subject, storage.pod("p", "big", "c"))) == ({"v2": "c", "v3": "big"}, [])


def test_what_finds_no_volume_is_made_one() -> None:
    subject = binder(MADE, storage.volume("v", of="made"), storage.claim("c", of="made"), storage.claim("d", of="made"))
    assert names(find(subject, storage.pod("p", "d", "c"))) == ({"v": "d"}, ["c"])


def test_a_claim_with_a_node_gets_its_volume_made_there_though_one_is_free() -> None:
    subject = binder(MADE, storage.volume("v", of="made"), storage.claim("c", of="made", selected="a"))
    assert names(find(subject, P, "a")) == ({}, ["c"])
    assert why_not(subject, P, "b") == "node(s) didn't find available persistent volumes to bind"


def test_a_claim_that_the_pod_names_twice_gets_one_volume() -> None:
    volumes = [storage.volume("v1"), storage.volume("v2")]
    subject = binder(*volumes, storage.claim("c"))
    assert names(find(subject, storage.pod("p", "c", "c"))) == ({"v1": "c"}, [])
    subject = binder(MADE, storage.volume("v", of="made"), storage.claim("c", of="made"))
    assert names(find(subject, storage.pod("p", "c", "c"))) == ({"v": "c"}, [])


def test_claims_made_for_the_pod_are_bound_like_others() -> None:
    subject = binder(storage.volume("v"), storage.claim("p-scratch"))
    assert names(find(subject, storage.pod("p", ephemeral=["scratch"]))) == ({"v": "p-scratch"}, [])


def test_what_is_found_has_the_versions_of_the_api() -> None:
    """They are the preconditions of what is written."""
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    tell(subject, storage.claim("c", version=7))
    assert [(v.metadata.resource_version, v.spec.claim_ref, c.metadata.resource_version)
            for v, c in find(subject, Q).static] == [("1", None, "7")]  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([storage.claim("c", volume="v")], 'could not find v1.PersistentVolume "v"'),
        ([storage.claim("c", volume="v"), storage.volume("v", nodes="b")],
         "node(s) had volume node affinity conflict"),
        ([storage.claim("c")], "node(s) didn't find available persistent volumes to bind"),
        ([storage.claim("c"), storage.volume("v", size="0")],
         "node(s) didn't find available persistent volumes to bind"),
        ([storage.claim("c", size="a lot"), storage.volume("v")],
         "node(s) didn't find available persistent volumes to bind"),
        ([storage.claim("c", of="gone")], "pod has unbound immediate PersistentVolumeClaims"),
        ([storage.claim("c", of=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([storage.claim("c", volume="v", complete=False), storage.volume("v")],
         "pod has unbound immediate PersistentVolumeClaims"),
        ([storage.claim("c", of="now"), storage.storage_class("now", mode="Immediate")],
         "pod has unbound immediate PersistentVolumeClaims"),
        ([storage.claim("c", of="odd"), storage.storage_class("odd", mode=None)],
         'VolumeBindingMode not set for StorageClass "odd"'),
        ([storage.claim("c", of="far"), storage.storage_class("far", "example.com/disks", hosts="b")],
         "node(s) didn't find available persistent volumes to bind"),
    ],
)  # fmt: skip
def test_why_claims_cannot_be_used(objects: list[Object], why: str) -> None:
    assert why_not(binder(*objects), P) == why


def test_both_reasons_are_said() -> None:
    subject = binder(storage.volume("v", nodes="b"), storage.claim("d", volume="v"), storage.claim("c"))
    assert why_not(subject, storage.pod("p", "c", "d")) == (
        "node(s) had volume node affinity conflict, node(s) didn't find available persistent volumes to bind"
    )


# ---- what is assumed


def test_a_promised_volume_is_nobody_elses_and_its_claim_finds_it_again() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"), storage.claim("d"))
    place(subject, P)
    assert promised_to(subject, "v") == "uid-c"
    assert why_not(subject, storage.pod("r", "d")) == "node(s) didn't find available persistent volumes to bind"
    assert names(find(subject, Q)) == ({"v": "c"}, [])
    assert subject.revert(P.uid) == VOLUME_UPDATE
    assert promised_to(subject, "v") is None
    assert names(find(subject, storage.pod("r", "d"))) == ({"v": "d"}, [])


def test_a_claim_whose_volume_is_being_made_can_be_used_there_only() -> None:
    subject = binder(MADE, storage.claim("c", of="made"))
    place(subject, P, "a")
    assert selected(subject, "c") == "a"
    assert names(find(subject, Q, "a")) == ({}, ["c"])
    assert why_not(subject, Q, "b") == "node(s) didn't find available persistent volumes to bind"
    assert subject.revert(P.uid) == CLAIM_UPDATE
    assert selected(subject, "c") is None
    assert names(find(subject, Q, "b")) == ({}, ["c"])


def test_pods_that_share_claims_do_not_undo_each_others() -> None:
    subject = binder(MADE, storage.volume("v"), storage.claim("c"), storage.claim("d", of="made"))
    one, two = storage.pod("one", "c", "d"), storage.pod("two", "d", "c")
    place(subject, one)
    assert place(subject, two) == PodVolumes(find(subject, one).static, find(subject, one).dynamic)
    assert subject.revert(one.uid) == NO_EVENTS
    assert (promised_to(subject, "v"), selected(subject, "d")) == ("uid-c", "a")
    assert subject.revert(two.uid) == BOTH_UPDATES
    assert (promised_to(subject, "v"), selected(subject, "d")) == (None, None)


def test_an_update_of_something_else_frees_no_volume() -> None:
    """It does in kube-scheduler: the label that somebody puts on the volume takes away what was assumed."""
    subject = binder(storage.volume("v"), storage.claim("c"), storage.claim("d"))
    place(subject, P)
    assert tell(subject, storage.volume("v", version=2, labels={"checked": "yes"})) == VOLUME_UPDATE
    assert promised_to(subject, "v") == "uid-c"
    assert why_not(subject, storage.pod("r", "d")) == "node(s) didn't find available persistent volumes to bind"


def test_what_the_watch_shows_ends_the_assumption_and_no_revert_undoes_it() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    by_us = storage.volume("v", version=2, to=storage.ref("c", "uid-c"))
    tell(subject, by_us)
    assert subject.revert(P.uid) == NO_EVENTS
    assert promised_to(subject, "v") == "uid-c"
    assert tell(subject, storage.volume("v", version=3)) == VOLUME_UPDATE
    assert promised_to(subject, "v") is None


def test_a_promise_by_name_alone_is_not_ours_yet() -> None:
    """The volume's owner wrote it; the scheduler adds the uid."""
    subject = binder(storage.volume("v", to=storage.ref("c")), storage.claim("c"))
    place(subject, P)
    tell(subject, to_c(version=2, uid="", labels={"checked": "yes"}))
    assert promised_to(subject, "v") == "uid-c"
    assert subject.progress(P.uid) == 'ClaimRef got reset for pv "v"'
    subject.revert(P.uid)
    assert promised_to(subject, "v") == ""


def test_a_volume_that_another_claim_got_is_that_ones() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    assert tell(subject, storage.volume("v", version=2, to=storage.ref("d", "uid-d"))) == VOLUME_UPDATE
    assert promised_to(subject, "v") == "uid-d"
    assert subject.revert(P.uid) == NO_EVENTS


def test_a_volume_is_free_again_if_its_claim_goes() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"), storage.claim("d"))
    place(subject, P)
    assert subject.remove("persistentVolumeClaims", "default", "c") == (VOLUME_UPDATE | {"PersistentVolumeClaimDelete"})
    assert promised_to(subject, "v") is None
    assert subject.revert(P.uid) == NO_EVENTS


def test_a_volume_is_free_again_if_its_claim_is_another_or_has_another_volume() -> None:
    for claim in (storage.claim("c", version=2, uid="made-anew"), storage.claim("c", version=2, volume="w")):
        subject = binder(storage.volume("v"), storage.claim("c"))
        place(subject, P)
        assert tell(subject, claim) == BOTH_UPDATES
        assert promised_to(subject, "v") is None


def test_a_claim_may_show_its_volume_before_the_volume_shows_the_claim() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    assert tell(subject, storage.claim("c", version=2, volume="v")) == CLAIM_UPDATE
    assert promised_to(subject, "v") == "uid-c"
    assert subject.progress(P.uid) is WAITING
    tell(subject, to_c())
    assert subject.progress(P.uid) is BOUND


def test_a_claim_that_loses_its_volume_again_still_has_the_promise() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    tell(subject, storage.claim("c", version=2, volume="v"))
    assert tell(subject, storage.claim("c", version=3)) == CLAIM_UPDATE
    assert promised_to(subject, "v") == "uid-c"


def test_a_volume_made_anew_is_promised_to_nobody() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    subject.remove("persistentVolumes", "", "v")
    tell(subject, storage.volume("v", version=2, uid="made-anew"))
    assert promised_to(subject, "v") is None
    assert subject.progress(P.uid) == 'failed to check binding: could not find v1.PersistentVolume "v"'


@pytest.mark.parametrize("change", [{"selected": "b"}, {"volume": "v"}, {"uid": "made-anew"}])
def test_a_claim_that_is_otherwise_provided_for_has_no_node(change: dict[str, Any]) -> None:
    subject = binder(MADE, storage.claim("c", of="made"))
    place(subject, P, "a")
    assert tell(subject, storage.claim("c", of="made", version=2, **change)) == CLAIM_UPDATE
    assert selected(subject, "c") == change.get("selected")
    assert subject.revert(P.uid) == NO_EVENTS


def test_a_pod_in_flight_is_not_placed_twice() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    found = place(subject, P)
    with pytest.raises(StateError, match="volumes of pod uid-p are assumed already, on node a"):
        subject.assume(P, "b", found)


def test_after_a_revert_the_pod_can_try_again() -> None:
    subject = binder(MADE, storage.claim("c", of="made"))
    place(subject, P, "a")
    subject.revert(P.uid)
    place(subject, P, "b")
    assert selected(subject, "c") == "b"


def test_unknown_pods_change_nothing() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    assert (subject.revert("other"), subject.progress("other")) == (NO_EVENTS, BOUND)
    assert promised_to(subject, "v") == "uid-c"


def test_nothing_is_undone_of_what_is_bound() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    tell(subject, to_c(), storage.claim("c", version=2, volume="v"))
    assert subject.progress(P.uid) is BOUND
    assert subject.revert(P.uid) == NO_EVENTS
    assert promised_to(subject, "v") == "uid-c"


def test_volumes_stand_in_the_state_so_that_what_claims_may_take_is_made_out_once_for_all_nodes() -> None:
    assert isinstance(binder(storage.volume("v")).state.objects["persistentVolumes"], VolumeMap)
