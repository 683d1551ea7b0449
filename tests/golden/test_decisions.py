"""Decisions that kube-scheduler 1.19 made, made again with the shipped rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.golden.agreement import differences as shown_differences
from tests.golden.agreement import main, measure, table
from tests.golden.findings import findings
from tests.golden.paths import PATHS, evaluators
from tests.golden.recorded import KNOWN, SAMPLE, Case, cases, compared, differences, wanted

from ksp.sim.cases import Evaluator

# The whole file in parts of about the same cost, so that two workers share it.
PARTS = [
    ["preemption", "resources_fit", "taints", "host_ports", "volume_zone"],
    ["mixed", "resource_scores", "prefer_avoid", "unsched_nodename", "volume_limits"],
    ["interpod", "topology_spread", "node_affinity", "nominated", "plugin_config"],
    ["selector_spread", "image_locality", "volume_binding", "volume_restrictions", "edge", "legacy_policy"],
]
FAMILIES = sorted(family for part in PARTS for family in part)


@cache
def decide(path: str = "in columns") -> Evaluator:
    return evaluators()[path]


@cache
def sampled() -> Sequence[Case]:
    return list(cases(SAMPLE))


def disagreements(recorded: Sequence[Case], path: str = "in columns") -> str:
    """What differs, one entry for each field of a case; no more than five, so that it can be read."""
    found = [difference for case in recorded for difference in differences(case, decide(path).evaluate(case))]
    return "\n".join(map(str, found[:5])) + (f"\nand {len(found) - 5} more" if len(found) > 5 else "")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_sample_is_decided_as_recorded(family: str, path: str) -> None:
    recorded = [case for case in sampled() if case["family"] == family]
    assert len(recorded) >= 20
    assert not (text := disagreements(recorded, path)), text


@pytest.mark.shared
@pytest.mark.parametrize("families", PARTS, ids=["-".join(part[:2]) for part in PARTS])
def test_the_whole_file_is_decided_as_recorded(shared: Path, families: list[str]) -> None:
    public = shared / "golden" / "public-1.19.jsonl.gz"
    recorded = [case for case in cases(public) if case["family"] in families]
    assert {case["family"] for case in recorded} == set(families)
    assert not (text := disagreements(recorded)), text


@pytest.mark.shared
def test_cases_that_are_meant_to_differ_differ_in_victims_of_a_node_that_is_not_chosen(shared: Path) -> None:
    public = cases(shared / "golden" / "public-1.19.jsonl.gz")
    known = [case for case in public if case["id"] in KNOWN]
    assert {case["id"] for case in known} == set(KNOWN)
    for case in known:
        assert "preemption" not in compared(case)
        got, want = decide().evaluate(case)["preemption"], case["expected"]["preemption"]
        assert got["possibleNodes"] == want["possibleNodes"]
        others = {node for node, found in want["candidates"].items() if got["candidates"].get(node) != found}
        assert others
        assert others.isdisjoint(got["possibleNodes"])


def test_any_of_the_possible_nodes_may_be_chosen_with_its_victims() -> None:
    tied = (case for case in sampled() if len((case["expected"]["preemption"] or {}).get("possibleNodes", ())) > 1)
    case = next(tied)
    want, got = case["expected"]["preemption"], decide().evaluate(case)
    for node in want["possibleNodes"]:
        victims = want["candidates"][node]["victims"]
        answer = {**got, "preemption": {**want, "nominatedNode": node, "victims": victims}}
        assert not list(differences(case, answer))
        assert list(differences(case, {**got, "preemption": {**answer["preemption"], "victims": []}}))
    other = {**got, "preemption": {**want, "nominatedNode": "another"}}
    assert wanted(case, "preemption", other) == want
    (difference,) = differences(case, other)
    assert difference.entry == "[nominatedNode]"


def test_preemption_is_not_compared_where_kube_scheduler_crashed() -> None:
    crashed = [case for case in sampled() if case["expected"].get("preemptionPanics")]
    assert crashed
    assert all("preemption" not in compared(case) and "filters" in compared(case) for case in crashed)


def test_a_difference_in_candidates_is_shown_by_node() -> None:
    case = next(case for case in sampled() if case["expected"]["preemption"])
    got = decide().evaluate(case)
    node = min(got["preemption"]["candidates"])
    candidates = {**got["preemption"]["candidates"], node: {"victims": [], "numPDBViolations": 7}}
    (finding,) = findings(case, {**got, "preemption": {**got["preemption"], "candidates": candidates}})
    assert (finding.kind, finding.entry) == ("preemption: candidates", node)
    assert "7" in finding.got


def test_the_sample_has_every_family_and_what_is_special() -> None:
    recorded = sampled()
    assert {case["family"] for case in recorded} == set(FAMILIES)
    assert SAMPLE.stat().st_size <= 1_000_000
    expected = [case["expected"] for case in recorded]
    for name in ("error", "preFilter", "fitErrorMessage", "preemption", "scoringSkipped"):
        assert sum(bool(e[name]) for e in expected) >= 20, name
    arguments = {plugin for case in recorded for plugin in case.get("pluginConfig") or {}}
    assert len(arguments) >= 5
    assert {case["provider"] for case in recorded if isinstance(case["provider"], str)} == {
        "DefaultProvider",
        "ClusterAutoscalerProvider",
    }


def test_the_sample_shows_all_of_a_policy() -> None:
    policies = [case for case in sampled() if not isinstance(case["provider"], str)]
    named = {
        next(iter(entry.get("argument", {})), entry["name"])
        for case in policies
        for field in ("predicates", "priorities")
        for entry in case["provider"].get(field) or ()
    }
    assert {"labelsPresence", "serviceAffinity", "requestedToCapacityRatioArguments", "serviceAntiAffinity"} <= named
    assert {"GeneralPredicates", "PodFitsPorts", "CheckNodeLabelPresence", "EqualPriority"} <= named
    assert any("hardPodAffinitySymmetricWeight" in case["provider"] for case in policies)
    unfit = [case["expected"] for case in policies if case["expected"]["fitErrorMessage"]]
    assert unfit
    assert all(expected["preemptionEligible"] is None for expected in unfit)


def test_where_all_predicates_are_asked_the_message_counts_more_than_the_first() -> None:
    case = next(
        case
        for case in sampled()
        if isinstance(case["provider"], dict)
        and case["provider"].get("alwaysCheckAllPredicates")
        and case["expected"]["fitErrorMessage"]
    )
    told = case["expected"]["fitErrorMessage"]
    assert decide().evaluate(case)["fitErrorMessage"] == told
    first = {**case, "provider": {**case["provider"], "alwaysCheckAllPredicates": False}}
    answer = decide().evaluate(first)
    assert answer["filters"] == case["expected"]["filters"]
    assert answer["fitErrorMessage"] != told


# ---- the comparison itself


def altered(case: Case) -> Case:
    node = min(case["expected"]["filters"])
    filters = {**case["expected"]["filters"], node: {"plugin": "NodeName", "code": "Unschedulable", "reasons": ["x"]}}
    return {**case, "expected": {**case["expected"], "filters": filters}}


def test_a_difference_is_shown_side_by_side() -> None:
    case = altered(sampled()[0])
    found = list(differences(case, decide().evaluate(case)))
    assert [difference.field for difference in found] == ["filters"]
    first, got, want = str(found[0]).splitlines()
    assert first.startswith(f"{case['id']} filters[")
    assert got.startswith("    got  ")
    assert '"x"' in want or "NodeName" in want


def test_agreement_counts_what_differs() -> None:
    case = sampled()[0]
    agreement = measure([case, altered(case)], decide())
    assert agreement.differing == {(case["family"], "filters"): 1}
    assert "50.00" in table(agreement)


def test_a_kind_of_difference_is_shown_once_with_its_first_case_side_by_side() -> None:
    case = sampled()[0]
    (shown,) = shown_differences(measure([case, altered(case), {**altered(case), "family": "other"}], decide()))
    title, first, got, want = shown.splitlines()
    assert title == f"filters: NodeResourcesFit, not NodeName: 2 cases (other 1, {case['family']} 1)"
    assert first == f"  first in {case['id']}, node {min(case['expected']['filters'])}"
    assert got == "    got  Unschedulable by NodeResourcesFit: Insufficient cpu"
    assert want == "    want Unschedulable by NodeName: x"


def test_differences_that_follow_from_others_are_not_shown() -> None:
    case = next(case for case in sampled() if case["expected"]["total"])
    got = decide().evaluate(case)
    node = min(got["total"])
    wrong = {**got, "scores": {**got["scores"], "ImageLocality": {**got["scores"]["ImageLocality"], node: 7}}}
    (finding,) = findings(case, {**wrong, "total": {**got["total"], node: 7}})
    assert (finding.kind, finding.entry, finding.got) == ("scores: ImageLocality", node, "7")
    (alone,) = findings(case, {**got, "total": {**got["total"], node: 7}})
    assert (alone.kind, alone.entry, alone.want) == ("total", node, str(case["expected"]["total"][node]))


def test_of_lists_only_what_differs_is_shown() -> None:
    case = next(case for case in sampled() if len(case["expected"]["feasible"]) > 2 and not case["expected"]["error"])
    first, *others = case["expected"]["feasible"]
    (finding,) = findings(case, {**decide().evaluate(case), "feasible": others})
    assert (finding.kind, finding.got) == ("feasible", f"{len(others)} entries")
    assert finding.want == f"{len(others) + 1} entries, {first} only here"


def test_scores_of_a_failed_attempt_are_not_compared() -> None:
    case = next(case for case in sampled() if case["expected"]["error"])
    wrong = {**decide().evaluate(case), "scores": "x", "total": "y"}
    assert not list(differences(case, wrong))


def test_the_tool_says_which_file_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl is not a file" in capsys.readouterr().err
