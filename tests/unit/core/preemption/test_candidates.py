"""A search for victims that is content with some candidates, and profiles under which nobody is evicted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.preemption.worlds import World, running, urgent
from tests.unit.core.scheduling import FakeDice, default_profile, node, pod, scheduler, stepped

from ksp.core.alike import Reads
from ksp.core.changes import Report, SetNode, SetPod
from ksp.core.preemption import NotEligible, Preempted
from ksp.core.questions import ProcessPreemption
from ksp.core.scheduler import Scheduler
from ksp.core.shapes import Shape
from ksp.model.info import NodeInfo
from ksp.policy.extender import Extender
from ksp.policy.profile import Candidates

GUARDED = {"app": "guarded"}


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "number"),
    [(10, 100, 50, 50), (10, 100, 500, 100), (10, 100, 5000, 500), (0, 1, 7, 1), (100, 0, 7, 7), (33, 0, 10, 3)],
)
def test_how_many_candidates_are_enough(percentage: int, absolute: int, nodes: int, number: int) -> None:
    assert Candidates(percentage, absolute).of(nodes) == number


def world(enough: int, nodes: int, guarded: str = "", started: dict[int, int] | None = None) -> World:
    """On each node a pod that would have to go; budgets protect those on the nodes whose digits are `guarded`. All
    started on the same day, unless said."""
    profile = replace(default_profile(), candidates=Candidates(0, enough))
    there = {
        f"n{i}": [
            running(f"p{i}", cpu="4", started=(started or {}).get(i, 1), labels=GUARDED if str(i) in guarded else None)
        ]
        for i in range(nodes)
    }
    made = World(there, profile)
    made.budget("guard", {"matchLabels": GUARDED})
    return made


def chosen(made: World, *falls: int) -> str:
    made.dice.falls = list(falls)
    outcome = made.attempt(urgent())
    assert isinstance(outcome, Preempted)
    return outcome.node


def test_the_search_begins_where_the_dice_say_and_ends_with_enough() -> None:
    made = world(3, 10)
    assert chosen(made, 4, 2) == "n6"
    assert made.dice.sides == [10, 3]


def test_it_goes_round() -> None:
    """The options stay in the order in which they were found."""
    assert [chosen(world(3, 10), 9, i) for i in range(3)] == ["n9", "n0", "n1"]


def test_a_better_node_beyond_them_is_not_seen() -> None:
    """The latest start is best: that of n5, which is beyond."""
    made = world(3, 10, started={5: 3, 1: 2})
    assert chosen(made, 0) == "n1"


def test_it_goes_on_until_a_candidate_violates_no_budget() -> None:
    assert chosen(world(2, 10, guarded="0123456"), 0) == "n7"


def test_if_all_violate_one_it_sees_all_and_keeps_the_first() -> None:
    """The latest start would be n8's, as it is where all are kept."""
    assert chosen(world(2, 10, guarded="0123456789", started={8: 3, 1: 2}), 0) == "n1"
    assert chosen(world(10, 10, guarded="0123456789", started={8: 3, 1: 2})) == "n8"


def test_where_all_are_asked_for_no_dice_are_thrown_for_the_start() -> None:
    made = world(10, 10, started={5: 3})
    assert chosen(made) == "n5"
    assert made.dice.sides == []


def test_it_does_not_ask_about_nodes_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred nodes, of which one hundred are looked at together."""
    made = world(1, 250)
    asked: list[str] = []
    shape = made.preemption._alike.shape

    def watched(node: NodeInfo, reads: Reads) -> Shape:
        asked.append(node.name)
        return shape(node, reads)

    monkeypatch.setattr(made.preemption._alike, "shape", watched)
    chosen(made, 200)
    assert {"n200", "n249", "n0", "n49"} <= set(asked)
    assert "n50" not in asked


def test_extenders_are_shown_so_many_and_no_more() -> None:
    made, pod = world(3, 10), urgent()
    made.dice.falls = [8]
    asking = made.preemption.deliberate(pod, made.decided(pod), [Extender("http://x", preempt_verb="preempt")])
    (question,) = next(asking)
    assert isinstance(question, ProcessPreemption)
    assert list(question.victims) == ["n8", "n9", "n0"]


# ---- nobody is evicted


def test_a_profile_without_preemption_evicts_nobody() -> None:
    made = World({"n": [running("low", cpu="4")]}, replace(default_profile(), preempts=False))
    assert isinstance(made.attempt(urgent()), NotEligible)
    assert not made.preemption.eligible(urgent(), made.decided(urgent()))
    assert not made.preemption.would_help(urgent())


def test_its_pods_sleep_by_the_rules_that_denied_them() -> None:
    """And keep a claim that their status names: nobody takes it away."""
    subject = Scheduler([replace(default_profile(), preempts=False)], FakeDice())
    other = scheduler()
    for each in (subject, other):
        each.on(SetNode(node("n")), 0.0)
        each.on(SetPod(pod("low", on="n", requests={"cpu": "4"})), 0.0)
        each.on(SetPod(pod("high", priority=10)), 0.0)
    step = stepped(subject)
    assert step.preempted is None
    assert step.effects == (Report(step.pod, "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),)
    queued = subject.queue.get("high")
    assert queued is not None
    assert queued.unschedulable_by == {"PodFitsResources"}
    assert stepped(other).preempted is not None
