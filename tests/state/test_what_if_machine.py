"""What-ifs on random clusters: what rules say meanwhile is what they say of a cluster that was never another, and
afterwards everything is as it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.oracle.chooser import Chooser
from tests.oracle.clusters import NODES, PODS, ClusterMaker
from tests.unit.core.scheduling import default_profile

from ksp.compile.table import Table
from ksp.compile.tables import Tables
from ksp.core.errors import StateError
from ksp.core.fits import Fits
from ksp.core.state import INDEXED_FIELDS, ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod

WAITING = ("w0", "w1", "w2")  # pods that are decided
FOREIGN = ("f0", "f1")  # pods that are nominated
uids = st.sampled_from(PODS)
names = st.sampled_from(NODES)


class InterruptedHere(Exception):  # noqa: N818 - it is no mistake
    """Ends a what-if from inside."""


class WhatIfMachine(RuleBasedStateMachine):
    """`places` is what is expected: by node, the pods in the order of their arrival, with who is there."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState(journal_capacity=20)
        self.tables = Tables(self.state)
        self.rarely = Tables(self.state)  # these follow between what-ifs only
        self.waiting: list[PodInfo] = []
        self.foreign: dict[str, PodInfo] = {}
        self.trial: WhatIf | None = None
        self.fits: list[Fits] = []
        self.places: dict[str, dict[str, bool]] = {}
        self.taken: set[str] = set()
        self.open: list[tuple[AbstractContextManager[object], object, object]] = []
        self.generation = 0

    @initialize(data=st.data())
    def a_cluster(self, data: st.DataObject) -> None:
        maker = ClusterMaker(Chooser(data.draw))
        scenario = maker.scenario(0)
        self.state = scenario.state()
        self.tables, self.rarely = Tables(self.state), Tables(self.state)
        self.waiting = [PodInfo.of(convert(Pod, maker.pod(uid))) for uid in WAITING]
        self.foreign = {uid: PodInfo.of(convert(Pod, maker.pod(uid))) for uid in FOREIGN}
        for tables in (self.tables, self.rarely):
            for pod in self.waiting:
                Fits(default_profile(), tables, pod)

    # ---- between what-ifs

    @precondition(lambda self: self.trial is None)
    @rule(data=st.data())
    def the_cluster_changes(self, data: st.DataObject) -> None:
        ClusterMaker(Chooser(data.draw)).change().apply(self.state)

    @precondition(lambda self: self.trial is None)
    @rule(pick=st.sampled_from(WAITING), rarely=st.booleans())
    def somebody_is_decided(self, pick: str, rarely: bool) -> None:
        tables = self.rarely if rarely else self.tables
        self.same_verdicts(Fits(default_profile(), tables, self.waiting[WAITING.index(pick)]))

    # ---- what-ifs

    @precondition(lambda self: self.trial is None)
    @rule(followed=st.booleans())
    def begin(self, followed: bool) -> None:
        self.fits = [Fits(default_profile(), self.tables, pod) for pod in self.waiting]
        self.places = {name: dict.fromkeys(node.pods, True) for name, node in self.state.nodes.items()}
        self.taken = set()
        self.generation = self.state.generation
        self.trial = WhatIf(self.state, *(self.fits if followed else ()))
        self.enter(self.trial)

    @precondition(lambda self: self.trial is not None)
    @rule()
    def nest(self) -> None:
        assert self.trial is not None
        self.enter(self.trial.nested())

    def enter(self, context: AbstractContextManager[object]) -> None:
        self.open.append((context, picture(self.state), deepcopy((self.places, self.taken))))
        context.__enter__()

    @precondition(lambda self: self.trial is not None)
    @rule(failing=st.booleans())
    def leave(self, failing: bool) -> None:
        """The innermost one ends."""
        context, before, expected = self.open.pop()
        error = InterruptedHere() if failing else None
        assert not context.__exit__(type(error) if error else None, error, None), "who is interrupted does not go on"
        assert picture(self.state) == before
        self.places, self.taken = deepcopy(expected)  # type: ignore[misc]
        if not self.open:
            self.trial = None
            assert self.state.changes_since(self.generation) == []

    @precondition(lambda self: self.trial is not None)
    @rule(uid=st.sampled_from((*PODS, *FOREIGN)))
    def remove(self, uid: str) -> None:
        assert self.trial is not None
        place = self.place_of(uid)
        if place is None:
            self.refused(self.trial.remove, uid)
        else:
            self.trial.remove(uid)
            place[uid] = False
            self.taken.add(uid)

    @precondition(lambda self: self.trial is not None)
    @rule(uid=st.sampled_from((*PODS, *FOREIGN)))
    def restore(self, uid: str) -> None:
        assert self.trial is not None
        if uid not in self.taken:
            self.refused(self.trial.restore, uid)
        else:
            self.trial.restore(uid)
            next(place for place in self.places.values() if uid in place)[uid] = True
            self.taken.remove(uid)

    @precondition(lambda self: self.trial is not None)
    @rule(uid=st.sampled_from(FOREIGN), name=names)
    def add(self, uid: str, name: str) -> None:
        assert self.trial is not None
        if uid in self.taken or self.place_of(uid) is not None or name not in self.state.nodes:
            self.refused(self.trial.add, self.foreign[uid], name)
        else:
            self.trial.add(self.foreign[uid], name)
            self.places[name][uid] = True

    def refused(self, operation: Callable[..., object], *arguments: object) -> None:
        with pytest.raises(StateError):
            operation(*arguments)

    def place_of(self, uid: str) -> dict[str, bool] | None:
        return next((place for place in self.places.values() if place.get(uid)), None)

    # ---- what is seen

    @precondition(lambda self: self.trial is not None)
    @rule(pick=st.sampled_from(WAITING))
    def ask(self, pick: str) -> None:
        self.same_verdicts(self.fits[WAITING.index(pick)])

    def same_verdicts(self, fits: Fits) -> None:
        """As in a cluster that was made from what is there now."""
        fresh = rebuilt(self.state)
        anew = Fits(default_profile(), Tables(fresh), PodInfo.of(_pod(fits.pod)))
        for node in self.state.node_list():
            assert fits(node) == anew(fresh.nodes[node.name])
        for rule_, other in zip(fits.rules, anew.rules, strict=True):
            assert [shown(table, self.state) for table in rule_.tables] == [shown(t, fresh) for t in other.tables]

    @invariant()
    def the_state_is_that_of_its_pods(self) -> None:
        assert visible(self.state) == visible(rebuilt(self.state))
        for name, place in self.places.items() if self.trial is not None else ():
            assert list(self.state.nodes[name].pods) == [uid for uid, there in place.items() if there]

    def teardown(self) -> None:
        while self.open:
            self.leave(failing=False)


def rebuilt(state: ClusterState) -> ClusterState:
    """The same cluster without a history. Nodes that are added in the order of the list stand in this order."""
    fresh = ClusterState()
    for node in state.node_list():
        fresh.set_node(Node(metadata=node.metadata, spec=node.spec, status=node.status))
    for node in state.node_list():
        for pod in node.pods.values():
            fresh.add_pod(PodInfo.of(_pod(pod)), node.name)
    for kind, objects in state.objects.items():
        for namespace, found in objects.items():
            of_namespace = found if isinstance(found, dict) else {namespace: found}
            for name, value in of_namespace.items():
                fresh.set_object(kind, namespace, name, value)
    return fresh


def _pod(pod: PodInfo) -> Pod:
    return Pod(metadata=pod.metadata, spec=pod.spec, status=pod.status)


def sums(node: NodeInfo) -> tuple[Any, ...]:
    return dict(node.requested), dict(node.nonzero_requested), node.pod_count, node.host_ports


def visible(state: ClusterState) -> object:
    """All that rules can see of pods and nodes."""
    namespaces = ("default", "other")
    return (
        [(node.name, list(node.pods), sums(node)) for node in state.node_list()],
        {uid: pod.node.name for uid, pod in state.pods.items()},
        [set(state.pods_in_namespace(namespace)) for namespace in namespaces],
        [set(state.pods_labelled(n, "app", app)) for n in namespaces for app in ("web", "db")],
        [set(state.pods_with(field)) for field in INDEXED_FIELDS],
    )


def picture(state: ClusterState) -> object:
    """All of it, with who the objects are."""
    placed = {uid: (id(pod), id(pod.node), state.node_name_of(uid)) for uid, pod in state.pods.items()}
    aside = [id(pod) for pod in state.invisible_pods()]
    return visible(state), placed, aside, [id(node) for node in state.node_list()]


def shown(table: Table, state: ClusterState) -> object:
    """What a rule reads of a view."""
    if table.plan.form == "first":
        return table.plan.name, table.first(state).uid
    return table.plan.name, table.value()


WhatIfMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestWhatIf = WhatIfMachine.TestCase
