"""Pods that a rule takes for the same are the same to it, whatever they differ in.

Of each rule the equivalence classes are asked about pods that differ in little, in clusters that change. Pods of one
class must get the same of every node as if each were asked about by itself, and what the class remembers must be that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.classes import OneRule
from tests.oracle.clusters import Json, Scenario, scenarios, variants
from tests.oracle.columnar import columnar_policies
from tests.oracle.policies import Policy, policies
from tests.policies.test_forms import ARGUMENTS, shipped_rules

from ksp.compile.footprint import Footprint, footprint_of
from ksp.compile.program import CompiledRule, Predicate, compile_rule
from ksp.compile.tables import Tables
from ksp.core.equivalence.present import Present
from ksp.core.pod_kinds import PodKinds
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.policy.profile import ActivePredicate, Profile

THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
PHASES = tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate)


def examples(number: int) -> settings:
    return settings(
        max_examples=number * (40 if THOROUGH else 1), suppress_health_check=list(HealthCheck), phases=PHASES
    )


@cache
def compiled() -> Sequence[tuple[CompiledRule, Footprint]]:
    rules = [rule for rule in shipped_rules() if not rule.span.source.name.endswith(".test.ksp")]
    return [(compile_rule(rule), footprint_of(rule)) for rule in rules]


class Alike:
    """Asks the classes of some rules about pods. `shared` counts, by rule, the pods that met a class of others."""

    def __init__(
        self, rules: Sequence[tuple[CompiledRule, Footprint]], arguments: Mapping[str, Any], scenario: Scenario
    ) -> None:
        self.state = scenario.state()
        self.changes = scenario.changes
        self.present = Present.of(self.state)
        self.shared: Counter[str] = Counter()
        self.rules = []
        for each, footprint in rules:
            known = {parameter.binding.name for parameter in each.rule.parameters}
            made = each.instantiate({name: value for name, value in arguments.items() if name in known})
            self.rules.append(OneRule(each.rule, made, footprint, self.present))

    def hold(self, pods: Sequence[PodInfo]) -> None:
        """All is as said above, and stays so through the changes."""
        for change in (None, *self.changes):
            if change is not None:
                change.apply(self.state)
            tables, nodes = Tables(self.state), self.state.node_list()
            for rule in self.rules:
                classes: dict[int, PodInfo] = {}
                for pod in pods:
                    other = classes.setdefault(id(rule.class_of(pod)), pod)
                    self.shared[rule.rule.name] += other is not pod
                    remembered, anew = rule.remembered(pod, nodes), rule.anew(pod, nodes, tables)
                    assert _unnamed(remembered, pod) == _unnamed(anew, pod), f"{rule.rule.name} of {pod} like {other}"


def _unnamed(answers: Mapping[str, object], pod: PodInfo) -> Mapping[str, object]:
    """A sentence about an error names the pod."""
    return {name: repr(answer).replace(f'"{pod.name}"', '"POD"') for name, answer in answers.items()}


def infos(raw: Sequence[Json]) -> list[PodInfo]:
    return [PodInfo.of(convert(Pod, each)) for each in raw]


def test_pods_of_one_class_are_the_same_to_shipped_rules() -> None:
    shared: Counter[str] = Counter()

    @examples(25)
    @given(variants(), scenarios(3), st.booleans())
    def holds(pods: list[Json], scenario: Scenario, given_arguments: bool) -> None:
        alike = Alike(compiled(), ARGUMENTS if given_arguments else {}, scenario)
        alike.hold(infos(pods))
        shared.update(alike.shared)

    holds()
    assert all(shared[rule.rule.name] > 25 for rule, _ in compiled()), shared


def random_rules(policy: Policy) -> list[tuple[CompiledRule, Footprint]]:
    return [(compile_rule(rule), footprint_of(rule)) for rule in policy.rules()]


@examples(60)
@given(policies(), variants(3), scenarios(3), st.booleans())
def test_pods_of_one_class_are_the_same_to_random_rules(
    policy: Policy, pods: list[Json], scenario: Scenario, given_arguments: bool
) -> None:
    Alike(random_rules(policy), policy.arguments if given_arguments else {}, scenario).hold(infos(pods))


@examples(60)
@given(columnar_policies(), variants(3), scenarios(4))
def test_pods_of_one_class_are_the_same_to_random_rules_for_columns(
    policy: Policy, pods: list[Json], scenario: Scenario
) -> None:
    Alike(random_rules(policy), policy.arguments, scenario).hold(infos(pods))


# Rules that read of the pod what is easily taken for the same.
SMALL = [
    'let z = double(pod.spec.priority) * 1e-300 * 1e-300 deny "${z}" when node.podCount >= 0',
    'deny "${pod.name}" when node.podCount > 0',
    'deny "${size(pod.labels)}" when node.podCount > 0',
    'deny "x" when pod.labels == node.labels || pod.spec.nodeSelector == pod.labels && node.podCount > 0',
    'deny "x" when has(pod.spec.priority) && node.podCount > 0',
    'deny "x" when has(pod.spec.affinity.podAffinity) && node.podCount > 0',
    'deny "${pod.affinityError}" when pod.affinityError != "" && node.podCount > 0',
    'view w = count p in cluster.pods where p.name < pod.name by p.node.name deny "${w[node.name]}" when true',
    'view w = count p in cluster.pods where p.labels == pod.labels by p.node.name deny "${w[node.name]}" when true',
    'view w = first p in cluster.pods where p.namespace == pod.namespace deny "${w.name}" when node.podCount > 0',
    'view w = sum size(pod.name) for n in cluster.nodes deny "${w}" when node.podCount > 0',
    'for t in pod.spec.tolerations { deny "${t.key}" when node.spec.taints.exists(x, t.tolerates(x)) }',
    'deny "x" when "s0" in cluster.services[pod.namespace] && node.podCount >= 0',
]


@pytest.mark.parametrize("body", SMALL)
def test_pods_of_one_class_are_the_same_to_small_rules(body: str) -> None:
    rules = random_rules(Policy(f"predicate P {{ {body} }}"))

    @examples(25)
    @given(variants(), scenarios(3))
    def holds(pods: list[Json], scenario: Scenario) -> None:
        Alike(rules, {}, scenario).hold(infos(pods))

    holds()


# ---- pods that sleep


def test_pods_of_one_kind_have_the_same_verdicts() -> None:
    """The queue asks about one pod for all of a kind."""
    actives = []
    for rule, footprint in compiled():
        made = rule.instantiate({})
        if isinstance(made, Predicate):
            actives.append(ActivePredicate(rule.rule.name, rule.rule.plugin, made, footprint))
    same: Counter[str] = Counter()

    @examples(60)
    @given(variants(), scenarios(2), st.sampled_from(actives))
    def holds(raw: list[Json], scenario: Scenario, active: ActivePredicate) -> None:
        state, pods = scenario.state(), infos(raw)
        kind_of = PodKinds([Profile("default-scheduler", (active,), ())]).of
        rule = OneRule(active.predicate.rule, active.predicate, active.footprint, Present.of(state))
        for change in (None, *scenario.changes):
            if change is not None:
                change.apply(state)
            kinds: dict[object, Mapping[str, object]] = {}
            for pod in pods:
                answers = _unnamed(rule.anew(pod, state.node_list(), Tables(state)), pod)
                same[active.name] += kind_of(pod) in kinds
                assert kinds.setdefault(kind_of(pod), answers) == answers, f"{active.name} of {pod}"

    holds()
    assert len(same) > 5
    assert sum(same.values()) > 50
