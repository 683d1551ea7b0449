"""The shipped rules with arguments, as a recorded case gives them or as they make each rule say something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.golden.recorded import Case
from tests.mutation.reads import Named
from tests.policies.test_forms import shipped_rules

from ksp.check.typed import Rule
from ksp.compile.footprint import Footprint, footprint_of
from ksp.compile.program import CompiledRule, Predicate, Priority, compile_rule
from ksp.core.node_order import ZONE
from ksp.model.arguments import ResourceSpec, UtilizationShapePoint
from ksp.model.pod import TopologySpreadConstraint
from ksp.policy.profile import ActivePredicate, Profile
from ksp.policy.values import value_of

HOSTNAME: Final = "kubernetes.io/hostname"

# By parameter. For labels see below.
ARGUMENTS: Final[Mapping[str, Any]] = {
    "ignoredResourceGroups": ("nvidia.com",),
    "hardPodAffinityWeight": 5,
    "maxVolumes": 1,
    "shape": tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in ((0, 10), (40, 7), (100, 0))),
    "resources": (ResourceSpec(name="cpu", weight=2), ResourceSpec(name="nvidia.com/gpu", weight=3)),
    "defaultConstraints": tuple(
        TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable=action)
        for key, action in ((ZONE, "ScheduleAnyway"), (HOSTNAME, "ScheduleAnyway"), (ZONE, "DoNotSchedule"))
    ),
}


LABELS: Final = (
    "presentLabels", "absentLabels", "presentLabelsPreference", "absentLabelsPreference", "affinityLabels",
    "antiAffinityLabelsPreference",
)  # fmt: skip


def _labels(case: Case, dice: Random) -> dict[str, Any]:
    """For parameters that name labels of nodes, some that the case's nodes have."""
    nodes = (case["cluster"] or {}).get("nodes") or ()
    keys = sorted({key for node in nodes for key in (node["metadata"].get("labels") or {})})
    return {name: tuple(dice.sample(keys, min(len(keys), dice.randint(1, 2)))) for name in LABELS}


@dataclass(frozen=True, slots=True)
class Instance:
    """A rule with arguments."""

    rule: Rule
    made: Predicate | Priority
    footprint: Footprint
    named: Named

    @property
    def name(self) -> str:
        return self.rule.name


def instance(rule: Rule, arguments: Mapping[str, Any]) -> Instance:
    """The rule with those of the arguments that it has parameters for."""
    known = {parameter.binding.name for parameter in rule.parameters}
    made = compile_rule(rule).instantiate({name: value for name, value in arguments.items() if name in known})
    footprint = footprint_of(rule)
    return Instance(rule, made, footprint, Named.by(footprint))


class Instances:
    """Makes instances; the same arguments give the same one."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[CompiledRule, Footprint, Named]] = {}
        self._made: dict[tuple[str, str], Instance] = {}
        for rule in shipped_rules():
            if rule.span.source.name.endswith(".test.ksp"):
                continue  # a rule that only tests use
            footprint = footprint_of(rule)
            self._compiled[rule.name] = compile_rule(rule), footprint, Named.by(footprint)

    def names(self) -> list[str]:
        return list(self._compiled)

    def of(self, case: Case, seed: int = 0) -> list[Instance]:
        """All rules: with the case's own arguments where it has some, else mostly with those from here. Which, depends
        on nothing but the seed, the case and the rule."""
        return [
            self._instance(compiled.rule, case, Random(f"{seed} {case['id']} {name}"))
            for name, (compiled, _, _) in self._compiled.items()
        ]

    def _instance(self, rule: Rule, case: Case, dice: Random) -> Instance:
        plain = dice.random() < 0.3
        types = {parameter.binding.name: parameter.binding.type for parameter in rule.parameters}
        own = (case.get("pluginConfig") or {}).get(rule.plugin) or {}
        arguments = {name: value_of(types[name], value, name) for name, value in own.items() if name in types}
        if not arguments and not plain:
            given = {**ARGUMENTS, **_labels(case, dice)}
            arguments = {name: value for name, value in given.items() if name in types}
        return self._with(rule, arguments)

    def _with(self, rule: Rule, arguments: Mapping[str, Any]) -> Instance:
        key = rule.name, repr(arguments)
        if key not in self._made:
            compiled, footprint, named = self._compiled[rule.name]
            self._made[key] = Instance(rule, compiled.instantiate(arguments), footprint, named)
        return self._made[key]


def profile(instances: Sequence[Instance]) -> Profile:
    """A profile of the predicates among them."""
    predicates = tuple(
        ActivePredicate(each.name, each.rule.plugin, each.made, each.footprint)
        for each in instances
        if isinstance(each.made, Predicate)
    )
    return Profile("all", predicates, ())
