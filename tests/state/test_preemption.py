"""Preemption on random clusters finds what it finds step by step, in clusters that are built from nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.chooser import Chooser
from tests.oracle.clusters import Json
from tests.state.crowds import RULES, START, WISHES, Clusters, Random, profile
from tests.state.naive_preemption import Found, Naive, bare
from tests.unit.core.scheduling import FakeDice

from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.nominations import Nominations
from ksp.core.preemption import NotEligible, Preempted, Preemption
from ksp.core.preemption.eligibility import resolvable
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.policy import PodDisruptionBudget

THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
BUDGETS = "podDisruptionBudgets"
SEEN = ("candidates", "several", "ties", "violations", "nominated", "nothing helps", "not eligible", "preempted")
SELECTORS: Sequence[Json | None] = (
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db"}},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    {},
    None,
    {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["w*"]}]},
)


class World:
    """A cluster that changes, in which pods find no node; and what was found, by kind."""

    def __init__(self, choose: Chooser, rules: str) -> None:
        self.choose = choose
        self.clusters = Clusters(choose)
        self.state = self.clusters.cluster()
        self.profile = profile(rules)
        self.nominations = Nominations()
        self.dice = FakeDice()
        present = Present.of(self.state)
        self.cycle = Cycle(self.profile, present, self.nominations.nodes, self.dice)
        self.preemption = Preemption(self.profile, present, self.nominations, self.dice)
        self.asked = 0
        self.waiting: list[PodInfo] = []
        for i in range(choose.number(0, 2)):
            self.set_budget(f"b{i}")

    def change(self) -> None:
        match self.choose.number(0, 5):
            case 0:
                self.set_budget(self.choose.pick(["b0", "b1"]))
            case 3:
                self.allow()
            case 1:
                self.nominate()
            case 2 if self.nominations.uids():
                self.nominations.remove(self.choose.pick(sorted(self.nominations.uids())))
            case _:
                self.clusters.change(self.state)

    def set_budget(self, name: str) -> None:
        status: Json = {"disruptionsAllowed": self.choose.pick((0, 0, 0, 1, 2))}
        if self.choose.chance(30) and self.state.pods:
            status["disruptedPods"] = {self.choose.pick(sorted(self.state.pods)): START[0]}
        namespace = self.choose.pick(("default", "default", "other"))
        spec: Json = {"selector": self.choose.pick(SELECTORS)}
        raw = {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}
        self.state.set_object(BUDGETS, namespace, name, convert(PodDisruptionBudget, raw))

    def allow(self) -> None:
        """A budget allows another number."""
        budgets = [budget for there in self.state.objects[BUDGETS].values() for budget in there.values()]
        if budgets:
            old = self.choose.pick(budgets)
            status = msgspec.structs.replace(old.status, disruptions_allowed=self.choose.number(0, 2))
            new = msgspec.structs.replace(old, status=status)
            self.state.set_object(BUDGETS, old.metadata.namespace, old.metadata.name, new)

    def nominate(self) -> None:
        self.nominations.put(self.pod("nominated"), self.choose.pick([*sorted(self.state.nodes), "gone"]))

    def pod(self, name: str) -> PodInfo:
        self.asked += 1
        kind: dict[str, Any] = self.clusters.any_pod() | {
            "priority": self.choose.pick((4, 5, 5, 9)), "cpu": self.choose.pick(("2", "3")), "leaving": False,
        }  # fmt: skip
        wishes = self.choose.pick(WISHES) | {"tolerations": [{"key": "k", "operator": "Exists"}]}
        if self.choose.chance(5):
            wishes = wishes | {"preemptionPolicy": "Never"}
        return self.clusters.pod_of(f"{name}{self.asked}", kind, wishes)

    def attempt(self, found: Counter[str]) -> None:
        """Decide for a pod. If it finds no node, others have to go; if it does, it is asked who would have to."""
        pod = self.choose.pick(self.waiting) if self.waiting and self.choose.chance(40) else self.pod("pod")
        self.waiting.append(pod)
        if self.choose.chance(30):
            self.nominations.put(pod, self.choose.pick(sorted(self.state.nodes)))
        decision = self.cycle.decide(pod)
        budgets = [budget for there in self.state.objects[BUDGETS].values() for budget in there.values()]
        naive = Naive.of(self.profile, self.state, self.nominations.nodes(), budgets)
        if decision.node or decision.failed:
            wanted = naive.candidates(bare(pod), final=True)
            self.check_options(pod, self.state.node_list(), naive, wanted, found)
            return
        evicting = frozenset(self.choose.some(1, lambda: self.choose.pick([*sorted(self.state.pods), "gone"])))
        places = [list(node.pods) for node in self.state.node_list()]
        outcome = self.preemption.attempt(pod, decision.filtered, evicting)
        assert [list(node.pods) for node in self.state.node_list()] == places
        if not naive.eligible(bare(pod), self.nominations.node_of(pod.uid) or "", evicting):
            found["not eligible"] += 1
            assert isinstance(outcome, NotEligible)
            return
        wanted = naive.candidates(bare(pod))
        nodes = resolvable(decision.filtered, self.state)
        possible = self.check_options(pod, nodes, naive, wanted, found)
        if outcome is None:
            found["nothing helps"] += 1
            assert not wanted
            return
        assert self.preemption.would_help(pod, evicting)
        assert isinstance(outcome, Preempted)
        assert outcome.node in possible
        assert [victim.uid for victim in outcome.victims] == wanted[outcome.node][0]
        assert list(outcome.cleared) == [p for p in self.nominations.on(outcome.node) if p.priority < pod.priority]
        found["preempted"] += 1
        found["nominated"] += outcome.node in self.nominations.nodes()
        for victim in outcome.victims if self.choose.chance(40) else ():
            self.state.remove_pod(victim.uid)
        self.nominations.put(pod, outcome.node)

    def check_options(
        self, pod: PodInfo, nodes: Sequence[NodeInfo], naive: Naive, wanted: Mapping[str, Found], found: Counter[str]
    ) -> set[str]:
        """All options, and those that the dice decide between."""
        search = self.preemption.search(pod)
        candidates = [option.candidate() for option in search.options(nodes)]
        assert {c.node: ([p.uid for p in c.victims], c.violations) for c in candidates} == wanted
        possible = naive.possible(wanted)
        best = [option.node for option in search.best(nodes)]
        assert best == [node.name for node in nodes if node.name in possible]
        found["candidates"] += len(wanted)
        found["several"] += len(wanted) > 1
        found["ties"] += len(possible) > 1
        found["violations"] += any(violations for _, violations in wanted.values())
        return possible

    def run(self, steps: int, found: Counter[str]) -> None:
        for _ in range(steps):
            self.attempt(found)
            self.change()


@pytest.mark.parametrize("rules", ["shipped", *RULES, "all"])
def test_what_is_found_is_what_is_found_step_by_step(rules: str) -> None:
    found: Counter[str] = Counter()
    for seed in range(200 if THOROUGH else 30):
        World(Random(seed), rules).run(4 if seed % 5 else 20, found)
    assert found["candidates"] > 20, found
    if rules == "shipped":
        few = [kind for kind in SEEN if found[kind] < 3]
        assert not few, found


@settings(max_examples=400 if THOROUGH else 40)
@given(st.data())
def test_what_is_found_is_what_is_found_step_by_step_by_the_shipped_rules(data: st.DataObject) -> None:
    """As above, and what fails is made smaller."""
    World(Chooser(data.draw), "shipped").run(2, Counter())
