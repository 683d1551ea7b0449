"""The whole scheduler, with the shipped rules, in a cluster where everything goes wrong that can.

Pods, nodes, volumes, claims and what else rules read come, change and go; watches are late, or break and list anew;
pods are decided; bindings, volumes and evictions succeed, fail, come to an unknown end, or never end; time jumps. A
model knows what the scheduler was told and what it asked for (`tests.state.churn_model`). All that follows from that is
held against the scheduler after each step, and each decision against one in a state that is built from nothing.

In the end everything is settled: then no pod may wait that has a place, or for whose sake others would go.
"""

from __future__ import annotations

import os
import sys

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from tests.state.churn_again import tell_again
from tests.state.churn_decision_rules import ALL, DecisionRules
from tests.state.churn_driver import FOR_EVER, Driver
from tests.state.churn_objects import (
    CLAIMING,
    FILLING,
    NEEDY,
    NODE_NAMES,
    NODES,
    OTHERS,
    PLAIN,
    POD_NAMES,
    PODS,
    RANKS,
    with_spec,
)
from tests.state.churn_parts import Binding
from tests.state.churn_policies import policies
from tests.state.churn_settling import settle
from tests.state.churn_world import CLAIMS, STREAMS, VOLUMES

from ksp.model.pod import Pod

pod_names = st.sampled_from(POD_NAMES)
node_names = st.sampled_from(NODE_NAMES)
templates = st.integers(0, len(PODS) - 1)
ranks = st.integers(0, len(RANKS) - 1)
node_shapes = st.integers(0, len(NODES) - 1)
others = st.sampled_from([key for key, values in OTHERS.items() for _ in values])
any_of = st.integers(0, 1_000)
"""Which of those that there are then."""


class ChurnMachine(DecisionRules):
    """What the world does is shown at once, but by a watch that is `late`."""

    def __init__(self) -> None:
        super().__init__()
        self.late: set[str] = set()
        self.driver = Driver(None, FOR_EVER)

    @initialize(
        ttl=st.sampled_from([None, None, 30.0]), patience=st.sampled_from([FOR_EVER, FOR_EVER, 60.0]),
        policy=st.sampled_from([0, 0, 0, 0, 0, 0, 6, 7, *range(len(policies()))]),
    )  # fmt: skip
    def everything_begins(self, ttl: float | None, patience: float, policy: int) -> None:
        self.driver = Driver(ttl, patience)
        self.world = self.driver.world
        for name, shape in zip(NODE_NAMES, range(3), strict=True):
            self.world.put_node(name, shape)
        for kind, name in OTHERS:
            if kind not in ("podDisruptionBudgets", "services"):
                self.world.make(kind, name, 0)
        self.show()
        if policy:
            self.another_policy_comes(policy, ALL, on_probation=False)

    def show(self) -> None:
        for stream in STREAMS:
            if stream not in self.late:
                self.driver.show(stream)

    def pod(self, which: int) -> Pod:
        pods = self.world.pods
        return pods[sorted(pods)[which % len(pods)]]

    def pod_named(self, name: str) -> Pod:
        pod = self.world.named(name)
        assert pod is not None
        return pod

    def free_names(self) -> list[str]:
        return [name for name in POD_NAMES if self.world.named(name) is None]

    # ---- watches

    @rule(stream=st.sampled_from(STREAMS))
    def watch_is_late(self, stream: str) -> None:
        self.late.add(stream)

    @precondition(lambda self: self.late)
    @rule(which=any_of, most=st.sampled_from([1, 2, 1_000]))
    def watch_catches_up(self, which: int, most: int) -> None:
        stream = sorted(self.late)[which % len(self.late)]
        self.driver.show(stream, most)
        if most > 2:
            self.late.discard(stream)

    @rule()
    def pods_are_listed_anew(self) -> None:
        """By the watch, when it shows something again."""
        self.world.list_pods(self.driver.now)
        self.show()

    @rule()
    def all_is_told_again(self) -> None:
        tell_again(self.driver)

    # ---- pods

    @rule(name=pod_names, template=templates, rank=ranks)
    def pod_comes(self, name: str, template: int, rank: int) -> None:
        self.world.make_pod(name, template, rank)
        self.show()

    @rule(template=templates, rank=ranks, number=st.integers(2, 4))
    def pods_of_one_template_are_placed(self, template: int, rank: int, number: int) -> None:
        self.pods_of_one_template_come(template, rank, number)
        self.driver.step_until_nothing_is_due()

    @rule(template=templates, rank=ranks, number=st.integers(2, 4))
    def pods_of_one_template_come(self, template: int, rank: int, number: int) -> None:
        for name in self.free_names()[:number]:
            self.world.make_pod(name, template, rank)
        self.show()

    @rule(
        filling=st.sampled_from(FILLING), lower=st.sampled_from([0, 0, 0, 1, 2]), number=st.integers(2, 7),
        template=st.sampled_from(NEEDY), rank=st.integers(1, len(RANKS) - 1),
    )  # fmt: skip
    def pod_comes_to_full_nodes(self, filling: int, lower: int, number: int, template: int, rank: int) -> None:
        """Where pods run of whom it can take the place of most."""
        *names, name = self.free_names()[: number + 1] or [POD_NAMES[0]]
        for i, other in enumerate(names):
            self.world.make_pod(other, filling, lower if i < len(NODE_NAMES) else 0, NODE_NAMES[i % len(NODE_NAMES)])
            self.world.start(self.pod_named(other))
        self.world.make_pod(name, template, rank)
        self.show()
        self.driver.step_until_nothing_is_due()

    @rule(template=st.sampled_from(CLAIMING), rank=ranks, number=st.integers(1, 3))
    def pods_come_that_share_volumes(self, template: int, rank: int, number: int) -> None:
        self.pods_of_one_template_are_placed(template, rank, number)

    @rule(name=pod_names, template=templates, rank=ranks, place=node_names)
    def pod_of_another_scheduler_runs(self, name: str, template: int, rank: int, place: str) -> None:
        self.world.make_pod(name, template, rank, place)
        self.show()

    @precondition(lambda self: self.world.pods)
    @rule(which=any_of, template=st.sampled_from(PLAIN))
    def pod_is_changed(self, which: int, template: int) -> None:
        """Its gates go, too, if it has any."""
        if self.pod(which).spec.scheduler_name == "":
            self.world.rewrite(self.pod(which), template)
            self.show()

    @precondition(lambda self: self.world.pods)
    @rule(which=any_of, place=node_names)
    def pod_is_bound_by_somebody_else(self, which: int, place: str) -> None:
        self.world.bind(self.pod(which).metadata.uid, place)
        self.show()

    @precondition(lambda self: self.world.pods)
    @rule(which=any_of, terminates=st.booleans())
    def pod_starts_or_terminates(self, which: int, terminates: bool) -> None:
        known = self.pod(which)
        if terminates:
            self.world.terminate(known)
        elif known.spec.node_name and not known.status.start_time:
            self.world.start(known)
        self.show()

    @precondition(lambda self: self.world.pods)
    @rule(which=any_of, finishes=st.booleans(), template=st.none() | templates, stays=st.booleans())
    def pod_goes(self, which: int, finishes: bool, template: int | None, stays: bool) -> None:
        """Another may come under its name at once, even on its node."""
        known = self.pod(which)
        if finishes:
            self.world.finish(known)
        self.world.drop_pod(known.metadata.uid)
        if template is not None:
            self.world.make_pod(known.metadata.name, template, 0, known.spec.node_name if stays else "")
        self.show()

    @precondition(lambda self: self.world.pods)
    @rule(which=any_of, place=node_names)
    def pods_status_names_a_node(self, which: int, place: str) -> None:
        """Somebody else nominates it, as the cluster autoscaler may."""
        self.world.nominate(self.pod(which).metadata.uid, place)
        self.show()

    @rule(place=node_names)
    def high_pods_leave(self, place: str) -> None:
        """So that who could not take their place can take that of others."""
        for known in list(self.world.pods.values()):
            if known.spec.node_name == place and known.spec.priority:
                self.world.drop_pod(known.metadata.uid)
        self.show()

    # ---- nodes and other objects

    @rule(name=node_names, shape=node_shapes)
    def node_comes_or_changes(self, name: str, shape: int) -> None:
        self.world.put_node(name, shape)
        self.show()

    @rule(name=node_names, again=st.sampled_from([None, *range(len(NODES))]))
    def node_goes(self, name: str, again: int | None) -> None:
        self.world.drop_node(name)
        if again is not None:
            self.world.put_node(name, again)
        self.show()

    @precondition(lambda self: self.driver.model.nominated)
    @rule(which=any_of, again=st.none() | node_shapes)
    def node_goes_that_a_pod_is_nominated_to(self, which: int, again: int | None) -> None:
        nominated = sorted(self.driver.model.nominated.values())
        self.node_goes(nominated[which % len(nominated)], again)

    @rule(each=others, shape=st.integers(0, 2))
    def object_comes_or_changes(self, each: tuple[str, str], shape: int) -> None:
        self.world.make(*each, shape)
        self.show()

    @rule(each=others, again=st.none() | st.integers(0, 2))
    def object_goes(self, each: tuple[str, str], again: int | None) -> None:
        self.world.drop(*each)
        if again is not None:
            self.world.make(*each, again)
        self.show()

    @precondition(lambda self: self.world.pods)
    @rule(which=any_of)
    def api_is_restored_from_a_backup(self, which: int) -> None:
        """In which the pod has no node yet."""
        known = self.pod(which)
        open_ones = self.driver.binds.keys() | self.driver.writes.keys()
        if known.spec.node_name and not known.metadata.deletion_timestamp and known.metadata.uid not in open_ones:
            self.world.put_pod(with_spec(known, node_name=""))
            self.pods_are_listed_anew()

    @rule(kind=st.sampled_from([VOLUMES, CLAIMS]), which=any_of)
    def volume_or_claim_is_labelled(self, kind: str, which: int) -> None:
        """A new version that says nothing new; the scheduler's writes to it will be refused."""
        there = [obj for (of, _, _), obj in self.world.others.items() if of == kind]
        if there:
            self.world.put(kind, there[which % len(there)])
            self.show()

    @rule(which=any_of, most=st.sampled_from([1, 1, 100]))
    def controller_acts(self, which: int, most: int) -> None:
        for _ in range(most):
            actions = list(self.world.actions())
            if not actions:
                break
            actions[which % len(actions)]()
        self.show()

    @rule(which=any_of)
    def provisioner_gives_up(self, which: int) -> None:
        waiting = self.world.waiting_for_provisioner()
        if waiting:
            self.world.take_node_back(waiting[which % len(waiting)])
            self.show()

    # ---- outcomes

    @precondition(lambda self: self.driver.binds)
    @rule(which=any_of, known=st.booleans())
    def binding_reaches_the_api(self, which: int, known: bool) -> None:
        """The outcome is known at once, or later."""
        uid = sorted(self.driver.binds)[which % len(self.driver.binds)]
        self.binding_ends(uid, self.driver.binds[uid], known=known)

    def binding_ends(self, uid: str, binding: Binding, *, known: bool) -> None:
        if not binding.done and not self.world.bind(uid, binding.effect.node):
            self.driver.not_bound(uid)
        elif known:
            self.driver.bound(uid)
        else:
            binding.done = True
        self.show()

    @precondition(lambda self: self.driver.binds)
    @rule()
    def all_bindings_succeed(self) -> None:
        for uid, binding in list(self.driver.binds.items()):
            self.binding_ends(uid, binding, known=True)

    @precondition(lambda self: self.driver.binds)
    @rule(which=any_of, lie=st.booleans())
    def binding_does_not_reach_the_api(self, which: int, lie: bool) -> None:
        """It fails; or the API says that it has succeeded, and loses it."""
        uid = sorted(self.driver.binds)[which % len(self.driver.binds)]
        if self.driver.binds[uid].done:
            return
        if lie:
            self.driver.bound(uid)
        else:
            self.driver.not_bound(uid)

    @precondition(lambda self: self.driver.writes)
    @rule(which=any_of, most=st.sampled_from([0, 1, 2, 100, 100, 100]), known=st.booleans())
    def volumes_reach_the_api(self, which: int, most: int, known: bool) -> None:
        """All of them, or only so many."""
        uid = sorted(self.driver.writes)[which % len(self.driver.writes)]
        writing = self.driver.writes[uid]
        if not self.driver.write(writing, most):
            self.driver.not_bound(uid)
        elif known:
            self.driver.written(uid)
        else:
            writing.done = True
        self.show()

    @precondition(lambda self: self.driver.writes)
    @rule()
    def all_claims_are_bound(self) -> None:
        for uid, writing in list(self.driver.writes.items()):
            if self.driver.write(writing):
                self.driver.written(uid)
        self.show()
        self.controller_acts(0, 100)

    @precondition(lambda self: self.driver.evicts)
    @rule(which=any_of, how=st.sampled_from(["gone", "terminating", "fails"]))
    def eviction_goes_on(self, which: int, how: str) -> None:
        """The next victim goes, or is to go, or stays."""
        eviction = self.driver.evicts[which % len(self.driver.evicts)]
        if not eviction.left or how == "fails":
            self.driver.evicted(eviction, done=not eviction.left)
            return
        known = self.world.pods.get(eviction.left.pop(0))
        if known is not None and how == "gone":
            self.world.drop_pod(known.metadata.uid)
        elif known is not None:
            self.world.terminate(known)
        self.show()

    @precondition(lambda self: self.driver.evicts)
    @rule()
    def evictions_end(self) -> None:
        for eviction in list(self.driver.evicts):
            for uid in eviction.left:
                self.world.drop_pod(uid)
            self.show()
            self.driver.evicted(eviction, done=True)

    @precondition(lambda self: self.driver.nominations)
    @rule(which=any_of, lost=st.sampled_from([False, False, True]))
    def status_is_written(self, which: int, lost: bool) -> None:
        uid = sorted(self.driver.nominations)[which % len(self.driver.nominations)]
        place = self.driver.nominations.pop(uid)
        if not lost:
            self.world.nominate(uid, place)
            self.show()

    # ---- what holds always, and in the end

    @invariant()
    def scheduler_and_model_agree(self) -> None:
        self.driver.check()

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:  # nothing has failed before
            settle(self.driver)


# To make a failing example small takes minutes: it is left to the thorough run.
THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
ChurnMachine.TestCase.settings = settings(
    max_examples=3000 if THOROUGH else 90,
    stateful_step_count=50,
    phases=tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate),
)
TestChurn = ChurnMachine.TestCase
