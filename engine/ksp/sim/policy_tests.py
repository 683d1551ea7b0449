"""Runs `test` blocks: what rules and providers say in small clusters.

The cluster of a test holds its nodes, the pods that are `on` one of them, and its other objects. The pod that an
expectation names is not in it: if it is `on` a node, it is taken out for that question. Then

- `RULE admits P on N` and `denies ... with "reason"` ask one predicate with its default arguments; the reason must be
  among those of the denial. Of a PROVIDER all predicates are asked, in order.
- `RULE scores P on N 90` is the score after `normalize`, with all nodes of the test feasible.
- `PROVIDER places P on N`: N passes the predicates, and no other node scores as high. A tie does not meet it, since
  chance would decide.

An attempt that ends with an error meets no expectation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ksp.check.typed import Expect, Provider, RuleUse, Test
from ksp.compile.program import constant_value
from ksp.compile.runtime import Denial
from ksp.core.cycle import Cycle, Decision, failure_text
from ksp.core.equivalence.present import Present
from ksp.core.filter import Filtered, Refused
from ksp.core.fits import Fits
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.policy.profile import Profile, ProfileBuilder
from ksp.policy.tracing import Observation, observed
from ksp.sim.dice import FirstFace
from ksp.sim.scenes import Scene


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an expectation. `happened` is "" if it was met, else what happened instead; then `conditions` are
    those that the predicate in question looked at."""

    test: Test
    expect: Expect
    happened: str
    conditions: Sequence[Observation] = ()


class Runner:
    """Runs tests; what several of them name is compiled once."""

    def __init__(self) -> None:
        self._builder = ProfileBuilder()

    def run(self, scene: Scene) -> Iterator[Result]:
        """A result for each expectation of a test, in order."""
        for expect in scene.test.expects:
            state, pod = scene.cluster(expect.pod)
            provider = _provider(expect)
            question = _Question(expect, provider, self._builder.build(provider), scene, state, pod)
            happened, conditions = question.answer()
            yield Result(scene.test, expect, happened, conditions)


def _provider(expect: Expect) -> Provider:
    """What is asked, as a provider: of a rule, one that holds only it."""
    if expect.provider is not None:
        return expect.provider
    assert expect.rule is not None
    use = (RuleUse(expect.rule, (), 1, expect.span),)
    is_predicate = expect.rule.kind == "predicate"
    return Provider(expect.rule.name, expect.span, use if is_predicate else (), () if is_predicate else use, "")


class _Question:
    """One expectation, and the cluster that it is about."""

    def __init__(
        self, expect: Expect, provider: Provider, profile: Profile, scene: Scene, state: ClusterState, pod: PodInfo
    ) -> None:
        self.expect = expect
        self.provider = provider
        self.state = state
        self.pod = pod
        self.node = state.nodes[scene.node_name(expect.node)]
        self.names = {scene.node_name(o.name): o.name for o in scene.test.objects if o.kind == "Node"}
        self.cycle = Cycle(profile, Present.of(state), dict, FirstFace(), equivalence_classes=0, keep_scores=True)
        self.tables = self.cycle.present.tables

    def answer(self) -> tuple[str, Sequence[Observation]]:
        match self.expect.verdict:
            case "scores":
                return self._scores(), ()
            case "places":
                return self._places()
        filtered = self._filtered()
        refused = self._refused(filtered)
        happened = self._admits(filtered) if self.expect.verdict == "admits" else self._denies(filtered)
        return happened, self._conditions(refused) if happened else ()

    # ---- predicates

    def _filtered(self) -> Filtered:
        """What is said of the node."""
        fits = Fits(self.cycle.profile, self.tables, self.pod)
        if fits.before is not None:
            return Filtered(fits.before)
        return Filtered(examined=1, judged=lambda: [(self.node, fits(self.node))])

    def _refused(self, filtered: Filtered) -> Refused | None:
        return filtered.before or filtered.refused.get(self.node.name)

    def _admits(self, filtered: Filtered) -> str:
        refused = self._refused(filtered)
        if refused is None:
            return ""
        if not isinstance(refused.answer, Denial):
            return f"the attempt fails: {failure_text(filtered, self.pod)}"
        return f"{self._denied(refused)}: {_quoted(refused.answer.reasons)}"

    def _denies(self, filtered: Filtered) -> str:
        refused = self._refused(filtered)
        if refused is None:
            return "it is admitted"
        if not isinstance(refused.answer, Denial):
            return f"the attempt fails: {failure_text(filtered, self.pod)}"
        if self.expect.reason in refused.answer.reasons:
            return ""
        return f"{self._denied(refused)}, but with {_quoted(refused.answer.reasons)}"

    def _denied(self, refused: Refused) -> str:
        return "it is denied" if self.expect.rule is not None else f"it is denied by {refused.rule}"

    def _conditions(self, refused: Refused | None) -> Sequence[Observation]:
        """Those of the predicate that refused, or of the only one that was asked."""
        uses = self.provider.predicates
        use = next((u for u in uses if refused is not None and u.rule.name == refused.rule), None)
        if use is None:
            if self.expect.rule is None:
                return ()
            use = uses[0]
        arguments = {name: constant_value(expr) for name, expr in use.arguments}
        return observed(use.rule, arguments, self.pod, self.node, self.tables)

    # ---- priorities

    def _scores(self) -> str:
        nodes = self.state.node_list()
        scored = self.cycle.score(self.pod, nodes)
        if scored.error:
            return scored.error
        by_node = {node.name: total for node, total in zip(nodes, scored.total, strict=True)}
        got = by_node.pop(self.node.name)
        if got == self.expect.score:
            return ""
        others = ", ".join(f"{self.names[name]} {total}" for name, total in by_node.items())
        return f"it scores {got}" + (f" ({others})" if others else "")

    # ---- providers

    def _places(self) -> tuple[str, Sequence[Observation]]:
        decision = self.cycle.decide(self.pod)
        if decision.failed:
            return f"the attempt fails: {decision.message}", ()
        refused = self._refused(decision.filtered)
        if refused is not None and isinstance(refused.answer, Denial):
            return f"{self._denied(refused)}: {_quoted(refused.answer.reasons)}", self._conditions(refused)
        return self._chosen(decision), ()

    def _chosen(self, decision: Decision) -> str:
        """Nothing, if the node and no other is the best; else which are, and how they score."""
        feasible, scored = decision.filtered.feasible, decision.scored
        if scored is None:
            return ""
        by_node = {node.name: total for node, total in zip(feasible, scored.total, strict=True)}
        highest = max(by_node.values())
        best = [self.names[name] for name, total in by_node.items() if total == highest]
        if best == [self.expect.node]:
            return ""
        if self.expect.node in best:
            return f"{_listed(best)} tie with {highest:,}, and chance decides"
        return f"it goes to {' or '.join(best)}, which scores {highest:,} against {by_node[self.node.name]:,}"


def _quoted(reasons: Sequence[str]) -> str:
    return ", ".join(f'"{reason}"' for reason in reasons)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
