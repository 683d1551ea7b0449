"""`ksp convert`: files, pipes, reports, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.commands import ksp
from tests.unit.policy.legacy.policies import Json, policy, predicate, present, priority

from ksp.cli import convert as command
from ksp.policy.load import load_file
from ksp.sim.conversion_proof import Proof
from ksp.sim.same_decisions import Comparison

SMALL = policy(
    predicates=[predicate("PodFitsPorts"), predicate("Own", labelsPresence=present("region"))],
    priorities=[priority("EqualPriority")],
)
EXTENDED = {**SMALL, "extenders": [{"urlPrefix": "http://e", "filterVerb": "filter"}]}
FEW = ("--decisions", "8")


def written(folder: Path, fields: Json = SMALL, name: str = "policy.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(fields))
    return path


def test_the_policy_and_the_report(tmp_path: Path) -> None:
    source, target = written(tmp_path), tmp_path / "out.ksp"
    result = ksp("convert", source, "-o", target, *FEW)
    assert result.exit_code == 0
    assert load_file(target).module is not None
    lines = result.stdout.splitlines()
    assert lines[0] == f"{source}: every part of the Policy, and what it becomes"
    assert any(line.split()[:3] == ["/predicates/0", "PodFitsPorts", "PodFitsHostPorts"] for line in lines)
    assert "  EqualPriority prefers nothing, and is left out (/priorities/0)" in lines
    assert (
        "Preemption is off: under a Policy kube-scheduler 1.19.0 preempts nothing. --preemption turns it on." in lines
    )
    assert any(line.startswith("Proved: 8 decisions about generated clusters are the same by both") for line in lines)
    assert lines[-1] == f"  ksp run --policy-file {target}"
    assert sorted(tmp_path.iterdir()) == [target, source]


def test_names_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    name = "X\n/predicates/9  Gone\x1b[2J\u202e"
    fields = {**SMALL, "predicates": [{"name": name, "argument": {"labelsPresence": {"labels": ["a"]}}}]}
    result = ksp("convert", written(tmp_path, fields), "-o", tmp_path / "my rules.ksp", *FEW)
    assert result.exit_code == 0
    assert result.stdout.endswith(f"  ksp run --policy-file '{tmp_path}/my rules.ksp'\n")
    assert all(line.isprintable() for line in result.stdout.splitlines())
    assert "X<U+000A>/predicates/9  Gone<U+001B>[2J<U+202E>" in result.stdout


def test_a_pipe() -> None:
    text = f"# as YAML\n{json.dumps(SMALL)}".encode()
    result = ksp("convert", "-", *FEW, stdin=text)
    assert result.exit_code == 0
    assert result.stdout.startswith("// What the Policy in <stdin> says.\n")
    assert "preemption = false" in result.stdout
    assert result.stderr.startswith("<stdin>: every part of the Policy")
    assert ksp("check", "-", stdin=result.stdout).exit_code == 0


def test_a_report_for_programs(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    result = ksp("convert", written(tmp_path), "--report", report, "--json", "--preemption", *FEW)
    assert result.exit_code == 0
    assert "preemption = true" in result.stdout
    assert result.stderr == ""
    made = json.loads(report.read_text())
    assert made["preemption"] is True
    assert (made["proof"]["decisions"], made["errors"]) == (8, [])
    assert made["parts"][1] == {
        "kind": "predicate",
        "pointer": "/predicates/1",
        "name": "Own",
        "becomes": ["CheckNodeLabelPresence"],
        "plugins": ["NodeLabel"],
        "note": 'it is CheckNodeLabelPresence, presentLabels ["region"]',
    }
    assert [each["pointer"] for each in made["warnings"]] == ["/priorities/0"]


def test_extenders_become_a_file_beside_it(tmp_path: Path) -> None:
    source, target = written(tmp_path, EXTENDED), tmp_path / "out.ksp"
    result = ksp("convert", source, "-o", target, "--json", *FEW)
    assert result.exit_code == 0
    beside = tmp_path / "out.extenders.yaml"
    assert "- urlPrefix: http://e\n  filterVerb: filter\n" in beside.read_text()
    made = json.loads(result.stdout)["written"]
    assert made["command"] == f"ksp run --policy-file {target} --config {beside}"
    refused = ksp("convert", source, *FEW)
    assert refused.exit_code == 1
    assert "give -o FILE.ksp" in refused.stderr
    assert refused.stdout == ""


def test_a_config_map(tmp_path: Path) -> None:
    manifest = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}}
    source = written(tmp_path, {**manifest, "data": {"policy.cfg": json.dumps(SMALL)}}, "cm.yaml")
    assert "in cm.yaml[policy.cfg] says" in ksp("convert", source, *FEW).stdout.replace(f"{tmp_path}/", "")
    wrong = written(tmp_path, {**manifest, "data": {"policy.cfg": json.dumps({**SMALL, "x": 1})}}, "wrong.yaml")
    assert ksp("convert", wrong).stderr == f'{wrong}[policy.cfg]: strict decoding error: unknown field "x" (/x)\n'
    empty = written(tmp_path, {**manifest, "data": {"p.cfg": "{}"}}, "empty.yaml")
    missing = f'{empty}: missing policy config map value at key "policy.cfg" (/data/policy.cfg)\n'
    assert ksp("convert", empty).stderr == missing


def test_all_errors_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    source = written(tmp_path, {**SMALL, "priorities": [priority("LeastRequestedPriorit", 0)], "wrong": 1})
    result = ksp("convert", source, "-o", tmp_path / "out.ksp", "--json")
    assert result.exit_code == 1
    light = "Priority LeastRequestedPriorit should have a positive weight applied to it or it has overflown"
    unknown = 'Invalid configuration: Priority type not found for "LeastRequestedPriorit"'
    assert result.stderr.splitlines() == [
        f'{source}: strict decoding error: unknown field "wrong" (/wrong)',
        f"{source}: {light} (/priorities/0/weight)",
        f"{source}: {unknown}: did you mean `LeastRequestedPriority`? (/priorities/0/name)",
    ]
    assert [each["pointer"] for each in json.loads(result.stdout)["errors"]] == [
        "/wrong", "/priorities/0/weight", "/priorities/0/name",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [source]
    report = tmp_path / "report.txt"
    assert ksp("convert", source, "--report", report).stderr == report.read_text() == result.stderr
    assert "exists" in ksp("convert", source, "--report", report).stderr
    source.write_bytes(b"a: 1\nb: \xff\n")
    assert ksp("convert", source).stderr == f"{source}: not UTF-8 text: line 2\n"


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    source, target = written(tmp_path, EXTENDED), tmp_path / "out.ksp"
    beside, report = tmp_path / "out.extenders.yaml", tmp_path / "report"
    for each in (target, beside, report):
        each.write_text("mine")
    asked = ("convert", source, "-o", target, "--report", report, *FEW)
    refused = ksp(*asked)
    assert refused.exit_code == 1
    assert f"{target}, {beside}, {report} exist; --force overwrites" in refused.stderr
    assert {each.read_text() for each in (target, beside, report)} == {"mine"}
    assert ksp(*asked, "--force").exit_code == 0
    assert "mine" not in {each.read_text() for each in (target, beside, report)}
    before = source.read_text()
    own = ksp("convert", source, "-o", tmp_path / "new.ksp", "--report", source, "--force")
    assert own.exit_code == 2
    assert source.read_text() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--report", "-"), "cannot both go to standard output"),
        (("-o", "out.txt"), "does not end in .ksp"),
        (("-o", "out.ksp", "--report", "out.ksp"), "cannot be one file"),
    ],
)
def test_targets_that_make_no_sense(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    result = ksp("convert", written(tmp_path), *options)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_difference_is_a_fault_of_ksp_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(*_: object) -> Proof:
        return Proof(Comparison(difference="total: 1 is not 2"), ())

    monkeypatch.setattr(command, "proof", differs)
    source = written(tmp_path)
    with pytest.raises(AssertionError, match="decides otherwise: total: 1 is not 2"):
        ksp("convert", source, "-o", tmp_path / "out.ksp")
    assert list(tmp_path.iterdir()) == [source]


def test_a_policy_that_is_more_than_the_language_takes(tmp_path: Path) -> None:
    labels = [f"example.com/{'x' * 240}{i}" for i in range(1200)]
    source = written(tmp_path, policy(predicates=[predicate("A", labelsPresence=present(*labels))], priorities=[]))
    result = ksp("convert", source)
    assert result.exit_code == 1
    assert "it cannot be converted:\n  the text is larger than 256 KiB" in result.stderr


def test_the_example_of_the_documentation() -> None:
    source = Path(__file__).parents[3] / "examples" / "legacy" / "policy.json"
    result = ksp("convert", source, *FEW)
    assert result.exit_code == 0
    assert 'CheckNodeLabelPresence.presentLabels = ["region"]' in result.stdout


def test_what_is_endless_is_not_read_to_its_end() -> None:
    assert ksp("convert", "/dev/zero").stderr == "/dev/zero: larger than 4,194,304 bytes\n"
