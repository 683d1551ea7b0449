"""What tests of the compiler share: rules from text, and what they say of a small cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.core.scheduling import info

from ksp.check.program import Checker
from ksp.check.typed import Rule
from ksp.compile.program import BoundPredicate, BoundPriority, CompiledRule, Predicate, Priority, compile_rule
from ksp.compile.tables import Candidates, Contribute, Tables, ViewPlan
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.source.origin import Texts


def rule(text: str) -> Rule:
    """The first rule of a text that has no mistakes."""
    checker = Checker(Texts({"test.ksp": text}))
    module = checker.check("test.ksp")
    assert module is not None
    assert not checker.report.failed, [(d.code, d.message) for d in checker.report.found]
    return module.own_rules()[0]


def compiled(text: str) -> CompiledRule:
    return compile_rule(rule(text))


class Watched(Tables):
    """Tables that remember which views were asked for, with which values, and where their rows are looked for."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.asked: list[tuple[ViewPlan, tuple[Any, ...]]] = []
        self.candidates: list[Candidates | None] = []

    def view(
        self,
        plan: ViewPlan,
        values: tuple[Any, ...],
        contribute: Contribute,
        candidates: Candidates | None = None,
    ) -> Any:
        self.asked.append((plan, values))
        self.candidates.append(candidates)
        return super().view(plan, values, contribute, candidates)


def bound(
    text: str, state: ClusterState, tables: Tables | None = None, pod: PodInfo | None = None, **arguments: object
) -> Any:
    """The rule, bound to a pod in a state of the cluster."""
    made = compiled(text).instantiate(arguments)
    return made.bind(pod or info("incoming"), tables or Tables(state))


def predicate(text: str, state: ClusterState, **given: Any) -> BoundPredicate:
    found = bound(text, state, **given)
    assert isinstance(found, BoundPredicate)
    return found


def priority(text: str, state: ClusterState, **given: Any) -> BoundPriority:
    found = bound(text, state, **given)
    assert isinstance(found, BoundPriority)
    return found


class Asked:
    """One rule and one set of tables, asked again and again; the rule denies each node with what it has to say."""

    def __init__(self, text: str, state: ClusterState, arguments: Mapping[str, object] | None = None) -> None:
        made = compiled(text).instantiate(arguments)
        assert isinstance(made, Predicate)
        self.rule: Predicate | Priority = made
        self.state = state
        self.tables = Watched(state)

    def says(self, pod: PodInfo | None = None, tables: Tables | None = None) -> dict[str, tuple[str, ...]]:
        """The reasons by node, from the tables that are kept, or from others."""
        found = self.rule.bind(pod or info("incoming"), tables or self.tables)
        assert isinstance(found, BoundPredicate)
        assert found.check is not None
        verdicts = {node.name: found.check(node) for node in self.state.node_list()}
        return {name: getattr(verdict, "reasons", ()) for name, verdict in verdicts.items()}

    def says_anew(self, pod: PodInfo | None = None) -> dict[str, tuple[str, ...]]:
        """The same with tables made from nothing."""
        return self.says(pod, Tables(self.state))
