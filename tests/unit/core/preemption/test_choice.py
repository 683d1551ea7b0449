"""Which of the nodes on which victims would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.core.preemption.worlds import World, running, urgent

WEB = {"app": "web"}
SELECTOR = {"matchLabels": WEB}

# A pod: its priority, the day of its start, whether a budget protects it. The first node wins by what is named.
Load = Sequence[tuple[int, int, bool]]
CASES: dict[str, tuple[Load, Load]] = {
    "fewer violations, whatever the priorities": ([(9, 1, False)], [(0, 1, True)]),
    "the first victim's priority is lower, though there are more": ([(1, 1, False), (1, 1, False)], [(2, 1, False)]),
    "the sum of the priorities is smaller": ([(2, 1, False), (0, 1, False)], [(2, 1, False), (1, 1, False)]),
    "fewer victims, as negative priorities count, too": ([(-1, 1, False)], [(-1, 1, False), (-1, 1, False)]),
    "its most important victim started later": ([(1, 2, False), (0, 1, False)], [(1, 1, False), (0, 2, False)]),
    "it has not started yet": ([(1, 0, False)], [(1, 9, False)]),
}


def loaded(world_pods: dict[str, list[Any]], name: str, load: Load, *, cpu: int = 4) -> None:
    """As many pods as the load says, which fill the node together."""
    each = f"{cpu * 1000 // len(load)}m"
    world_pods[name] = [
        running(f"{name}{i}", cpu=each, priority=priority, started=day, labels=WEB if protected else {"app": "db"})
        for i, (priority, day, protected) in enumerate(load)
    ]


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("why", CASES)
def test_the_better_node_is_chosen(why: str, order: str) -> None:
    better, worse = CASES[why]
    pods: dict[str, list[Any]] = {}
    for name, load in sorted([("a", better), ("b", worse)], reverse=order == "last"):
        loaded(pods, name, load)
    world = World(pods)
    world.budget("web", SELECTOR)
    found = world.victims(urgent(cpu="4"))
    assert found is not None
    assert found[0] == "a"
    assert world.dice.sides == []


def test_the_first_victim_is_the_first_that_violates_a_budget() -> None:
    """Of the first node that is the one with priority 1, though another victim has 5."""
    pods: dict[str, list[Any]] = {}
    loaded(pods, "a", [(5, 1, False), (1, 1, True)])
    loaded(pods, "b", [(2, 1, True), (0, 1, False)])
    world = World(pods)
    world.budget("web", SELECTOR)
    assert world.victims(urgent(cpu="4")) == ("a", ["a1", "a0"])


def test_the_highest_priority_counts_for_the_start_though_it_is_not_the_first_victim() -> None:
    pods: dict[str, list[Any]] = {}
    loaded(pods, "a", [(5, 3, False), (1, 1, True)])
    loaded(pods, "b", [(5, 2, False), (1, 4, True)])
    world = World(pods)
    world.budget("web", SELECTOR)
    assert world.victims(urgent(cpu="4")) == ("a", ["a1", "a0"])


def test_the_dice_decide_between_equals_in_the_order_of_the_nodes() -> None:
    world = World({name: [running(name, cpu="4")] for name in "abc"})
    world.dice.falls = [2, 0]
    assert [world.victims(urgent()) for _ in range(2)] == [("c", ["c"]), ("a", ["a"])]
    assert world.dice.sides == [3, 3]


def test_equals_need_not_be_alike() -> None:
    """Nodes of other sizes, one of them looked at in the state itself."""
    pods = {"a": [running("a", cpu="4")], "b": [running("b", cpu="6")]}
    world = World(pods, b={"cpu": "6"})
    world.dice.falls = [1]
    assert world.victims(urgent()) == ("b", ["b"])
    assert world.dice.sides == [2]


def test_a_node_that_takes_the_pod_without_victims_by_now_is_chosen_at_once() -> None:
    """The pod was decided while another was nominated to the node."""
    world = World({"a": [running("a", cpu="1")], "b": [running("b", cpu="4")]})
    first = urgent("first", cpu="3")
    world.nominations.put(first, "a")
    pod = urgent()
    decided = World({"a": [running("a", cpu="4")], "b": [running("b", cpu="4")]})
    filtered = decided.decided(pod)
    world.nominations.remove(first.uid)
    outcome = world.preemption.attempt(pod, filtered)
    assert getattr(outcome, "node", "") == "a"
    assert getattr(outcome, "victims", None) == ()
