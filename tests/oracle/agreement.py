"""Holds a compiled rule against the oracle: the same verdicts, reasons, scores and messages, in the same order.

A rule has several forms: scalar (with views that are kept between questions, and with new ones), traced, and in columns
if its text allows that. What the oracle says is computed once, and each form has to say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from tests.oracle import rules
from tests.oracle.clusters import Scenario, seen
from tests.oracle.interpret import Cluster

from ksp.check.typed import Rule
from ksp.compile.node_columns import IntArray, NodeColumns, Rows
from ksp.compile.program import BoundPredicate, BoundPriority, CompiledRule, Predicate, Priority, compile_rule
from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState
from ksp.model.info import NodeInfo, PodInfo

Verdict = tuple[Any, ...] | None


def untraced(_site: int, value: Any, *_operands: Any) -> Any:
    """A trace that only passes on what it is told."""
    return value


@dataclass(frozen=True)
class Form:
    """A compiled form of a rule with arguments, and the tables that it asks; None for new ones each time. With tables
    of its own it is asked in columns, too."""

    compiled: CompiledRule
    instance: Predicate | Priority
    tables: Tables | None

    @property
    def in_columns(self) -> bool:
        return self.tables is not None

    @staticmethod
    def of(rule: Rule, arguments: Mapping[str, Any], tables: Tables | None, *, traced: bool = False) -> Form:
        compiled = _compiled(rule, traced=traced)
        return Form(compiled, compiled.instantiate(arguments, untraced if traced else None), tables)


@lru_cache(maxsize=256)
def _compiled(rule: Rule, *, traced: bool) -> CompiledRule:
    return compile_rule(rule, traced=traced)


@dataclass(frozen=True)
class Expected:
    """What the oracle says for a pod: of all nodes at once (`before`), of a predicate for each node, of a priority for
    some choices of feasible nodes."""

    before: Verdict
    verdicts: Sequence[Verdict]
    choices: Sequence[Choice]


@dataclass(frozen=True)
class Choice:
    """Feasible nodes, and their scores before and after they are brought to 0..100; or the failure."""

    feasible: Sequence[NodeInfo]
    raw: Sequence[int] | Verdict
    normal: Sequence[int] = ()


class Agreement:
    """Forms of one rule that are to agree with the oracle on a state, at any time of its life."""

    def __init__(self, rule: Rule, arguments: Mapping[str, Any], state: ClusterState) -> None:
        known = {parameter.binding.name for parameter in rule.parameters}
        self.rule = rule
        self.arguments = {name: value for name, value in arguments.items() if name in known}
        self.state = state
        self.columns = NodeColumns(state)
        self.forms = [
            Form.of(rule, self.arguments, Tables(state)),
            Form.of(rule, self.arguments, None),
            Form.of(rule, self.arguments, None, traced=True),
        ]

    def check(self, pod: PodInfo) -> None:
        """The forms say of all nodes what the oracle says."""
        cluster = seen(self.state)
        expected = self._expected(pod, cluster)
        for form in self.forms:
            bound = form.instance.bind(pod, form.tables or Tables(self.state))
            self._same(form, "before any node", verdict(bound.outcome), expected.before)
            if bound.outcome is not None:
                continue
            if isinstance(bound, BoundPredicate):
                self._judge(form, bound, cluster, expected)
            else:
                self._score(form, bound, cluster, expected)

    def _expected(self, pod: PodInfo, cluster: Cluster) -> Expected:
        ending = rules.prefilter(self.rule, pod, cluster, self.arguments)
        before = None if ending is not None and ending[0] == "stop" else ending
        if before is not None:
            return Expected(before, (), ())
        if self.rule.kind == "predicate":
            verdicts = [rules.judge(self.rule, pod, node, cluster, self.arguments) for node in cluster.nodes]
            return Expected(None, verdicts, ())
        some = [list(cluster.nodes), list(cluster.nodes)[::2]]
        return Expected(None, (), [self._choice(pod, nodes, cluster) for nodes in some])

    def _choice(self, pod: PodInfo, feasible: Sequence[NodeInfo], cluster: Cluster) -> Choice:
        raw = rules.raw_scores(self.rule, pod, feasible, cluster, self.arguments)
        if not isinstance(raw, list):
            return Choice(feasible, raw)
        return Choice(feasible, raw, rules.normalized(self.rule, pod, feasible, cluster, self.arguments, raw))

    # ---- predicates

    def _judge(self, form: Form, bound: BoundPredicate, cluster: Cluster, expected: Expected) -> None:
        found = [verdict(bound.check(node) if bound.check is not None else None) for node in cluster.nodes]
        self._same(form, "of the nodes", found, expected.verdicts)
        if bound.column is None or not form.in_columns:
            return
        wanted = dict(zip((node.name for node in cluster.nodes), expected.verdicts, strict=True))
        for rows in self._rows():
            verdicts = bound.column(rows)
            codes = _listed(verdicts.codes, rows)
            assert verdicts.answers[0] is None
            for row, node in _alive(self.columns, rows):
                found_there = verdict(verdicts.answers[codes[row]])
                self._same(form, f"of {node} in {rows.size} rows", found_there, wanted[node])

    # ---- priorities

    def _score(self, form: Form, bound: BoundPriority, cluster: Cluster, expected: Expected) -> None:
        for choice in expected.choices:
            found = bound.scores(choice.feasible)
            self._same(form, "scores", verdict(found) if isinstance(found, Failure) else found, choice.raw)
            rows = self._rows_of(choice.feasible)
            if bound.score is None and bound.constant is None:
                self._column_over_feasible(form, bound, rows, choice)
            if isinstance(choice.raw, list) and bound.normalize is not None:
                normal = bound.normalize(choice.feasible, choice.raw)
                self._same(form, "normalized", normal, choice.normal)
                self._normal(form, bound, rows, choice)
        if bound.score is not None:
            self._column_of_scores(form, bound, cluster)

    def _column_of_scores(self, form: Form, bound: BoundPriority, cluster: Cluster) -> None:
        """Of each node what the scalar form says of it, which was held against the oracle."""
        assert bound.score is not None
        wanted = {node.name: _entry(bound.score(node)) for node in cluster.nodes}
        if bound.column is None or not form.in_columns:
            return
        for rows in self._rows():
            scores = bound.column(rows)
            for row, node in _alive(self.columns, rows):
                self._same(form, f"of {node} in {rows.size} rows", _entry_of(scores, row, rows), wanted[node])

    def _column_over_feasible(self, form: Form, bound: BoundPriority, rows: Rows, choice: Choice) -> None:
        if bound.column is None or not form.in_columns:
            return
        scores = bound.column(rows)
        found = [_entry_of(scores, row, rows) for row in range(rows.size)]
        failed = next((entry for entry in found if isinstance(entry, tuple)), None)
        self._same(form, "scores in columns", found if failed is None else failed, choice.raw)

    def _normal(self, form: Form, bound: BoundPriority, rows: Rows, choice: Choice) -> None:
        if bound.normal is None or not form.in_columns:
            return
        found = bound.normal(rows, np.array(choice.raw, np.int64))
        self._same(form, "normalized in columns", _listed(found, rows), list(choice.normal))

    # ---- rows

    def _rows_of(self, nodes: Sequence[NodeInfo]) -> Rows:
        self.columns.follow()
        return self.columns.rows(_slots([self.columns.slot_of[node.name] for node in nodes]))

    def _rows(self) -> Iterator[Rows]:
        """All rows, the nodes in order, some in another, one alone, and none."""
        self.columns.follow()
        order = self.columns.order.tolist()
        yield self.columns.rows()
        yield self.columns.rows(self.columns.order)
        yield self.columns.rows(_slots(order[::-2]))
        yield self.columns.rows(_slots(order[-1:]))
        yield self.columns.rows(_slots([]))

    def _same(self, form: Form, what: str, found: Any, wanted: Any) -> None:
        assert found == wanted, f"{self.rule.name}, {what}: {found} instead of {wanted}\n{form.compiled.source}"
        assert repr(found) == repr(wanted), f"{self.rule.name}, {what}: {found} instead of {wanted}"


def _slots(slots: Sequence[int]) -> IntArray:
    return np.array(slots, np.int64)


def _alive(columns: NodeColumns, rows: Rows) -> list[tuple[int, str]]:
    """The rows that have a node, and its name."""
    return [(row, columns.nodes[slot].name) for row, slot in enumerate(rows.slots.tolist()) if columns.alive[slot]]


def _listed(values: Any, rows: Rows) -> list[int]:
    """One number for all rows, or one for each."""
    if isinstance(values, int | np.integer):
        return [int(values)] * rows.size
    assert values.shape == (rows.size,)
    assert values.dtype.kind == "i"
    found: list[int] = values.tolist()
    return found


def _entry(score: int | Failure) -> Any:
    return verdict(score) if isinstance(score, Failure) else score


def _entry_of(scores: Any, row: int, rows: Rows) -> Any:
    """The score of a row, or its failure."""
    code = 0 if scores.codes is None else _listed(scores.codes, rows)[row]
    return _entry(scores.answers[code]) if code else _listed(scores.values, rows)[row]


def verdict(outcome: Denial | Failure | None) -> Verdict:
    """An outcome as the oracle writes it."""
    match outcome:
        case Denial(unresolvable=unresolvable, reasons=reasons):
            return "deny", unresolvable, reasons
        case Failure(message=message):
            return "fail", message
    return None


def agree(chosen: Sequence[Rule], arguments: Mapping[str, Any], scenario: Scenario) -> list[Agreement]:
    """The rules agree with the oracle, and still do after each change of the cluster."""
    state, pods = scenario.state(), scenario.waiting()
    agreements = [Agreement(rule, arguments, state) for rule in chosen]
    for change in (None, *scenario.changes):
        if change is not None:
            change.apply(state)
        for agreement in agreements:
            for pod in pods:
                agreement.check(pod)
    return agreements
