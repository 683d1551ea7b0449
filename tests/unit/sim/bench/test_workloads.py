"""Each workload is what it says: who is placed, where, and for what reason not elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.sim.bench.watches import profiles

from ksp.core.changes import SetPod
from ksp.core.scheduler import Scheduler
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.sim.bench.figures import Conditions, Run
from ksp.sim.bench.runner import Surroundings, measure
from ksp.sim.bench.scenario import Scenario, Size
from ksp.sim.bench.templates import HOSTNAME, MEASURED, ZONE, node
from ksp.sim.bench.workloads import CHURN_EVERY, TEMPLATES, WORKLOADS, about
from ksp.sim.dice import SeededDice
from ksp.sim.stopwatch import StoppedStopwatch

SIZE = Size(12, 24)


class Placements(Scheduler):
    """Remembers where pods went."""

    def __init__(self) -> None:
        super().__init__(profiles(), SeededDice(1))
        self.shown: dict[str, Pod] = {}

    def on(self, change: object, now: float) -> None:
        super().on(change, now)  # type: ignore[arg-type]
        if isinstance(change, SetPod) and change.pod.spec.node_name:
            self.shown[change.pod.metadata.uid] = change.pod


def ran(scenario: Scenario) -> tuple[Placements, Run]:
    scheduler, still = Placements(), StoppedStopwatch()
    return scheduler, measure(Conditions("", 0, 0), scenario, scheduler, Surroundings(still, still, lambda: 0.0))


def nodes_of(scheduler: Placements, scenario: Scenario) -> list[str]:
    """Where the measured pods are, those that have a node."""
    uids = [each.pod().metadata.uid for each in scenario.measured]
    return [scheduler.shown[uid].spec.node_name for uid in uids if uid in scheduler.shown]


PREEMPTING = ("PreemptionBasic", "PreemptionMixed")
FEWER = ("SchedulingPodAntiAffinity", *PREEMPTING)


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in FEWER])
def test_all_measured_pods_find_a_node(name: str) -> None:
    scenario = WORKLOADS[name](SIZE)
    _, run = ran(scenario)
    assert (len(scenario.nodes), len(scenario.measured), run.figures.placed) == (12, 24, 24)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_has_a_name_and_a_uid_of_its_own(name: str) -> None:
    scenario = WORKLOADS[name](replace(SIZE, existing=30, pending=7))
    pods = [each.pod() for each in (*scenario.running, *scenario.pending, *scenario.measured)]
    assert len({pod.metadata.uid for pod in pods}) == len({(p.metadata.namespace, p.metadata.name) for p in pods})
    assert len({pod.metadata.uid for pod in pods}) == len(pods)
    assert not any(PodInfo.of(pod).error for pod in pods)
    assert len(scenario.running) == 30


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_pods_are_for_the_scheduler_that_is_asked_for(name: str) -> None:
    scenario = WORKLOADS[name](replace(SIZE, scheduler="mine", existing=5))
    numbered = (*scenario.running, *scenario.pending, *scenario.measured)
    assert {each.pod().spec.scheduler_name for each in numbered} == {"mine"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_says_what_it_is(name: str) -> None:
    assert about(name).endswith(".")


def test_a_bound_pod_is_the_same_pod_with_its_node() -> None:
    each = WORKLOADS["StatefulSets"](SIZE).measured[3]
    waiting, bound = each.pod(), each.running("node-1")
    assert (waiting.spec.node_name, bound.spec.node_name) == ("", "node-1")
    assert waiting.metadata.uid == bound.metadata.uid
    assert waiting.metadata.labels == bound.metadata.labels
    assert waiting.metadata.resource_version != bound.metadata.resource_version


def test_pods_follow_those_of_their_colour() -> None:
    scenario = WORKLOADS["SchedulingPodAffinity"](replace(SIZE, existing=1))
    zones = [node(f"node-{i}", {ZONE: f"zone{1 + i % 2}"}) for i in range(12)]
    scheduler, run = ran(replace(scenario, nodes=zones))
    assert run.figures.placed == 24
    assert {int(name.removeprefix("node-")) % 2 for name in nodes_of(scheduler, scenario)} == {0}


def test_pods_stay_away_from_those_of_their_colour() -> None:
    scenario = WORKLOADS["SchedulingPodAntiAffinity"](replace(SIZE, existing=20))
    scheduler, run = ran(scenario)
    used = nodes_of(scheduler, scenario)
    assert run.figures.placed == len(used) == len(set(used)) == 10
    assert not {"node-0", "node-1"} & set(used)  # they have one already


def test_pods_like_those_of_their_colour() -> None:
    scenario = WORKLOADS["SchedulingPreferredPodAffinity"](replace(SIZE, existing=1, pods=3))
    scheduler, _ = ran(scenario)
    assert set(nodes_of(scheduler, scenario)) == {"node-0"}


@pytest.mark.parametrize("name", ["TopologySpreading", "PreferredTopologySpreading"])
def test_pods_spread(name: str) -> None:
    scenario = WORKLOADS[name](SIZE)
    scheduler, _ = ran(scenario)
    zones = {each.metadata.name: each.metadata.labels[ZONE] for each in scenario.nodes}
    found = Counter(zones[name] for name in nodes_of(scheduler, scenario))
    assert set(found) == {"moon-1", "moon-2", "moon-3"}
    assert max(found.values()) - min(found.values()) <= 5


def test_hard_spreading_forbids_what_plain_pods_would_do() -> None:
    scenario = WORKLOADS["TopologySpreading"](replace(SIZE, existing=0))
    one = [node("small", {ZONE: "moon-1"}, pods=2), *(node(f"n{i}", {ZONE: "moon-2"}) for i in range(3))]
    _, run = ran(replace(scenario, nodes=one))
    assert run.figures.placed == 2 + 7  # moon-2 may have five more than moon-1


def test_node_affinity_forbids_other_zones() -> None:
    scenario = WORKLOADS["SchedulingNodeAffinity"](replace(SIZE, existing=0))
    zones = [node(f"node-{i}", {ZONE: f"zone{i}"}) for i in range(5)]
    scheduler, _ = ran(replace(scenario, nodes=zones))
    assert set(nodes_of(scheduler, scenario)) == {"node-1", "node-2"}


def test_templates_come_in_turn() -> None:
    scenario = WORKLOADS["MixedSchedulingBasePod"](replace(SIZE, pods=2 * TEMPLATES))
    apps = [each.pod().metadata.labels["app"] for each in scenario.measured]
    assert len(set(apps)) == TEMPLATES
    assert apps[:TEMPLATES] == apps[TEMPLATES:]
    infos = [PodInfo.of(each.pod()) for each in scenario.measured]
    assert sum(info.requests["cpu"] for info in infos) == 100 * len(infos)
    running = [PodInfo.of(pod) for pod in scenario.bound()]
    kinds = Counter(
        (bool(p.required_affinity), bool(p.required_anti_affinity), bool(p.preferred_affinity),
         bool(p.preferred_anti_affinity)) for p in running
    )  # fmt: skip
    assert sorted(kinds.values()) == [4, 4, 4, 4, 8]


def test_pods_that_fit_nowhere_wait_and_are_not_tried_again() -> None:
    scheduler, run = ran(WORKLOADS["Unschedulable"](replace(SIZE, pending=9)))
    assert scheduler.pending() == {"active": 0, "backoff": 0, "unschedulable": 9, "gated": 0}
    assert (run.figures.attempts, run.conditions.pending) == (24, 9)


def test_churn_comes_and_goes() -> None:
    scenario = WORKLOADS["SchedulingWithMixedChurn"](replace(SIZE, pods=2 * CHURN_EVERY + 1))
    scheduler, run = ran(scenario)
    assert run.figures.attempts == 2 * CHURN_EVERY + 3
    assert "node-churn-1" in scheduler.state.nodes
    assert "node-churn-0" not in scheduler.state.nodes
    assert list(scheduler.state.objects["services"]["default"]) == ["service-churn-1"]
    assert scheduler.pending()["unschedulable"] == 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("StatefulSets", "statefulset.kubernetes.io/pod-name"),
        ("StatefulSets", "apps.kubernetes.io/pod-index"),
        ("IndexedJobs", "batch.kubernetes.io/job-completion-index"),
    ],
)
def test_labels_of_ones_own(name: str, label: str) -> None:
    scenario = WORKLOADS[name](SIZE)
    of_one = [each.pod() for each in scenario.measured[::10]]
    assert len({pod.metadata.labels[label] for pod in of_one}) == len(of_one)
    assert len({pod.metadata.owner_references for pod in of_one}) == 1


@pytest.mark.parametrize("name", ["StatefulSets", "IndexedJobs"])
def test_pods_of_one_controller_are_spread(name: str) -> None:
    scenario = WORKLOADS[name](replace(SIZE, existing=0, pods=120))
    scheduler, _ = ran(scenario)
    of_one = [scheduler.shown[each.pod().metadata.uid] for each in scenario.measured[::10]]
    assert len({pod.spec.node_name for pod in of_one}) == 12


def test_pods_of_the_affinity_workloads_see_both_namespaces() -> None:
    scenario = WORKLOADS["SchedulingPodAntiAffinity"](SIZE)
    before, measured = PodInfo.of(scenario.running[0].pod()), PodInfo.of(scenario.measured[0].pod())
    assert before.namespace != measured.namespace == MEASURED
    (term,) = measured.required_anti_affinity
    assert (before.namespace in term.namespaces, term.topology_key) == (True, HOSTNAME)
    assert term.selector.matcher(before.labels)


@pytest.mark.parametrize("name", PREEMPTING)
def test_for_each_pod_three_others_go(name: str) -> None:
    """There is room for one such pod on a node, however many are asked for."""
    scenario = WORKLOADS[name](SIZE)
    scheduler, run = ran(scenario)
    assert run.conditions.pods == len(scenario.measured) == 12
    assert (run.figures.placed, run.figures.preemptions, run.conditions.existing) == (12, 12, 48)
    assert len(set(nodes_of(scheduler, scenario))) == 12
    left = [each.pod().metadata.uid in scheduler.cache for each in scenario.running]
    assert sum(left) == 12


def test_no_node_of_the_mixed_preemption_is_like_another() -> None:
    scenario = WORKLOADS["PreemptionMixed"](SIZE)
    assert len({each.status.allocatable["cpu"] for each in scenario.nodes}) == 12
    apps = [each.pod().metadata.labels["app"] for each in scenario.running]
    assert Counter(Counter(apps).values()) == {7: 6, 6: 1}
    budgets = {each.name: each.value.status.disruptions_allowed for each in scenario.objects}  # type: ignore[attr-defined]
    assert budgets == {"low-1": 0, "low-2": 12}


def test_pods_that_no_budget_protects_go_first() -> None:
    """Those of `low-1` may not be disturbed; on each node three others will do, if there are three."""
    scenario = WORKLOADS["PreemptionMixed"](Size(8, 8))
    scheduler, run = ran(scenario)
    assert run.figures.placed == 8
    protected = [each.pod() for each in scenario.running if each.pod().metadata.labels["app"] == "low-1"]
    assert protected
    assert all(PodInfo.of(pod).uid in scheduler.cache for pod in protected)
