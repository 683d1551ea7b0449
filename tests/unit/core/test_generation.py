"""Another policy decides from now on: nobody is lost, and nothing is decided by the one before."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
from tests.unit.core.extending import asked, ended, extender, only
from tests.unit.core.scheduling import anti_affinity, default_profile, node, pod, profile_of, scheduler, stepped

from ksp.core.changes import PROFILE_REMOVED, Bind, ClearNomination, DeletePod, SetNode, SetPod, Warn
from ksp.core.errors import StateError
from ksp.core.generation import TOGETHER, Generation
from ksp.core.queue import Place
from ksp.core.scheduler import Adopted, Scheduler
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile

DENY = profile_of("predicate Closed { deny 'closed' when true }", "predicates { Closed }")
ROOM = profile_of("predicate Room { deny 'full' when node.podCount >= 2 }", "predicates { Room }")
SECOND = replace(default_profile(), scheduler_name="second")
LATER = 30.0  # every backoff has ended


def made(subject: Scheduler, profiles: Sequence[Profile], extenders: Sequence[Extender] = ()) -> Generation:
    preparation = subject.prepare(profiles, extenders)
    while not preparation.step():
        pass
    return preparation.generation


def reloaded(subject: Scheduler, *profiles: Profile, now: float = 0.0) -> Adopted:
    return subject.adopt(made(subject, profiles), now)


def cluster(*pods: Any, profiles: Sequence[Profile] = ()) -> Scheduler:
    subject = scheduler(*profiles)
    for name in "ab":
        subject.on(SetNode(node(name)), 0.0)
    for each in pods:
        subject.on(SetPod(each), 0.0)
    return subject


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


def warned(subject: Scheduler) -> list[str]:
    """Who is told that there is no profile."""
    effects = subject.effects()
    return [each.pod.name for each in effects if isinstance(each, Warn) and each.reason == PROFILE_REMOVED]


# ---- decisions


def test_the_new_policy_decides() -> None:
    subject = cluster(pod("p"), pod("q"))
    assert stepped(subject).decision.node
    adopted = reloaded(subject, DENY)
    assert (adopted.left, adopted.came) == ((), frozenset())
    assert (subject.generation.number, subject.generation.profiles) == (2, [DENY])
    assert stepped(subject).decision.message == "0/2 nodes are available: 2 closed."


def test_a_generation_that_is_not_ready_cannot_be_had() -> None:
    preparation = cluster().prepare([DENY], ())
    with pytest.raises(ValueError, match="not ready"):
        _ = preparation.generation


def test_slices_are_small_and_the_state_may_change_between_them() -> None:
    """In each one rule is asked about all nodes, or a few dozen pods are looked at whose classes are there."""
    subject = cluster(*(pod(f"p{i}") for i in range(3 * TOGETHER)))
    preparation = subject.prepare([default_profile()], ())
    slices = 0
    while not preparation.step():
        slices += 1
        subject.on(SetNode(node(f"n{slices}")), 0.0)
        subject.on(SetPod(pod(f"on{slices}", on=f"n{slices}")), 0.0)
    rules = len(default_profile().predicates) + len(default_profile().priorities)
    assert rules <= slices <= 3 * rules
    assert preparation.generation.cycles["default-scheduler"].classes.size()["classes"] == 1
    subject.adopt(preparation.generation, 0.0)
    assert stepped(subject).decision.filtered.examined == 2 + slices


def test_classes_are_made_beforehand_of_pods_that_wait_or_were_decided() -> None:
    subject = cluster(pod("p"), pod("waits", requests={"cpu": "5"}), pod("broken", requests={"cpu": "many"}))
    for _ in range(3):
        stepped(subject)
    reloaded(subject, default_profile())
    classes = subject.cycles["default-scheduler"].classes
    assert classes.size()["classes"] == 2
    subject.on(SetPod(pod("q")), 1.0)
    for _ in range(3):
        stepped(subject, LATER)
    assert (classes.counters.hits, classes.counters.misses) == (2, 0)


def test_without_classes_nothing_is_prepared() -> None:
    subject = Scheduler([default_profile()], scheduler_dice(), equivalence_classes=0)
    subject.on(SetNode(node("a")), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    reloaded(subject, ROOM)
    assert stepped(subject).decision.node == "a"


def scheduler_dice() -> Any:
    from tests.unit.core.scheduling import FakeDice

    return FakeDice()


def test_what_the_old_generation_made_is_freed() -> None:
    away = pod("away", labels={"app": "db"}, affinity=anti_affinity("db"))
    subject = cluster(pod("p"), pod("low", on="a"), pod("high", priority=10, requests={"cpu": "4"}), away)
    for _ in range(3):
        stepped(subject)
    old = subject.generation
    classes = [each.classes for each in old.cycles.values()]
    kept: list[ref[Any]] = [ref(each) for each in (old, old.present, *classes, *old.preemptions.values())]
    memos = [ref(memo) for each in classes for memo in each._recall._memos.values()]
    tables = [ref(table) for table in old.present.tables._tables.values()]
    assert len(memos) > 10
    assert tables
    del old, classes
    gc.disable()  # it would take its time
    try:
        reloaded(subject, ROOM)
        assert not [each for each in (*kept, *memos, *tables) if each() is not None]
    finally:
        gc.enable()


def test_so_is_what_was_prepared_and_is_not_wanted_any_more() -> None:
    subject = cluster(pod("p"))
    preparation = subject.prepare([default_profile()], ())
    while not preparation.step():
        pass
    classes = preparation.generation.cycles["default-scheduler"].classes
    assert classes.size() != {"classes": 0, "memos": 0}
    preparation.abandon()
    assert not preparation.step()
    assert classes.size() == {"classes": 0, "memos": 0}
    with pytest.raises(ValueError, match="not ready"):
        _ = preparation.generation


# ---- pods that wait


def test_all_unschedulable_pods_move_when_they_have_backed_off() -> None:
    subject = cluster(pod("soon", requests={"cpu": "5"}))
    stepped(subject)
    subject.on(SetPod(pod("late", requests={"cpu": "5"})), 10.0)
    stepped(subject, 10.0)
    assert reloaded(subject, ROOM, now=10.5).moved == 2
    assert {uid: place_of(subject, uid) for uid in ("soon", "late")} == {"soon": Place.ACTIVE, "late": Place.BACKOFF}
    assert subject.queue.incoming["active", "PolicyReload"] == 1
    assert subject.queue.incoming["backoff", "PolicyReload"] == 1
    assert stepped(subject, 10.5).decision.node
    assert subject.step(10.5) is None
    assert stepped(subject, 11.0).decision.node


def test_gated_pods_stay_gated() -> None:
    subject = cluster(pod("p", schedulingGates=[{"name": "wait"}]))
    reloaded(subject, ROOM)
    assert subject.pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}


def test_a_pod_that_fails_by_the_new_rules_sleeps_by_these() -> None:
    """Though the one before would not have been helped by a pod that leaves."""
    subject = cluster(*(pod(f"on-{where}{i}", on=where) for where in "ab" for i in range(2)), pod("p"))
    reloaded(subject, ROOM)
    stepped(subject)
    subject.on(SetNode(node("a", labels={"x": "y"})), LATER)
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    subject.on(DeletePod("on-a0"), LATER)
    assert stepped(subject, LATER).decision.node == "a"


# ---- profiles that go and come


def test_pods_whose_profile_has_gone_leave_and_are_told_once() -> None:
    subject = cluster(
        pod("p", schedulerName="second"), pod("gated", schedulerName="second", schedulingGates=[{"name": "wait"}]),
        pod("ours"), profiles=(default_profile(), SECOND),
    )  # fmt: skip
    adopted = reloaded(subject, default_profile())
    assert [each.name for each in adopted.left] == ["p", "gated"]
    assert warned(subject) == ["p", "gated"]
    assert subject.pending() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 0}
    reloaded(subject, ROOM)
    assert warned(subject) == []


def test_their_nomination_ends_and_others_take_the_node() -> None:
    low = pod("low", on="a", requests={"cpu": "4"})
    high = pod("high", schedulerName="second", priority=10, requests={"cpu": "4"})
    subject = scheduler(default_profile(), SECOND)
    for change in (SetNode(node("a")), SetPod(low), SetPod(high)):
        subject.on(change, 0.0)
    assert stepped(subject).preempted is not None
    subject.on(DeletePod("low"), 0.5)
    subject.on(SetPod(pod("p")), 0.5)
    assert not stepped(subject, 0.5).decision.node  # `high` has claimed the node, and backs off
    reloaded(subject, default_profile(), now=0.6)
    assert [type(each) for each in subject.effects()] == [ClearNomination, Warn]
    assert not subject.queue.nominations.nodes()
    assert not subject.evictions.victims
    assert stepped(subject, LATER).decision.node == "a"


def test_nominations_stay() -> None:
    subject = cluster(pod("low-a", on="a", requests={"cpu": "4"}), pod("low-b", on="b", requests={"cpu": "4"}),
                      pod("high", priority=10, requests={"cpu": "4"}))  # fmt: skip
    step = stepped(subject)
    assert step.preempted is not None
    reloaded(subject, default_profile())
    assert subject.queue.nominations.node_of("high") == step.preempted.node
    assert list(subject.evictions.victims) == [step.preempted.victims[0].uid]


def test_a_pod_in_flight_is_bound_though_its_profile_has_gone() -> None:
    subject = cluster(pod("p", schedulerName="second"), profiles=(default_profile(), SECOND))
    stepped(subject)
    assert reloaded(subject, default_profile()).left == ()
    subject.bind_succeeded("p", 1.0)
    subject.on(SetPod(pod("p", schedulerName="second", on="a")), 1.0)
    assert warned(subject) == []
    assert subject.cache_size()["pods"] == 1


def test_or_leaves_if_it_is_not_bound() -> None:
    subject = cluster(pod("p", schedulerName="second"), profiles=(default_profile(), SECOND))
    stepped(subject)
    reloaded(subject, default_profile())
    subject.bind_failed("p", 1.0)
    assert warned(subject) == ["p"]
    assert place_of(subject, "p") is Place.ABSENT
    assert subject.cache_size()["pods"] == 0


def test_or_comes_back_if_its_profile_has() -> None:
    subject = cluster(pod("p", schedulerName="second"), profiles=(default_profile(), SECOND))
    stepped(subject)
    reloaded(subject, default_profile())
    changed = pod("p", schedulerName="second", labels={"x": "y"})
    subject.on(SetPod(changed), 0.5)  # while nobody decides for it
    assert reloaded(subject, default_profile(), SECOND).came == {"second"}
    subject.on(SetPod(changed), 0.6)
    subject.bind_failed("p", 1.0)
    assert warned(subject) == []
    assert stepped(subject, LATER).decision.node


def test_pods_of_a_profile_that_came_wait_once_they_are_told_of_again() -> None:
    foreign = pod("p", schedulerName="second")
    offered = [
        foreign, pod("ours"), pod("third", schedulerName="third"), pod("runs", on="a", schedulerName="second"),
        pod("done", phase="Failed", schedulerName="second"),
        pod("goes", schedulerName="second", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod("gated", schedulerName="second", schedulingGates=[{"name": "wait"}]),
    ]  # fmt: skip
    subject = cluster(*offered)
    assert [queued.uid for queued in subject.queue] == ["ours"]
    assert reloaded(subject, default_profile(), SECOND).came == {"second"}
    for again in (*offered, *offered):  # twice does no harm
        subject.on(SetPod(again), 1.0)
    assert [queued.uid for queued in subject.queue] == ["ours", "p"]
    assert subject.pending()["gated"] == 1
    assert {stepped(subject, 1.0).pod.name, stepped(subject, 1.0).pod.name} == {"ours", "p"}


def test_a_pod_that_is_told_of_again_claims_what_its_status_says() -> None:
    subject = cluster()
    reloaded(subject, SECOND)
    subject.on(SetPod(pod("p", schedulerName="second", nominated="a")), 0.0)
    assert subject.queue.nominations.node_of("p") == "a"


# ---- questions


def test_no_policy_is_adopted_while_extenders_are_asked() -> None:
    subject = scheduler(extenders=[extender()])
    for change in (SetNode(node("a")), SetPod(pod("p"))):
        subject.on(change, 0.0)
    asked(subject)
    generation = made(subject, [ROOM])  # it can be prepared
    with pytest.raises(StateError):
        subject.adopt(generation, 0.0)
    assert ended(subject, only("a")).decision.node == "a"
    subject.adopt(generation, 0.0)
    subject.on(SetPod(pod("q")), 0.0)
    assert isinstance(stepped(subject).effects[0], Bind)  # there are no extenders any more
