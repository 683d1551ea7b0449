from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.commands import ksp, room, written

from ksp.sim.cases import FIELDS

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}}
CASE: dict[str, Any] = {"id": "a", "provider": "DefaultProvider", "cluster": {"nodes": [NODE]}, "pod": {}}
POLICY = """\
import "ksp:resources.ksp"
provider DefaultProvider {
  predicates { PodFitsResources }
  priorities { LeastRequestedPriority: 1 }
}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A small policy, which is quick to load."""
    return written(tmp_path, {"policy.ksp": POLICY}) / "policy.ksp"


def lines(*cases: object) -> bytes:
    return b"".join(json.dumps(case).encode() + b"\n" for case in cases)


def test_a_case_is_answered_in_the_shapes_of_what_was_recorded() -> None:
    """With the shipped policies."""
    result = ksp("evaluate", "-", stdin=lines(CASE))
    answer = json.loads(result.stdout)
    assert result.exit_code == 0
    assert list(answer) == ["id", *FIELDS]
    assert (answer["id"], answer["filters"], answer["feasible"]) == ("a", {"n": None}, ["n"])
    assert answer["preemption"] is None
    assert answer["total"]["n"] > 0
    assert result.stderr.startswith("1 case, ")


def test_files_compressed_or_not_to_a_file(policy: Path, tmp_path: Path) -> None:
    plain, packed, answers = tmp_path / "plain", tmp_path / "packed", tmp_path / "answers"
    plain.write_bytes(lines(CASE, {**CASE, "id": "b"}))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for cases in (plain, packed):
        result = ksp("evaluate", cases, "--policy", policy, "--output", answers)
        assert (result.exit_code, result.stdout) == (0, "")
        assert [json.loads(line)["id"] for line in answers.read_text().splitlines()] == ["a", "b"]
    assert json.loads(ksp("evaluate", "-", "--policy", policy, stdin=gzip.compress(lines(CASE))).stdout)["id"] == "a"


def test_what_ksp_does_not_have_is_null(policy: Path) -> None:
    result = ksp("evaluate", "-", "--policy", policy, stdin=lines({**CASE, "provider": "Nobody"}))
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"id": "a", **dict.fromkeys(FIELDS)}


def test_a_legacy_policy_is_a_provider() -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}]}
    scored = {**policy, "priorities": [{"name": "ImageLocalityPriority", "weight": 2}]}
    full = {**CASE, "provider": {**policy, "alwaysCheckAllPredicates": True}}
    full["pod"] = {**CASE["pod"], "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9000"}}}]}}
    result = ksp("evaluate", "-", stdin=lines({**CASE, "provider": scored}, full))
    assert result.exit_code == 0
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["scores"] == {"ImageLocality": {"n": 0}}
    assert second["fitErrorMessage"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert second["preemptionEligible"] is None


def test_a_profile_with_its_arguments_and_settings(tmp_path: Path) -> None:
    own = """import "ksp:default.ksp"
import "ksp:by-labels.ksp"
provider Labelled { predicates { CheckNodeLabelPresence } }
profile "default-scheduler" uses Labelled {
  preemption = false
  CheckNodeLabelPresence.presentLabels = ["a"]
}
"""
    (tmp_path / "own.ksp").write_text(own)
    asked = ("evaluate", "-", "--policy", tmp_path / "own.ksp", "--profile")
    answer = json.loads(ksp(*asked, "default-scheduler", stdin=lines(CASE)).stdout)
    assert answer["filters"]["n"]["plugin"] == "NodeLabel"
    assert answer["preemptionEligible"] is None
    unknown = ksp(*asked, "defaultscheduler", stdin=lines(CASE))
    assert unknown.exit_code == 2
    assert "there is no profile" in unknown.stderr
    assert "did you mean `default-scheduler`?" in unknown.stderr
    both = ksp(*asked, "default-scheduler", "--provider", "Labelled", stdin=lines(CASE))
    assert both.exit_code == 2
    assert "--provider and --profile exclude each other" in both.stderr


def test_a_policy_that_is_not_valid_is_no_case(policy: Path) -> None:
    legacy = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "Nobody"}]}
    answer = json.loads(ksp("evaluate", "-", stdin=lines({**CASE, "provider": legacy})).stdout)
    said = 'provider: Invalid configuration: Predicate type not found for "Nobody" (/predicates/0/name)'
    assert answer["invalid"] == said
    other = {"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": []}
    refused = ksp("evaluate", "-", "--policy", policy, stdin=lines({**CASE, "provider": other}))
    assert refused.exit_code == 1
    assert "provider: no rule of the policy implements `NodeUnschedulable` where it filters" in refused.stderr


def test_an_own_policy_and_provider(tmp_path: Path) -> None:
    policy = room(tmp_path) / "room.ksp"
    result = ksp("evaluate", "-", "--policy", policy, "--provider", "Both", stdin=lines(CASE))
    assert json.loads(result.stdout)["scores"] == {"Free": {"n": 100}}
    unknown = ksp("evaluate", "-", "--policy", policy, "--provider", "Bot", stdin=lines(CASE))
    assert unknown.exit_code == 2
    assert "there is no provider `Bot`" in unknown.stderr
    assert "did you mean `Both`?" in unknown.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON: "),
        (b'{"id": "\xff"}', "not valid JSON"),
        (b"[]", "a case is an object"),
        (b'{"id": "x"}', "pod: missing"),
        (lines({**CASE, "pod": 1}), "pod: an object is expected"),
        (lines({**CASE, "cluster": []}), "cluster: an object is expected"),
        (lines({**CASE, "cluster": {"nodes": {}}}), "cluster.nodes: a list is expected"),
        (lines({**CASE, "pod": {"spec": {"priority": "x"}}}), "pod.spec.priority: expected an integer"),
        (
            lines({**CASE, "cluster": {"nodes": [NODE, {"spec": {"taints": [{"key": 1}]}}]}}),
            "cluster.nodes[1].spec.taints[0].key: expected a string",
        ),
        (lines({**CASE, "cluster": {"services": [1]}}), "cluster.services[0]: expected an object"),
        (lines({**CASE, "pluginConfig": {"NodeResourcesFit": 1}}), "pluginConfig.NodeResourcesFit: an object is"),
        (
            lines({**CASE, "pluginConfig": {"NodeResourcesFit": {"ignoredResources": 1}}}),
            "pluginConfig.NodeResourcesFit.ignoredResources: must be list<string>",
        ),
        (lines({**CASE, "cluster": {"pods": [{"spec": {"nodeName": "n"}}] * 2}}), "cluster: pod / is placed already"),
    ],
)
def test_a_line_that_is_no_case_is_named_and_the_others_go_on(policy: Path, line: bytes, said: str) -> None:
    result = ksp("evaluate", "-", "--policy", policy, stdin=line.strip() + b"\n\n" + lines({**CASE, "id": "next"}))
    bad, good = (json.loads(text) for text in result.stdout.splitlines())
    assert result.exit_code == 1
    assert result.stderr.startswith(f"<stdin>:1: {said}"[:40])
    assert said in result.stderr
    assert said in bad["invalid"]
    assert {bad[field] for field in FIELDS} == {None}
    assert good["id"] == "next"
    assert good["feasible"] == ["n"]
    assert "1 of them not valid" in result.stderr


def test_the_id_of_an_invalid_case_is_kept(policy: Path) -> None:
    assert json.loads(ksp("evaluate", "-", "--policy", policy, stdin=lines({**CASE, "pod": 1})).stdout)["id"] == "a"


def test_damaged_data_ends_with_a_message(policy: Path, tmp_path: Path) -> None:
    packed = gzip.compress(lines(*[{**CASE, "id": i} for i in range(500)]))
    for data in (packed[:-20], packed[:40] + b"\0\0\0\0" + packed[44:], b"\x1f\x8bnothing"):
        (tmp_path / "cases").write_bytes(data)
        result = ksp("evaluate", tmp_path / "cases", "--policy", policy)
        assert result.exit_code == 1
        assert f"{tmp_path}/cases: the compressed data is damaged" in result.stderr


def test_answers_never_overwrite_the_cases(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "cases").write_bytes(lines(CASE))
    result = ksp("evaluate", tmp_path / "cases", "--policy", policy, "--output", tmp_path / "." / "cases")
    assert result.exit_code == 2
    assert (tmp_path / "cases").read_bytes() == lines(CASE)


def test_recorded_cases_are_answered_without_a_fault(shared: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    with gzip.open(shared / "golden" / "public-1.19.jsonl.gz") as cases:
        (tmp_path / "cases").write_bytes(b"".join(line for i, line in enumerate(cases) if i % 40 == 0))
    result = ksp("evaluate", tmp_path / "cases", "--output", answers)
    assert result.exit_code == 0
    assert "not valid" not in result.stderr
    assert all("invalid" not in json.loads(line) for line in answers.read_text().splitlines())
