"""`ksp simulate`: reports, JSON, invalid input."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ksp.cli import profile_choice
from ksp.cli.simulate import simulate

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
"""
PODS = """
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Pod, metadata: {name: fits}, spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}
  - {apiVersion: v1, kind: Pod, metadata: {name: big}, spec: {containers: [{name: c, resources: {limits: {cpu: 8}}}]}}
"""
NO_LIST = PODS.replace("containers: [{name: c, resources: {limits: {cpu: 8}}}]", "containers: 7")
SENTENCE = "0/1 nodes are available: 1 Insufficient cpu."


policies = cache(profile_choice.chosen_profiles)


@pytest.fixture(autouse=True)
def _each_policy_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_choice, "chosen_profiles", policies)


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(simulate, [str(argument) for argument in arguments], input=stdin)


def as_json(*arguments: object, stdin: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--output-format", "json", stdin=stdin)
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.yaml").write_text(NODE)
    (tmp_path / "pods.yaml").write_text(PODS)
    return tmp_path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = "".join(f"p{i},1000,1024,{i % 2},0,,BE,Running,{i},{i + 50},{i}\n" for i in range(150))
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time"
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,0,\nn1,64000,262144,8,T4\n")
    (tmp_path / "pods.csv").write_text(f"{columns},scheduled_time\n{rows}")
    return tmp_path


PREEMPTION = """
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 100
---
apiVersion: v1
kind: Pod
metadata: {name: old}
spec: {nodeName: n1, containers: [{name: c, resources: {limits: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: new}
spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: boss}
spec: {priorityClassName: urgent, containers: [{name: c, resources: {limits: {cpu: 2}}}]}
"""

# ---- reports


def test_a_report_says_where_and_why_not(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0
    assert any(line.split() == ["default/fits", "n1"] for line in result.stdout.splitlines())
    assert any(line.split() == ["default/big", "-"] for line in result.stdout.splitlines())
    assert SENTENCE in result.stdout
    assert "1 of 2 pods placed, 1 found no node" in result.stdout
    assert any(line.split() == ["cpu", "1", "2", "50.0", "%"] for line in result.stdout.splitlines())


def test_in_a_pipe_it_is_quiet_and_plain(folder: Path) -> None:
    result = run(folder)
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert all(len(line) <= 100 and line == line.rstrip() for line in result.stdout.splitlines())


def test_json_holds_all_of_it(folder: Path) -> None:
    value = as_json(folder)
    fits, big = value["pods"]
    assert (fits["name"], fits["node"], fits["fate"], fits["message"]) == ("fits", "n1", "placed", "")
    assert (big["node"], big["fate"], big["message"], big["attempts"]) == (None, "waiting", SENTENCE, 2)
    assert big["reasons"] == {"Insufficient cpu": 1}
    assert value["allocation"]["cpu"] == {"requested": 1000, "allocatable": 2000, "peak": 1000}
    assert value["nodes"][0]["requested"]["cpu"] == 1000
    assert value["counts"]["placed"] == 1
    assert value["decisions"]["count"] == 3
    assert value["policy"] == "ksp:default.ksp"


def test_a_report_goes_to_a_file(folder: Path, tmp_path: Path) -> None:
    for output_format, beginning in (("text", "\nWhere the pods went\n"), ("json", "{\n")):
        output = tmp_path / output_format
        result = run(folder, "--output", output, "--output-format", output_format)
        assert (result.exit_code, result.output) == (0, "")
        assert output.read_text().startswith(beginning)


def test_an_output_that_cannot_be_written_is_told_at_once(folder: Path) -> None:
    result = run(folder, "--output", folder / "missing" / "report")
    assert result.exit_code == 2
    assert "missing" in result.output


def test_standard_input() -> None:
    assert as_json("-", stdin=NODE + "---" + PODS)["counts"]["placed"] == 1


def test_a_name_cannot_drive_the_terminal(folder: Path) -> None:
    (folder / "pods.yaml").write_text(PODS.replace("name: big", r'name: "big\e[31m[red]"'))
    result = run(folder)
    assert "\x1b" not in result.stdout
    assert "default/big<U+001B>[31m[red]" in result.stdout


def test_a_pod_whose_amounts_cannot_be_read_waits_and_others_go_on(folder: Path) -> None:
    (folder / "pods.yaml").write_text(PODS.replace("cpu: 8", "cpu: lots"))
    fits, big = as_json(folder)["pods"]
    assert fits["node"] == "n1"
    assert big["fate"] == "waiting"
    assert "lots" in big["message"]


# ---- options


def test_limit(folder: Path) -> None:
    assert [pod["name"] for pod in as_json(folder, "--limit", 1)["pods"]] == ["fits"]


def test_a_policy_of_ones_own(folder: Path, tmp_path: Path) -> None:
    policy = tmp_path / "own.ksp"
    policy.write_text(
        'predicate Closed { deny "closed today" when true }\n'
        "provider Own { predicates { Closed } priorities {} }\n"
        "provider Open { predicates {} priorities {} }\n"
    )
    assert [pod["message"] for pod in as_json(folder, "--policy", policy, "--provider", "Own")["pods"]] == [
        "0/1 nodes are available: 1 closed today."
    ] * 2
    assert as_json(folder, "--policy", policy, "--provider", "Open")["counts"]["placed"] == 2
    missing = run(folder, "--policy", policy)
    assert missing.exit_code == 2
    assert "--provider (Own, Open)" in missing.output


def test_a_provider_that_is_not_there(folder: Path) -> None:
    result = run(folder, "--provider", "DefaultProvidr")
    assert result.exit_code == 2
    assert "DefaultProvider" in result.output


def test_a_policy_with_errors_starts_nothing(folder: Path, tmp_path: Path) -> None:
    policy = tmp_path / "bad.ksp"
    policy.write_text('predicate A { deny "x" when nod.name == "" }\npredicate B { deny "y" when 1 }\n')
    result = run(folder, "--policy", policy)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("error[KSP") == 2
    assert f"{policy}:1:" in result.stderr


def test_a_percentage_of_nodes_to_score(folder: Path) -> None:
    assert as_json(folder, "--percentage-of-nodes-to-score", 0)["counts"]["placed"] == 1
    assert run(folder, "--percentage-of-nodes-to-score", 101).exit_code == 2


# ---- invalid input


def test_invalid_input_names_file_line_and_field(folder: Path) -> None:
    (folder / "pods.yaml").write_text(NO_LIST)
    result = run(folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{folder / 'pods.yaml'}:6: spec.containers: " in result.stderr
    assert "Traceback" not in result.stderr


def test_skip_invalid_goes_on_and_lists_it(folder: Path) -> None:
    (folder / "pods.yaml").write_text(NO_LIST)
    result = run(folder, "--skip-invalid")
    assert result.exit_code == 0
    assert "1 of 1 pod placed" in result.stdout
    assert "Left out, not valid (1)" in result.stdout
    (error,) = as_json(folder, "--skip-invalid")["invalid"]
    assert (error["file"], error["line"], error["field"]) == (str(folder / "pods.yaml"), 6, "spec.containers")


@pytest.mark.parametrize("content", ["{", "a: [", "\0", "kind: Pod\n", "- 1\n", "kind: Pod\nmetadata: 3\n"])
def test_what_is_no_manifest(tmp_path: Path, content: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(content)
    result = run(file)
    assert result.exit_code == 1
    assert str(file) in result.stderr


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    result = run(tmp_path / "gone.yaml")
    assert result.exit_code == 1
    assert "gone.yaml" in result.stderr


def test_nothing_to_schedule(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    result = run(tmp_path / "empty.yaml")
    assert result.exit_code == 1
    assert "no nodes and no pods" in result.stderr


DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"


def test_only_templates(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    result = run(tmp_path / "web.yaml")
    assert result.exit_code == 1
    assert "no nodes and no pods" in result.stderr
    assert "no pods are made from 1 Deployment: a controller would make them. Add pods, such as those" in result.stderr
    (tmp_path / "set.yaml").write_text(DEPLOYMENT.replace("Deployment", "StatefulSet"))
    assert run(tmp_path / "set.yaml").exit_code == 1


def test_nodes_and_templates(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(NODE + "---\n" + DEPLOYMENT)
    result = run(tmp_path / "web.yaml")
    assert result.exit_code == 0
    assert "no pod runs, and none waits for a node" in result.stdout
    assert "`kubectl get pods -o yaml`" in result.stdout


@pytest.mark.parametrize(("pods", "said"), [(1, "1 pod runs already"), (2, "2 pods run already")])
def test_where_all_pods_run(tmp_path: Path, pods: int, said: str) -> None:
    running = "".join(
        f"---\nkind: Pod\nmetadata: {{name: p{i}}}\nspec: {{nodeName: n1, containers: [{{name: c}}]}}\n"
        for i in range(pods)
    )
    (tmp_path / "all.yaml").write_text(NODE + running)
    result = run(tmp_path / "all.yaml")
    assert result.exit_code == 0
    assert f"{said}, and none waits for a node" in result.stdout
    assert "0 of 0" not in result.stdout


def test_departures_are_for_traces(folder: Path) -> None:
    result = run(folder, "--departures")
    assert result.exit_code == 2
    assert "--departures is for a trace" in result.stderr


def test_amounts_that_no_cluster_has(folder: Path) -> None:
    (folder / "pods.yaml").write_text(PODS.replace("cpu: 8", "cpu: -8"))
    result = run(folder)
    assert (result.exit_code, result.stdout) == (1, "")
    field = "spec.containers[0].resources.limits.cpu"
    assert f"{folder / 'pods.yaml'}:6: {field}: -8 is negative" in result.stderr
    assert "Left out, not valid (1)" in run(folder, "--skip-invalid").stdout


def test_no_path() -> None:
    assert run().exit_code == 2


# ---- traces


def test_a_trace_by_name_and_by_its_folder(trace: Path) -> None:
    for arguments in ((trace,), ("--openb", trace)):
        value = as_json(*arguments)
        assert value["counts"] | {"placed": 0, "waiting": 0} == {
            "nodes": 2, "running": 0, "pods": 150, "placed": 0, "waiting": 0, "evicted": 0, "leftAlone": 0,
                "left": 0,
        }  # fmt: skip
        assert value["allocation"]["nvidia.com/gpu"]["requested"] == 8


def test_departures_make_room(trace: Path) -> None:
    stay, leave = as_json(trace), as_json(trace, "--departures")
    assert leave["counts"]["left"] == 150
    assert leave["counts"]["placed"] > stay["counts"]["placed"]
    assert leave["allocation"]["cpu"]["requested"] == 0
    assert leave["allocation"]["cpu"]["peak"] > 0


def test_a_large_run_is_summed_up(trace: Path) -> None:
    text = run(trace).stdout
    assert "64 cpu, 256 GiB, 8 nvidia.com/gpu" in text
    assert "Insufficient nvidia.com/gpu" in text
    assert "default/p149" not in text


def test_a_trace_row_that_is_not_valid(trace: Path) -> None:
    pods = trace / "pods.csv"
    pods.write_text(pods.read_text().replace("p3,1000", "p3,many"))
    result = run(trace)
    assert result.exit_code == 1
    assert f"{pods}:5: cpu_milli: " in result.stderr
    assert as_json(trace, "--skip-invalid")["counts"]["pods"] == 149


def test_a_trace_and_manifests_do_not_mix(trace: Path) -> None:
    assert run("--openb", trace, trace).exit_code == 2


# ---- preemption


def later(text: str) -> str:
    """The preemptor as the last pod, so that the others have places before it comes: pods of higher priority that wait
    at the same time are tried first."""
    return text.replace("metadata: {name: new}\nspec: {", "metadata: {name: new}\nspec: {nodeName: n1, ")


def test_a_report_says_who_had_to_go_and_for_whom(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(NODE + later(PREEMPTION))
    result = run(tmp_path)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["Who", "had", "to", "go"] in lines
    assert ["default/old", "n1", "default/boss"] in lines
    assert ["default/new", "n1", "default/boss"] in lines
    assert "2 pods evicted for 1 other, 2 of them ran from the start" in result.stdout
    assert "1 of 1 pod placed" in result.stdout


def test_json_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(NODE + later(PREEMPTION))
    value = as_json(tmp_path)
    assert (value["counts"]["evicted"], value["counts"]["placed"], value["counts"]["running"]) == (2, 1, 2)
    assert value["evictions"] == [
        {
            "pod": f"default/{name}",
            "node": "n1",
            "by": "default/boss",
            "at": 0.0,
            "wasRunning": True,
            "againstBudget": False,
        }
        for name in ("old", "new")
    ]
    (boss,) = value["pods"]
    assert (boss["node"], boss["attempts"], boss["evictedBy"], boss["decided"]) == ("n1", 2, None, 30.0)
    assert value["nodes"][0]["pods"] == 1


def test_a_report_says_whose_budget_did_not_allow_it(tmp_path: Path) -> None:
    budget = """---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: old}}}
"""
    guarded = later(PREEMPTION).replace("{name: old", "{labels: {app: old}, name: old")
    (tmp_path / "all.yaml").write_text(f"{NODE}{guarded.rstrip()}\n{budget}")
    result = run(tmp_path)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["pod", "had", "to", "leave", "for", "against", "its", "budget"] in lines
    assert ["default/old", "n1", "default/boss", "yes"] in lines
    assert ["default/new", "n1", "default/boss"] in lines
    assert "1 of them against a disruption budget" in result.stdout
    assert [each["againstBudget"] for each in as_json(tmp_path)["evictions"]] == [True, False]


def test_many_evictions_are_shown_by_the_pod_for_which_they_were(tmp_path: Path) -> None:
    node = NODE.replace('cpu: "2"', 'cpu: "240"').replace('pods: "10"', 'pods: "500"')
    old = "\n---\n".join(
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: old-{i}}}, spec: {{nodeName: n1, containers: "
        "[{name: c, resources: {limits: {cpu: 2}}}]}}"
        for i in range(120)
    )
    boss = PREEMPTION.partition("metadata: {name: new}")[0].rpartition("---")[0]
    boss += "---\n" + PREEMPTION.rpartition("---\n")[2].replace("cpu: 2", "cpu: 230")
    (tmp_path / "all.yaml").write_text(node + boss + "\n---\n" + old)
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert "default/boss" in next(line for line in result.stdout.splitlines() if line.split()[:1] == ["116"])
    assert "116 pods evicted for 1 other" in result.stdout


# ---- the examples


EXAMPLES = Path(__file__).parents[3] / "examples"


def placements(value: dict[str, Any]) -> dict[str, str | None]:
    return {pod["name"]: pod["node"] for pod in value["pods"]}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_comments_of_the_example_of_preemption_are_true(seed: int) -> None:
    value = as_json(EXAMPLES / "preemption", "--seed", seed)
    assert placements(value) == {"payments": "node-a", "search": "node-d", "report": "node-b", "web-3": None}
    assert [(each["pod"].partition("/")[2], each["by"].partition("/")[2]) for each in value["evictions"]] == [
        ("batch-0", "payments"), ("web-1", "search"), ("web-2", "search"), ("batch-1", "web-3"), ("batch-2", "web-3"),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_comments_of_the_example_of_volumes_are_true(seed: int) -> None:
    value = as_json(EXAMPLES / "volumes", "--seed", seed)
    assert placements(value) == {
        "database-0": "node-a1", "database-1": "node-a2", "database-2": None, "cache": "node-b1", "build": "node-b1",
        "reader": None,
    }  # fmt: skip
