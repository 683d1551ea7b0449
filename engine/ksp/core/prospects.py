"""Is another attempt for a pod worth its while, and if not, what has to change before one is?

A pod that no node takes sleeps by the names of rules: it is asked about again after events that may help one of them
(`ksp.core.sleepers`, `ksp.core.wake`). For most pods these are the rules that denied nodes, of each node the first.

A pod that could have others evicted needs more. What has to be known of a node is whether it would take the pod
without its pods of lower priority; and there it may be another rule that denies, one that was never asked since the
node is full: its taint, for instance. Or one that admits the node as it is, and would not once pods are gone: an
affinity to a victim. So such a pod sleeps by all rules that ask anything of a node for it. What is missed is a rule
that asks nothing of the node and denies all of them once pods are gone; then the end of patience is the net.

What needs no question: that a pod of lower priority comes to the node. Without such pods the node is as before, and
did not take the pod. (What the newcomer is to other nodes, as a neighbour, is an event for the rules that read it.)
What a disruption budget allows changes who is evicted, never whether anybody can be.

While pods that it had evicted are on their way out, a nominated pod may evict no more, unless its node is refused for
good. So it sleeps by its claim, too: by the departure of pods, and by whatever becomes of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from ksp.core.cycle import EMPTINESS, ITSELF
from ksp.core.evictions import Evictions
from ksp.core.extenders import EXTENDER, Extenders
from ksp.core.filter import Refused
from ksp.core.nominations import Nominations
from ksp.core.preemption.eligibility import final, may_preempt, waits_on
from ksp.core.state import ClusterState
from ksp.core.wake import CLAIM
from ksp.model.info import PodInfo

Rules = frozenset[str]

SEARCH: Final = 7
"""A question for which victims are looked for costs as much as so many others more: at most two of them between two
attempts, so that the pods that have their turn are not kept waiting."""


class Cycle(Protocol):
    """What decides for the pods of a profile."""

    def denied_by(self, pod: PodInfo, nominations: Nominations | None = None) -> Rules | None: ...

    def may_deny(self, pod: PodInfo) -> Rules: ...

    def refusal(self, pod: PodInfo, node: str) -> Refused | None: ...


class Preemption(Protocol):
    """What looks for victims for the pods of a profile, if that `preempts`."""

    preempts: bool

    def would_help(self, pod: PodInfo, evicting: Collection[str] = ()) -> bool: ...


class Prospects:
    """The prospects of pods. `cycles` and `preemptions` are by the names of schedulers. `spend` is told of questions
    that cost more than others, in units of these. What `extenders` would say only an attempt can tell."""

    def __init__(
        self,
        state: ClusterState,
        cycles: Mapping[str, Cycle],
        preemptions: Mapping[str, Preemption],
        nominations: Nominations,
        evictions: Evictions,
        spend: Callable[[int], None],
        extenders: Extenders,
    ) -> None:
        self._state = state
        self._cycles = cycles
        self._preemptions = preemptions
        self._nominations = nominations
        self._evictions = evictions
        self._spend = spend
        self._extenders = extenders

    def denied_by(self, pod: PodInfo) -> Rules | None:
        """None of them if an attempt may place the pod now, or have others evicted for it; else what it sleeps by. None
        if only an attempt can tell."""
        rules = self._cycles[pod.scheduler_name].denied_by(pod, self._nominations)
        if not rules:
            return None if self._is_up_to_extenders(pod) else rules
        if not self._may_preempt(pod):
            return rules
        if not self._waits(pod) and self._preemption_helps(pod):
            return frozenset()
        return self._with_those_behind(pod, rules)

    def _preemption_helps(self, pod: PodInfo) -> bool:
        self._spend(SEARCH)
        return self._preemptions[pod.scheduler_name].would_help(pod, self._evictions.victims)

    def sleeps_by(self, pod: PodInfo, denied_by: Rules) -> Rules:
        """After an attempt in which these rules denied all nodes: what has to be helped before the next."""
        if not denied_by.isdisjoint({ITSELF, EMPTINESS}):
            return denied_by
        rules = denied_by | {EXTENDER} if self._is_up_to_extenders(pod) else denied_by
        return self._with_those_behind(pod, rules) if self._may_preempt(pod) else rules

    def _is_up_to_extenders(self, pod: PodInfo) -> bool:
        """They have a say in whether a node takes the pod, or others go for its sake."""
        return bool(self._extenders and self._extenders.deciding(pod))

    def _may_preempt(self, pod: PodInfo) -> bool:
        """There are pods of lower priority, and the pod may have them evicted."""
        lowest = self._state.lowest_priority()
        lower = lowest is not None and lowest < pod.priority
        return lower and self._preemptions[pod.scheduler_name].preempts and may_preempt(pod)

    def _waits(self, pod: PodInfo) -> bool:
        """The pod waits for others that are on their way out of its node, which may take it then."""
        claim = self._nominations.node_of(pod.uid) or ""
        waits = waits_on(self._state.nodes.get(claim), pod, self._evictions.victims)
        return waits and not final(self._cycles[pod.scheduler_name].refusal(pod, claim))

    def _with_those_behind(self, pod: PodInfo, rules: Rules) -> Rules:
        behind = self._cycles[pod.scheduler_name].may_deny(pod)
        claim = frozenset({CLAIM}) if self._nominations.node_of(pod.uid) else frozenset()
        return rules | behind | claim
