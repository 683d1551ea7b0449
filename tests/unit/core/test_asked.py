"""While extenders are asked nothing else happens, and nothing of what comes in is lost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.extending import asked, ended, extended, extender, next_ask, only
from tests.unit.core.scheduling import node, pod, stepped

from ksp.core.changes import Bind, DeleteNode, DeletePod, Evict, Report, SetNode, SetPod
from ksp.core.errors import StateError
from ksp.core.extenders import EXTENDER
from ksp.core.questions import Failed, FilterAnswer, NodeVictims, ProcessPreemption, Victims, VictimUids
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step

NODES = (node("a"), node("b"))
BIG = {"cpu": "3"}
PREEMPTS: dict[str, Any] = {"filter_verb": "", "preempt_verb": "preempt"}
REFUSAL = FilterAnswer((), {"a": "no", "b": "no"})
AFTER = 20.0  # every backoff


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


# ---- while a question is open


def test_nobody_is_decided_while_a_question_is_open() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"), pod("q")))
    asked(subject)
    assert subject.step(1.0) is None
    assert subject.next_deadline(1.0) is None
    assert subject.pending()["active"] == 1
    ended(subject, only("a"), now=2.0)
    assert subject.next_deadline(2.0) == 2.0


def test_changes_wait_and_are_taken_in_then() -> None:
    """The attempt ends in the state in which it began."""
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    subject.on(DeleteNode("a"), 1.0)
    subject.on(SetPod(pod("q")), 1.0)
    assert subject.state.nodes.keys() == {"a", "b"}
    assert "q" not in subject.queue
    step = ended(subject, only("a"), now=2.0)
    assert step.effects == (Bind(step.pod, "a"),)
    assert subject.state.nodes.keys() == {"b"}
    queued = subject.queue.get("q")
    assert queued is not None
    assert queued.added == 1.0  # when it came


def test_they_wait_for_the_last_answer() -> None:
    subject = extended(extender("one"), extender("two"), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    subject.on(DeleteNode("a"), 1.0)
    next_ask(subject, only("a", "b"))
    assert "a" in subject.state.nodes
    ended(subject, only("b"))
    assert "a" not in subject.state.nodes


def test_a_pod_that_goes_meanwhile_is_gone() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    subject.on(DeletePod("p"), 1.0)
    assert isinstance(ended(subject, only("a")).effects[0], Bind)
    assert subject.cache_size() == {"nodes": 2, "pods": 0, "assumed_pods": 0}
    subject.bind_failed("p", 2.0)
    assert subject.step(AFTER) is None


def test_outcomes_wait_too() -> None:
    subject = extended(extender(managed_resources=frozenset({"x/y"})), nodes=NODES, pods=(pod("bound"), pod("failed")))
    stepped(subject)
    stepped(subject)
    subject.on(SetPod(pod("p", requests={"x/y": "0"})), 0.0)
    asked(subject)
    subject.bind_succeeded("bound", 1.0)
    subject.bind_failed("failed", 1.0)
    subject.relisted(0.5, 1.0)
    assert place_of(subject, "failed") is Place.IN_FLIGHT
    ended(subject, only("a"))
    assert place_of(subject, "failed") is Place.BACKOFF
    assert subject.cache.is_assumed("bound")  # it was bound after the list was asked for


def test_an_event_while_a_question_was_open_is_not_missed() -> None:
    """Since it may be what the pod needs, the pod comes back after its backoff."""
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    subject.on(SetNode(node("c")), 0.5)
    ended(subject, REFUSAL, now=1.0)
    assert asked(subject, AFTER).pod.name == "p"


def test_an_answer_to_nothing_is_an_error() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    with pytest.raises(StateError):
        subject.answer((), 0.0)
    asked(subject)
    ended(subject, only("a"))
    with pytest.raises(StateError):
        subject.answer((), 0.0)


def test_nobody_has_to_be_asked() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    step = ended(subject, *asked(subject).failed("no time"))
    assert step.decision.message == "no time"


def test_a_fault_of_the_attempt_leaves_no_question_open(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    subject.on(DeletePod("p"), 1.0)
    monkeypatch.setattr(type(subject.bindings), "begin", _broken)
    with pytest.raises(ZeroDivisionError):
        subject.answer((only("a"),), 1.0)
    assert subject.asked is None
    assert "p" not in subject.queue


def test_a_fault_in_what_waited_is_told_and_the_rest_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    monkeypatch.setattr(subject.outcomes, "bind_failed", _broken)
    subject.bind_failed("q", 1.0)
    subject.on(SetPod(pod("q")), 1.0)
    assert ended(subject, only("a")).decision.node == "a"
    assert subject.next_deadline(1.0) == 1.0
    with pytest.raises(ExceptionGroup) as caught:
        subject.step(1.0)
    assert isinstance(caught.value.exceptions[0], ZeroDivisionError)
    assert asked(subject, 1.0).pod.name == "q"


def _broken(*_: object) -> None:
    raise ZeroDivisionError


# ---- pods that extenders refused


@pytest.mark.parametrize(
    "change", [SetPod(pod("other", on="a")), SetNode(node("a", labels={"x": "y"})), DeletePod("on")]
)
def test_a_pod_that_an_extender_refused_wakes_after_any_event(change: SetPod | SetNode | DeletePod) -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("on", on="a"), pod("p")))
    asked(subject)
    step = ended(subject, REFUSAL)
    assert step.decision.denied_by == {EXTENDER}
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    assert subject.step(AFTER) is None
    subject.on(change, AFTER)
    assert asked(subject, AFTER).pod.name == "p"


def test_it_wakes_at_the_end_of_its_patience() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    ended(subject, REFUSAL)
    assert subject.next_deadline(0.0) == 60.0
    assert asked(subject, 60.0).pod.name == "p"


def test_one_that_rules_keep_from_all_nodes_sleeps_by_these() -> None:
    """Whatever an extender would say."""
    subject = extended(extender(), nodes=NODES, pods=(pod("p", requests={"cpu": "5"}),))
    stepped(subject)
    subject.on(SetNode(node("a", labels={"x": "y"})), AFTER)
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    subject.on(SetNode(node("a", cpu="8")), AFTER)
    assert asked(subject, AFTER).pod.name == "p"


def test_pods_of_one_kind_are_not_alike_to_extenders() -> None:
    """That one was refused says nothing of the other, and both wake."""
    subject = extended(extender(), nodes=NODES, pods=(pod("p"), pod("q")))
    for _ in range(2):
        asked(subject)
        ended(subject, REFUSAL)
    subject.on(SetPod(pod("other", on="a")), AFTER)
    assert {asked(subject, AFTER).pod.name, _refused(subject)} == {"p", "q"}


def _refused(subject: Scheduler) -> str:
    """The next pod that is tried, after the one of which a question is open."""
    ended(subject, REFUSAL, now=AFTER)
    return asked(subject, AFTER).pod.name


# ---- preemption


def crowded(*extenders: Any, **fields: Any) -> Scheduler:
    """On each of two nodes two pods of low priority have to go for the one of high priority."""
    low = tuple(
        pod(f"low-{where}{i}", on=where, requests={"cpu": "2"}, priority=i, **fields) for where in "ab" for i in (1, 2)
    )
    high = pod("high", requests={"cpu": "4"}, priority=10)
    return extended(*extenders, nodes=NODES, pods=(*low, high))


def victims(step: Step) -> list[str]:
    return [victim.name for effect in step.effects if isinstance(effect, Evict) for victim in effect.victims]


def named(**by_node: tuple[str, ...]) -> Victims:
    return Victims({name: VictimUids(uids) for name, uids in by_node.items()})


def test_candidates_are_shown_with_their_victims() -> None:
    subject = crowded(extender(**PREEMPTS))
    (question,) = asked(subject).questions
    assert isinstance(question, ProcessPreemption)
    shown = {name: ([pod.name for pod in each.pods], each.violations) for name, each in question.victims.items()}
    assert shown == {"a": (["low-a2", "low-a1"], 0), "b": (["low-b2", "low-b1"], 0)}
    step = ended(subject, named(b=("low-b2", "low-b1")))
    assert step.preempted is not None
    assert (step.preempted.node, victims(step)) == ("b", ["low-b2", "low-b1"])


def test_of_what_they_leave_the_best_is_chosen() -> None:
    """Fewest violations, then the lowest priority of the first victim, and so on."""
    subject = crowded(extender(**PREEMPTS))
    asked(subject)
    step = ended(subject, named(a=("low-a2",), b=("low-b1",)))
    assert victims(step) == ["low-b1"]
    violating = crowded(extender(**PREEMPTS))
    asked(violating)
    answer = Victims({"a": VictimUids(("low-a2",), 0), "b": VictimUids(("low-b1",), 1)})
    assert victims(ended(violating, answer)) == ["low-a2"]


def test_the_next_is_shown_what_the_one_before_left() -> None:
    subject = crowded(extender("one", **PREEMPTS), extender("two", **PREEMPTS))
    asked(subject)
    (question,) = next_ask(subject, named(a=("low-a1",))).questions
    assert isinstance(question, ProcessPreemption)
    assert question.victims == {"a": NodeVictims((subject.state.pods["low-a1"],))}
    assert victims(ended(subject, named(a=("low-a1",)))) == ["low-a1"]


def test_nobody_goes_if_they_leave_nothing() -> None:
    subject = crowded(extender("one", **PREEMPTS), extender("two", **PREEMPTS))
    asked(subject)
    step = ended(subject, Victims({}))
    assert step.preempted is None
    assert step.effects == (Report(step.pod, "Unschedulable", step.decision.message, nominated_node=""),)


@pytest.mark.parametrize(
    "answer",
    [
        Failed("late"),
        FilterAnswer(("a",)),
        named(x=("low-a1",)),
        named(a=("unknown",)),
        named(a=("low-b1",)),
        named(a=()),
        named(a=("low-a1", "low-a1")),
        named(a=("high-a",)),
    ],
)
def test_an_answer_that_makes_no_sense_ends_the_preemption(answer: Any) -> None:
    """Unless the extender may be left out."""
    for ignorable in (False, True):
        subject = crowded(extender(ignorable=ignorable, **PREEMPTS))
        subject.on(SetPod(pod("high-a", on="a", requests={"cpu": "0"}, priority=10)), 0.0)
        asked(subject)
        step = ended(subject, answer)
        assert step.decision.message == "0/2 nodes are available: 2 Insufficient cpu."
        assert bool(victims(step)) is ignorable


def test_a_pod_whose_preemption_was_refused_wakes_after_any_event() -> None:
    subject = crowded(extender(**PREEMPTS))
    asked(subject)
    ended(subject, Victims({}))
    subject.on(SetNode(node("a", labels={"x": "y"})), AFTER)
    assert asked(subject, AFTER).pod.name == "high"


def test_without_a_verb_for_it_others_are_evicted_all_the_same() -> None:
    subject = crowded(extender())
    assert victims(stepped(subject)) == ["low-a2", "low-a1"]


def test_where_an_extender_refused_a_node_nobody_goes_for_nothing() -> None:
    """Only who has to go by the rules does; here nobody has."""
    subject = extended(extender(), nodes=(node("a"),), pods=(pod("low", on="a"), pod("high", priority=10)))
    asked(subject)
    step = ended(subject, FilterAnswer((), {"a": "no"}))
    assert step.preempted is None
    assert place_of(subject, "high") is Place.UNSCHEDULABLE


def test_a_node_that_an_extender_refused_for_good_is_no_candidate() -> None:
    """On `b` rules refuse the pod, which others that leave can change."""
    low = pod("low", on="b", requests={"cpu": "3"})
    high = pod("high", requests=BIG, priority=10)
    subject = extended(extender(preempt_verb="preempt"), nodes=NODES, pods=(low, pod("tiny", on="a"), high))
    asked(subject)
    (question,) = next_ask(subject, FilterAnswer((), {}, {"a": "never"})).questions
    assert isinstance(question, ProcessPreemption)
    assert question.victims.keys() == {"b"}


def test_equal_candidates_are_told_apart_by_when_victims_started() -> None:
    """Those that started last go."""
    subject = crowded(extender(**PREEMPTS))
    for name, started in (("low-a1", "2026-01-01T00:00:00Z"), ("low-b1", "2026-01-02T00:00:00Z")):
        known = pod(name, on=name[4], requests={"cpu": "2"}, priority=1)
        from msgspec.structs import replace

        subject.on(SetPod(replace(known, status=replace(known.status, start_time=started))), 0.0)
    asked(subject)
    assert victims(ended(subject, named(a=("low-a1",), b=("low-b1",)))) == ["low-b1"]
