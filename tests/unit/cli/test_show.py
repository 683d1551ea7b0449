from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from tests.unit.cli.commands import TAINTS, ksp, room, written

from ksp.source.catalogue import CATALOGUE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(room(tmp_path), {"taints.ksp": TAINTS, "all.ksp": 'import "room.ksp"\nimport "taints.ksp"\n'})


@pytest.mark.usefixtures("folder")
def test_compile_says_how_large_rules_are() -> None:
    result = ksp("compile", "room.ksp")
    assert result.exit_code == 0
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["Room", "Free"]


@pytest.mark.usefixtures("folder")
def test_compile_shows_functions_that_can_be_read_with_their_rule_and_place() -> None:
    shown = ksp("compile", "taints.ksp", "--show").stdout
    assert shown.startswith("# predicate Tolerates, taints.ksp:1, implements TaintToleration\n")
    assert "#   toleration_tolerates = the function toleration_tolerates\n" in shown
    (made,) = ast.parse(shown).body
    assert isinstance(made, ast.FunctionDef)
    assert made.name == "Tolerates"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["compile", "footprint"])
def test_rules_are_chosen_by_name_or_with_those_imported(command: str) -> None:
    own = ksp(command, "all.ksp")
    assert (own.exit_code, own.stdout) == (0, "")
    assert "--all takes those that it imports" in own.stderr
    everything = ksp(command, "all.ksp", "--all").stdout
    assert all(name in everything for name in ("Room", "Free", "Tolerates"))
    one = ksp(command, "all.ksp", "--rule", "Tolerates").stdout
    assert "Tolerates" in one
    assert "Free" not in one
    unknown = ksp(command, "all.ksp", "--rule", "Tolerate")
    assert unknown.exit_code == 2
    assert "there is no rule `Tolerate` in all.ksp: did you mean `Tolerates`?" in unknown.stderr


@pytest.mark.parametrize("command", ["compile", "footprint", "evaluate"])
def test_a_policy_with_errors_is_not_used(folder: Path, command: str) -> None:
    written(folder, {"bad.ksp": "const a: int = b\nconst c: int = d\n", "cases": ""})
    result = ksp(command, *(["cases", "--policy"] if command == "evaluate" else []), "bad.ksp")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("error[KSP0202]") == 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["compile", "footprint"])
def test_one_file_is_wanted(command: str) -> None:
    assert ksp(command, ".").exit_code == 2
    assert "error[KSP0101]" in ksp(command, "nowhere.ksp").stderr


@pytest.mark.usefixtures("folder")
def test_footprint_tells_what_a_rule_reads_and_what_can_help() -> None:
    shown = ksp("footprint", "taints.ksp").stdout.splitlines()
    assert shown == [
        "Tolerates  predicate, taints.ksp:1",
        "  pod        spec.tolerations",
        "  node       spec.taints",
        "  helped by  NodeAdd, NodeTaint(less)",
        "  cost       O(effects * taints + taints * tolerations)",
    ]


def test_footprint_names_the_rows_of_views() -> None:
    shown = ksp("footprint", "ksp:default.ksp", "--rule", "EvenPodsSpread").stdout
    assert "\n  view       domains of nodes: " in shown
    assert "\n  view       matching of pods: " in shown


@pytest.mark.usefixtures("folder")
def test_footprint_as_json() -> None:
    found = json.loads(ksp("footprint", "room.ksp", "--output-format", "json").stdout)
    room_, free = found["rules"]
    assert (room_["name"], room_["kind"], room_["file"], room_["line"]) == ("Room", "predicate", "room.ksp", 3)
    assert room_["events"]
    assert free["events"] == []
    assert free["cost"] == "O(1)"


def test_rule_prints_the_page() -> None:
    for code in ("KSP0101", "ksp0101", "101", "0101"):
        assert ksp("rule", code).stdout == CATALOGUE["KSP0101"].page


def test_rule_lists_all_codes() -> None:
    lines = ksp("rule").stdout.splitlines()
    assert [line.partition("  ")[0] for line in lines] == list(CATALOGUE)


def test_rule_suggests_a_code() -> None:
    result = ksp("rule", "KSP01l01")
    assert result.exit_code == 2
    assert "there is no diagnostic `KSP01l01`: did you mean `KSP0101`?" in result.stderr
    assert "`ksp rule` lists them all" in ksp("rule", "taints").stderr
