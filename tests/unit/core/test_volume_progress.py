"""How far the volumes of pods in flight are, as the watch shows it, and why some come to nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.state import storage
from tests.unit.core.volumes import MADE, Object, P, binder, place, tell, to_c

from ksp.core.volume_binder import Progress

WAITING, BOUND = Progress.WAITING, Progress.BOUND


def test_a_promise_is_waited_for_until_the_claim_is_bound() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    for told in (storage.volume("v"), to_c(), storage.claim("c", version=2, volume="v", complete=False)):
        tell(subject, told)
        assert subject.progress(P.uid) is WAITING
    tell(subject, storage.claim("c", version=3, volume="v"))
    assert subject.progress(P.uid) is BOUND


def test_a_volume_that_is_made_is_waited_for_until_the_claim_is_bound() -> None:
    subject = binder(MADE, storage.claim("c", of="made"))
    place(subject, P, "a")
    made: dict[str, Any] = {"of": "made", "selected": "a"}
    for told in (
        storage.claim("c", of="made"),
        storage.claim("c", version=2, **made),
        storage.claim("c", version=3, volume="new", **made),  # which no watch has shown yet
    ):
        tell(subject, told)
        assert subject.progress(P.uid) is WAITING
    tell(subject, storage.volume("new", of="made", nodes="a", to=storage.ref("c", "uid-c")))
    assert subject.progress(P.uid) is BOUND


def test_all_claims_have_to_be_bound() -> None:
    subject = binder(storage.volume("v"), storage.volume("w"), storage.claim("c"), storage.claim("d"))
    pod = storage.pod("p", "c", "d")
    place(subject, pod)
    tell(subject, to_c(), storage.claim("c", version=2, volume="v"))
    assert subject.progress(pod.uid) is WAITING
    tell(subject, storage.volume("w", version=2, to=storage.ref("d", "uid-d")), storage.claim("d", volume="w"))
    assert subject.progress(pod.uid) is BOUND


STATIC_ERRORS: list[tuple[list[Object], str]] = [
    ([storage.volume("v", version=3)], 'ClaimRef got reset for pv "v"'),
    ([storage.volume("v", version=3, to=storage.ref("d", "uid-d"))], 'ClaimRef got reset for pv "v"'),
    ([to_c(3, nodes="b")], 'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
    ([storage.claim("c", version=2, volume="w"), storage.volume("w", nodes="b")],
     'pv "w" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
    ([storage.volume("v", uid="made-anew")], 'failed to check binding: could not find v1.PersistentVolume "v"'),
    ([storage.claim("c", uid="made-anew")],
     'failed to check binding: could not find v1.PersistentVolumeClaim "default/c"'),
]  # fmt: skip


@pytest.mark.parametrize(("objects", "error"), STATIC_ERRORS)
def test_why_a_promise_comes_to_nothing(objects: list[Object], error: str) -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    tell(subject, to_c(), *objects)
    assert subject.progress(P.uid) == error


DYNAMIC_ERRORS: list[tuple[list[Object], str]] = [
    ([storage.claim("c", version=3)], 'selectedNode annotation reset for PVC "c"'),
    ([storage.claim("c", version=3, annotations={"some": "thing"})], 'provisioning failed for PVC "c"'),
    ([storage.claim("c", version=3, selected="b")], 'provisioning failed for PVC "c"'),
    ([storage.claim("c", version=3, selected="a", volume="new"), storage.volume("new", nodes="b")],
     'pv "new" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
    ([storage.claim("c", uid="made-anew")],
     'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/c"'),
]  # fmt: skip


@pytest.mark.parametrize("write_is_shown", [True, False])
@pytest.mark.parametrize(("objects", "error"), DYNAMIC_ERRORS)
def test_why_no_volume_is_made(objects: list[Object], error: str, write_is_shown: bool) -> None:
    """The watch may show what became of what was written without having shown that."""
    subject = binder(MADE, storage.claim("c", of="made"))
    place(subject, P, "a")
    if write_is_shown:
        tell(subject, storage.claim("c", of="made", version=2, selected="a"))
    tell(subject, *objects)
    assert subject.progress(P.uid) == error


def test_what_goes_is_not_waited_for() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    subject.remove("persistentVolumes", "", "v")
    assert subject.progress(P.uid) == 'failed to check binding: could not find v1.PersistentVolume "v"'
    subject = binder(MADE, storage.claim("c", of="made"))
    place(subject, P)
    subject.remove("persistentVolumeClaims", "default", "c")
    assert subject.progress(P.uid) == (
        'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/c"'
    )


def test_no_volume_is_waited_for_on_a_node_that_is_gone() -> None:
    subject = binder(storage.volume("v"), storage.claim("c"))
    place(subject, P)
    subject.state.remove_node("a")
    assert subject.progress(P.uid) == 'failed to get node "a": node "a" not found'


def test_an_error_is_told_though_other_claims_are_waited_for() -> None:
    subject = binder(MADE, storage.volume("v"), storage.claim("c"), storage.claim("d", of="made"))
    pod = storage.pod("p", "c", "d")
    place(subject, pod)
    tell(subject, storage.claim("d", of="made", version=2, selected="b"))
    assert subject.progress(pod.uid) == 'provisioning failed for PVC "d"'
