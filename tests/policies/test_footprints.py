"""Footprints are sound, by mutation of recorded cases; `python -m tests.policies.mutation` does it at length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.recorded import SAMPLE, Case, cases
from tests.mutation.attempts import Attempt, Attempts, everything
from tests.mutation.figures import Figures, all_missed, table
from tests.mutation.instances import Instance, Instances, instance
from tests.mutation.reads import Named
from tests.mutation.trial import Trial
from tests.mutation.world import Replaced, guessed
from tests.oracle.clusters import ZONE, Scenario, scenarios
from tests.oracle.policies import Policy, policies
from tests.policies.mutation import chosen, main, measure
from tests.policies.test_helped import examples

from ksp.compile.table import Table

CASES: Final = 126
CHANGES: Final = 6
ENOUGH: Final = 10  # changes that matter are sought for each rule
LEAST: Final = 5  # and have to be found
SAME_FOR_ALL: Final = frozenset({"EqualPriority"})  # reads nothing, so nothing matters to it


@cache
def sampled() -> Sequence[Case]:
    return list(cases(SAMPLE))


@cache
def instances() -> Instances:
    return Instances()


def test_footprints_of_the_shipped_rules_are_sound() -> None:
    """They name all that matters, and wake all whom it helps; in one test, since the figures take seconds."""
    taken = chosen(sampled(), CASES, seed=0)
    figures = measure(taken, CHANGES, 0, ENOUGH)
    assert not (missed := all_missed(figures)), "\n".join(missed[:5])
    assert {case["family"] for case in taken} == {case["family"] for case in sampled()}
    _mattered_to_every_rule(figures)
    _helped_denied_pods(figures)


def _mattered_to_every_rule(figures: Mapping[str, Figures]) -> None:
    """Else nothing is proved of the rule."""
    few = {name: of_rule.effective for name, of_rule in figures.items() if of_rule.effective < LEAST}
    assert few == dict.fromkeys(SAME_FOR_ALL, 0)
    assert len(figures) > len(SAME_FOR_ALL) + 30


def _helped_denied_pods(figures: Mapping[str, Figures]) -> None:
    """Else nothing is proved of the events."""
    helped = [name for name, of_rule in figures.items() if any(of_rule.events_helped.values())]
    assert len(helped) >= 10


# ---- rules that nobody wrote


def case_of(scenario: Scenario) -> Case:
    """A random cluster in the shape of a recorded one."""
    cluster: dict[str, Any] = {
        "nodes": scenario.nodes,
        "pods": [{**pod, "spec": {**pod["spec"], "nodeName": place}} for pod, place in scenario.pods],
    }
    named = {(change.place, change.name): change.value for change in scenario.objects if change.kind == "object"}
    for (kind, name), value in named.items():
        metadata = {"name": name, "namespace": "default", **value.get("metadata", {})}
        cluster.setdefault(kind, []).append({**value, "metadata": metadata})
    return {"id": "random", "cluster": cluster, "pod": scenario.incoming[0]}


@examples(30)
@given(policies(), scenarios(), st.integers(0, 1000))
def test_footprints_of_random_rules_are_sound(policy: Policy, scenario: Scenario, seed: int) -> None:
    case, rules = case_of(scenario), [instance(rule, policy.arguments) for rule in policy.rules()]
    figures = {each.name: Figures() for each in rules}
    if rules:
        Trial(Attempts(case, Random(seed), everything([case])), rules, figures).run(10, 4)
    assert not (missed := all_missed(figures)), "\n".join([policy.text, *missed[:3]])


def test_a_node_that_goes_makes_another_pod_the_first() -> None:
    """Nodes are listed zone by zone in turn: without the first node of zone a, its second comes before zone b."""
    nodes = [{"metadata": {"name": f"n{i}", "labels": {ZONE: zone}}} for i, zone in enumerate("aba")]
    pods = [{"metadata": {"name": f"p{i}", "uid": f"p{i}"}, "spec": {"nodeName": f"n{i}"}} for i in (1, 2)]
    case = {"id": "first", "cluster": {"nodes": nodes, "pods": pods}, "pod": {"metadata": {"name": "new"}}}
    rule = Policy('predicate P { view f = first p in cluster.pods deny "x" when f.name == "p1" }').rules()[0]
    attempts, figures = Attempts(case, Random(0), everything([case])), {"P": Figures()}
    goes = Replaced("nodes", attempts.made["nodes"][0], None)
    Trial(attempts, [instance(rule, {})], figures).make(Attempt((), "n0 goes", attempts.pod, goes, guessed(goes)))
    assert (figures["P"].effective, figures["P"].events_helped["NodeDelete"]) == (1, 1)
    assert not all_missed(figures)


# ---- what is wrong is found


Doctor = Callable[[Instance], Instance]


def missed(rule: str, family: str, doctor: Doctor, *, sought: int = 0) -> list[str]:
    """What a rule misses in some cases of a family, if its footprint is another. With `sought` changes are sought that
    matter, until there are so many."""
    recorded = [case for case in sampled() if case["family"] == family][:16]
    far, figures = everything(recorded), {rule: Figures()}
    for case in recorded:
        dice = Random(case["id"])
        of_rule = [doctor(each) for each in instances().of(case) if each.name == rule]
        Trial(Attempts(case, dice, far), of_rule, figures).run(8 if sought else 30, sought)
    return all_missed(figures)


def without(of: str, path: str) -> Doctor:
    def doctor(instance: Instance) -> Instance:
        parts = tuple(part for part in instance.named.parts if str(part) != f"{of}: {path}")
        assert len(parts) < len(instance.named.parts)
        return replace(instance, named=Named(parts, instance.named.relations))

    return doctor


def without_events(*events: str) -> Doctor:
    """Whatever their direction."""

    def doctor(instance: Instance) -> Instance:
        known = instance.footprint.events
        left_out = {event for event in known if event.split("(", maxsplit=1)[0] in events}
        assert left_out
        return replace(instance, footprint=replace(instance.footprint, events=known - left_out))

    return doctor


NARROWER: Final = [
    ("PodToleratesNodeTaints", "taints", without("node", "spec.taints")),
    ("HostName", "unsched_nodename", without("pod", "spec.nodeName")),
    ("NoVolumeZoneConflict", "volume_zone", without("objects", "persistentVolumes")),
    ("MatchNodeSelector", "node_affinity", without("pod", "spec.nodeSelector")),
]


@pytest.mark.parametrize(("rule", "family", "doctor"), NARROWER, ids=[rule for rule, _, _ in NARROWER])
def test_a_part_that_is_left_out_is_missed(rule: str, family: str, doctor: Doctor) -> None:
    assert any("the footprint does not name it" in text for text in missed(rule, family, doctor))
    assert not missed(rule, family, lambda instance: instance)


@pytest.mark.parametrize(
    ("rule", "family", "events"),
    [
        ("PodToleratesNodeTaints", "taints", ["NodeTaint"]),
        ("PodFitsHostPorts", "host_ports", ["AssignedPodPorts"]),
        ("PodFitsResources", "resources_fit", ["NodeAllocatable"]),
    ],
)
def test_an_event_that_is_left_out_is_missed(rule: str, family: str, events: Sequence[str]) -> None:
    assert any("wakes the pod" in text for text in missed(rule, family, without_events(*events), sought=100))


def test_tables_that_do_not_follow_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "_catch_up", lambda *_: None)
    assert any("tables that follow say" in text for text in missed("SelectorSpreadPriority", "selector_spread", _as_is))


def _as_is(instance: Instance) -> Instance:
    return instance


# ---- the command


def test_the_command_prints_figures_by_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", "2", "--changes", "1"]) == 0
    head, first, *_, last = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["rule", "tried", "effective", "missed"]
    assert first.split()[0] == "BalancedResourceAllocation"
    assert last == "2 cases, 0 missed"


def test_a_rule_that_misses_something_shows_it() -> None:
    shown = table({"R": Figures(tried=4, effective=2, missed=["x"], leaves=4, leaves_mattered=1)})
    assert shown.splitlines()[1].split() == ["R", "4", "2", "1", "4", "25%", "0", "-", "0", "-"]
