"""Holds a compiled rule against the oracle: the same verdicts, reasons, scores and messages, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle import rules
from tests.oracle.clusters import Scenario, seen
from tests.oracle.interpret import Cluster

from ksp.check.typed import Rule
from ksp.compile.program import BoundPredicate, BoundPriority, CompiledRule, compile_rule
from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo


def untraced(_site: int, value: Any, *_operands: Any) -> Any:
    """A trace that only passes on what it is told."""
    return value


@dataclass(frozen=True)
class Form:
    """A compiled form of a rule with arguments, and tables that are its own."""

    rule: Rule
    compiled: CompiledRule
    instance: Any
    arguments: Mapping[str, Any]

    @staticmethod
    def of(rule: Rule, arguments: Mapping[str, Any], *, traced: bool) -> Form:
        compiled = compile_rule(rule, traced=traced)
        return Form(rule, compiled, compiled.instantiate(arguments, untraced if traced else None), arguments)


class Agreement:
    """Forms of one rule that are to agree with the oracle on a state, at any time of its life."""

    def __init__(self, rule: Rule, arguments: Mapping[str, Any], state: ClusterState) -> None:
        known = {parameter.binding.name for parameter in rule.parameters}
        self.rule = rule
        self.arguments = {name: value for name, value in arguments.items() if name in known}
        self.state = state
        # Views are kept between questions by the first, made anew for each by the others.
        self.forms = [
            (Form.of(rule, self.arguments, traced=False), Tables(state)),
            (Form.of(rule, self.arguments, traced=False), None),
            (Form.of(rule, self.arguments, traced=True), None),
        ]

    def check(self, pod: PodInfo) -> None:
        """The forms say of all nodes what the oracle says."""
        cluster = seen(self.state)
        for form, tables in self.forms:
            bound = form.instance.bind(pod, tables if tables is not None else Tables(self.state))
            expected = rules.prefilter(self.rule, pod, cluster, self.arguments)
            wanted = None if expected is not None and expected[0] == "stop" else expected
            self._same(form, "before any node", verdict(bound.outcome), wanted)
            if self.rule.kind == "predicate":
                self._judge(form, bound, pod, cluster)
            elif bound.outcome is None:
                self._score(form, bound, pod, cluster)

    def _judge(self, form: Form, bound: BoundPredicate, pod: PodInfo, cluster: Cluster) -> None:
        for node in cluster.nodes:
            found = bound.outcome or (bound.check(node) if bound.check is not None else None)
            wanted = rules.judge(self.rule, pod, node, cluster, self.arguments)
            self._same(form, f"of {node.name}", verdict(found), wanted)

    def _score(self, form: Form, bound: BoundPriority, pod: PodInfo, cluster: Cluster) -> None:
        for feasible in (list(cluster.nodes), list(cluster.nodes)[::2]):
            raw = rules.raw_scores(self.rule, pod, feasible, cluster, self.arguments)
            found = bound.scores(feasible)
            self._same(form, "scores", verdict(found) if isinstance(found, Failure) else found, raw)
            if isinstance(raw, list) and bound.normalize is not None:
                wanted = rules.normalized(self.rule, pod, feasible, cluster, self.arguments, raw)
                self._same(form, "normalized", bound.normalize(feasible, raw), wanted)

    def _same(self, form: Form, what: str, found: Any, wanted: Any) -> None:
        assert found == wanted, f"{self.rule.name}, {what}: {found} instead of {wanted}\n{form.compiled.source}"
        assert repr(found) == repr(wanted), f"{self.rule.name}, {what}: {found} instead of {wanted}"


def verdict(outcome: Denial | Failure | None) -> tuple[Any, ...] | None:
    """An outcome as the oracle writes it."""
    match outcome:
        case Denial(unresolvable=unresolvable, reasons=reasons):
            return "deny", unresolvable, reasons
        case Failure(message=message):
            return "fail", message
    return None


def agree(chosen: Sequence[Rule], arguments: Mapping[str, Any], scenario: Scenario) -> None:
    """The rules agree with the oracle, and still do after each change of the cluster."""
    state, pods = scenario.state(), scenario.waiting()
    agreements = [Agreement(rule, arguments, state) for rule in chosen]
    for change in (None, *scenario.changes):
        if change is not None:
            change.apply(state)
        for agreement in agreements:
            for pod in pods:
                agreement.check(pod)
