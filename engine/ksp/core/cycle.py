"""The scheduling cycle: which node takes a pod, or why none does. The algorithm, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ksp.compile.node_columns import IntArray
from ksp.compile.runtime import Denial
from ksp.core.claimed_nodes import ClaimedNodes
from ksp.core.equivalence.classes import Classes, PodClass
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.scores import Feasible, scored, sums
from ksp.core.equivalence.verdicts import FEASIBLE, Judged, Verdicts, counted, fails, reasons_in
from ksp.core.extenders import EXTENDER, Asking, Left, filtered, prioritized
from ksp.core.filter import Filtered, Nominated, Refused
from ksp.core.fit_error import fit_error
from ksp.core.nominations import Nominations
from ksp.core.pod_kinds import PodKinds
from ksp.core.score import Scored
from ksp.core.state import ClusterState
from ksp.core.with_nominated import WithNominated
from ksp.model.claims import LOST, claim_uses, is_made_for
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.storage import PersistentVolumeClaim
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile
from ksp.policy.unread import NOTHING, Unread, UnreadBy
from ksp.ports import Dice

NO_NODES = "no nodes available to schedule pods"

# In the place of a rule that denied a pod.
ITSELF = "(the pod itself)"  # no event but its own change can help
EMPTINESS = "(the empty cluster)"  # a node can

MOST_CLASSES: Final = 1_000  # equivalence classes that a profile keeps, unless told otherwise


@dataclass(slots=True)
class Decision:
    """What came of an attempt. `node` is the name of the chosen node, "" if there is none; then `message` says why, as
    kube-scheduler words it, and `failed` tells an error from "no node fits". `denied_by` are the rules that denied
    nodes. `scored` is there if scores were asked for, and came to be. `unread` are fields of the pod that the policy
    does not read."""

    node: str = ""
    message: str = ""
    failed: bool = False
    filtered: Filtered = field(default_factory=Filtered)
    scored: Scored | None = None
    denied_by: frozenset[str] = frozenset()
    unread: Unread = NOTHING


@dataclass(frozen=True, slots=True)
class Found:
    """The feasible nodes among those that were looked at; what was said of all of these, and how often."""

    filtered: Filtered
    counts: list[tuple[Refused, int]]
    feasible: Feasible

    def without(self, left: Left) -> Found:
        """What extenders left of it. Of a node for which none said why, nothing is said."""
        names = [node.name for node in self.feasible.nodes]
        kept = set(left.nodes)
        gone = {name: left.refused(name) for name in names if name not in kept}
        slots = self.feasible.slots[[name in kept for name in names]]
        counts = [*self.counts, *((refused, 1) for refused in gone.values() if refused is not None)]
        return Found(self.filtered.without(gone), counts, Feasible(self.feasible.columns, slots))


class Cycle:
    """Decides for the pods of one profile. Keeps, between decisions, where the next search for nodes starts, and the
    profile's equivalence classes: `equivalence_classes` at most, none if that is 0. Without `columns` rules are asked
    node by node.

    A node to which pods are nominated that count against the pod is judged twice. What is said with those pods there
    holds for this pod alone, and is never kept nor taken from a class. What is said without them is what the class
    says: memos see the state as it is, in which nominated pods have no place, so that is exact, and costs nothing.

    Without `unread_by` all fields of a pod count as read. With `keep_scores` decisions show how nodes scored.
    """

    def __init__(
        self, profile: Profile, present: Present, nominated: Nominated, dice: Dice, unread_by: UnreadBy | None = None,
        *, equivalence_classes: int = MOST_CLASSES, columns: bool = True, keep_scores: bool = False,
    ) -> None:  # fmt: skip
        self.profile = profile
        self.present = present
        self.state = present.state
        self.nominated = nominated
        self.with_nominated = WithNominated(profile, present, nominated)
        self._claimed = ClaimedNodes(present, nominated, self.with_nominated, PodKinds([profile]))
        self.classes = Classes(profile, present, most=equivalence_classes, columns=columns)
        self.dice = dice
        self.unread_by = unread_by
        self.keep_scores = keep_scores
        self.start = 0

    def decide(self, pod: PodInfo) -> Decision:
        """The decision for a pod in the present state. Changes nothing in it."""
        if self.unread_by is None or (unread := self.unread_by.of(pod)) is NOTHING:
            return self._decided(pod)
        decision = self._refused(pod, unread) or self._decided(pod)
        decision.unread = unread
        return decision

    def deliberate(self, pod: PodInfo, extenders: Sequence[Extender]) -> Asking[Decision]:
        """As `decide`, where these extenders have a say. Until there is a decision nothing may change."""
        unread = NOTHING if self.unread_by is None else self.unread_by.of(pod)
        decision = self._refused(pod, unread)
        if decision is None and any(each.filter_verb or each.prioritize_verb for each in extenders):
            decision = yield from self._with_extenders(pod, extenders)
        elif decision is None:
            decision = self._decided(pod)
        decision.unread = unread
        return decision

    def denied_by(self, pod: PodInfo, nominations: Nominations | None = None) -> frozenset[str] | None:
        """The rules that keep the pod from all nodes now, none if some node is feasible; None if only an attempt can
        tell: something is wrong with the pod, or a rule fails. With `nominations`, which hold the nominated pods, what
        was said of nodes with these and still stands is not asked for again."""
        refused = self.unread_by is not None and self.unread_by.of(pod).refused
        if pod.error or refused or any(claim_errors(pod, self.state)):
            return None
        if not self.state.nodes:
            return frozenset({EMPTINESS})
        rules = self.classes.denied_by(pod)
        if rules is None or rules:  # a node that is not feasible without nominated pods is not with them either
            return rules
        return self._claimed.denied_by(pod, self.classes.looked_up(pod), nominations)

    def may_deny(self, pod: PodInfo) -> frozenset[str]:
        """The rules that can deny the pod a node now, be it one that another rule denies before."""
        return self.classes.looked_up(pod).verdicts.may_deny()

    def refusal(self, pod: PodInfo, node: str) -> Refused | None:
        """What is said of a node, nominated pods aside; None if it is feasible, or not there."""
        return self.classes.looked_up(pod).verdicts.refusal(node)

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Scored:
        """How these nodes score for the pod, if they are the feasible ones."""
        self.present.follow()
        pods, columns = self.classes.of(pod), self.present.columns
        pods.totals.refresh_memos()
        slots = np.array([columns.slot_of[node.name] for node in nodes], dtype=np.int64)
        return scored(pods.priorities, pod.name, Feasible(columns, slots))

    def prepared(self, pod: PodInfo) -> Iterator[None]:
        """Make the pod's class, in slices: what one rule says of all nodes in each. Nothing is decided. Things may
        change in between."""
        if self._hopeless(pod) is None:
            yield from self.classes.prepared(pod)

    def _decided(self, pod: PodInfo) -> Decision:
        hopeless = self._hopeless(pod)
        if hopeless is not None:
            return hopeless
        nodes = len(self.state.nodes)
        with_nominated = self.with_nominated.verdicts(pod)
        self.present.follow()
        pods = self.classes.of(pod)
        verdicts = pods.verdicts
        enough = nodes_to_find(nodes, self.profile.percentage)
        decided = verdicts.before is not None or not (verdicts.feasible or verdicts.failed or with_nominated)
        if decided and enough < nodes:
            self.start %= nodes
        if verdicts.before is not None:
            return self._before(pod, verdicts.before, nodes)
        if not decided and (with_nominated or enough < nodes):
            return self._among(pod, pods, self._found(verdicts, with_nominated, enough))
        if verdicts.failed:
            return self._among(pod, pods, self._all(pods))
        return self._of_class(pod, pods)

    def _refused(self, pod: PodInfo, unread: Unread) -> Decision | None:
        """The decision if the pod uses what the policy must read."""
        if self.unread_by is None or not unread.refused or pod.error:
            return None
        return Decision(message=self.unread_by.refusal(unread), denied_by=frozenset({ITSELF}))

    def _hopeless(self, pod: PodInfo) -> Decision | None:
        """The decision if no node has to be looked at."""
        if pod.error:
            return Decision(message=pod.error, denied_by=frozenset({ITSELF}))
        error = next(claim_errors(pod, self.state), "") if pod.spec.volumes else ""
        if error:
            return Decision(message=error, failed=True)
        if not self.state.nodes:
            return Decision(message=NO_NODES, denied_by=frozenset({EMPTINESS}))
        return None

    def _before(self, pod: PodInfo, before: Refused, nodes: int) -> Decision:
        """What a `prefilter` decided for all nodes."""
        filtered = Filtered(before)
        if not isinstance(before.answer, Denial):
            return Decision(message=failure_text(filtered, pod), failed=True, filtered=filtered)
        reasons, rules = reasons_in([(before, nodes)])
        return Decision(message=fit_error(nodes, reasons), filtered=filtered, denied_by=rules)

    # ---- all nodes, none of which needs a look of its own

    def _of_class(self, pod: PodInfo, pods: PodClass) -> Decision:
        verdicts = pods.verdicts
        if not verdicts.feasible:
            unfit = pods.unfit()
            return Decision(message=unfit.message, filtered=pods.filtered(), denied_by=unfit.denied_by)
        if verdicts.feasible == 1:
            slot = int(verdicts.slots()[0])
        elif self.keep_scores or not pods.totals.refresh():
            return self._among(pod, pods, self._all(pods))
        else:
            slot = pods.totals.best(self.dice)
        return Decision(self._name(slot), filtered=pods.filtered())

    # ---- nodes in order

    def _all(self, pods: PodClass) -> Found:
        return Found(pods.filtered(), pods.verdicts.counts(), Feasible(self.present.columns, pods.verdicts.slots()))

    def _found(self, verdicts: Verdicts, judged: Mapping[str, Refused | None], enough: int) -> Found:
        """As many feasible nodes as are enough, from where the last search ended. Nodes that are judged already, with
        the pods nominated to them, have to pass without these, too."""
        columns = self.present.columns
        nodes, order = self.state.node_list(), columns.order
        codes, refusals = verdicts.codes, verdicts.refusals
        if any(judged.values()):
            codes, refusals = verdicts.overridden(judged)
        if enough >= len(nodes):
            places, examined = np.flatnonzero(codes[order] == FEASIBLE), len(nodes)
        else:
            start = self.start % len(nodes)
            nodes, order = [*nodes[start:], *nodes[:start]], np.roll(order, -start)
            places = np.flatnonzero(codes[order] == FEASIBLE)[:enough]
            examined = int(places[-1]) + 1 if len(places) == enough else len(nodes)
            self.start = (start + examined) % len(nodes)
        looked_at = order[:examined]
        shown = Filtered(examined=examined, judged=Judged(nodes[:examined], looked_at, codes.copy(), refusals))
        return Found(shown, counted(codes[looked_at], refusals), Feasible(columns, order[places]))

    def _among(self, pod: PodInfo, pods: PodClass, found: Found, more: IntArray | None = None) -> Decision:
        """The decision for the best of the nodes that were found. `more` adds to their scores."""
        filtered, slots = found.filtered, found.feasible.slots
        if fails(found.counts):
            return Decision(message=failure_text(filtered, pod), failed=True, filtered=filtered)
        if not len(slots):
            reasons, rules = reasons_in(found.counts)
            message = fit_error(len(self.state.nodes), reasons)
            return Decision(message=message, filtered=filtered, denied_by=rules)
        if len(slots) == 1:
            return Decision(self._name(slots[0]), filtered=filtered)
        pods.totals.refresh_memos()
        by_plugin: dict[str, list[int]] | None = {} if self.keep_scores else None
        total = sums(pods.priorities, pod.name, found.feasible, by_plugin)
        if isinstance(total, str):
            scored = Scored(error=total) if self.keep_scores else None
            return Decision(message=total, failed=True, filtered=filtered, scored=scored)
        if more is not None:
            total = total + more
        scored = None if by_plugin is None else Scored(by_plugin, total.tolist())
        ties = np.flatnonzero(total == total.max())
        chosen = ties[self.dice.below(len(ties))] if len(ties) > 1 else ties[0]
        return Decision(self._name(slots[chosen]), filtered=filtered, scored=scored)

    # ---- nodes of which extenders have a say

    def _with_extenders(self, pod: PodInfo, extenders: Sequence[Extender]) -> Asking[Decision]:
        hopeless = self._hopeless(pod)
        if hopeless is not None:
            return hopeless
        nodes = len(self.state.nodes)
        with_nominated = self.with_nominated.verdicts(pod)
        self.present.follow()
        pods = self.classes.of(pod)
        enough = nodes_to_find(nodes, self.profile.percentage)
        if pods.verdicts.before is not None:
            return self._before(pod, pods.verdicts.before, nodes)
        part = with_nominated or enough < nodes
        found = self._found(pods.verdicts, with_nominated, enough) if part else self._all(pods)
        if fails(found.counts) or not len(found.feasible.slots):
            return self._among(pod, pods, found)
        left = yield from filtered(extenders, [node.name for node in found.feasible.nodes])
        if left.error:
            return Decision(message=left.error, failed=True, filtered=found.filtered)
        refused = len(left.nodes) < len(found.feasible.slots)
        found = found.without(left) if refused else found
        more = (yield from prioritized(extenders, left.nodes)) if len(left.nodes) > 1 else None
        decision = self._among(pod, pods, found, more)
        if refused and not decision.node:
            decision.denied_by |= {EXTENDER}
        return decision

    def _name(self, slot: int) -> str:
        return self.present.columns.nodes[slot].name


def failure_text(filtered: Filtered, pod: PodInfo) -> str:
    """The error of an attempt that a rule's `fail` ended."""
    failure = filtered.failure()
    assert failure is not None
    assert not isinstance(failure.answer, Denial)
    if filtered.before is not None:
        return f'prefilter plugin "{failure.plugin}" failed for pod "{pod.name}": {failure.answer.message}'
    return f'running "{failure.plugin}" filter plugin for pod "{pod.name}": {failure.answer.message}'


def claim_errors(pod: PodInfo, state: ClusterState) -> Iterator[str]:
    """Claims of the pod that are not there, are lost or being deleted, or not made for it. kube-scheduler checks them
    before all else, whatever the policy."""
    claims = state.objects["persistentVolumeClaims"].get(pod.namespace, {})
    for name, ephemeral in claim_uses(pod.metadata, pod.spec):
        claim: PersistentVolumeClaim | None = claims.get(name)
        if claim is not None:
            yield from _faults(claim, pod, ephemeral=ephemeral)
        elif ephemeral:
            yield f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        else:
            yield f'persistentvolumeclaim "{name}" not found'


def _faults(claim: PersistentVolumeClaim, pod: PodInfo, *, ephemeral: bool) -> Iterator[str]:
    name, namespace = claim.metadata.name, claim.metadata.namespace
    if claim.status.phase == LOST:
        volume = claim.spec.volume_name
        yield f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        yield f'persistentvolumeclaim "{name}" is being deleted'
    if ephemeral and not is_made_for(claim, pod.metadata):
        yield f"PVC {namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough: kube-scheduler's numFeasibleNodesToFind. A percentage of 0 is adaptive."""
    if nodes < 100 or percentage >= 100:
        return nodes
    adaptive = percentage if percentage > 0 else max(5, 50 - nodes // 125)
    return max(100, nodes * adaptive // 100)
