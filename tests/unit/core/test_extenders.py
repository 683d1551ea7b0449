"""Extenders have a say in decisions, as kube-scheduler lets them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.extending import asked, ended, extended, extender, next_ask, only
from tests.unit.core.scheduling import FakeDice, anti_affinity, node, pod, profile_of, stepped

from ksp.core.changes import SCHEDULER_ERROR, UNSCHEDULABLE, Bind, Report
from ksp.core.extenders import EXTENDER
from ksp.core.questions import Answer, Failed, Filter, FilterAnswer, Priorities, Prioritize, Victims

NODES = (node("a"), node("b"), node("c"))
NAMES = ("a", "b", "c")
GPU = "example.com/gpu"
EMPTY = profile_of("priority Empty { score 100 - node.podCount }", "priorities { Empty: 1 }")
NO_SCORES = profile_of("predicate Any { deny 'never' when node.podCount > 100 }", "predicates { Any }")
SCORES: dict[str, Any] = {"filter_verb": "", "prioritize_verb": "prioritize"}


def about(ask: object) -> list[tuple[str, tuple[str, ...]]]:
    """Who is asked about which nodes."""
    questions: tuple[Filter | Prioritize, ...] = ask.questions  # type: ignore[attr-defined]
    return [(each.extender.url_prefix.removeprefix("http://"), each.nodes) for each in questions]


# ---- who is asked


def test_only_those_whose_business_a_pod_is_are_asked() -> None:
    manages = extender(managed_resources=frozenset({GPU}))
    gpus = node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110", GPU: "1"})
    subject = extended(manages, nodes=(gpus,), pods=(pod("plain"), pod("gpu", requests={GPU: "1"})))
    assert stepped(subject).decision.node == "a"
    assert asked(subject).pod.name == "gpu"
    assert ended(subject, only("a")).decision.node == "a"


def test_those_that_may_be_left_out_are_asked_last() -> None:
    subject = extended(extender("may", ignorable=True), extender("must"), nodes=NODES, pods=(pod("p"),))
    assert about(asked(subject)) == [("must", NAMES)]
    assert about(next_ask(subject, only("b", "a"))) == [("may", ("a", "b"))]
    assert ended(subject, only("b")).decision.node == "b"


def test_an_extender_that_only_binds_is_not_asked() -> None:
    binder = extender(filter_verb="", bind_verb="bind")
    subject = extended(extender("none", filter_verb=""), binder, nodes=NODES, pods=(pod("p"),))
    (effect,) = stepped(subject).effects
    assert isinstance(effect, Bind)
    assert effect.extender == binder


def test_of_those_that_bind_the_first_binds_whose_business_the_pod_is() -> None:
    binds: dict[str, Any] = {"filter_verb": "", "bind_verb": "bind"}
    others = extender("others", managed_resources=frozenset({GPU}), **binds)
    first, second = extender("first", **binds), extender("second", **binds)
    subject = extended(others, first, second, nodes=NODES, pods=(pod("p"),))
    (effect,) = stepped(subject).effects
    assert isinstance(effect, Bind)
    assert effect.extender == first


def test_nobody_is_asked_where_rules_leave_no_node() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p", requests={"cpu": "5"}),))
    assert stepped(subject).decision.message == "0/3 nodes are available: 3 Insufficient cpu."


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"requests": {"cpu": "many"}}, "spec.containers[0]"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, '"c" not found'),
        ({"resourceClaims": [{"name": "gpu"}]}, "the policy does not read"),
    ],
)
def test_nobody_is_asked_about_a_pod_that_no_node_can_help(fields: dict[str, Any], message: str) -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p", **fields),))
    assert message in stepped(subject).decision.message


def test_nobody_is_asked_where_there_are_no_nodes() -> None:
    subject = extended(extender(), nodes=(), pods=(pod("p"),))
    assert stepped(subject).decision.message == "no nodes available to schedule pods"


# ---- filter


def test_what_one_leaves_the_next_is_asked_about() -> None:
    subject = extended(extender("one"), extender("two"), nodes=NODES, pods=(pod("p"),))
    assert about(asked(subject)) == [("one", NAMES)]
    assert about(next_ask(subject, only("c", "a", b="no"))) == [("two", ("a", "c"))]
    assert ended(subject, only("c", a="nor this")).decision.node == "c"


def test_what_rules_refuse_is_not_asked_about() -> None:
    subject = extended(extender(), nodes=(*NODES, node("small", cpu="1m")), pods=(pod("p"),))
    assert about(asked(subject)) == [("one", NAMES)]


def test_nobody_is_asked_about_no_nodes() -> None:
    subject = extended(extender("one"), extender("two"), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    step = ended(subject, FilterAnswer((), {"a": "gone", "b": "gone"}, {"c": "never"}))
    (report,) = step.effects
    assert report == Report(step.pod, UNSCHEDULABLE, "0/3 nodes are available: 1 never, 2 gone.", "")
    assert step.decision.denied_by == {EXTENDER}


def test_reasons_of_extenders_are_counted_with_those_of_rules() -> None:
    nodes = (*NODES, node("small", cpu="1m"))
    subject = extended(extender("one"), extender("two"), nodes=nodes, pods=(pod("p"),))
    asked(subject)
    next_ask(subject, only("a", b="no", c="no"))
    decision = ended(subject, FilterAnswer((), {"a": "no", "b": "not asked about any more"})).decision
    assert decision.message == "0/4 nodes are available: 1 Insufficient cpu, 3 no."
    assert decision.denied_by == {EXTENDER, "PodFitsResources"}
    assert decision.filtered.refused.keys() == {"a", "b", "c", "small"}


def test_a_node_that_is_refused_twice_has_two_reasons() -> None:
    """One that names a node as refused, and as fitting, has it both ways."""
    subject = extended(extender("one"), extender("two"), nodes=(node("a"),), pods=(pod("p"),))
    asked(subject)
    next_ask(subject, FilterAnswer(("a",), {"a": "well"}))
    decision = ended(subject, FilterAnswer((), {"a": "no"}, {})).decision
    assert decision.message == "0/1 nodes are available: 1 no, 1 well."


def test_for_a_node_that_is_refused_for_good_that_reason_counts() -> None:
    subject = extended(extender(), nodes=(node("a"),), pods=(pod("p"),))
    asked(subject)
    decision = ended(subject, FilterAnswer((), {"a": "not now"}, {"a": "never"})).decision
    assert decision.message == "0/1 nodes are available: 1 never."
    assert decision.filtered.refused["a"].is_final


def test_of_a_node_that_is_left_out_nothing_is_said() -> None:
    subject = extended(extender(), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    decision = ended(subject, only(a="no")).decision
    assert decision.message == "0/3 nodes are available: 1 no."
    assert not decision.filtered.feasible
    assert decision.filtered.refused.keys() == {"a"}


UNKNOWN = 'extender "http://one" claims a filtered node "x" which is not found in the input node list'


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ((Failed("connection refused"),), "connection refused"),
        ((only("a", "x"),), UNKNOWN),
        ((), "no answer"),
        ((only("a"), only("a")), "no answer"),
        ((Priorities({}),), "no answer"),
    ],
)
def test_one_that_fails_ends_the_attempt(answers: tuple[Answer, ...], message: str) -> None:
    subject = extended(extender(), extender("two"), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    step = ended(subject, *answers)
    assert step.effects == (Report(step.pod, SCHEDULER_ERROR, message),)
    assert subject.pending()["backoff"] == 1


@pytest.mark.parametrize("answer", [Failed("connection refused"), only("x"), Victims({})])
def test_one_that_may_be_left_out_is_left_out_if_it_fails(answer: Answer) -> None:
    subject = extended(extender(ignorable=True), extender("two", ignorable=True), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    assert about(next_ask(subject, answer)) == [("two", NAMES)]
    assert ended(subject, only("b")).decision.node == "b"


def test_they_are_asked_about_as_many_nodes_as_are_enough() -> None:
    """The search for the next pod begins where this one ended, whatever extenders say."""
    profile = profile_of("predicate Any { deny 'never' when node.podCount > 100 }", "predicates { Any }",
                         "percentageOfNodesToScore = 50")  # fmt: skip
    nodes = tuple(node(f"n{i:03}") for i in range(240))
    subject = extended(extender(), nodes=nodes, pods=(pod("p"), pod("q")), profile=profile)
    assert about(asked(subject)) == [("one", tuple(f"n{i:03}" for i in range(120)))]
    ended(subject, only("n007"))
    assert about(asked(subject)) == [("one", tuple(f"n{i:03}" for i in range(120, 240)))]


# ---- scores


def test_scores_of_extenders_are_weighted_and_put_to_the_scale_of_rules() -> None:
    """`a` is better by 2 points by rules; 1 of 10 from an extender is worth 10."""
    crowd = tuple(pod(f"on-{name}-{i}", on=name) for name, n in (("b", 2), ("c", 4)) for i in range(n))
    one, two = extender("one", **SCORES), extender("two", weight=3, **SCORES)
    subject = extended(one, two, nodes=NODES, pods=(*crowd, pod("p")), profile=EMPTY)
    assert about(asked(subject)) == [("one", NAMES), ("two", NAMES)]
    subject.cycles["default-scheduler"].keep_scores = True
    step = ended(subject, Priorities({"a": 1, "b": 2}), Priorities({"b": 1, "c": 1, "x": 9}))
    assert step.decision.node == "b"
    assert step.decision.scored is not None
    assert step.decision.scored.total == [100 + 10, 98 + 20 + 30, 96 + 30]


def test_between_nodes_of_one_score_the_dice_decide() -> None:
    dice = FakeDice(1)
    subject = extended(extender(**SCORES), nodes=NODES, pods=(pod("p"),), profile=NO_SCORES, dice=dice)
    asked(subject)
    assert ended(subject, Priorities({"a": 7, "c": 7})).decision.node == "c"
    assert dice.sides == [2]


@pytest.mark.parametrize("answer", [Failed("late"), only("c"), Priorities({})])
def test_one_that_fails_to_score_adds_nothing(answer: Answer) -> None:
    subject = extended(extender(**SCORES), extender("two", **SCORES), nodes=NODES, pods=(pod("p"),), profile=NO_SCORES)
    asked(subject)
    assert ended(subject, answer, Priorities({"b": 1})).decision.node == "b"


def test_scores_are_whole_numbers_of_64_bits() -> None:
    subject = extended(extender(weight=2, **SCORES), nodes=NODES, pods=(pod("p"),), profile=NO_SCORES)
    asked(subject)
    assert ended(subject, Priorities({"a": 2**62, "b": 1})).decision.node == "b"


def test_the_last_node_is_taken_unscored() -> None:
    subject = extended(extender(prioritize_verb="prioritize"), nodes=NODES, pods=(pod("p"),))
    asked(subject)
    assert ended(subject, only("b", a="no", c="no")).decision.node == "b"


def test_a_node_with_room_for_nominated_pods_only_is_not_asked_about() -> None:
    high = pod("high", requests={"cpu": "4"}, priority=9, nominated="a")
    subject = extended(extender(), nodes=NODES, pods=(high, pod("low")))
    assert about(asked(subject)) == [("one", NAMES)]
    assert ended(subject, Failed("late")).decision.failed  # it claims its node while it backs off
    assert about(asked(subject)) == [("one", ("b", "c"))]


def test_anti_affinity_is_kept_whatever_extenders_want() -> None:
    away = pod("p", labels={"app": "db"}, affinity=anti_affinity("db", "kubernetes.io/hostname"))
    nodes = tuple(node(name, labels={"kubernetes.io/hostname": name}) for name in NAMES)
    subject = extended(extender(), nodes=nodes, pods=(pod("there", on="a", labels={"app": "db"}), away))
    assert about(asked(subject)) == [("one", ("b", "c"))]
    assert ended(subject, only("a")).decision.failed


def test_nothing_of_an_answer_is_remembered() -> None:
    """The next pod of the same kind is asked about all nodes again."""
    subject = extended(extender(), nodes=NODES, pods=(pod("p"), pod("q")))
    asked(subject)
    ended(subject, FilterAnswer((), dict.fromkeys(NAMES, "no")))
    assert about(asked(subject)) == [("one", NAMES)]


def test_one_that_is_asked_for_preemption_alone_leaves_decisions_as_they_are() -> None:
    """And as quick: of nodes nobody is told."""
    profile = profile_of("predicate Any { deny 'never' when node.podCount > 100 }", "predicates { Any }",
                         "percentageOfNodesToScore = 50")  # fmt: skip
    nodes = tuple(node(f"n{i:03}") for i in range(240))
    pods = tuple(pod(f"p{i}") for i in range(5))
    found = []
    for extenders in ((), (extender(filter_verb="", preempt_verb="preempt"),)):
        dice = FakeDice(3)
        subject = extended(*extenders, nodes=nodes, pods=pods, profile=profile, dice=dice)
        found.append(([stepped(subject).decision.node for _ in pods], dice.sides))
    assert found[0] == found[1]
