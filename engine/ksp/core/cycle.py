"""The scheduling cycle: which node takes a pod, or why none does. The algorithm, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ksp.compile.runtime import Denial
from ksp.core.filter import Filter, Filtered
from ksp.core.fit_error import fit_error
from ksp.core.score import Scored, score
from ksp.core.state import ClusterState
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import Profile
from ksp.policy.unread import NOTHING, Unread, UnreadBy
from ksp.ports import Dice

NO_NODES = "no nodes available to schedule pods"

# In the place of a rule that denied a pod.
ITSELF = "(the pod itself)"  # no event but its own change can help
EMPTINESS = "(the empty cluster)"  # a node can


@dataclass(slots=True)
class Decision:
    """What came of an attempt. `node` is the name of the chosen node, "" if there is none; then `message` says why, as
    kube-scheduler words it, and `failed` tells an error from "no node fits". `denied_by` are the rules that denied
    nodes. `unread` are fields of the pod that the policy does not read."""

    node: str = ""
    message: str = ""
    failed: bool = False
    filtered: Filtered = field(default_factory=Filtered)
    scored: Scored | None = None
    denied_by: frozenset[str] = frozenset()
    unread: Unread = NOTHING


class Cycle:
    """Decides for the pods of one profile. Keeps, between decisions, only where the next search for nodes starts.

    Without `unread_by` all fields of a pod count as read.
    """

    def __init__(
        self, profile: Profile, state: ClusterState, nodes_filter: Filter, dice: Dice, unread_by: UnreadBy | None = None
    ) -> None:
        self.profile = profile
        self.state = state
        self.filter = nodes_filter
        self.dice = dice
        self.unread_by = unread_by
        self.start = 0

    def decide(self, pod: PodInfo) -> Decision:
        """The decision for a pod in the present state. Changes nothing in it."""
        if self.unread_by is None or (unread := self.unread_by.of(pod)) is NOTHING:
            return self._decided(pod)
        if unread.refused and not pod.error:
            decision = Decision(message=self.unread_by.refusal(unread), denied_by=frozenset({ITSELF}))
        else:
            decision = self._decided(pod)
        decision.unread = unread
        return decision

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
        failure = filtered.failure()
        if failure is not None:
            return Decision(message=failure_text(filtered, pod), failed=True, filtered=filtered)
        if not filtered.feasible:
            return self._nothing_fits(filtered, len(nodes))
        if len(filtered.feasible) == 1:
            return Decision(filtered.feasible[0].name, filtered=filtered)
        scored = score(self.profile, self.filter.tables, pod, filtered.feasible)
        if scored.error:
            return Decision(message=scored.error, failed=True, filtered=filtered, scored=scored)
        return Decision(self._best(filtered.feasible, scored.total), filtered=filtered, scored=scored)

    def _filtered(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Filtered:
        """All nodes, or as many as the profile's percentage asks for, from where the last search ended."""
        enough = nodes_to_find(len(nodes), self.profile.percentage)
        if enough >= len(nodes):
            return self.filter.run(pod, nodes)
        start = self.start % len(nodes)
        filtered = self.filter.run(pod, [*nodes[start:], *nodes[:start]], enough)
        self.start = (start + filtered.examined) % len(nodes)
        return filtered

    def _nothing_fits(self, filtered: Filtered, nodes: int) -> Decision:
        if filtered.before is not None and isinstance(filtered.before.answer, Denial):
            reasons = list(filtered.before.answer.reasons) * nodes
            denied_by = frozenset({filtered.before.rule})
        else:
            denials = [(r.rule, r.answer) for r in filtered.refused.values() if isinstance(r.answer, Denial)]
            reasons = [reason for _, denial in denials for reason in denial.reasons]
            denied_by = frozenset(rule for rule, _ in denials)
        return Decision(message=fit_error(nodes, reasons), filtered=filtered, denied_by=denied_by)

    def _best(self, feasible: Sequence[NodeInfo], total: Sequence[int]) -> str:
        """The node with the highest total; one of those that tie, each as likely as the others."""
        highest = max(total)
        ties = [i for i, t in enumerate(total) if t == highest]
        return feasible[ties[self.dice.below(len(ties))] if len(ties) > 1 else ties[0]].name


def failure_text(filtered: Filtered, pod: PodInfo) -> str:
    """The error of an attempt that a rule's `fail` ended."""
    failure = filtered.failure()
    assert failure is not None
    assert not isinstance(failure.answer, Denial)
    if filtered.before is not None:
        return f'prefilter plugin "{failure.plugin}" failed for pod "{pod.name}": {failure.answer.message}'
    return f'running "{failure.plugin}" filter plugin for pod "{pod.name}": {failure.answer.message}'


def claim_errors(pod: PodInfo, state: ClusterState) -> Iterator[str]:
    """Claims of the pod that are not there, or are being deleted. kube-scheduler checks them before all else, whatever
    the policy."""
    claims = state.objects["persistentVolumeClaims"].get(pod.namespace, {})
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        if name not in claims:
            yield f'persistentvolumeclaim "{name}" not found'
        elif claims[name].metadata.deletion_timestamp is not None:
            yield f'persistentvolumeclaim "{name}" is being deleted'


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough: kube-scheduler's numFeasibleNodesToFind. A percentage of 0 is adaptive."""
    if nodes < 100 or percentage >= 100:
        return nodes
    adaptive = percentage if percentage > 0 else max(5, 50 - nodes // 125)
    return max(100, nodes * adaptive // 100)
