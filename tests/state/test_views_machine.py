"""Views of all shipped rules, while the cluster changes at random: each is what a new one would be, built with an index
or without, and it tells every key whose value is another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.chooser import Dice
from tests.oracle.clusters import NODES, PODS, Change, ClusterMaker, Scenario
from tests.policies.test_forms import ARGUMENTS, THOROUGH, shipped_rules

from ksp.check.typed import Rule
from ksp.compile.program import Predicate, Priority, compile_rule
from ksp.compile.table import Table
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.info import PodInfo

OBJECTS = ("object", "no object")


def instance(rule: Rule, *, given_arguments: bool) -> Predicate | Priority:
    names = {parameter.binding.name for parameter in rule.parameters}
    arguments = {name: value for name, value in ARGUMENTS.items() if name in names and given_arguments}
    return compile_rule(rule).instantiate(arguments)


INSTANCES = [instance(rule, given_arguments=g) for rule in shipped_rules() if rule.views for g in (False, True)]


def asked(tables: Tables, pods: Iterable[PodInfo]) -> list[Table]:
    """The tables from which the rules take their views, in the order of asking."""
    tables.used = []
    for pod in pods:
        for rule in INSTANCES:
            rule.prepare(pod, tables).at(tables)
    return tables.used


def contents(table: Table, state: ClusterState) -> Any:
    """What a rule reads: of a first row, which it is."""
    return table.first(state).name if table.plan.form == "first" else deepcopy(table.value())


def without_index(table: Table, state: ClusterState) -> Any:
    """What the table would be if it had asked every pod."""
    new = Table(table.plan, table.contribute)
    new.follow(state)
    return contents(new, state)


def at(contents_: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        contents_ = contents_.get(key) if contents_ is not None else None
    return contents_


def paths(contents_: Any, depth: int) -> Iterable[tuple[Any, ...]]:
    """The keys of all entries."""
    if depth == 0:
        return [()]
    return [(key, *rest) for key, inner in contents_.items() for rest in paths(inner, depth - 1)]


class Views:
    """All tables that the rules have asked for, followed from one change to the next."""

    def __init__(self, scenario: Scenario) -> None:
        self.state = scenario.state()
        self.pods = scenario.waiting()
        self.tables = Tables(self.state)
        self.kept: dict[int, Table] = {}
        self.ask()

    def ask(self) -> None:
        """Ask anew; if objects have changed, only what is asked for now is still of use."""
        used = asked(self.tables, self.pods)
        new = asked(Tables(self.state), self.pods)
        for kept, rebuilt in zip(used, new, strict=True):
            assert kept.plan is rebuilt.plan
            assert contents(kept, self.state) == contents(rebuilt, self.state), kept.plan
            self.kept[id(kept)] = kept

    def change(self, change: Change) -> None:
        before = self.versions()
        change.apply(self.state)
        if change.kind in OBJECTS:
            self.kept.clear()
            self.ask()
        self.follow()
        self.hold(before)
        self.ask()

    def follow(self) -> None:
        for table in self.kept.values():
            table.follow(self.state)

    def versions(self) -> Mapping[int, tuple[int, Any]]:
        return {i: (table.version, contents(table, self.state)) for i, table in self.kept.items()}

    def hold(self, before: Mapping[int, tuple[int, Any]]) -> None:
        for i, table in self.kept.items():
            now = contents(table, self.state)
            assert now == without_index(table, self.state), table.plan
            if i in before:
                self.hold_changed(table, *before[i], now)

    def hold_changed(self, table: Table, version: int, was: Any, now: Any) -> None:
        changed = table.changed(version)
        if table.version == version:
            assert changed == []
            assert was == now, table.plan
        if changed is not None and table.plan.form != "first":
            depth = table.plan.depth
            others = {*paths(was, depth), *paths(now, depth)}.difference(changed)
            assert all(at(was, keys) == at(now, keys) for keys in others), (table.plan, was, now, changed)
            assert all(len(keys) == depth for keys in changed)

    def trial(self, uid: str) -> None:
        """What if that pod were not there: the views follow, and are as before afterwards."""
        if uid not in self.state.pods:
            return
        before = self.versions()
        with WhatIf(self.state, self) as trial:
            trial.remove(uid)
            self.follow()
            self.hold(before)
        assert {i: was for i, (_, was) in before.items()} == {i: is_ for i, (_, is_) in self.versions().items()}
        self.hold(before)


def full_cluster(maker: ClusterMaker) -> Scenario:
    choose = maker.choose
    return Scenario(
        [maker.node(name) for name in NODES[:4]],
        [(maker.pod(uid), choose.pick(NODES)) for uid in PODS],
        [maker.pod(f"incoming-{i}") for i in range(6)],
        [],
        [maker.object_change() for _ in range(8)],
    )


@settings(max_examples=500 if THOROUGH else 25, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 2**32))
def test_views_are_what_a_new_build_gives_and_tell_what_changed(seed: int) -> None:
    maker = ClusterMaker(Dice(seed))
    views = Views(full_cluster(maker))
    for _ in range(8):
        views.change(maker.change())
        views.trial(maker.choose.pick(PODS))
