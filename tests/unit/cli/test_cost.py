from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.commands import TAINTS, ksp, room, written


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(room(tmp_path), {"taints.ksp": TAINTS, "all.ksp": 'import "room.ksp"\nimport "taints.ksp"\n'})


@pytest.mark.usefixtures("folder")
def test_cost_names_the_form_of_each_rule() -> None:
    shown = ksp("cost", "all.ksp", "--all").stdout.splitlines()
    assert [line.split()[:2] for line in shown if line.startswith(("Room", "Free", "Tolerates"))] == [
        ["Room", "columns"],
        ["Free", "columns"],
        ["Tolerates", "parts"],
    ]


def test_cost_says_why_a_rule_is_scalar_and_what_it_reads() -> None:
    found = json.loads(ksp("cost", "ksp:default.ksp", "--all", "--output-format", "json").stdout)
    by_name = {rule["name"]: rule for rule in found["rules"]}
    assert by_name["CheckVolumeBinding"]["form"] == "scalar"
    assert by_name["CheckVolumeBinding"]["why"] == "`matchVolumes(…)` reads each node as a whole"
    assert [name for name, rule in by_name.items() if rule["form"] == "scalar"] == ["CheckVolumeBinding"]
    spread = by_name["SelectorSpreadPriority"]
    assert (spread["kind"], spread["plugin"], spread["why"]) == ("priority", "SelectorSpread", "")
    assert sorted(spread["views"]) == ["inZone", "siblings"]
    assert "labels" in spread["pod"]
    assert by_name["HostName"]["cost"] == "O(1)"


def test_the_table_says_below_why_a_rule_is_scalar() -> None:
    shown = ksp("cost", "ksp:default.ksp", "--rule", "CheckVolumeBinding").stdout.splitlines()
    assert [line.split()[1] for line in shown if line.startswith("CheckVolumeBinding")] == ["scalar"]
    assert shown[-1] == "- CheckVolumeBinding is scalar: `matchVolumes(…)` reads each node as a whole"
    assert "is scalar" not in ksp("cost", "ksp:default.ksp", "--rule", "HostName").stdout


def test_hundred_columns_are_enough_for_whole_names() -> None:
    shown = ksp("cost", "ksp:default.ksp", "--all").stdout
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert {"topologySpreadConstraints", "replicationControllers"} <= {*shown.split()}


@pytest.mark.usefixtures("folder")
def test_cost_takes_rules_as_the_other_commands_do() -> None:
    own = ksp("cost", "all.ksp")
    assert (own.exit_code, own.stdout) == (0, "")
    assert "--all takes those that it imports" in own.stderr
    assert "Tolerates" in ksp("cost", "all.ksp", "--rule", "Tolerates").stdout
    assert ksp("cost", "all.ksp", "--rule", "Nobody").exit_code == 2
