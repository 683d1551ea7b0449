from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.commands import ksp, room, written

CLUSTER = """
  node small { allocatable: {cpu: 2, pods: 10} }
  node large { allocatable: {cpu: 8, pods: 10} }
  pod hog on small { requests: {cpu: 1800m} }
  pod web { requests: {cpu: 500m} }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def block(*expects: str, cluster: str = CLUSTER, name: str = "t") -> str:
    lines = "".join(f"  expect {expect}\n" for expect in expects)
    return f'test "{name}" {{{cluster}{lines}}}\n'


def happened(folder: Path, *expects: str, cluster: str = CLUSTER) -> list[str]:
    """What happened instead, for each expectation that is not met."""
    room(folder, block(*expects, cluster=cluster))
    result = ksp("test", folder, "--output-format", "json")
    found = json.loads(result.stdout)
    assert found["diagnostics"] == []
    assert found["passed"] + found["failed"] == len(expects)
    assert result.exit_code == (1 if found["failed"] else 0)
    return [failure["happened"] for failure in found["failures"]]


def test_expectations_that_are_met(folder: Path) -> None:
    met = [
        'Room denies web on small with "full"',
        "Room admits web on large",
        "Room admits hog on small",
        "Free scores web on large 100",
        "Free scores web on small 2",
        "Both admits web on large",
        'Both denies web on small with "full"',
        "Both places web on large",
    ]
    room(folder, block(*met))
    result = ksp("test", "room.test.ksp")
    assert (result.exit_code, result.stdout) == (0, "8 passed, 0 failed\n")


def test_what_is_not_met_shows_the_values_that_were_compared(folder: Path) -> None:
    room(folder, block("Room admits web on small"))
    result = ksp("test", "room.test.ksp")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        'room.test.ksp:7: failed: "t": expected Room admits web on small: it is denied: "full"',
        '    room.ksp:4: `pod.requests["cpu"] > left(node)`: 500m > 200m is true',
        "0 passed, 1 failed",
    ]


def test_what_happens_instead_of_admission_and_denial(folder: Path) -> None:
    assert happened(folder, 'Room denies web on large with "full"') == ["it is admitted"]
    assert happened(folder, 'Both denies web on large with "full"') == ["it is admitted"]
    assert happened(folder, "Both admits web on small") == ['it is denied by Room: "full"']


def test_what_happens_instead_of_a_score(folder: Path) -> None:
    assert happened(folder, "Free scores web on large 99") == ["it scores 100 (small 2)"]


def test_what_happens_instead_of_a_placement(folder: Path) -> None:
    cluster = CLUSTER + "  node other { allocatable: {cpu: 4, pods: 10} }\n"
    assert happened(folder, "Both places web on small", cluster=cluster) == ['it is denied by Room: "full"']
    assert happened(folder, "Both places web on other", cluster=cluster) == [
        "it goes to large, which scores 300 against 150"
    ]


def test_a_tie_is_no_placement(folder: Path) -> None:
    cluster = CLUSTER + "  node twin { allocatable: {cpu: 8, pods: 10} }\n"
    assert happened(folder, "Both places web on large", cluster=cluster) == [
        "large and twin tie with 300, and chance decides"
    ]


def test_an_attempt_that_fails_meets_nothing(folder: Path) -> None:
    failing = 'predicate Fails {\n  fail "broken" when node.name == "n"\n  deny "no" when node.name == "m"\n}\n'
    uses = failing + "provider P { predicates { Fails } }\n"
    expects = ["Fails admits p on n", 'Fails denies p on n with "no"', "P places p on n"]
    written(folder, {"f.ksp": uses + block(*expects, cluster="\n  node n {}\n  node m {}\n  pod p {}\n")})
    found = json.loads(ksp("test", folder, "--output-format", "json").stdout)
    assert [f["happened"].partition(":")[0] for f in found["failures"]] == ["the attempt fails"] * 3
    assert all("broken" in f["happened"] for f in found["failures"])


def test_other_objects_and_finished_pods(folder: Path) -> None:
    rules = """
predicate Watched { deny "no service" when size(cluster.services["default"]) == 0 }
predicate Alone {
  view others = count p in cluster.pods by p.node.name
  deny "not alone" when others[node.name] > 0
}
"""
    cluster = """
  node n {}
  node m {}
  service s {}
  pod done on n { status: {phase: "Succeeded"} }
  pod other on m {}
  pod p on n {}
"""
    expects = ["Watched admits p on n", "Alone admits p on n", 'Alone denies p on m with "not alone"']
    written(folder, {"a.ksp": rules + block(*expects, cluster=cluster)})
    assert ksp("test", folder).stdout == "3 passed, 0 failed\n"


def test_budgets_namespaces_and_priority_classes(folder: Path) -> None:
    rule = """
predicate Reads {
  let budget = cluster.podDisruptionBudgets[pod.namespace]['b']
  let high   = cluster.priorityClasses['high']
  deny "${has(budget.spec.selector)} ${cluster.namespaces[pod.namespace].labels['team']} ${high.value}"
      when node.podCount >= 0
}
"""
    here = """
  node n {}
  podDisruptionBudget b { namespace: "web", spec: {selector: {}} }
  namespace web { labels: {team: "a"} }
  priorityClass high { value: 7 }
  pod p { namespace: "web" }
"""
    beside = """
  node n {}
  podDisruptionBudget b from "budget.yaml"
  namespace default from "namespace.yaml"
  pod p {}
"""
    files = {
        "budget.yaml": "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, "
        "metadata: {name: b, namespace: default}, spec: {selector: {}, minAvailable: 50%}}",
        "namespace.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: b}}}",
        "a.ksp": rule
        + block('Reads denies p on n with "true a 7"', cluster=here, name="here")
        + block('Reads denies p on n with "false b 0"', cluster=beside, name="beside"),
    }
    written(folder, files)
    assert ksp("test", folder).stdout == "2 passed, 0 failed\n"


def test_objects_from_files(folder: Path) -> None:
    cluster = """
  node big from "fixtures/node.yaml"
  pod a on big from "fixtures/pods.yaml"
  pod b on big from "fixtures/pods.yaml"
  pod other on big from "fixtures/other.yaml"
"""
    pods = """
apiVersion: v1
kind: PodList
items:
- {metadata: {name: a}, spec: {nodeName: elsewhere, containers: [{name: x, resources: {requests: {cpu: 700m}}}]}}
- {metadata: {name: b}, spec: {containers: [{name: x, resources: {requests: {cpu: 800m}}}]}}
"""
    other = "{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: x}]}}"
    node = '{apiVersion: v1, kind: Node, metadata: {name: node-17}, status: {allocatable: {cpu: "1", pods: 9}}}'
    written(folder, {"fixtures/node.yaml": node, "fixtures/pods.yaml": pods, "fixtures/other.yaml": other})
    expects = ['Room denies a on big with "full"', 'Room denies b on big with "full"', "Room admits other on big"]
    room(folder, block(*expects, cluster=cluster))
    result = ksp("test", folder)
    assert result.stdout.splitlines()[-1] == "2 passed, 1 failed"
    assert "0m > -500m is true" in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no such file"),
        ("kind: Node\n", "f.yaml:1: metadata.name: missing"),
        ("{kind: Service, metadata: {name: s}}", "there is no Pod in it"),
        (
            "{kind: PodList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}",
            "2 of the kind Pod in it, none of them",
        ),
        (
            "{kind: Pod, metadata: {name: a}, spec: {containers: [{resources: {requests: {cpu: 2x}}}]}}",
            '"2x" is not a quantity',
        ),
    ],
)
def test_fixtures_that_cannot_be_used(folder: Path, text: str | None, said: str) -> None:
    if text is not None:
        written(folder, {"f.yaml": text})
    room(folder, block("Room admits p on n", cluster='\n  node n {}\n  pod p from "f.yaml"\n'))
    result = ksp("test", folder)
    assert result.exit_code == 1
    assert "error[KSP0602]: the fixture of `p`: " in result.stdout
    assert said in result.stdout
    assert result.stderr == "1 error; no test was run\n"


def test_two_names_for_one_node(folder: Path) -> None:
    written(folder, {"n.yaml": "{kind: Node, metadata: {name: n}}"})
    cluster = '\n  node a from "n.yaml"\n  node b from "n.yaml"\n  pod p {}\n'
    room(folder, block("Room admits p on a", cluster=cluster))
    assert "`b` and `a` are both the node n" in ksp("test", folder).stdout


def test_nothing_runs_while_a_policy_has_errors(folder: Path) -> None:
    written(room(folder, block("Room admits web on large")), {"bad.ksp": "const a: int = b\n"})
    result = ksp("test", folder)
    assert result.exit_code == 1
    assert "error[KSP0202]" in result.stdout
    assert "passed" not in result.stdout
    found = json.loads(ksp("test", folder, "--output-format", "json").stdout)
    assert [d["code"] for d in found["diagnostics"]] == ["KSP0202"]


def test_no_tests_is_a_failure(folder: Path) -> None:
    room(folder)
    result = ksp("test", "room.ksp")
    assert (result.exit_code, result.stderr) == (1, "there are no tests in room.ksp\n")


def test_a_file_named_twice_runs_once(folder: Path) -> None:
    room(folder, block("Room admits web on large"))
    assert ksp("test", "room.test.ksp", folder, "./room.test.ksp").stdout == "1 passed, 0 failed\n"


def test_json_tells_the_conditions(folder: Path) -> None:
    room(folder, block("Room admits web on small"))
    (failure,) = json.loads(ksp("test", "room.test.ksp", "--output-format", "json").stdout)["failures"]
    assert failure == {
        "file": "room.test.ksp",
        "line": 7,
        "test": "t",
        "expected": "Room admits web on small",
        "happened": 'it is denied: "full"',
        "conditions": [
            {
                "file": "room.ksp",
                "line": 4,
                "condition": 'pod.requests["cpu"] > left(node)',
                "values": "500m > 200m",
                "holds": True,
            }
        ],
    }
