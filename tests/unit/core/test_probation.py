"""A policy under which pods get no node any more that had one before goes back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.core.extending import asked, ended, extender, only
from tests.unit.core.scheduling import default_profile, node, pod, profile_of, scheduler, stepped
from tests.unit.core.test_generation import DENY, LATER, ROOM, SECOND, made

from ksp.core.changes import SetNode, SetPod
from ksp.core.equivalence.classes import MOST_BYTES
from ksp.core.errors import StateError
from ksp.core.generation import RESTING_BYTES
from ksp.core.probation import Standing, Terms, Verdict
from ksp.core.questions import FilterAnswer
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile

HALF = Terms(0.5)
FAILS = profile_of("predicate Broken { fail 'broken' when true }", "predicates { Broken }")


def cluster(*profiles: Profile, extenders: Sequence[Extender] = ()) -> Scheduler:
    subject = scheduler(*profiles, extenders=extenders)
    subject.on(SetNode(node("a", cpu="100")), 0.0)
    return subject


def adopted(*profiles: Profile, terms: Terms = HALF) -> Scheduler:
    """These are on probation after the shipped rules."""
    subject = cluster()
    subject.adopt(made(subject, profiles), 0.0, terms)
    return subject


def decided(subject: Scheduler, number: int, now: float = 0.0, **fields: object) -> None:
    """So many new pods are."""
    for i in range(number):
        subject.on(SetPod(pod(f"{now}-{i}", **fields)), now)  # type: ignore[arg-type]
    for _ in range(number):
        stepped(subject, now)


def verdict(subject: Scheduler, now: float = 0.0) -> Verdict:
    assert subject.probation is not None
    return subject.probation.verdict(now)


@pytest.mark.parametrize("profile", [DENY, FAILS])
def test_a_policy_under_which_nothing_fits_fails(profile: Profile) -> None:
    subject = adopted(profile)
    decided(subject, 4)
    assert verdict(subject).standing is Standing.PENDING  # a handful is needed
    decided(subject, 1, 0.1)
    assert verdict(subject) == Verdict(Standing.FAILED, 5, 5)
    assert verdict(subject).ratio == 1.0


def test_one_that_is_meant_to_deny_all_can_be_enforced() -> None:
    subject = adopted(DENY, terms=Terms(1.0))
    decided(subject, 10)
    assert verdict(subject) == Verdict(Standing.PENDING, 10, 10)


def test_what_the_one_before_denied_too_does_not_count() -> None:
    subject = adopted(DENY)
    decided(subject, 10, requests={"cpu": "200"})
    assert verdict(subject) == Verdict(Standing.PENDING, 0, 0)


def test_a_backlog_of_pods_that_fit_nowhere_hides_nothing() -> None:
    subject = adopted(DENY, terms=Terms(0.9, attempts=20))
    decided(subject, 30, requests={"cpu": "200"})
    decided(subject, 5, 1.0)
    assert verdict(subject, 1.0) == Verdict(Standing.FAILED, 5, 5)


def test_a_pod_that_fits_nowhere_any_more_counts_no_more() -> None:
    subject = adopted(DENY)
    decided(subject, 3)
    assert verdict(subject).denied == 3
    for i in range(3):
        subject.on(SetPod(pod(f"0.0-{i}", requests={"cpu": "200"})), LATER)
        subject.step(LATER)
    assert verdict(subject) == Verdict(Standing.PENDING, 0, 0)


def test_what_was_an_error_before_does_not_count() -> None:
    subject = adopted(DENY)
    decided(subject, 10, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    assert verdict(subject).denied == 0


def test_nor_do_pods_that_had_no_profile_before() -> None:
    subject = adopted(DENY, profile_named("second", DENY))
    decided(subject, 10, schedulerName="second")
    assert verdict(subject).denied == 0


def profile_named(name: str, profile: Profile) -> Profile:
    from dataclasses import replace

    return replace(profile, scheduler_name=name)


def test_each_pod_counts_once_by_what_was_decided_last() -> None:
    subject = adopted(ROOM)
    decided(subject, 5)
    assert verdict(subject) == Verdict(Standing.FAILED, 5, 3)
    subject.on(SetNode(node("b")), LATER)
    for _ in range(3):
        subject.step(LATER)
    assert verdict(subject) == Verdict(Standing.PENDING, 5, 1)


def test_more_than_the_share_have_to_be_denied() -> None:
    subject = adopted(ROOM, terms=Terms(0.75))
    decided(subject, 8)
    assert verdict(subject) == Verdict(Standing.PENDING, 8, 6)
    decided(subject, 1, 0.5)
    assert verdict(subject) == Verdict(Standing.FAILED, 9, 7)


def test_it_has_passed_after_a_time_or_after_many_attempts() -> None:
    subject = adopted(default_profile(), terms=Terms(0.5, attempts=6, seconds=10.0))
    assert verdict(subject, 9.9).standing is Standing.PENDING
    assert verdict(subject, 10.0).standing is Standing.PASSED
    decided(subject, 6)
    assert verdict(subject).standing is Standing.PASSED
    decided(subject, 1, 1.0)
    assert verdict(subject, 1.0).pods == 6  # nobody is asked any more
    subject.end_probation()
    assert subject.probation is None


# ---- back


def test_the_one_before_decides_again() -> None:
    subject = adopted(DENY, SECOND)
    decided(subject, 5)
    went = subject.go_back(1.0)
    assert (went.came, went.moved, subject.probation) == (frozenset(), 5, None)
    assert subject.generation.number == 3
    assert {stepped(subject, LATER).decision.node for _ in range(5)} == {"a"}
    with pytest.raises(StateError):
        subject.go_back(1.0)


def test_pods_that_have_no_profile_before_leave_again() -> None:
    subject = adopted(default_profile(), SECOND)
    subject.on(SetPod(pod("p", schedulerName="second")), 0.0)
    assert [each.name for each in subject.go_back(1.0).left] == ["p"]
    assert subject.pending()["active"] == 0


def test_the_generation_that_rests_takes_less() -> None:
    subject = adopted(ROOM)
    assert subject.probation is not None
    classes = subject.probation.before.cycles["default-scheduler"].classes
    assert classes.most_bytes == RESTING_BYTES
    subject.go_back(1.0)
    assert subject.cycles["default-scheduler"].classes is classes
    assert classes.most_bytes == MOST_BYTES


def test_while_one_is_in_doubt_the_next_is_held_against_the_last_that_was_not() -> None:
    subject = adopted(DENY)
    subject.adopt(made(subject, [ROOM]), 0.0, HALF)
    assert subject.probation is not None
    assert subject.probation.before.number == 1
    subject.adopt(made(subject, [DENY]), HALF.seconds, HALF)
    assert subject.probation.before.number == 3


def test_without_terms_there_is_no_way_back() -> None:
    subject = adopted(DENY)
    subject.adopt(made(subject, [ROOM]), 0.0)
    assert subject.probation is None


def test_numbers_go_up_though_one_that_was_being_prepared_is_adopted_after_that() -> None:
    subject = adopted(DENY)
    generation = made(subject, [ROOM])
    subject.go_back(1.0)
    assert subject.generation.number == 3
    subject.adopt(generation, 2.0, HALF)
    assert subject.generation.number == 4


def test_it_can_be_reloaded_after_it_went_back() -> None:
    subject = adopted(DENY)
    subject.go_back(1.0)
    subject.adopt(made(subject, [ROOM]), 2.0, HALF)
    assert (subject.generation.number, subject.generation.profiles) == (4, [ROOM])


# ---- extenders


def test_what_extenders_refuse_counts_against_neither() -> None:
    subject = cluster(extenders=[extender()])
    subject.adopt(made(subject, [default_profile()], [extender("other")]), 0.0, HALF)
    for i in range(5):
        subject.on(SetPod(pod(f"p{i}")), 0.0)
        asked(subject)
        ended(subject, FilterAnswer((), {"a": "no"}))
    assert verdict(subject) == Verdict(Standing.PENDING, 0, 0)


def test_but_what_rules_deny_does() -> None:
    subject = cluster(extenders=[extender()])
    subject.adopt(made(subject, [DENY], [extender()]), 0.0, HALF)
    decided(subject, 5)
    assert verdict(subject).standing is Standing.FAILED


def test_so_does_what_an_extender_refuses_that_was_not_there_before() -> None:
    subject = cluster()
    subject.adopt(made(subject, [default_profile()], [extender()]), 0.0, HALF)
    for i in range(5):
        subject.on(SetPod(pod(f"p{i}")), 0.0)
        asked(subject)
        ended(subject, only())
    assert verdict(subject).standing is Standing.FAILED
    subject.go_back(1.0)
    assert stepped(subject, LATER).decision.node == "a"
    queued = subject.queue.get("p0")
    assert queued is not None
    assert queued.place is Place.IN_FLIGHT
