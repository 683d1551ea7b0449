"""What is counted of rules, in the form of columns and node by node."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksp.cli.profile_choice import chosen_profiles
from ksp.core.scheduler import Scheduler
from ksp.sim.bench.figures import Conditions
from ksp.sim.bench.rule_times import RuleTimes, WatchedRules
from ksp.sim.bench.runner import Surroundings, measure
from ksp.sim.bench.scenario import Size
from ksp.sim.bench.workloads import WORKLOADS
from ksp.sim.dice import SeededDice
from ksp.sim.stopwatch import StoppedStopwatch

POLICY = """\
predicate Odd { deny "even" when node.name in ["node-0", "node-2", "node-4", "node-6"] }
predicate Named { deny "no name" when pod.name == "" || node.name == "node-1" }
priority First { score node.name == "node-3" ? 100 : 0 }
provider Own { predicates { Odd, Named } priorities { First: 1 } }
profile "default-scheduler" uses Own {}
"""


class Ticking:
    """Each look takes a second."""

    def __init__(self) -> None:
        self.time = 0.0

    def read(self) -> float:
        self.time += 1
        return self.time


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "own.ksp").write_text(POLICY)
    return tmp_path / "own.ksp"


def times(policy: Path, *, classes: int, columns: bool, pods: int = 3) -> tuple[int, dict[str, RuleTimes]]:
    """How many pods were placed, and the rules' times."""
    watched = WatchedRules(chosen_profiles(str(policy)), Ticking())
    scheduler = Scheduler(watched.profiles, SeededDice(1), equivalence_classes=classes, columns=columns)
    still = StoppedStopwatch()
    around = Surroundings(still, still, lambda: 0.0, watched.reset)
    run = measure(Conditions("", 8, pods), WORKLOADS["SchedulingBasic"](Size(8, pods, 0)), scheduler, around)
    return run.figures.placed, {each.name: each for each in watched.times()}


def test_node_by_node(policy: Path) -> None:
    placed, rules = times(policy, classes=0, columns=False)
    odd, named, first = rules["Odd"], rules["Named"], rules["First"]
    assert placed == 3
    assert (odd.prepared, odd.bound, odd.evaluations, odd.columns, odd.denied) == (3, 3, 24, 0, 12)
    assert (odd.selectivity, first.selectivity) == (0.5, None)
    assert (named.denied, first.kind, first.prepared) == (3, "priority", 3)
    assert odd.judging_seconds == odd.evaluations
    assert odd.binding_seconds == odd.prepared + odd.bound


def test_in_columns(policy: Path) -> None:
    placed, rules = times(policy, classes=0, columns=True)
    odd = rules["Odd"]
    assert placed == 3
    assert (odd.evaluations, odd.columns, odd.denied, odd.judging_seconds) == (24, 24, 12, 3)


def test_a_class_is_judged_once(policy: Path) -> None:
    placed, rules = times(policy, classes=10, columns=True, pods=20)
    assert placed == 20
    # The pod that warmed up had the same keys: what was found for it serves.
    assert [rules[name].evaluations for name in ("Odd", "Named")] == [0, 0]


def test_the_most_expensive_comes_first(policy: Path) -> None:
    watched = WatchedRules(chosen_profiles(str(policy)), Ticking())
    one, other, last = watched.times()
    other.binding_seconds, last.judging_seconds = 1.0, 2.0
    assert [each.name for each in watched.times()] == [last.name, other.name, one.name]
    watched.reset()
    assert [each.seconds for each in watched.times()] == [0.0] * 3
