"""Single expressions and the values that the language promises, from the oracle and from compiled rules alike."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.oracle.agreement import Agreement
from tests.oracle.clusters import seen
from tests.oracle.interpret import World, evaluate
from tests.oracle.rules import judge

from ksp.check.functions import ROWS
from ksp.check.program import Checker
from ksp.check.typed import Let, Rule
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.source.origin import Texts

MIN, MAX = -(2**63), 2**63 - 1
ZONE = "topology.kubernetes.io/zone"

POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u", "labels": {"b": "2", "a": "1", "c": "3"}},
    "spec": {
        "containers": [
            {"name": "first", "image": "web:1", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}},
            {"name": "second", "image": "é✓𝄞"},
        ],
        "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "disk", "value": "slow", "effect": "NoSchedule"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"a": "1"}}}
                ]
            },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
                }
            },
        },
        "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": ZONE}],
        "priority": 0,
    },
}
NODE = {
    "metadata": {"name": "n1", "labels": {ZONE: "", "disk": "ssd"}},
    "spec": {
        "taints": [{"key": "gpu", "effect": "NoExecute"}, {"key": "disk", "value": "fast", "effect": "NoSchedule"}]
    },
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "images": [{"names": ["web:1"], "sizeBytes": 5}],
    },
}

# Names that hide a value from the checker, which computes int constants itself.
PRELUDE = """
  param most: int = 9223372036854775807
  param least: int = -9223372036854775808
  param one: int = 1
  param none: list<int> = []
  param noDoubles: list<double> = []
  param words: list<string> = ["b", "a", "b"]
  param numbers: map<string, int> = {"z": 1, "a": 2, "m": 3}
  param ages: map<int, string> = {10: "ten", 9: "nine", -1: "minus"}
  param huge: double = 1e308
  param zero: double = 0.0
"""

NUMBERS: list[tuple[str, Any]] = [
    # ints wrap
    ("most + one", MIN),
    ("least - one", MAX),
    ("most * 2", -2),
    ("most * most", 1),
    ("least * -1", MIN),
    ("-least", MIN),
    ("(least + 0) / -1", MIN),
    ("least % -1", 0),
    ("abs(least)", MIN),
    ("abs(-5)", 5),
    ("abs(-2.5)", 2.5),
    ("sqrt(2.25)", 1.5),
    ("sqrt(-1.0)", 0.0),
    ("most + one - one", MAX),
    ("[most, one].sum()", MIN),
    ("[most, most, most].sum()", MAX - 2),
    ("size(words) - 4", -1),
    # towards zero
    ("(one - 8) / 2", -3),
    ("(one - 8) % 2", -1),
    ("(one + 6) / -2", -3),
    ("(one + 6) % -2", 1),
    ("(one - 8) / -2", 3),
    ("one != 0 ? 7 / one : 0", 7),
    ("one > 1 ? 7 % one : -1", -1),
    ("div(-7, 2, 0)", -3),
    ("div(7, -2, 0)", -3),
    ("div(7, one - 1, 42)", 42),
    ("div(least, -1, 0)", MIN),
    ("div(1.0, 4.0, 9.0)", 0.25),
    ("div(1.0, zero, 9.0)", 9.0),
    ("div(double(one), -zero, 9.0)", 9.0),
    ("0 / 3", 0),
    # min, max and sum, of nothing too
    ("min(3, one)", 1),
    ("max(3, one, 7, -2)", 7),
    ("min(2.5, -1.5)", -1.5),
    ("none.sum()", 0),
    ("noDoubles.sum()", 0.0),
    ("none.min(4)", 4),
    ("none.max(-4)", -4),
    ("[3, 1, 2].min(0)", 1),
    ("[-3, -1, -2].max(0)", -1),
    ("[0.1, 0.2, 0.3].sum()", 0.1 + 0.2 + 0.3),
    ("[1e16, 1.0, -1e16].sum()", 0.0),
    ('["b", "a"].min("z")', "a"),
    ('words.filter(w, w == "x").max("none")', "none"),
    # doubles
    ("0.1 + 0.2", 0.30000000000000004),
    ("huge * 10.0", math.inf),
    ("huge * -10.0", -math.inf),
    ("huge * 10.0 - huge * 10.0", math.nan),
    ("-zero", -0.0),
    ("ln(1.0)", 0.0),
    ("ln(0.0)", 0.0),
    ("ln(-1.0)", 0.0),
    ("ln(2.718281828459045)", 1.0),
    ("round(0.5)", 1),
    ("round(-0.5)", -1),
    ("round(1.5)", 2),
    ("round(2.5)", 3),
    ("round(0.49999999999999994)", 0),
    ("round(-2.4)", -2),
    ("round(huge)", MAX),
    ("round(huge * 10.0)", 0),
    ("int(2.9)", 2),
    ("int(-2.9)", -2),
    ("int(huge)", MAX),
    ("int(-huge)", MIN),
    ("int(huge * 10.0)", 0),
    ("int(huge * 10.0 - huge * 10.0)", 0),
    ('int("-42")', -42),
    ('int("+7")', 7),
    ('int("9223372036854775808")', 0),
    ('int("4x")', 0),
    ('int(" 4")', 0),
    ('int("٣")', 0),
    ('int("")', 0),
    ("int(one)", 1),
    ("double(one)", 1.0),
    ("double(most)", 9223372036854775807.0),
    ('double("1e3")', 1000.0),
    ('double("nan")', 0.0),
    ('double("1_0")', 0.0),
    ("string(one == 1)", "true"),
    ("string(least)", str(MIN)),
    ("string(0.5)", "0.5"),
    ("string(3.0)", "3"),
    ("string(1e21)", "1e+21"),
    ("string(huge * 10.0)", "+Inf"),
    ("string(-zero)", "-0"),
    ("string(1e-7)", "1e-07"),
]

TEXTS: list[tuple[str, Any]] = [
    ('"abcdef".substring(2)', "cdef"),
    ('"abcdef".substring(2, 4)', "cd"),
    ('"abcdef".substring(-3, 2)', "ab"),
    ('"abcdef".substring(4, 99)', "ef"),
    ('"abcdef".substring(9)', ""),
    ('"abcdef".substring(4, 2)', ""),
    ('"abcdef".substring(least, most)', "abcdef"),
    ('"é✓𝄞".substring(1, 3)', "✓𝄞"),
    ('size("é✓𝄞")', 3),
    ('"é✓𝄞".size()', 3),
    ('"é✓𝄞".indexOf("𝄞")', 2),
    ('"abcabc".indexOf("c")', 2),
    ('"abcabc".indexOf("c", 3)', 5),
    ('"abcabc".indexOf("c", -5)', 2),
    ('"abcabc".indexOf("x")', -1),
    ('"abc".indexOf("")', 0),
    ('"abcabc".lastIndexOf("b")', 4),
    ('"abcabc".lastIndexOf("b", 3)', 1),
    ('"abcabc".lastIndexOf("b", -1)', -1),
    ('"abc".lastIndexOf("")', 3),
    ('"a,b,,c".split(",")', ("a", "b", "", "c")),
    ('"é✓".split("")', ("é", "✓")),
    ('"".split("")', ()),
    ('"".split(",")', ("",)),
    ('"abc".split("abcd")', ("abc",)),
    (r'" \t a b\n".trim()', "a b"),
    ('"ÀbZ".lowerAscii()', "Àbz"),
    ('"àbz".upperAscii()', "àBZ"),
    ('"ab" + "cd"', "abcd"),
    ('"abc".startsWith("ab")', True),
    ('"abc".startsWith("")', True),
    ('"abc".endsWith("bc")', True),
    ('"abc".contains("d")', False),
    ('"abc".contains("")', True),
    (r'"n17".matches("^n[0-9]+$")', True),
    (r'"xn17".matches(r"^n\d+")', False),
    ('"abc".matches("")', True),
    ('"ABC".matches("(?i)b")', True),
    ('sha1("abc")', "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ('"${one}${one == 1}${0.5}${"é"}"'.replace('"é"', "'é'"), "1true0.5é"),
    ('"a" < "b"', True),
    ('"a" < "B"', False),
    ('"\U0001d11e" > "\uffff"', True),
    ('"Z" < "a" && "" < "Z"', True),
    ('isBasicResource("ephemeral-storage")', True),
    ('isBasicResource("pods")', False),
    ('isExtendedResource("example.com/gpu")', True),
    ('isExtendedResource("cpu")', False),
    ('isExtendedResource("kubernetes.io/x")', False),
]

COLLECTIONS: list[tuple[str, Any]] = [
    # what is missing is zero
    ("words[0]", "b"),
    ("words[-1]", ""),
    ("words[3]", ""),
    ("words[most]", ""),
    ("none[0]", 0),
    ("noDoubles[0]", 0.0),
    ('numbers["nothing"]', 0),
    ("ages[9]", "nine"),
    ("ages[8]", ""),
    ('numbers["a"]', 2),
    # order and contents
    ("numbers.keys()", ("a", "m", "z")),
    ("numbers.values()", (2, 3, 1)),
    ("ages.keys()", (-1, 9, 10)),
    ("ages.values()", ("minus", "nine", "ten")),
    ("numbers.map(k, k)", ("a", "m", "z")),
    ("numbers.map(k, v, v * 10)", (20, 30, 10)),
    ('numbers.filter(k, k > "b")', ("m", "z")),
    ("numbers.filter(k, v, v > 1)", {"a": 2, "m": 3}),
    ("numbers.filter(k, v, v > 1).keys()", ("a", "m")),
    ("ages.map(k, k)", (-1, 9, 10)),
    ('{"b": 1, "a": 2, words[0]: 3}', {"b": 3, "a": 2}),
    ('{"b": 1, "a": 2, words[0]: 3}.keys()', ("a", "b")),
    ("{true: 1, false: 2}.values()", (2, 1)),
    ("words.distinct()", ("b", "a")),
    ("words.map(i, w, w + string(i))", ("b0", "a1", "b2")),
    ("words.filter(i, w, i > 0)", ("a", "b")),
    ('words.filter(w, w == "b")', ("b", "b")),
    ('words.indexOf("b")', 0),
    ('words.lastIndexOf("b")', 2),
    ('words.indexOf("x")', -1),
    ("words + words.distinct()", ("b", "a", "b", "b", "a")),
    ("words.isSorted()", False),
    ("[1, 1, 2].isSorted()", True),
    ("none.isSorted()", True),
    ("size(words)", 3),
    ("numbers.size()", 3),
    ("size(numbers)", 3),
    ('"a" in words', True),
    ('"a" in numbers', True),
    ("2 in numbers.values()", True),
    ('!("q" in numbers)', True),
    # macros
    ('words.exists(w, w == "a")', True),
    ("none.exists(x, true)", False),
    ("none.all(x, false)", True),
    ('words.exists_one(w, w == "a")', True),
    ('words.exists_one(w, w == "b")', False),
    ('words.exists_one(w, w == "x")', False),
    ('words.exists(i, w, i == 2 && w == "b")', True),
    ('words.all(i, w, i < 2 || w == "b")', True),
    ('numbers.exists(k, v, k == "z" && v == 1)', True),
    ("numbers.all(k, k in numbers)", True),
    ("numbers.exists_one(k, v, v > 2)", True),
    ("words.map(w, words.filter(v, v == w).size())", (2, 1, 2)),
    ("words.filter(w, w in words).map(w, size(w)).sum()", 3),
    # equality
    ("[1, 2] == [1, 2]", True),
    ("[1, 2] == [2, 1]", False),
    ('{"a": 1, "b": 2} == {"b": 2, "a": 1}', True),
    ("none == numbers.filter(k, false).map(k, 1)", True),
    ("one == 1 || 1 / 1 == 2", True),
    ('one == 2 ? words : ["c"]', ("c",)),
]

OBJECTS: list[tuple[str, Any]] = [
    ("has(pod.spec.affinity)", True),
    ("has(pod.spec.affinity.podAffinity)", False),
    ("has(pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution)", False),
    ("has(pod.spec.priority)", True),
    ("has(pod.spec.terminationGracePeriodSeconds)", False),
    ("has(pod.name) && !has(pod.annotations) && has(pod.labels)", True),
    ("has(pod.spec.topologySpreadConstraints[0].maxSkew)", False),
    ("has(pod.spec.topologySpreadConstraints[0].labelSelector)", False),
    ("has(pod.spec.topologySpreadConstraints[5].labelSelector)", False),
    ("has(pod.requests.cpu)", True),
    ('has(node.allocatable.pods) && !("a.b/gpu" in node.allocatable)', True),
    ("pod.spec.priority", 0),
    ("pod.spec.terminationGracePeriodSeconds", 0),
    ("pod.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[3].weight", 0),
    ("pod.spec.tolerations[7].key", ""),
    ("pod.spec.containers[9].resources.requests", {}),
    ("pod.spec.containers[0].resources.requests.keys()", ("cpu", "memory")),
    ("pod.spec.containers[0].resources.requests.values()", (1500, 2**30)),
    ("pod.requests.cpu == 1500m && pod.requests.memory == 1Gi", True),
    ("pod.nonzeroRequests.cpu == 1600m", True),
    ("node.allocatable.cpu == 4cpu && node.allocatable.pods == 110", True),
    ('node.images["web:1"] == 0 * 1Gi + node.images["web:1"]', True),
    ("pod.labels.keys()", ("a", "b", "c")),
    ("pod.labels.map(k, v, k + v)", ("a1", "b2", "c3")),
    (f'"{ZONE}" in node.labels && node.labels["{ZONE}"] == ""', True),
    ("node.name", "n1"),
    ("pod.node.name", ""),
    ("has(pod.node)", False),
    ("pod.terminating", False),
    ("cluster.services[pod.namespace].keys()", ()),
    ('cluster.services["x"]["y"].spec.selector["z"]', ""),
    ('"fast" in cluster.storageClasses', False),
    ('cluster.namespaces["x"].labels["team"]', ""),
    ('cluster.priorityClasses["high"].value', 0),
    ('cluster.podDisruptionBudgets["x"]["y"].status.disruptionsAllowed', 0),
    ("pod.claimNames", ()),
    ("pod.spec.tolerations[0].tolerates(node.spec.taints[0])", True),
    ("pod.spec.tolerations[1].tolerates(node.spec.taints[1])", False),
    ('pod.spec.tolerations[1].tolerates({key: "disk", value: "slow", effect: "NoSchedule"})', True),
    ('selector({"a": "1"}).matches(pod.labels)', True),
    ('selector({"a": "2"}).matches(pod.labels)', False),
    ("selector(node.annotations).matches(pod.labels)", True),
    ("selector(node.annotations).isEmpty()", True),
    ("pod.spec.topologySpreadConstraints[0].labelSelector.matches(pod.labels)", False),
    ("pod.spec.topologySpreadConstraints[0].labelSelector.isEmpty()", False),
    ("pod.requiredAntiAffinity[0].matches(pod)", True),
    ("pod.requiredAntiAffinity[1].matches(pod)", False),
    ("pod.requiredAntiAffinity[0].selector.error", ""),
    ("TERMS[0].matches(node)", True),
    ("TERMS[0].matches(node.labels)", True),
    ("TERMS[1].matches(node)", False),
    ("TERMS[0].matchExpressions[0].matches(node.labels)", True),
    ("TERMS[0].matchExpressions[1].matches(node.labels)", False),
    ('TERMS[0].matchExpressions[1].error != ""', True),
    ("size(matchVolumes(cluster.persistentVolumeClaims[pod.namespace].values(), node))", 0),
    ("node.spec.taints.distinct() == node.spec.taints", True),
    ("size((node.spec.taints + node.spec.taints).distinct())", 2),
    ("node.spec.taints[0] in node.spec.taints", True),
    ("node.spec.taints.lastIndexOf(node.spec.taints[1])", 1),
    ('Taint.parse("{\\"key\\": \\"k\\"}").key', "k"),
    ('Taint.parse("nonsense").key', ""),
    ('AvoidPods.parse("{\\"preferAvoidPods\\": [{}]}").preferAvoidPods[0].podSignature.podController.kind', ""),
]
TERMS = "pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
TABLES = [(text.replace("TERMS", TERMS), value) for text, value in (*NUMBERS, *TEXTS, *COLLECTIONS, *OBJECTS)]


def test_every_function_is_in_the_tables() -> None:
    missing = [row.name for row in ROWS if not any(f"{row.name}(" in text for text, _ in TABLES)]
    assert missing == []


@pytest.mark.parametrize(("text", "value"), TABLES, ids=[text for text, _ in TABLES])
def test_expressions_have_these_values(text: str, value: Any) -> None:
    state, pod = _state()
    rule = _rule(text, value)
    node, cluster = state.node_list()[0], seen(state)

    let = next(s for s in rule.body if isinstance(s, Let))
    assert let.binding.value is not None
    names = {p.binding: evaluate(p.default, {}, World()) for p in rule.parameters if p.default is not None}
    found = evaluate(let.binding.value, names, World(pod, node, cluster))
    assert repr(found) == repr(value) or (found == value and isinstance(value, dict))
    assert judge(rule, pod, node, cluster, {}) == ("deny", False, ("as expected",))
    Agreement(rule, {}, state).check(pod)


def _rule(text: str, value: Any) -> Rule:
    same = "it != it" if isinstance(value, float) and math.isnan(value) else f"it == {_written(value)}"
    if value in ((), {}):
        same = "size(it) == 0"
    elif isinstance(value, float) and math.isinf(value):
        same = f"it {'> 1.0e308' if value > 0 else '< -1.0e308'}"
    policy = f'predicate P {{{PRELUDE}  let it = {text}\n  deny "as expected" when {same}\n}}\n'
    checker = Checker(Texts({"p.ksp": policy}))
    module = checker.check("p.ksp")
    assert module is not None
    assert not [d.message for d in checker.report.found if d.severity.value == "error"]
    return module.own_rules()[0]


def _written(value: Any) -> str:
    """The value as a policy writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case tuple():
            return f"[{', '.join(map(_written, value))}]"
        case dict():
            return "{" + ", ".join(f"{_written(k)}: {_written(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _state() -> tuple[ClusterState, PodInfo]:
    state = ClusterState()
    state.set_node(convert(Node, NODE))
    return state, PodInfo.of(convert(Pod, POD))
