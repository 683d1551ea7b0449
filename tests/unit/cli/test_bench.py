"""`ksp bench`: measurements in this process where not said otherwise, on clusters of a few nodes."""

from __future__ import annotations

import gc
import json
import multiprocessing
import sys
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.unit.cli.commands import ksp
from tests.unit.sim.bench.measured import conditions, figures, runs

from ksp.cli import bench_process, profile_choice
from ksp.cli.main import cli
from ksp.runtime import heap
from ksp.sim.bench.figures import Run
from ksp.sim.bench.records import Record, text_of
from ksp.sim.bench.workloads import WORKLOADS

SMALL = ("bench", "--core", "--nodes", "5", "--pods", "10")
BASIC = (*SMALL, "--workload", "SchedulingBasic")
OPEN = """\
predicate Room { deny "full" when pod.requests["cpu"] > node.allocatable["cpu"] - node.requested["cpu"] }
priority Free { score node.requested["cpu"] == 0m ? 1 : 0 }
provider Own { predicates { Room } priorities { Free: 1 } }
profile "mine" uses Own {}
"""

measured_apart = bench_process.measured_apart  # as it is before tests replace it
policies = cache(profile_choice.chosen_profiles)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No new processes, the collector of garbage as it is, and each policy loaded once."""
    monkeypatch.setattr(bench_process, "chosen_profiles", policies)
    monkeypatch.setattr(profile_choice, "chosen_profiles", policies)
    monkeypatch.setattr(bench_process, "measured_apart", bench_process.measured_here)
    monkeypatch.setattr(heap, "prepare", lambda: None)
    monkeypatch.setattr(heap, "settle", lambda: None)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.ksp").write_text(OPEN)
    return tmp_path / "own.ksp"


def record(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def kept(path: Path, found: list[Run]) -> Path:
    path.write_text(text_of(Record(found, {"ksp": "1.2.3"})))
    return path


# ---- measuring


def test_a_table_says_what_was_measured() -> None:
    result = ksp(*BASIC)
    assert result.exit_code == 0, result.output
    head, empty, names, row = result.stdout.splitlines()
    assert head.startswith("The core alone: ksp ")
    assert "ksp:default.ksp, equivalence classes on, columns on, seed 1" in head
    assert empty == ""
    assert "decisions/s" in names
    assert row.split()[:4] == ["SchedulingBasic", "5", "10", "1"]


def test_all_workloads_if_none_is_named(own: Path, tmp_path: Path) -> None:
    result = ksp(*SMALL, "--policy", own, "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    assert [run["workload"] for run in record(tmp_path / "out.json")["runs"]] == list(WORKLOADS)


def test_json_holds_runs_and_medians(own: Path, tmp_path: Path) -> None:
    arguments = ("--nodes", "4,7", "--runs", 2, "--existing", 3, "--policy", own, "--json", tmp_path / "out.json")
    result = ksp("bench", "--core", "--pods", 10, "--workload", "SchedulingBasic", *arguments)
    assert result.exit_code == 0, result.output
    value = record(tmp_path / "out.json")
    assert [(run["nodes"], run["pods"], run["existing"]) for run in value["runs"]] == [(4, 10, 3)] * 2 + [
        (7, 10, 3)
    ] * 2
    assert [(median["nodes"], median["runs"]) for median in value["medians"]] == [(4, 2), (7, 2)]
    assert set(value["versions"]) == {"ksp", "Python", "NumPy"}
    for run in value["runs"]:
        assert run["decisions_per_second"] == pytest.approx(10 / run["core_seconds"])
        assert 0 < run["p50_ms"] <= run["p90_ms"] <= run["p99_ms"] <= run["max_ms"]
        assert run["placed"] == run["attempts"] == 10
        assert run["peak_memory_mib"] > 1


def test_pods_are_those_of_the_policys_scheduler(own: Path, tmp_path: Path) -> None:
    ksp(*BASIC, "--policy", own, "--json", tmp_path / "out.json")
    (run,) = record(tmp_path / "out.json")["runs"]
    assert (run["placed"], run["policy"]) == (10, str(own))


def test_pending_pods(tmp_path: Path) -> None:
    result = ksp(*SMALL, "--workload", "Unschedulable", "--pending", 3, "--json", tmp_path / "out.json")
    assert "beside 3 pods that fit nowhere" in result.stdout
    assert record(tmp_path / "out.json")["runs"][0]["pending"] == 3


def test_pods_without_a_node_are_told() -> None:
    result = ksp("bench", "--core", "--nodes", 5, "--pods", 9, "--workload", "SchedulingPodAntiAffinity")
    assert "SchedulingPodAntiAffinity, 5 nodes: 5 of 9 pods found no node" in result.stdout


def test_what_each_rule_costs(own: Path, tmp_path: Path) -> None:
    result = ksp(*BASIC, "--policy", own, "--rules", "--json", tmp_path / "out.json")
    assert "what each rule costs" in result.stdout
    rules = {rule["name"]: rule for rule in record(tmp_path / "out.json")["runs"][0]["rules"]}
    assert set(rules) == {"Room", "Free"}
    assert [rules[name]["prepared"] for name in ("Room", "Free")] == [1, 1]  # all pods are of one class
    assert rules["Room"]["selectivity"] == 0.0
    off = ("--feature-gates", "EnableEquivalenceClassCache=false", "--no-columns")
    ksp(*BASIC, *off, "--policy", own, "--rules", "--json", tmp_path / "off.json")
    (run,) = record(tmp_path / "off.json")["runs"]
    (room,) = (rule for rule in run["rules"] if rule["name"] == "Room")
    assert (room["prepared"], room["evaluations"], room["columns"]) == (10, 50, 0)
    assert (run["equivalence_classes"], run["columns"], run["hit_rate"]) == (False, False, 0.0)


def test_markdown(own: Path) -> None:
    lines = ksp(*BASIC, "--policy", own, "--markdown").stdout.splitlines()
    assert lines[2].startswith("| workload | nodes | pods |")
    assert lines[3].startswith("| --- | ---: |")
    assert lines[4].startswith("| SchedulingBasic | 5 | 10 | 1 |")


def test_the_workloads_are_explained() -> None:
    result = ksp("bench", "--list")
    assert result.exit_code == 0
    assert all(f"{name}\n  " in result.stdout for name in WORKLOADS)


# ---- mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench",), "only the core can be measured yet: ksp bench --core"),
        ((*SMALL, "--workload", "SchedulingBasi"), "there is no workload `SchedulingBasi`: did you mean"),
        (("bench", "--core", "--nodes", "many"), "`many` is no number"),
        (("bench", "--core", "--nodes", "10,"), "is no number, nor several with commas between"),
        (("bench", "--core", "--nodes", "0"), "a cluster has at least one node, which `0` does not say"),
        (("bench", "--core", "--nodes", "5,000"), "a comma stands between two sizes"),
        ((*BASIC, "--pending", "3"), "pods that fit nowhere are part of Unschedulable only"),
        ((*BASIC, "--show", "kept.json"), "--core and --show do not go together"),
        (("bench", "--show", "a.json", "--compare", "b.json", "c.json"), "--show and --compare do not go together"),
        (("bench", "--compare", "b.json", "c.json", "--json", "d.json"), "--compare writes no file"),
        (("bench", "--core", "--pods", "0"), "0 is not in the range"),
        (("bench", "--core", "--runs", "0"), "0 is not in the range"),
        (("bench", "--core", "--existing", "-1"), "-1 is not in the range"),
        ((*SMALL, "--feature-gates", "Nothing=true"), "there is no feature gate `Nothing`"),
        ((*SMALL, "--json", "nowhere/at/all.json"), "there is no folder nowhere/at"),
        ((*SMALL, "--plot", "picture.gif"), "ends neither in .svg nor in .png"),
        ((*SMALL, "--provider", "DefaultProvidr"), "DefaultProvider"),
    ],
)
def test_mistakes_on_the_command_line(arguments: tuple[str, ...], said: str) -> None:
    result = ksp(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


def test_a_policy_with_errors_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.ksp").write_text('predicate A { deny "x" when nod.name == "" }\n')
    result = ksp(*BASIC, "--policy", tmp_path / "bad.ksp")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[KSP" in result.stderr


def test_without_matplotlib_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = ksp(*BASIC, "--plot", "out.svg")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "pip install matplotlib" in result.stderr


def test_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    several = kept(tmp_path / "kept.json", [*runs(1000.0, 1200.0), *runs(800.0, nodes=20), *runs(9.0, workload="Own")])
    for ending, start in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        picture = tmp_path / f"picture{ending}"
        assert ksp("bench", "--show", several, "--plot", picture).exit_code == 0
        assert picture.read_bytes().startswith(start)


# ---- records


def test_a_record_is_shown(tmp_path: Path) -> None:
    found = [*runs(1000.0, 3000.0, 2000.0), Run(conditions("IndexedJobs"), figures(5.0, hit_rate=0.995))]
    result = ksp("bench", "--show", kept(tmp_path / "kept.json", found))
    assert result.stdout.startswith("The core alone: ksp 1.2.3; ")
    assert "2,000 (1,000..3,000)" in result.stdout
    assert "99.5%" in result.stdout


def test_a_record_with_the_costs_of_rules_shows_them(own: Path, tmp_path: Path) -> None:
    measured = ksp(*BASIC, "--policy", own, "--rules", "--json", tmp_path / "out.json").stdout
    assert ksp("bench", "--show", tmp_path / "out.json").stdout == measured


def test_a_record_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    odd = kept(tmp_path / "odd.json", runs(1.0, workload="\x1b[31mRed"))
    for arguments in (("--show", odd), ("--compare", odd, odd)):
        shown = ksp("bench", *arguments).stdout
        assert "<U+001B>[31mRed" in shown
        assert "\x1b" not in shown


def test_what_cannot_be_written_is_shown(tmp_path: Path) -> None:
    one, many = kept(tmp_path / "one.json", runs(1000.0)), tmp_path / ("x" * 300)
    result = CliRunner().invoke(cli, ["bench", "--show", str(one), "--json", str(many)])
    assert isinstance(result.exception, OSError)
    assert "SchedulingBasic" in result.stdout


def test_comparison(tmp_path: Path) -> None:
    before = kept(tmp_path / "before.json", runs(1000.0, 1010.0))
    after = kept(tmp_path / "after.json", [*runs(2000.0, 2010.0, columns=False), *runs(1.0, nodes=99)])
    result = ksp("bench", "--compare", before, after)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("SchedulingBasic ")]
    assert rows[0] == ["SchedulingBasic", "10", "decisions/s", "1,005", "2,005", "2.00"]
    assert rows[1][-3:] == ["within", "the", "spread"]
    assert "- SchedulingBasic, columns: on before, off after" in result.stdout
    assert "- only after: SchedulingBasic, 99 nodes, 20 pods" in result.stdout


def test_one_run_does_not_tell_its_spread(tmp_path: Path) -> None:
    one = kept(tmp_path / "one.json", runs(1000.0))
    assert "one run: spread unknown" in ksp("bench", "--compare", one, one).stdout


def test_files_that_do_not_fit_together(tmp_path: Path) -> None:
    one, other = kept(tmp_path / "one.json", runs(1.0)), kept(tmp_path / "other.json", runs(1.0, nodes=7))
    result = ksp("bench", "--compare", one, other)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{one} and {other} do not fit together: they have no workload in common" in result.stderr


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"benchmark": "core", "runs": [{}]}'])
def test_what_is_no_record(tmp_path: Path, content: bytes) -> None:
    odd, sound = tmp_path / "odd.json", kept(tmp_path / "sound.json", runs(1.0))
    odd.write_bytes(content)
    for arguments in (("--compare", sound, odd), ("--compare", odd, sound), ("--show", odd)):
        result = ksp("bench", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"{odd}: " in result.stderr


# ---- a process of its own


def test_a_run_in_a_process_of_its_own(own: Path) -> None:
    before, heard = gc.get_freeze_count(), list[int]()
    given = conditions(policy=str(own), existing=None, pending=None)
    found = measured_apart(given, rules=True, tell=heard.append)
    assert (found.run.conditions.existing, found.run.figures.placed, heard) == (2, 20, [0, 20])
    assert found.rules is not None
    assert {each.name for each in found.rules} == {"Room", "Free"}
    assert multiprocessing.active_children() == []
    assert gc.get_freeze_count() == before


def test_an_interruption_ends_the_process(own: Path) -> None:
    def interrupted(_decided: int) -> None:
        assert len(multiprocessing.active_children()) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured_apart(conditions(policy=str(own), pods=10_000), rules=False, tell=interrupted)
    assert multiprocessing.active_children() == []


def test_a_fault_in_the_process_is_a_fault_here(own: Path) -> None:
    with pytest.raises(KeyError) as error:
        measured_apart(conditions("Nothing", policy=str(own)), rules=False, tell=lambda _decided: None)
    assert "measured_here" in error.value.__notes__[0]


def test_a_process_that_is_ended_from_outside(own: Path) -> None:
    def killed(_decided: int) -> None:
        (process,) = multiprocessing.active_children()
        process.kill()

    with pytest.raises(click.ClickException) as error:
        measured_apart(conditions(policy=str(own), pods=10_000), rules=False, tell=killed)
    assert error.value.message == "measuring SchedulingBasic on 10 nodes: its process was ended by signal 9"
