"""Decisions with and without equivalence classes and columns, under random churn: they are the same, always.

Pods of a few templates come in numbers; nodes and other objects come, change, go and come back; bindings succeed, fail,
or end late; pods claim nodes; time jumps. Schedulers that remember, or judge by columns, and one that does neither are
told the same, and each of their decisions is compared: the node, the sentence, the scores, and what was said of every
node. So is what they would decide now for pods of some templates.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.state.templates import EVERY_OBJECT, KNOWN, NODES, PODS, node, object_change, pod
from tests.state.twins import KINDS, Twins

from ksp.core.changes import Bind, DeleteNode, DeletePod, SetNode, SetPod
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.policy.load import load, profiles
from ksp.policy.profile import PluginArguments, Profile
from ksp.source.origin import Texts

# To make a failing example small takes minutes: it is left to the thorough run.
THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"

NODE_NAMES = ("n0", "n1", "n2", "n3", "n4")
POD_NAMES = tuple(f"p{i}" for i in range(9))
PROBED = 5  # templates, of which after each step two are probed
MINDING = (0, 1, 26, 28, 29, 30)  # templates of pods that other objects matter to
ROOMY = (0, 1, 5, 6, 7)  # shapes of nodes that take most pods

# Beside the default rules those that only a Policy names.
EVERYTHING = """
import "ksp:legacy.ksp"
import "ksp:historical.ksp"
provider Everything extends DefaultProvider {
  predicates {
    CheckNodeLabelPresence, CheckServiceAffinity, MaxCinderVolumeCount, CheckNodeCondition, CheckNodeMemoryPressure
  }
  priorities {
    MostRequestedPriority: 1, RequestedToCapacityRatio: 2, NodeLabelPriority: 1, ServiceAntiAffinityPriority: 3,
    ResourceLimitsPriority: 1
  }
}
profile "default-scheduler" uses Everything {}
"""
PLUGINS: PluginArguments = {
    "NodeLabel": {"presentLabelsPreference": ["disk"], "absentLabels": ["rack"]},
    "ServiceAffinity": {"affinityLabels": ["rack", "disk"], "antiAffinityLabelsPreference": ["disk"]},
    "InterPodAffinity": {"hardPodAffinityWeight": 20},
    "RequestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
}


@cache
def default_rules() -> Profile:
    return _profile('import "ksp:default.ksp"', {})


@cache
def all_rules() -> Profile:
    return _profile(EVERYTHING, PLUGINS)


@cache
def half_of_the_nodes() -> Profile:
    """A percentage counts where there are a hundred nodes and more."""
    return replace(default_rules(), percentage=5)


def _profile(text: str, plugins: PluginArguments) -> Profile:
    loaded = load(Texts({"p.ksp": text}), "p.ksp")
    assert loaded.module is not None, loaded.diagnostics
    return profiles(loaded.module, plugins)[0]


@dataclass(frozen=True)
class Shown:
    """A pod as the watch showed it last. `node` is "" while it has none; `claim` is the node it is nominated to."""

    uid: str
    name: str
    template: int
    node: str = ""
    terminating: bool = False
    claim: str = ""

    def pod(self, phase: str = "") -> Pod:
        status = {"phase": phase, "nominatedNodeName": self.claim}
        return pod(self.template, self.name, self.uid, place=self.node, terminating=self.terminating, **status)


pod_names = st.sampled_from(POD_NAMES)
node_names = st.sampled_from(NODE_NAMES)
templates = st.integers(0, len(PODS) - 1)
node_shapes = st.integers(0, len(NODES) - 1)


class EquivalenceMachine(RuleBasedStateMachine):
    """With the default rules, and a few nodes. `kinds` are the schedulers that are compared in a short run."""

    kinds: tuple[str, ...] = ("classes and columns", "two classes")

    def __init__(self) -> None:
        super().__init__()
        self.twins = Twins(self.profile(), tuple(KINDS) if THOROUGH else self.kinds)
        self.probed: list[int] = []
        self.now = 0.0
        self.serial = 0
        self.probes = 0
        self.shown: dict[str, Shown] = {}
        self.binding: dict[str, str] = {}  # by uid, the node of a binding without an outcome; the pod may be gone
        self.accepted: dict[str, str] = {}  # the same, accepted, and not shown yet
        for name, shape in self.first_nodes().items():
            self.twins.on(SetNode(node(name, shape)), self.now)
        for kind, name in KNOWN:
            self.twins.on(object_change(kind, name, 0), self.now)

    @initialize(probed=st.lists(templates, min_size=PROBED, max_size=PROBED, unique=True))
    def some_templates_are_probed(self, probed: list[int]) -> None:
        """After each step: few of them, so that what is known of one is old and still there."""
        self.probed = [template for template in probed if "schedulerName" not in PODS[template][0]]

    def profile(self) -> Profile:
        return default_rules()

    def first_nodes(self) -> dict[str, int]:
        """Their shapes."""
        return {name: shape for shape, name in enumerate(NODE_NAMES[:4])}

    def show(self, shown: Shown) -> None:
        self.shown[shown.uid] = shown
        if shown.node:
            self.accepted.pop(shown.uid, None)
        self.twins.on(SetPod(shown.pod()), self.now)

    def named(self, name: str) -> Shown | None:
        return next((shown for shown in self.shown.values() if shown.name == name), None)

    def is_placed(self, shown: Shown) -> bool:
        return bool(shown.node) or shown.uid in self.binding or shown.uid in self.accepted

    # ---- the cluster

    @rule(name=node_names, shape=node_shapes, hostname=st.sampled_from([True, True, True, False]))
    def node_comes_or_changes(self, name: str, shape: int, hostname: bool) -> None:
        self.twins.on(SetNode(node(name, shape, hostname=hostname)), self.now)

    @rule(name=node_names)
    def node_goes(self, name: str) -> None:
        self.twins.on(DeleteNode(name), self.now)

    @rule(name=node_names, shape=node_shapes)
    def node_is_made_anew(self, name: str, shape: int) -> None:
        """It goes and comes before anybody is asked."""
        self.twins.on(DeleteNode(name), self.now)
        self.twins.on(SetNode(node(name, shape)), self.now)

    @rule(each=st.sampled_from(EVERY_OBJECT), minding=st.sampled_from(MINDING))
    def object_comes_changes_or_goes(self, each: tuple[str, str, int], minding: int) -> None:
        """Between two looks at a pod that may mind."""
        self.probe(minding)
        self.twins.on(object_change(*each), self.now)
        self.probe(minding)

    @rule(name=pod_names, template=templates, claim=st.sampled_from(["", "", "", *NODE_NAMES[:2]]))
    def pod_comes_or_changes(self, name: str, template: int, claim: str) -> None:
        known = self.named(name)
        if known is None:
            self.new(name, template, claim)
        elif not self.is_special(known.template) and not self.is_special(template):
            self.show(replace(known, template=template, claim=claim))

    @rule(template=templates, number=st.integers(2, 5))
    def pods_of_one_template_come(self, template: int, number: int) -> None:
        free = [name for name in POD_NAMES if self.named(name) is None]
        for name in free[:number]:
            self.new(name, template)

    @rule(template=templates, number=st.integers(2, 5))
    def pods_of_one_template_are_placed(self, template: int, number: int) -> None:
        self.pods_of_one_template_come(template, number)
        self.step_until_nothing_is_due()

    @rule(template=templates, name=pod_names, each=st.sampled_from(EVERY_OBJECT))
    def pods_are_placed_around_a_change(self, template: int, name: str, each: tuple[str, str, int]) -> None:
        self.pods_of_one_template_are_placed(template, 2)
        self.twins.on(object_change(*each), self.now)
        self.pod_goes(name, ended=False)
        self.pods_of_one_template_are_placed(template, 2)

    def new(self, name: str, template: int, claim: str = "", place: str = "") -> None:
        self.serial += 1
        self.show(Shown(f"{name}.{self.serial}", name, template, place, claim=claim))

    @staticmethod
    def is_special(template: int) -> bool:
        """Of what such a pod has, the API lets nobody make another."""
        return bool(PODS[template][0].keys() & {"schedulingGates", "schedulerName"}) or "namespace" in PODS[template][1]

    @rule(name=pod_names, template=templates, place=node_names)
    def pod_of_another_scheduler_runs(self, name: str, template: int, place: str) -> None:
        if self.named(name) is None:
            self.new(name, template, place=place)

    @rule(name=pod_names, place=node_names)
    def pod_is_bound_by_somebody_else(self, name: str, place: str) -> None:
        known = self.named(name)
        if known is not None and not self.is_placed(known):
            self.show(replace(known, node=place))

    @rule(name=pod_names)
    def pod_terminates(self, name: str) -> None:
        known = self.named(name)
        if known is not None:
            self.show(replace(known, terminating=True))

    @rule(name=pod_names, ended=st.booleans())
    def pod_goes(self, name: str, ended: bool) -> None:
        known = self.named(name)
        if known is None:
            return
        del self.shown[known.uid]
        self.accepted.pop(known.uid, None)
        self.twins.on(SetPod(known.pod("Succeeded")) if ended else DeletePod(known.uid), self.now)

    @rule(name=pod_names, place=node_names)
    def pod_is_nominated(self, name: str, place: str) -> None:
        known = self.named(name)
        if known is not None:
            self.twins.nominate(known.uid, place)

    # ---- decisions and their outcomes

    @rule()
    def step(self) -> None:
        self.decided()

    @rule()
    def step_until_nothing_is_due(self) -> None:
        while self.decided():
            pass
        self.twins.nobody_sleeps_in_vain()

    def decided(self) -> bool:
        """Whether a pod was due."""
        step = self.twins.step(self.now)
        if step is None:
            return False
        effect = step.effects[0]
        if isinstance(effect, Bind):
            self.binding[step.pod.uid] = effect.node
        return True

    @precondition(lambda self: self.binding)
    @rule(data=st.data(), succeeds=st.booleans())
    def binding_ends(self, data: st.DataObject, succeeds: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.binding)))
        place = self.binding.pop(uid)
        if not succeeds:
            self.twins.bind_failed(uid, self.now)
            return
        self.twins.bind_succeeded(uid, self.now)
        if uid in self.shown and not self.shown[uid].node:
            self.accepted[uid] = place

    @precondition(lambda self: self.binding)
    @rule()
    def all_bindings_succeed_and_are_shown(self) -> None:
        for uid, place in self.binding.items():
            self.twins.bind_succeeded(uid, self.now)
            if uid in self.shown and not self.shown[uid].node:
                self.show(replace(self.shown[uid], node=place))
        self.binding.clear()

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def binding_is_shown(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.accepted)))
        self.show(replace(self.shown[uid], node=self.accepted[uid]))

    @rule(name=pod_names, elsewhere=st.none() | node_names)
    def binding_is_shown_before_its_outcome(self, name: str, elsewhere: str | None) -> None:
        """Or the pod turns out to be on another node: the outcome will be a failure."""
        known = self.named(name)
        if known is not None and not known.node and known.uid in self.binding:
            self.show(replace(known, node=elsewhere or self.binding[known.uid]))

    @rule(seconds=st.sampled_from([0.3, 1.0, 10.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    # ---- what holds always

    @invariant()
    def the_same_pods_wait(self) -> None:
        self.twins.compare_queues()

    @invariant()
    def the_same_would_be_decided_now(self) -> None:
        """For pods of some templates, in turn, under one of two names."""
        for _ in range(2 if self.probed else 0):
            self.probes += 1
            self.probe(self.probed[self.probes % len(self.probed)])

    def probe(self, template: int) -> None:
        self.twins.probe(PodInfo.of(pod(template, POD_NAMES[self.probes % 2], "probe")))


class WithAllRules(EquivalenceMachine):
    kinds = ("one class, columns", "classes")

    def profile(self) -> Profile:
        return all_rules()


class AskingAllRules(EquivalenceMachine):
    """Where all rules that deny a node count, and not the first only."""

    kinds = ("classes and columns", "neither")

    def profile(self) -> Profile:
        return replace(default_rules(), checks_all=True)


class WithHundredNodes(EquivalenceMachine):
    """Where only some of the nodes are looked at, and the next search starts where the last ended."""

    kinds = ("classes and columns", "neither")

    def profile(self) -> Profile:
        return half_of_the_nodes()

    def first_nodes(self) -> dict[str, int]:
        return super().first_nodes() | {f"m{i}": ROOMY[i % len(ROOMY)] for i in range(110)}


def often(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples * (30 if THOROUGH else 1),
        stateful_step_count=steps,
        phases=tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate),
    )


EquivalenceMachine.TestCase.settings = often(40, 50)
WithAllRules.TestCase.settings = often(20, 50)
AskingAllRules.TestCase.settings = often(6, 50)
WithHundredNodes.TestCase.settings = often(3, 30)
TestEquivalence = EquivalenceMachine.TestCase
TestEquivalenceOfAllRules = WithAllRules.TestCase
TestEquivalenceAskingAllRules = AskingAllRules.TestCase
TestEquivalenceWithHundredNodes = WithHundredNodes.TestCase
