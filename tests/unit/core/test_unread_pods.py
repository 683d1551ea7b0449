"""Pods that use what the policy does not read: they wait, or their users are told; each is told once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import REQUIRED, FakeDice, default_profile, node, pod, profile_of, stepped

from ksp.core.changes import UNREAD_FIELD, UNSCHEDULABLE, Bind, DeletePod, Report, SetNode, SetPod, Warn
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.policy.unread import UnreadFields

CLAIMS = "spec.resourceClaims"
AWAY = f"spec.affinity.podAntiAffinity.{REQUIRED}[].namespaceSelector"
POLICY = "spec.topologySpreadConstraints[].nodeTaintsPolicy"
DEVICES: dict[str, Any] = {"resourceClaims": [{"name": "gpu"}]}
WISHES: dict[str, Any] = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"}
    ]
}
LONELY: dict[str, Any] = {
    "affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": {}, "namespaceSelector": {}}]}}
}


def scheduler(mode: UnreadFields = UnreadFields.REFUSE) -> Scheduler:
    subject = Scheduler([default_profile()], FakeDice(), unread_fields=mode)
    subject.on(SetNode(node("n")), 0.0)
    return subject


def warnings(step: Step) -> list[tuple[str, tuple[str, ...]]]:
    return [(e.pod.name, e.fields) for e in step.effects if isinstance(e, Warn)]


def test_refusing_is_what_happens_unless_told_otherwise() -> None:
    subject = Scheduler([default_profile()], FakeDice())
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("p", **DEVICES)), 0.0)
    assert stepped(subject).decision.unread.refused == (CLAIMS,)


def test_a_pod_whose_guarantee_would_break_waits_and_says_why() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p", **DEVICES)), 0.0)
    step = stepped(subject)
    assert step.effects == (Report(step.pod, UNSCHEDULABLE, step.decision.message, nominated_node=""),)
    assert step.decision.message.startswith("pod uses spec.resourceClaims, which the policy does not read")
    assert not step.decision.failed
    assert subject.queue.get("p") is not None
    assert subject.unread.counts == {(CLAIMS, "refused"): 1}


def test_it_is_refused_before_all_else_but_amounts_that_cannot_be_read() -> None:
    subject = Scheduler([default_profile()], FakeDice())
    subject.on(SetPod(pod("no nodes", **DEVICES)), 0.0)
    assert stepped(subject).decision.denied_by == {"(the pod itself)"}
    subject.on(SetPod(pod("odd", requests={"cpu": "a lot"}, **DEVICES)), 0.0)
    assert "a lot" in stepped(subject).decision.message


def test_no_event_but_its_own_change_helps_it() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p", **DEVICES)), 0.0)
    stepped(subject)
    subject.on(SetNode(node("m")), 5.0)
    subject.on(SetPod(pod("p", phase="Pending", **DEVICES)), 5.0)
    queued = subject.queue.get("p")
    assert queued is not None
    assert queued.place is Place.UNSCHEDULABLE
    subject.on(SetPod(pod("p")), 6.0)
    assert stepped(subject, 6.0).decision.node


def test_a_pod_that_misses_a_wish_is_placed_and_its_user_warned_once() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p", requests={"cpu": "64"}, **WISHES)), 0.0)
    step = stepped(subject)
    report, warning = step.effects
    assert isinstance(report, Report)
    assert isinstance(warning, Warn)
    assert warning == Warn(step.pod, UNREAD_FIELD, (POLICY,), warning.message)
    assert warning.message.endswith("it is ignored")
    for now, attempt in ((60.0, 2), (120.0, 3)):
        again = stepped(subject, now)
        assert (again.attempt, warnings(again)) == (attempt, [])
    assert subject.unread.counts == {(POLICY, "warned"): 1}


def test_the_binding_comes_first() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p", **WISHES)), 0.0)
    step = stepped(subject)
    assert [type(effect) for effect in step.effects] == [Bind, Warn]


def test_a_refused_pod_hears_of_its_wishes_too() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p", **DEVICES, **WISHES)), 0.0)
    step = stepped(subject)
    assert [type(effect) for effect in step.effects] == [Report, Warn]
    assert POLICY not in step.decision.message
    assert warnings(step) == [("p", (POLICY,))]


def test_warned_of_what_it_uses_the_pod_is_placed_in_other_modes() -> None:
    subject = scheduler(UnreadFields.WARN)
    subject.on(SetPod(pod("p", **DEVICES, **WISHES)), 0.0)
    step = stepped(subject)
    assert step.decision.node == "n"
    assert warnings(step) == [("p", (CLAIMS, POLICY))]
    silent = scheduler(UnreadFields.IGNORE)
    silent.on(SetPod(pod("p", **DEVICES, **WISHES)), 0.0)
    assert [type(effect) for effect in stepped(silent).effects] == [Bind]
    assert not silent.unread.counts


def test_a_pod_that_comes_again_is_told_again() -> None:
    subject = scheduler()
    for _ in range(2):
        subject.on(SetPod(pod("p", **WISHES)), 0.0)
        assert warnings(stepped(subject)) == [("p", (POLICY,))]
        subject.on(DeletePod("p"), 0.0)
    assert subject.unread.counts == {(POLICY, "warned"): 2}


def test_a_policy_that_reads_the_field_is_trusted() -> None:
    rules = "predicate Devices { deny 'no devices' when size(pod.spec.resourceClaims) > 1 }"
    subject = Scheduler([profile_of(rules, "predicates { Devices }")], FakeDice())
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("p", **DEVICES)), 0.0)
    assert stepped(subject).effects == (Bind(stepped_pod(subject), "n"),)


def stepped_pod(subject: Scheduler) -> Any:
    found = subject.cache.get("p")
    assert found is not None
    return found


# ---- running pods


def test_a_running_pod_that_newcomers_may_come_near_is_told_of_with_the_next_decision() -> None:
    subject = scheduler()
    for _ in range(2):
        subject.on(SetPod(pod("lonely", on="n", **LONELY)), 0.0)
    assert subject.unread.counts == {(AWAY, "warned"): 1}
    for name, told in (("p", [("lonely", (AWAY,))]), ("q", [])):
        subject.on(SetPod(pod(name)), 1.0)
        assert warnings(stepped(subject, 1.0)) == told


def test_of_a_running_pod_that_is_gone_nothing_is_said() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("lonely", on="n", **LONELY)), 0.0)
    subject.on(DeletePod("lonely"), 0.0)
    subject.on(SetPod(pod("p")), 1.0)
    assert warnings(stepped(subject, 1.0)) == []


def test_a_pod_that_was_placed_with_a_warning_is_not_told_of_again_when_it_runs() -> None:
    subject = scheduler(UnreadFields.WARN)
    subject.on(SetPod(pod("lonely", **LONELY)), 0.0)
    assert warnings(stepped(subject)) == [("lonely", (AWAY,))]
    subject.on(SetPod(pod("lonely", on="n", **LONELY)), 0.1)
    subject.on(SetPod(pod("p")), 1.0)
    assert warnings(stepped(subject, 1.0)) == []
    assert subject.unread.counts == {(AWAY, "warned"): 1}


@pytest.mark.parametrize("mode", UnreadFields)
def test_running_pods_keep_nobody_waiting(mode: UnreadFields) -> None:
    subject = scheduler(mode)
    subject.on(SetPod(pod("lonely", on="n", **LONELY)), 0.0)
    subject.on(SetPod(pod("p", metadata={"namespace": "other"})), 1.0)
    assert stepped(subject, 1.0).decision.node == "n"
