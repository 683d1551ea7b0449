"""What the API has, and what is assumed on top of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace
from tests.state import storage

from ksp.core.assume_cache import NO_EVENTS, AssumeCache
from ksp.core.errors import StateError
from ksp.core.state import ClusterState
from ksp.model.storage import PersistentVolumeClaim

KEY = ("default", "c")
ADD, UPDATE, DELETE = (frozenset({f"PersistentVolumeClaim{verb}"}) for verb in ("Add", "Update", "Delete"))


@dataclass(frozen=True)
class Label:
    """A part that tests can see: a label. Any value settles it."""

    value: str

    def over(self, obj: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return replace(obj, metadata=replace(obj.metadata, labels=obj.metadata.labels | {"part": self.value}))

    def is_settled_by(self, obj: PersistentVolumeClaim) -> bool:
        return "part" in obj.metadata.labels


def claim(version: int = 1, uid: str = "one", **labels: str) -> PersistentVolumeClaim:
    return storage.claim("c", version=version, uid=uid, labels=labels)


def cache(*, with_claim: bool = True) -> AssumeCache[PersistentVolumeClaim, Label]:
    found: AssumeCache[PersistentVolumeClaim, Label] = AssumeCache(ClusterState(), "persistentVolumeClaims")
    if with_claim:
        found.set(KEY, claim())
    return found


def shown(subject: AssumeCache[PersistentVolumeClaim, Label]) -> dict[str, str]:
    """The labels that rules see."""
    found: PersistentVolumeClaim = subject.state.objects["persistentVolumeClaims"]["default"]["c"]
    return found.metadata.labels


def test_what_the_api_has_is_what_rules_see() -> None:
    subject = cache(with_claim=False)
    assert subject.set(KEY, claim()) == ADD
    assert subject.set(KEY, claim(2, app="web")) == UPDATE
    assert shown(subject) == {"app": "web"}
    assert subject.remove(KEY) == DELETE
    assert subject.state.objects["persistentVolumeClaims"] == {}
    assert subject.remove(KEY) == NO_EVENTS


def test_versions_alone_are_no_event_but_known() -> None:
    subject = cache()
    before = subject.state.generation
    assert subject.set(KEY, claim(2)) == NO_EVENTS
    assert subject.state.generation == before
    assert subject.known(KEY).metadata.resource_version == "2"


def test_objects_that_stand_in_the_state_are_the_apis() -> None:
    state = ClusterState()
    state.set_object("persistentVolumeClaims", "default", "c", claim())
    subject: AssumeCache[PersistentVolumeClaim, Label] = AssumeCache(state, "persistentVolumeClaims")
    assert subject.api(KEY) == claim()
    assert subject.api(("default", "other")) is None


def test_an_assumed_part_is_seen_and_its_release_undoes_it() -> None:
    subject = cache()
    subject.assume(KEY, Label("x"), "p")
    assert (shown(subject), subject.known(KEY).metadata.labels) == ({"part": "x"}, {})
    assert subject.is_held(KEY, "p")
    assert subject.release("p") == UPDATE
    assert (shown(subject), subject.is_held(KEY, "p")) == ({}, False)
    assert subject.release("p") == NO_EVENTS


def test_it_stays_over_newer_versions_that_do_not_show_it() -> None:
    subject = cache()
    subject.assume(KEY, Label("x"), "p")
    assert subject.set(KEY, claim(2, app="web")) == UPDATE
    assert shown(subject) == {"app": "web", "part": "x"}


def test_a_version_that_shows_it_ends_it_unseen() -> None:
    subject = cache()
    subject.assume(KEY, Label("x"), "p")
    assert subject.set(KEY, claim(2, part="x")) == NO_EVENTS
    assert not subject.is_held(KEY, "p")
    assert subject.set(KEY, claim(3)) == UPDATE
    assert shown(subject) == {}


def test_a_version_with_something_else_in_its_place_ends_it() -> None:
    subject = cache()
    subject.assume(KEY, Label("x"), "p")
    assert subject.set(KEY, claim(2, part="y")) == UPDATE
    assert (shown(subject), list(subject.assumed())) == ({"part": "y"}, [])


@pytest.mark.parametrize("deletion_is_seen", [True, False])
def test_an_object_made_anew_has_no_part_in_it(deletion_is_seen: bool) -> None:
    subject = cache()
    subject.assume(KEY, Label("x"), "p")
    if deletion_is_seen:
        subject.remove(KEY)
    subject.set(KEY, claim(2, uid="two"))
    assert (shown(subject), list(subject.assumed())) == ({}, [])
    assert subject.release("p") == NO_EVENTS


def test_the_part_is_there_until_its_last_holder_releases_it() -> None:
    subject = cache()
    subject.assume(KEY, Label("x"), "p")
    subject.assume(KEY, Label("x"), "q")
    assert subject.release("p") == NO_EVENTS
    assert shown(subject) == {"part": "x"}
    assert subject.release("q") == UPDATE
    assert shown(subject) == {}


def test_one_pod_can_hold_parts_of_several_objects() -> None:
    subject = cache()
    subject.set(("default", "d"), storage.claim("d"))
    subject.assume(KEY, Label("x"), "p")
    subject.assume(("default", "d"), Label("y"), "p")
    subject.undo(KEY)
    assert (shown(subject), dict(subject.assumed())) == ({}, {("default", "d"): Label("y")})
    assert subject.release("p") == UPDATE
    assert dict(subject.assumed()) == {}


def test_what_is_there_is_not_assumed() -> None:
    subject = cache(with_claim=False)
    subject.set(KEY, claim(part="x"))
    subject.assume(KEY, Label("x"), "p")
    assert not subject.is_held(KEY, "p")


def test_nothing_is_assumed_of_nothing_nor_two_things_of_one() -> None:
    subject = cache()
    with pytest.raises(StateError, match="default/d among persistentVolumeClaims: there is none"):
        subject.assume(("default", "d"), Label("x"), "p")
    subject.assume(KEY, Label("x"), "p")
    with pytest.raises(StateError, match=r"Label\(value='x'\) is assumed, and now Label\(value='y'\)"):
        subject.assume(KEY, Label("y"), "q")
    assert not subject.is_held(KEY, "q")
