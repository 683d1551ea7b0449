"""The scheduling cycle as plainly as it can be said: every rule is bound anew for each pod, and asked node by node.

It remembers nothing but where the next search for nodes starts, and is what the cycle of `ksp.core` is held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.state.plain_filter import PlainFilter

from ksp.compile.runtime import Denial, Failure
from ksp.compile.tables import Tables
from ksp.core.cycle import EMPTINESS, ITSELF, NO_NODES, Decision, claim_errors, failure_text, nodes_to_find
from ksp.core.filter import Filtered, Nominated, Refused
from ksp.core.fit_error import fit_error
from ksp.core.nominations import Nominations
from ksp.core.score import Scored
from ksp.core.state import ClusterState
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import Profile
from ksp.policy.unread import NOTHING, UnreadBy
from ksp.ports import Dice


class PlainCycle:
    """Stands in the place of a scheduler's cycle."""

    def __init__(
        self, profile: Profile, state: ClusterState, nominated: Nominated, dice: Dice, unread_by: UnreadBy
    ) -> None:
        self.profile = profile
        self.state = state
        self.nominated = nominated
        self.dice = dice
        self.unread_by = unread_by
        self.start = 0

    def decide(self, pod: PodInfo) -> Decision:
        unread = self.unread_by.of(pod)
        if unread is not NOTHING and unread.refused and not pod.error:
            return Decision(message=self.unread_by.refusal(unread), denied_by=frozenset({ITSELF}), unread=unread)
        decision = self._decided(pod)
        decision.unread = unread
        return decision

    def denied_by(self, pod: PodInfo, nominations: Nominations | None = None) -> frozenset[str] | None:
        """The rules that deny all nodes, none if one is feasible; None if only an attempt can tell."""
        refused = self.unread_by.of(pod).refused
        if pod.error or refused or any(claim_errors(pod, self.state)):
            return None
        if not self.state.nodes:
            return frozenset({EMPTINESS})
        nodes = self.state.node_list()
        filtered = self._run(pod, nodes)
        if filtered.failure() is not None:
            return None
        return frozenset() if filtered.feasible else self._nothing_fits(filtered, len(nodes)).denied_by

    def may_deny(self, pod: PodInfo) -> frozenset[str]:
        """The rules that do not admit every node."""
        bound = ((active.name, active.predicate.bind(pod, Tables(self.state))) for active in self.profile.predicates)
        return frozenset(name for name, b in bound if b.outcome is not None or b.check is not None)

    def refusal(self, pod: PodInfo, node: str) -> Refused | None:
        """What is said of a node, nominated pods aside."""
        alone = PlainFilter(self.profile, self.state, Tables(self.state), dict)
        filtered = alone.run(pod, [self.state.nodes[node]] if node in self.state.nodes else [])
        return filtered.before or filtered.refused.get(node)

    def _decided(self, pod: PodInfo) -> Decision:
        if pod.error:
            return Decision(message=pod.error, denied_by=frozenset({ITSELF}))
        error = next(claim_errors(pod, self.state), "")
        if error:
            return Decision(message=error, failed=True)
        nodes = self.state.node_list()
        if not nodes:
            return Decision(message=NO_NODES, denied_by=frozenset({EMPTINESS}))
        filtered = self._filtered(pod, nodes)
        if filtered.failure() is not None:
            return Decision(message=failure_text(filtered, pod), failed=True, filtered=filtered)
        if not filtered.feasible:
            return self._nothing_fits(filtered, len(nodes))
        if len(filtered.feasible) == 1:
            return Decision(filtered.feasible[0].name, filtered=filtered)
        scored = scores(self.profile, Tables(self.state), pod, filtered.feasible)
        if scored.error:
            return Decision(message=scored.error, failed=True, filtered=filtered, scored=scored)
        highest = max(scored.total)
        ties = [i for i, total in enumerate(scored.total) if total == highest]
        chosen = ties[self.dice.below(len(ties))] if len(ties) > 1 else ties[0]
        return Decision(filtered.feasible[chosen].name, filtered=filtered, scored=scored)

    def _run(self, pod: PodInfo, nodes: Sequence[NodeInfo], enough: int | None = None) -> Filtered:
        return PlainFilter(self.profile, self.state, Tables(self.state), self.nominated).run(pod, nodes, enough)

    def _filtered(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Filtered:
        enough = nodes_to_find(len(nodes), self.profile.percentage)
        if enough >= len(nodes):
            return self._run(pod, nodes)
        start = self.start % len(nodes)
        filtered = self._run(pod, [*nodes[start:], *nodes[:start]], enough)
        self.start = (start + filtered.examined) % len(nodes)
        return filtered

    @staticmethod
    def _nothing_fits(filtered: Filtered, nodes: int) -> Decision:
        refused = [filtered.before] * nodes if filtered.before is not None else list(filtered.refused.values())
        denials = [(r.rule, r.answer) for every in refused for r in every.each() if isinstance(r.answer, Denial)]
        reasons = [reason for _, denial in denials for reason in denial.reasons]
        rules = frozenset(rule for rule, _ in denials)
        return Decision(message=fit_error(nodes, reasons), filtered=filtered, denied_by=rules)


def scores(profile: Profile, tables: Tables, pod: PodInfo, feasible: Sequence[NodeInfo]) -> Scored:
    """Scores of the nodes by all priorities. Without a priority each node scores 1."""
    bound = [(active, active.priority.bind(pod, tables)) for active in profile.priorities]
    for active, priority in bound:
        if priority.outcome is not None:
            message = priority.outcome.message
            return Scored(
                error=f'error while running "{active.plugin}" prescore plugin for pod "{pod.name}": {message}'
            )
    by_plugin: dict[str, list[int]] = {}
    total = [0 if bound else 1] * len(feasible)
    for active, priority in bound:
        raw = priority.scores(feasible)
        if isinstance(raw, Failure):
            message = raw.message
            return Scored(by_plugin, error=f'error while running score plugin for pod "{pod.name}": {message}')
        normal = raw if priority.normalize is None else priority.normalize(feasible, raw)
        outside = next((s for s in normal if not 0 <= s <= 100), None)
        if outside is not None:
            said = f"the priority {active.name} gives a score of {outside}, outside of 0 to 100"
            return Scored(by_plugin, error=said)
        by_plugin[active.plugin] = normal
        total = [t + active.weight * s for t, s in zip(total, normal, strict=True)]
    return Scored(by_plugin, total)


def total_of(scored: Scored | None) -> Mapping[str, object]:
    """What must be equal of two scorings: of one that failed only why."""
    if scored is None:
        return {}
    return {"error": scored.error} if scored.error else {"by": scored.by_plugin, "total": list(scored.total)}
