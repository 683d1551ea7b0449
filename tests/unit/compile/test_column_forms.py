"""The column form of rules: what it looks like, that it says what the scalar form says, and what has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.compile.compiling import compiled, predicate, priority
from tests.unit.core.scheduling import cluster, info, node

from ksp.compile.columns.verdicts import Ruling
from ksp.compile.node_columns import NodeColumns
from ksp.compile.runtime import Denial, Failure
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo

HERE = Path(__file__).parent


@pytest.fixture
def state() -> ClusterState:
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    return cluster(
        node("a", labels={"zone": "x", "disk": ""}, pods="2"),
        node("b", labels={"zone": "y"}, taints=taints, pods="2"),
        node("c", labels={"disk": "ssd"}, taints=taints, pods="3"),
    )


def says(text: str, state: ClusterState, pod: PodInfo | None = None) -> list[Any]:
    """What the column form says of each node, in the order of the nodes."""
    bound = predicate(text, state, pod=pod)
    assert bound.column is not None, compiled(text).scalar_because
    columns = NodeColumns(state)
    verdicts = bound.column(columns.rows(columns.order))
    assert verdicts.answers[0] is None
    found = [verdicts.answers[code] for code in verdicts.codes.tolist()]
    assert bound.check is not None
    assert found == [bound.check(each) for each in state.node_list()]
    return found


def denied(*reasons: str, unresolvable: bool = False) -> Denial:
    return Denial(unresolvable, reasons)


# ---- statements


def test_the_first_deny_that_holds_ends_the_rule(state: ClusterState) -> None:
    found = says(
        """predicate P {
          deny "no zone" when !("zone" in node.labels)
          deny unresolvable "zone ${node.labels['zone']}" when node.labels["zone"] == "y"
          deny "no disk" when !("disk" in node.labels)
        }""",
        state,
    )
    assert found == [None, denied("zone y", unresolvable=True), denied("no zone")]


def test_collect_reports_all_that_hold_and_a_failure_comes_before_them(state: ClusterState) -> None:
    found = says(
        """predicate P {
          collect {
            deny "one" when node.labels["zone"] != "x"
            deny unresolvable "two of ${node.name}", "three" when node.allocatable.pods > 2
            fail "four" when node.labels["zone"] == "y"
            stop when node.allocatable.pods > 2
            deny "five" when true
          }
          deny "six" when true
        }""",
        state,
    )
    assert found == [denied("five"), Failure("four"), denied("one", "two of c", "three", unresolvable=True)]


def test_more_denies_than_an_int_has_bits(state: ClusterState) -> None:
    for number in (13, 70):
        lines = "\n".join(f'deny "{i}" when node.allocatable.pods + {i} > 2' for i in range(number))
        found = says(f"predicate P {{ collect {{ {lines} }} }}", state)
        assert found[0] == denied(*(str(i) for i in range(1, number)))
        assert found[2] == denied(*(str(i) for i in range(number)))


def test_stop_ends_the_rule_for_some_or_for_all(state: ClusterState) -> None:
    text = """predicate P {{
      for key in ["zone", "disk"] {{
        stop when {}
        deny "no ${{key}}" when !(key in node.labels)
      }}
    }}"""
    assert says(text.format('node.name == "c"'), state) == [None, denied("no disk"), None]
    assert says(text.format('key == "disk" && !pod.terminating'), state) == [None, None, denied("no zone")]


def test_a_failure_of_all_rows_of_a_priority(state: ClusterState) -> None:
    text = 'priority P { fail "${pod.name}" when pod.name != "" deny "x" when false score node.allocatable.pods }'
    text = text.replace('deny "x" when false ', "")
    bound = priority(text, state, pod=info("web"))
    assert bound.column is not None
    scores = bound.column(NodeColumns(state).rows())
    assert {scores.answers[code] for code in scores.codes.tolist()} == {Failure("web")}


def test_rows_without_a_verdict_are_admitted() -> None:
    columns = NodeColumns(ClusterState())
    rows = columns.rows(np.zeros(0, np.int64))
    ruling = Ruling(rows)
    ruling.settle(None, denied("no"))
    ruling.note(np.ones(0, np.bool_), False, ("no",))
    ruling.collected()
    assert ruling.verdicts().codes.tolist() == []


# ---- forms


def test_a_rule_about_few_parts_is_asked_for_each_of_their_values(state: ClusterState) -> None:
    text = """predicate P {
      let bad = node.spec.taints.filter(t, t.effect == "NoSchedule" && !pod.spec.tolerations.exists(o, o.tolerates(t)))
      deny "${bad[0].key}" when size(bad) > 0
    }"""
    made = compiled(text)
    assert made.by_parts
    assert "return _verdicts_by_parts(rows, (('spec', 'taints'),), check)" in made.source
    assert says(text, state) == [None, denied("gpu"), denied("gpu")]


def test_arithmetic_stays_readable() -> None:
    text = """priority Free {
      param resources: list<ResourceSpec> = [{name: "cpu", weight: 1}]
      fn free(name: string): int = div(100 * (node.allocatable[name] - node.requested[name]), node.allocatable[name], 0)
      score resources.map(r, r.weight * free(r.name)).sum()
      normalize {
        let most = feasible.map(n, n.score).max(1)
        score div(node.score * 100, most, 0)
      }
    }"""
    assert compiled(text).source == (HERE / "columns.txt").read_text("utf-8").strip()


def test_what_is_lifted_out_of_a_loop_is_computed_once() -> None:
    source = compiled(
        """predicate P {
          let here = pod.spec.tolerations.all(t, t.key in node.labels)
          for t in pod.spec.tolerations { deny "no" when here && t.value in node.labels }
        }"""
    ).source
    assert source.count("_has_part") == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            'predicate P { deny "no" when size(matchVolumes(cluster.persistentVolumeClaims["a"].values(), node)) > 0 }',
            "`matchVolumes(…)` reads each node as a whole",
        ),
        (
            'predicate P { for key, value in node.labels { deny "no" when key == value } }',
            "`for` over a list that differs from node to node",
        ),
    ],
)
def test_what_has_no_column_form_says_why(text: str, why: str) -> None:
    made = compiled(text)
    assert made.scalar_because == why
    assert "def column" not in made.source


@pytest.mark.parametrize("texts", ["labels", "annotations"])
def test_a_key_that_a_loop_over_nodes_gives_through_a_name_is_no_part(state: ClusterState, texts: str) -> None:
    text = f"""predicate P {{
      for t in node.spec.taints {{
        let key = t.key
        deny "no" when node.{texts}[key] == ""
      }}
    }}"""
    bound = predicate(text, state)
    assert bound.column is None
    assert bound.check is not None
    assert [bound.check(each) for each in state.node_list()] == [None, denied("no"), denied("no")]


def test_a_wide_condition_is_no_deep_one(state: ClusterState) -> None:
    for operator in ("&&", "||"):
        condition = f" {operator} ".join(f"node.allocatable.pods > {1 + i // 900}" for i in range(1200))
        found = says(f'predicate P {{ deny "no" when {condition} }}', state)
        assert [each is not None for each in found] == [operator == "||", operator == "||", True]
        assert compiled(f'predicate P {{ deny "no" when {condition} }}').source


def test_what_a_failed_attempt_began_is_not_left_behind() -> None:
    source = compiled(
        """predicate P {
          let odd = pod.spec.tolerations.filter(t, t.key in node.labels)
          deny "few" when size(odd) > 2
          for key in node.labels { deny "no" when key in odd.map(t, t.key) }
        }"""
    ).source
    assert "rows" not in source


def test_a_traced_rule_is_scalar() -> None:
    from ksp.compile.program import compile_rule

    traced = compile_rule(compiled('predicate P { deny "no" when node.podCount > 1 }').rule, traced=True)
    assert "def column" not in traced.source


# ---- labels and names


REQUIREMENTS = [
    ("In", ["x", "y"], [True, True, False]),
    ("In", [""], [False, False, False]),
    ("NotIn", ["x"], [False, True, True]),
    ("Exists", [], [True, True, False]),
    ("DoesNotExist", [], [False, False, True]),
    ("Nonsense", [], [False, False, False]),
]


@pytest.mark.parametrize(("operator", "values", "holds"), REQUIREMENTS)
def test_requirements_hold_of_labels(state: ClusterState, operator: str, values: list[str], holds: list[bool]) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = info("web", affinity={"nodeAffinity": required})
    terms = "pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for body in ("t.matches(node)", "t.matches(node.labels)", "t.matchExpressions.all(r, r.matches(node.labels))"):
        found = says(f'predicate P {{ deny "no" when {terms}.exists(t, {body}) }}', state, pod)
        assert [answer is not None for answer in found] == holds


def test_fields_of_a_term_know_the_name_alone(state: ClusterState) -> None:
    for key, operator, holds in (
        ("metadata.name", "In", [False, True, False]),
        ("metadata.name", "NotIn", [True, False, True]),
        ("metadata.uid", "NotIn", [True, True, True]),
        ("metadata.name", "Exists", [False, False, False]),
    ):
        term = {"matchFields": [{"key": key, "operator": operator, "values": ["b"]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod = info("web", affinity={"nodeAffinity": required})
        terms = "pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        found = says(f'predicate P {{ deny "no" when {terms}.exists(t, t.matches(node)) }}', state, pod)
        assert [answer is not None for answer in found] == holds


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('node.labels["disk"] == ""', [True, True, False]),
        ('node.labels["disk"] == node.labels["zone"]', [False, False, False]),
        ('node.labels["disk"] == node.labels["nothing"]', [True, True, False]),
        ('node.labels["zone"] in ["x", ""]', [True, False, True]),
        ('node.labels["zone"] in {"y": 1}', [False, True, False]),
        ('{"x": 5, "": 7}[node.labels["zone"]] > 4', [True, False, True]),
        ('node.name in ["a", "c"]', [True, False, True]),
        ("node.allocatable.pods in [3, 4]", [False, False, True]),
        ('"cpu" in node.allocatable && !("a.b/gpu" in node.allocatable)', [True, True, True]),
        ('node.labels["zone"] + "!" == "x!"', [True, False, False]),
        ("[4, 2, 3][node.allocatable.pods] == 3", [True, True, False]),
        ("[1, node.allocatable.pods].min(0) + [node.allocatable.pods, 1].max(0) > 3", [False, False, True]),
        ("[7].filter(x, x < node.allocatable.pods).min(9) == 9", [True, True, True]),
        ("[1, 2].exists_one(x, x < node.allocatable.pods)", [True, True, False]),
    ],
)
def test_conditions(state: ClusterState, condition: str, holds: list[bool]) -> None:
    found = says(f'predicate P {{ deny "no" when {condition} }}', state)
    assert [answer is not None for answer in found] == holds


def test_a_map_by_name_is_asked_for_the_nodes_that_it_names(state: ClusterState) -> None:
    found = says(
        """predicate P {
          view there = count n in cluster.nodes, key in n.labels.keys() by n.name, key
          deny "${size(there[node.name])}" when size(there[node.name]) != 1 && !("disk" in there[node.name])
          deny "two" when size(there[node.name]) == 2
        }""",
        state,
    )
    assert found == [denied("two"), None, None]


# ---- all feasible nodes together


def scores(text: str, state: ClusterState, names: list[str]) -> list[int]:
    """The normalised scores of these nodes, in columns; the scalar form says the same."""
    bound = priority(text, state)
    assert compiled(text).scalar_because == ""
    columns = NodeColumns(state)
    feasible = [state.nodes[name] for name in names]
    rows = columns.rows(np.array([columns.slot_of[name] for name in names], np.int64))
    raw = bound.scores(feasible)
    assert isinstance(raw, list)
    if bound.constant is None:
        assert bound.column is not None
        values = bound.column(rows).values
        assert ([values] * len(names) if isinstance(values, int) else values.tolist()) == raw
    if bound.normalize is None:
        return raw
    assert bound.normal is not None
    normal = bound.normal(rows, np.array(raw, np.int64))
    found = [normal] * len(names) if isinstance(normal, int) else normal.tolist()
    assert found == bound.normalize(feasible, raw)
    return found


FEASIBLE = [
    ("size(feasible) * 10", [20, 20]),
    ('feasible.filter(n, "zone" in n.labels).size()', [1, 1]),
    ("feasible.map(n, n.allocatable.pods).max(0) - node.allocatable.pods", [1, 0]),
    ("feasible.map(n, n.allocatable.pods).filter(x, x > 2).min(7)", [3, 3]),
    ("int(feasible.map(n, double(n.allocatable.pods) / 4.0).sum() * 8.0)", [10, 10]),
    ('feasible.exists(n, n.labels["disk"] == "ssd") && feasible.all(n, n.allocatable.pods > 1) ? 1 : 0', [1, 1]),
    ('feasible.filter(n, n.name != "a").all(n, "disk" in n.labels) ? 1 : 0', [1, 1]),
    ('feasible.filter(n, n.name == "b").map(n, n.podCount).max(5)', [5, 5]),
]


@pytest.mark.parametrize(("score", "found"), FEASIBLE)
def test_what_is_asked_of_all_feasible_nodes(state: ClusterState, score: str, found: list[int]) -> None:
    assert scores(f"priority P {{ score {score} }}", state, ["a", "c"]) == found
    assert scores(f"priority P {{ score 1 normalize {{ score {score} }} }}", state, ["a", "c"]) == found


VIEWS = [
    ('view v = count n in feasible by n.labels["disk"]', 'v[node.labels["disk"]] + 10 * size(v)', [22, 22, 21]),
    ("view v = sum n.score for n in feasible by n.allocatable.pods > 2", "v[node.allocatable.pods > 2]", [4, 4, 3]),
    (
        'view v = sum n.score for n in feasible where "zone" in n.labels by n.labels["zone"] + "!"',
        "v.values().max(0) * 10 + size(v)",
        [22, 22, 22],
    ),
    (
        'view v = count n in feasible, key in ["zone", "disk"] where key in n.labels by key, n.labels[key]',
        'size(v["zone"]) * 10 + v["disk"][node.labels["disk"]]',
        [21, 21, 21],
    ),
    ("view v = sum 0.5 for n in feasible, x in [1, 2] by x, n.spec.unschedulable", "int(v[1][false] * 2.0)", [3, 3, 3]),
    ("view v = count n in feasible where n.podCount == 0", "v", [3, 3, 3]),
    ('view v = first n in feasible where n.name != "a"', "v.allocatable.pods", [2, 2, 2]),
]


@pytest.mark.parametrize(("view", "score", "found"), VIEWS)
def test_views_of_feasible_nodes(state: ClusterState, view: str, score: str, found: list[int]) -> None:
    text = f"priority P {{ score node.allocatable.pods normalize {{ {view} score {score} }} }}"
    assert scores(text, state, ["a", "b", "c"]) == found


def test_a_score_on_which_feasible_nodes_have_no_bearing_is_known_before_them(state: ClusterState) -> None:
    text = """priority P {
      let soft = pod.spec.topologySpreadConstraints
      score soft.map(c, c.maxSkew * size(feasible)).sum() + 7
    }"""
    assert priority(text, state).constant == 7
    spread = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    bound = priority(text, state, pod=info("web", topologySpreadConstraints=[spread]))
    assert bound.constant is None
    assert bound.scores(state.node_list()) == [13, 13, 13]


def test_a_name_of_the_rule_is_none_of_the_code_s_own(state: ClusterState) -> None:
    """Whatever generated code calls its own variables, a policy's author may call theirs so."""
    pod = info("pod")
    for name in ("ruling", "rows", "raw", "of_all", "found", "total", "feasible_", "denial", "answer", "views_"):
        text = f"""predicate P {{
          let {name} = size(pod.name)
          deny "no ${{node.name}}" when node.allocatable.pods + {name} > 5
          deny "few" when {name} > node.allocatable.pods + 5
        }}"""
        assert says(text, state, pod) == [None, None, denied("no c")], name
