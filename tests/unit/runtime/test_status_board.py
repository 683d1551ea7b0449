from __future__ import annotations

import json
from dataclasses import replace

from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.embedded import policy

from ksp.policy.assemble import Policy
from ksp.policy.extender import Extender
from ksp.runtime.status import GENERATIONS, LIMIT, ProfileStatus, StatusBoard, encoded


def of_profiles(*names: str) -> Policy:
    profile = policy().profiles[0]
    return replace(policy(), profiles=tuple(replace(profile, scheduler_name=name) for name in names))


def board() -> StatusBoard:
    return StatusBoard(VirtualTimers(), "me")


def test_it_says_what_decides_and_forgets_an_earlier_failure() -> None:
    status = board()
    status.failed("check", "wrong", "abc")
    status.running(2, of_profiles("a"), "/etc/ksp", "folder")
    found = status.status
    assert (found.generation, found.source_kind, found.source, found.sha256) == (2, "folder", "/etc/ksp", "0" * 64)
    assert found.profiles == (ProfileStatus("a", 15, 9),)
    assert found.failure is None


def test_a_failure_is_one_line_with_its_stage_and_leaves_what_decides() -> None:
    status = board()
    status.running(1, of_profiles("a"), "x")
    status.failed("check", "one\n  two\n", "abc")
    failure = status.status.failure
    assert failure is not None
    assert (failure.stage, failure.message, failure.texts) == ("check", "one; two", "abc")
    assert status.status.generation == 1


def test_who_goes_back_decides_as_before_and_says_why() -> None:
    status = board()
    status.running(1, of_profiles("old"), "x")
    status.running(2, of_profiles("new"), "x")
    status.leads(True)
    status.failed("probation", "it denied all")
    status.went_back(3, 1)
    found = status.status
    assert (found.generation, found.rollbacks, found.leading) == (3, 1, True)
    assert [each.name for each in found.profiles] == ["old"]
    assert found.failure is not None
    assert found.failure.message == "it denied all"
    status.running(4, of_profiles("newer"), "x")
    assert (status.status.failure, status.status.rollbacks) == (None, 1)


def test_after_very_many_generations_it_still_goes_back() -> None:
    status = board()
    for number in range(1, GENERATIONS + 10):
        status.running(number, of_profiles("a"), "x")
    status.went_back(GENERATIONS + 10, 1)
    assert (status.status.generation, status.status.policy) == (GENERATIONS + 10, "that of generation 1")


def test_the_document_is_never_longer_than_the_lease_takes() -> None:
    status = board()
    extenders = tuple(Extender(url_prefix=f"http://{'e' * 300}/{number}") for number in range(30))
    many = of_profiles(*(f"{'é' * 200}-{number}" for number in range(30)))
    status.running(1, replace(many, extenders=extenders), "s" * 5000)
    status.failed("check", "x" * 5000)
    text = encoded(status.status)
    assert len(text.encode()) <= LIMIT
    assert json.loads(text)["moreProfiles"] == json.loads(text)["moreExtenders"] == 30


def test_each_change_is_told() -> None:
    status, told = board(), list[int]()
    status.changed = lambda: told.append(status.status.generation)
    status.running(1, of_profiles("a"), "x")
    status.failed("read", "gone")
    status.mended()
    assert told == [1, 1, 1]
