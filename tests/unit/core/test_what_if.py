"""What-ifs leave the state as it was, and nobody who keeps something made of it is troubled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.state.objects import node, pod

from ksp.core.errors import StateError
from ksp.core.journal import Change
from ksp.core.state import INDEXED_FIELDS, ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.info import EMPTY_NODE


def a_cluster(capacity: int = 100) -> ClusterState:
    """Two nodes, four pods on the first."""
    state = ClusterState(capacity)
    for name in ("n1", "n2"):
        state.set_node(node(name))
    for i in range(4):
        state.add_pod(pod(f"p{i}", host_port=80 + i, terms=INDEXED_FIELDS), "n1")
    return state


def picture(state: ClusterState) -> object:
    """All that a rule can see of pods; and where they are."""
    return (
        [
            (n.name, list(n.pods), dict(n.requested), dict(n.nonzero_requested), n.pod_count, n.host_ports)
            for n in state.node_list()
        ],
        {uid: (id(info), info.node.name, state.node_name_of(uid)) for uid, info in state.pods.items()},
        set(state.pods_in_namespace("default")),
        [set(state.pods_with(field)) for field in INDEXED_FIELDS],
    )


def ports(state: ClusterState) -> list[int]:
    return [port.port for port in state.nodes["n1"].host_ports]


class Follower:
    """One that replays the journal."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.generation = state.generation
        self.told: list[Sequence[Change] | None] = []

    def follow(self) -> None:
        self.told.append(self.state.changes_since(self.generation))
        self.generation = self.state.generation

    def next(self) -> Sequence[Change] | None:
        self.follow()
        return self.told[-1]


def test_a_pod_is_off_its_node_and_then_where_it_was() -> None:
    state = a_cluster()
    before = picture(state)
    with WhatIf(state) as trial:
        taken = trial.remove("p1")
        assert "p1" not in state.pods
        assert taken.node is EMPTY_NODE
        assert list(state.nodes["n1"].pods) == ["p0", "p2", "p3"]
        assert ports(state) == [80, 82, 83]
        assert state.nodes["n1"].requested["cpu"] == 300
        assert trial.restore("p1") is taken
        assert picture(state) == before
    assert picture(state) == before


@pytest.mark.parametrize("back", [("p0", "p1", "p2"), ("p2", "p1", "p0"), ("p1", "p2", "p0"), ("p2",), ()])
def test_pods_come_back_in_any_order_to_their_places(back: Sequence[str]) -> None:
    state = a_cluster()
    before = picture(state)
    with WhatIf(state) as trial:
        for uid in ("p1", "p0", "p2"):
            trial.remove(uid)
        for uid in back:
            trial.restore(uid)
        there = [uid for uid in ("p0", "p1", "p2", "p3") if uid in back or uid == "p3"]
        assert list(state.nodes["n1"].pods) == there
        assert ports(state) == [80 + int(uid[1]) for uid in there]
    assert picture(state) == before


def test_a_nominated_pod_is_the_last_on_its_node() -> None:
    state = a_cluster()
    before = picture(state)
    nominated = pod("new", host_port=99)
    with WhatIf(state) as trial:
        trial.remove("p3")
        trial.add(nominated, "n1")
        trial.restore("p3")
        assert list(state.nodes["n1"].pods) == ["p0", "p1", "p2", "p3", "new"]
        assert ports(state) == [80, 81, 82, 83, 99]
        trial.remove("new")
        trial.add(pod("newer"), "n1")
        trial.restore("new")
        assert list(state.nodes["n1"].pods)[-2:] == ["new", "newer"]
    assert picture(state) == before
    assert nominated.node is EMPTY_NODE


def test_what_is_nested_is_taken_back_first() -> None:
    state = a_cluster()
    before = picture(state)
    with WhatIf(state) as trial:
        trial.remove("p0")
        trial.remove("p1")
        outer = picture(state)
        with trial.nested():
            trial.restore("p1")
            trial.remove("p2")
            trial.add(pod("new"), "n2")
            with trial.nested():
                trial.remove("p1")
                trial.remove("new")
            assert set(state.pods) == {"p1", "p3", "new"}
        assert picture(state) == outer
        trial.add(pod("new"), "n1")
        assert list(state.nodes["n1"].pods) == ["p2", "p3", "new"]
        assert trial.restore("p1").uid == "p1"
        with pytest.raises(StateError, match="pod p2 was not taken off a node, or is there again"):
            trial.restore("p2")
    assert picture(state) == before


def test_an_addition_that_was_taken_back_cannot_be_restored() -> None:
    state = a_cluster()
    with WhatIf(state) as trial:
        with trial.nested():
            trial.add(pod("new"), "n1")
        with pytest.raises(StateError, match="pod new was not taken"):
            trial.restore("new")
        trial.remove("p3")
        trial.add(pod("newer"), "n1")
        trial.add(pod("new"), "n1")
        trial.restore("p3")
        assert list(state.nodes["n1"].pods) == ["p0", "p1", "p2", "p3", "newer", "new"]


def test_an_exception_changes_nothing_of_that() -> None:
    state = a_cluster()
    before = picture(state)
    with pytest.raises(ZeroDivisionError), WhatIf(state) as trial, trial.nested():  # noqa: PT012
        trial.remove("p0")
        trial.add(pod("new"), "n2")
        raise ZeroDivisionError
    assert picture(state) == before
    with WhatIf(state) as trial:
        trial.remove("p0")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda trial: trial.remove("p9"), "pod p9 is on no node"),
        (lambda trial: trial.remove("lost"), "pod lost is on no node"),
        (lambda trial: trial.remove("p0"), "pod p0 is on no node"),
        (lambda trial: trial.restore("p1"), "pod p1 was not taken off a node, or is there again"),
        (lambda trial: trial.restore("p2"), "pod p2 was not taken off a node, or is there again"),
        (lambda trial: trial.restore("p9"), "pod p9 was not taken"),
        (lambda trial: trial.add(pod("p0"), "n2"), "pod p0 was taken off node n1: it can be restored"),
        (lambda trial: trial.add(pod("p2"), "n2"), "pod p2 is placed already, on node n1"),
        (lambda trial: trial.add(pod("new"), "n9"), "there is no node n9"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(wrong: Callable[[WhatIf], object], why: str) -> None:
    state = a_cluster()
    state.add_pod(pod("lost"), "n3")
    before = picture(state)
    with WhatIf(state) as trial:
        trial.remove("p0")
        trial.remove("p1")
        trial.restore("p1")
        now = picture(state)
        with pytest.raises(StateError, match=why):
            wrong(trial)
        assert picture(state) == now
        assert trial.restore("p0").uid == "p0"
    assert picture(state) == before


def test_a_trial_can_be_begun_again_on_another_state_of_things() -> None:
    state = a_cluster()
    trial = WhatIf(state)
    with trial:
        trial.remove("p0")
    state.remove_pod("p3")
    state.add_pod(pod("p4", host_port=84), "n1")
    before = picture(state)
    with trial:
        trial.remove("p1")
        with pytest.raises(StateError, match="pod p0 was not taken"):
            trial.restore("p0")
        trial.restore("p1")
        assert list(state.nodes["n1"].pods) == ["p0", "p1", "p2", "p4"]
    assert picture(state) == before


def test_only_an_open_trial_can_be_asked_and_only_one_is_open() -> None:
    state = a_cluster()
    trial = WhatIf(state)
    with pytest.raises(StateError, match="over, or has not begun"):
        trial.remove("p0")
    with trial, pytest.raises(StateError, match="a trial is under way"), WhatIf(state):
        pass
    with pytest.raises(StateError, match="over, or has not begun"):
        trial.remove("p0")


@pytest.mark.parametrize("nested", [True, False])
def test_changes_by_others_are_an_error_and_are_told_to_all(nested: bool) -> None:
    state = a_cluster()
    follower = Follower(state)
    trial = WhatIf(state)
    with pytest.raises(StateError, match="changed beside the what-if"), trial:  # noqa: PT012
        trial.remove("p0")
        if nested:
            with trial.nested():
                state.remove_pod("p1")
        else:
            state.remove_pod("p1")
    told = follower.next()
    assert told is not None
    assert [change.key for change in told] == ["p0", "p1"]
    with WhatIf(state) as trial:
        trial.remove("p2")
    assert follower.next() == []


# ---- who follows


def test_who_comes_later_is_told_nothing_however_much_was_tried() -> None:
    state = a_cluster(capacity=3)
    follower = Follower(state)
    state.set_node(node("n2", cpu="8"))
    for _ in range(2):
        with WhatIf(state) as trial:
            for _ in range(5):
                trial.remove("p0")
                trial.restore("p0")
    state.set_node(node("n2", cpu="16"))
    told = follower.next()
    assert told is not None
    assert [change.key for change in told] == ["n2", "n2"]
    assert state.generation == follower.generation == 6 + 2 + 20
    assert state.generation_of("pod") == 6 + 1 + 20


def test_who_is_behind_is_told_of_both() -> None:
    state = a_cluster()
    follower = Follower(state)
    state.set_node(node("n2", cpu="8"))
    with WhatIf(state, follower) as trial:
        trial.remove("p0")
        told = follower.next()
        assert told is not None
        assert [change.key for change in told] == ["n2", "p0"]


def test_who_is_given_to_the_trial_goes_on_from_its_end() -> None:
    state = a_cluster()
    follower = Follower(state)
    with WhatIf(state, follower) as trial:
        trial.remove("p0")
        told = follower.next()
        assert told is not None
        assert [change.key for change in told] == ["p0"]
        trial.remove("p1")
    assert follower.told[1] is not None
    assert sorted(str(change.key) for change in follower.told[1]) == ["p0", "p1", "p1"]
    assert follower.next() == []
    state.set_node(node("n2", cpu="8"))
    told = follower.next()
    assert told is not None
    assert [change.key for change in told] == ["n2"]


def test_who_follows_in_between_and_not_at_the_end_starts_again() -> None:
    state = a_cluster()
    early, late = Follower(state), Follower(state)
    with WhatIf(state) as trial:
        trial.remove("p0")
        early.follow()
        late.follow()
    assert early.next() is None
    assert early.next() == []
    with WhatIf(state) as trial:
        trial.remove("p0")
        trial.restore("p0")
    assert early.next() == []
    assert late.next() is None


def test_trials_that_are_too_old_to_be_known_are_no_danger() -> None:
    state = a_cluster(capacity=2)
    between, inside = Follower(state), Follower(state)
    for i in range(4):
        with WhatIf(state) as trial:
            trial.remove("p0")
            if i == 1:
                inside.follow()
        if i == 0:
            between.follow()
    assert inside.next() is None
    assert between.next() is None
    assert between.next() == []
