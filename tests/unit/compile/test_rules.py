"""The code of rules: what it looks like, what it can reach, what it spares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.compile.compiling import compiled, predicate, priority
from tests.unit.core.scheduling import cluster, info, node

from ksp.compile.columns.runtime import COLUMN_RUNTIME
from ksp.compile.program import constant_value
from ksp.compile.runtime import RUNTIME, Denial, Failure
from ksp.compile.tables import Tables, encoded
from ksp.model.info import NodeInfo

HERE = Path(__file__).parent

# ---- what `ksp compile` shows

TAINTS = """
predicate Tolerates {
  let bad = node.spec.taints.filter(t, t.effect == "NoSchedule" && !pod.spec.tolerations.exists(o, o.tolerates(t)))
  deny unresolvable "taint ${bad[0].key}" when size(bad) > 0
}
"""
SPREAD = """
priority Spread {
  param weight: int = 2
  view siblings = count p in cluster.pods where p.namespace == pod.namespace by p.node.name
  score siblings[node.name] * weight
  normalize reversed
}
"""


def test_a_predicate_stays_readable() -> None:
    assert compiled(TAINTS).source == (HERE / "taints.txt").read_text("utf-8").strip()


def test_a_priority_stays_readable() -> None:
    assert compiled(SPREAD).source == (HERE / "spread.txt").read_text("utf-8").strip()


# ---- what it can reach


def test_generated_code_reaches_the_runtime_and_its_constants_only() -> None:
    made = compiled(TAINTS)
    names = {n.id for n in ast.walk(made.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {n.id for n in ast.walk(made.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in ast.walk(made.tree) if isinstance(n, ast.arg)}
    bound |= {n.name for n in ast.walk(made.tree) if isinstance(n, ast.FunctionDef)}
    assert names <= bound | RUNTIME.keys() | COLUMN_RUNTIME.keys() | made.constants.keys()


def test_generated_code_has_no_builtins() -> None:
    run: Any = compiled(TAINTS).instantiate().run
    assert run.__globals__["__builtins__"] == {}
    assert {
        name for name, value in run.__globals__.items() if value in (eval, exec, open, getattr, __import__)
    } == set()


@pytest.mark.parametrize(
    "name", ["len", "sorted", "pod_", "None_", "class", "_wrap", "__builtins__", "_2x", "v", "v_2"]
)
def test_a_policy_can_name_things_as_the_code_does(name: str) -> None:
    state = cluster(node("n", labels={"a": "b"}))
    text = f"""predicate P {{
      let {name} = size(node.labels)
      let other = node.labels.map(k, "${{k}}${{size(pod.name) + 1}}")
      deny "${{{name}}} ${{other[0]}}" when {name} > 0
    }}"""
    check = predicate(text, state).check
    assert check is not None
    assert check(state.nodes["n"]) == Denial(False, ("1 a9",))


# ---- what it spares


NO_JUDGE = {
    "never": 'deny "x" when false && node.podCount > 0',
    "not this pod": 'deny "x" when pod.spec.hostNetwork && node.podCount > 0',
    "nothing to loop over": 'for t in pod.requiredAffinity { deny "x" when !(t.topologyKey in node.labels) }',
    "no row counts": """
        view w = count p in cluster.pods, t in pod.requiredAntiAffinity where t.matches(p) by p.node.name
        deny "x" when w[node.name] > 0""",
    "stopped": 'stop when !pod.spec.hostNetwork deny "x" when node.podCount > 0',
}


@pytest.mark.parametrize("body", NO_JUDGE.values(), ids=NO_JUDGE)
def test_a_rule_that_cannot_deny_judges_no_node(body: str) -> None:
    found = predicate(f"predicate P {{ {body} }}", cluster(node("n")))
    assert (found.outcome, found.check) == (None, None)


JUDGES = {
    "this pod": 'deny "x" when pod.spec.hostNetwork && node.podCount == 0',
    "a fail": 'fail "x" when pod.spec.hostNetwork && node.podCount == 0',
    "a stop that a node may pass": 'stop when node.podCount > 0 deny "x" when pod.spec.hostNetwork',
    "the other branch": 'deny "x" when !pod.spec.hostNetwork ? false : node.podCount == 0',
}


@pytest.mark.parametrize("body", JUDGES.values(), ids=JUDGES)
def test_a_rule_that_may_deny_judges_each_node(body: str) -> None:
    state = cluster(node("n"))
    check = predicate(f"predicate P {{ {body} }}", state, pod=info("p", hostNetwork=True)).check
    assert check is not None
    assert check(state.nodes["n"]) in (Denial(False, ("x",)), Failure("x"))


def test_what_prefilter_decides_ends_the_rule() -> None:
    text = 'predicate P {{ prefilter {{ {} }} deny "later" when node.podCount == 0 }}'
    state = cluster(node("n"))
    assert predicate(text.format('deny unresolvable "no" when pod.name == "p"'), state, pod=info("p")) == (
        predicate(text.format('deny unresolvable "no" when true'), state)
    )
    assert predicate(text.format('fail "no ${pod.name}" when true'), state, pod=info("p")).outcome == Failure("no p")


class Counted(list[NodeInfo]):
    """Nodes that count how often someone runs over them."""

    runs = 0

    def __iter__(self) -> Iterator[NodeInfo]:
        self.runs += 1
        return super().__iter__()


@pytest.mark.parametrize(
    ("score", "expected", "runs"),
    [
        ("size(pod.name)", 4, 0),
        ("pod.spec.hostNetwork ? node.podCount : 7", 7, 0),
        ("pod.spec.tolerations.map(t, node.podCount).sum() + 1", 1, 0),
        ("node.podCount", 0, 1),
    ],
)
def test_a_score_that_is_the_same_for_all_is_computed_once(score: str, expected: int, runs: int) -> None:
    state = cluster(node("a"), node("b"), node("c"))
    nodes = Counted(state.node_list())
    assert priority(f"priority P {{ score {score} }}", state, pod=info("name")).scores(nodes) == [expected] * 3
    assert nodes.runs == runs


@pytest.mark.parametrize(
    ("normalized", "raw", "expected"),
    [
        ("node.score * 2", [5, 5], [10, 10]),
        ("node.score > 3 ? size(node.name) : 1", [5, 5], [1, 2]),
        ("node.score > 3 ? size(node.name) : 1", [3, 3], [1, 1]),
        ("node.score < 3 ? 1 : size(node.name)", [5, 5], [1, 2]),
        ("node.score + size(node.name)", [5, 5], [6, 7]),
        ("feasible[node.name == 'a' ? 0 : 9].score", [5, 5], [5, 0]),
        ("feasible.map(n, n.score).sum() - node.score", [5, 5], [5, 5]),
        ("feasible.map(n, n.score).sum() - node.score", [5, 6], [6, 5]),
    ],
)
def test_nodes_with_equal_scores_are_told_apart_where_it_matters(
    normalized: str, raw: list[int], expected: list[int]
) -> None:
    state = cluster(node("a"), node("bb"))
    made = priority(f"priority P {{ score 1 normalize {{ score {normalized} }} }}", state)
    assert made.normalize is not None
    assert made.normalize(state.node_list(), raw) == expected


# ---- stages


def test_what_does_not_read_the_node_is_computed_before_any_is_looked_at() -> None:
    made = compiled('predicate P { deny "x" when pod.labels.filter(k, k > "a").exists(k, !(k in node.labels)) }')
    check = next(n for n in ast.walk(made.tree) if isinstance(n, ast.FunctionDef) and n.name == "check")
    read = {n.attr for n in ast.walk(check) if isinstance(n, ast.Attribute)}
    assert read == {"labels"}
    assert "pod" not in {n.id for n in ast.walk(check) if isinstance(n, ast.Name)}


@pytest.mark.parametrize(
    ("expression", "value"),
    [("[1, 2] + [3]", (1, 2, 3)), ('{"a": 1 + 1}', {"a": 2}), ("1.5 * 2.0", 3.0), ("size('abc')", 3)],
)
def test_constants_have_values(expression: str, value: object) -> None:
    kind = {tuple: "list<int>", dict: "map<string, int>", float: "double", int: "int"}[type(value)]
    default = compiled(
        f'predicate P {{ param x: {kind} = {expression} deny "x" when size("${{node.name}}") > 100 && x == x }}'
    ).rule.parameters[0].default  # fmt: skip
    assert default is not None
    assert constant_value(default) == value


def test_the_key_of_an_outcome_is_no_other_key() -> None:
    """Encoded, a Failure reads as the map of its fields: no pod's labels may be taken for it."""
    made = compiled(
        """predicate P {
          prefilter { fail "boom" when pod.name == "bad" }
          view v = count p in cluster.pods where p.labels == pod.labels
          deny "no" when v > node.podCount
        }"""
    ).instantiate()
    tables = Tables(cluster(node("a")))
    bad, other = info("bad"), info("good", labels={"message": "boom"})
    keys = {encoded(made.prepare(pod, tables).key) for pod in (bad, other)}
    assert len(keys) == 2
    # Of a map that a rule reads itself, too.
    made = compiled(
        """predicate P {
          prefilter { fail "boom" when pod.name == "bad" }
          deny "no" when node.labels.exists(key, pod.labels[key] != "")
        }"""
    ).instantiate()
    assert len({encoded(made.prepare(pod, tables).key) for pod in (bad, other)}) == 2
