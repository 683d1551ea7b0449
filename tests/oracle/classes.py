"""What the equivalence classes of one rule say: which pods it takes for the same, and what it remembers of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ksp.check.typed import Rule
from ksp.compile.footprint import Footprint
from ksp.compile.program import Predicate, Priority
from ksp.compile.tables import Tables
from ksp.core.cycle import Cycle
from ksp.core.equivalence.classes import PodClass
from ksp.core.equivalence.present import Present
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import ActivePredicate, ActivePriority, Profile

Answers = Mapping[str, object]


class FirstDice:
    """Dice that always show the first side."""

    def below(self, n: int) -> int:
        return 0


def profile_of(rule: Rule, made: Predicate | Priority, footprint: Footprint) -> Profile:
    """A profile of this rule alone."""
    if isinstance(made, Predicate):
        return Profile("default-scheduler", (ActivePredicate(rule.name, rule.plugin, made, footprint),), ())
    return Profile("default-scheduler", (), (ActivePriority(rule.name, rule.plugin, made, 1, footprint),))


class OneRule:
    """The classes of a profile with one rule, in a cluster that may change."""

    def __init__(
        self, rule: Rule, made: Predicate | Priority, footprint: Footprint, present: Present, *, columns: bool = True
    ) -> None:
        self.rule, self.made, self.present = rule, made, present
        profile = profile_of(rule, made, footprint)
        self.cycle = Cycle(profile, present, dict, FirstDice(), equivalence_classes=100, columns=columns)

    def class_of(self, pod: PodInfo) -> PodClass:
        self.present.follow()
        return self.cycle.classes.of(pod)

    def remembered(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Answers:
        """What the pod's class says of these nodes, which for a priority are the feasible ones: by name the Denial or
        Failure, or None; or the score. Under "" what ended it all."""
        if isinstance(self.made, Priority):
            scored = self.cycle.score(pod, nodes)
            return {"": scored.error} if scored.error else _by_name(nodes, next(iter(scored.by_plugin.values())))
        of_pod = self.class_of(pod)
        if of_pod.verdicts.before is not None:
            return {"": of_pod.verdicts.before.answer}
        refused = of_pod.filtered().refused
        return {node.name: refused[node.name].answer if node.name in refused else None for node in nodes}

    def anew(self, pod: PodInfo, nodes: Sequence[NodeInfo], tables: Tables) -> Answers:
        """What the rule says, bound to the pod."""
        if isinstance(self.made, Predicate):
            predicate = self.made.bind(pod, tables)
            if predicate.outcome is not None:
                return {"": predicate.outcome}
            check = predicate.check
            return {node.name: None if check is None else check(node) for node in nodes}
        bound = self.made.bind(pod, tables)
        if bound.outcome is not None:
            said = f'error while running "{self.rule.plugin}" prescore plugin for pod "{pod.name}"'
            return {"": f"{said}: {bound.outcome.message}"}
        raw = bound.scores(nodes)
        if not isinstance(raw, list):
            return {"": f'error while running score plugin for pod "{pod.name}": {raw.message}'}
        normal = raw if bound.normalize is None else bound.normalize(nodes, raw)
        outside = next((score for score in normal if not 0 <= score <= 100), None)
        if outside is not None:
            return {"": f"the priority {self.rule.name} gives a score of {outside}, outside of 0 to 100"}
        return _by_name(nodes, normal)


def _by_name(nodes: Sequence[NodeInfo], scores: Sequence[int]) -> Answers:
    return {node.name: score for node, score in zip(nodes, scores, strict=True)}
