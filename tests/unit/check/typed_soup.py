"""Rules of random expressions that have types: nearly all of them pass the checker."""

# ruff: noqa: E501 - tables of expressions

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

Strategy = st.SearchStrategy[str]

LEAVES: dict[str, list[str]] = {
    "int": ["0", "1", "-3", "9223372036854775807", "node.podCount", "n", "size(pod.labels)", "total", 'counts["a"]', "limit"],
    "bool": ["true", "false", '"zone" in node.labels', "pod.terminating", "has(pod.spec.affinity)", "node.spec.unschedulable"],
    "string": ['"a"', "pod.name", "node.name", 'node.labels["zone"]', "leader.name", 'r"\\d"', '"${node.name}-${limit}"'],
    "double": ["0.5", "1.5", "-2.0", "double(node.podCount)"],
    "ints": ["none", "[1, 2]", "[node.podCount]", "counts.values()", "numbers"],
    "strings": ["['a', 'b']", "node.labels.keys()", "pod.spec.containers.map(c1, c1.image)", "[pod.name]"],
    "taints": ["node.spec.taints", "known"],
    "labels": ["node.labels", "pod.labels", "{'a': node.name}", "leader.labels"],
    "bytes": ["node.allocatable.memory", "2Gi", "pod.requests.memory", "used[node.name]", "0"],
}  # fmt: skip
FORMS: dict[str, list[str]] = {
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "div({int}, {int}, {int})", "-({int})", "({int} / 7)",
        "({int} % -5)", "({bool} ? {int} : {int})", "min({int}, {int})", "max({int}, {int}, {int})", "abs({int})",
        "size({ints})", "size({string})", "size({labels})", "{ints}.sum()", "{ints}.max({int})", "{ints}[{int}]",
        "{ints}.indexOf({int})", "int({double})", "round({double})", "twice({int})", "among({ints}, {int})",
        "div({bytes}, 1Gi, 0)", "(n != 0 ? {int} / n : 0)", "{string}.indexOf({string})", "{strings}.map(V, size(V)).sum()",
        "{ints}.map(I, V, I * V + {int}).sum()", "{taints}.filter(V, V.key == {string}).size()", "counts[{string}]",
    ],
    "bool": [
        "({int} > {int})", "({int} == {int})", "({string} == {string})", "({double} <= {double})", "!({bool})",
        "({bool} && {bool})", "({bool} || {bool} || {bool})", "({int} in {ints})", "({string} in {labels})",
        "{ints}.all(V, V > {int})", "{ints}.exists(V, V == {int})", "{ints}.exists_one(I, V, I == V)",
        "{strings}.exists(V, V == {string} || {bool})", "{taints}.exists(V, V.effect == {string})",
        "{string}.startsWith({string})", "{string}.matches('^a+$')", "{labels}.exists(I, V, I == V && {bool})",
        "pod.spec.tolerations.exists(V, {taints}.all(I, V.tolerates(I)))", "selector({labels}).matches({labels})",
        "({taints} == {taints})", "({ints} == {ints})", "({bytes} > {bytes})", "same({string}, {string})", "{ints}.isSorted()",
    ],
    "string": [
        "({string} + {string})", "({bool} ? {string} : {string})", "{strings}[{int}]", "{labels}[{string}]", "string({int})",
        "{string}.substring({int})", "{string}.substring({int}, {int})", "{string}.upperAscii().trim()", "string({double})",
        "{taints}[{int}].key", "sha1({string})", "string({bool})",
    ],
    "double": ["({double} + {double})", "({double} * {double})", "div({double}, {double}, {double})", "ln({double})", "double({int})"],
    "ints": [
        "[{int}, {int}]", "({ints} + {ints})", "{ints}.map(V, V + {int})", "{ints}.filter(V, V > {int})", "{ints}.distinct()",
        "{strings}.map(V, size(V))", "({bool} ? {ints} : {ints})", "{labels}.map(I, V, size(V))",
    ],
    "strings": ["{labels}.keys()", "{labels}.values()", "{string}.split('-')", "{taints}.map(V, V.key)", "{strings}.filter(V, {bool})"],
    "taints": ["{taints}.filter(V, V.key in {labels})", "({taints} + {taints})", "{taints}.distinct()"],
    "labels": ["{labels}.filter(I, V, I != V)"],
    "bytes": ["({bytes} + {bytes})", "({int} * {bytes})", "min({bytes}, {bytes})"],
}  # fmt: skip


@cache
def expression(kind: str, depth: int) -> Strategy:
    """An expression of a type. Variables are numbered by depth, so that none hides another."""
    leaves = st.sampled_from(LEAVES[kind])
    if depth == 0:
        return leaves
    return st.one_of(leaves, *[_filled(form, depth) for form in FORMS[kind]])


def _later(kind: str, depth: int) -> Strategy:
    return st.deferred(lambda: expression(kind, depth))


def _filled(form: str, depth: int) -> Strategy:
    """The form with an expression in each hole; the same hole twice may be two expressions."""
    pieces: list[Strategy] = []
    for i, piece in enumerate(form.replace("{", "}").split("}")):
        if i % 2:
            pieces.append(_later(piece, depth - 1))
        else:
            pieces.append(st.just(piece.replace("V", f"v{depth}").replace("I", f"i{depth}")))
    return st.tuples(*pieces).map("".join)


HEAD = """
const numbers = [3, 1, 2]
const limit = 5
const none: list<int> = []
const known: list<Taint> = [{key: "a", effect: "NoSchedule"}, {}]
fn twice(n1: int): int = n1 + n1
fn among(xs: list<int>, n1: int): int { let found = xs.filter(x1, x1 > n1) let most = found.max(0) return most + size(found) }
fn same(a1: string, b1: string): bool = a1 == b1 || a1.contains(b1)
"""
VIEWS = """
  let n = node.podCount + 1
  view total = count p in cluster.pods where p.namespace == pod.namespace
  view counts = count p in cluster.pods by p.namespace
  view used = sum p.requests.memory for p in cluster.pods by p.node.name
  view leader = first p in cluster.pods where p.labels["leader"] == "yes"
"""
PREDICATE = """predicate P {{{views}
  collect {{ for x, y in {labels} {{ deny "a ${{size(x)}}" when {bool} && x != y }} deny "b" when {bool} }}
  let late = {int}
  stop when {bool}
  fail "c ${{late}}" when late == {int}
  deny unresolvable "d", "e ${{late}}" when {bool}
  for i, z in {ints} {{ let w = z + {int} deny "f ${{w}}" when w > i && {bool} }}
}}"""
PRIORITY = """priority S {{{views}
  prescore {{ fail "a" when size(pod.name) > 100 }}
  for z in {strings} {{ fail "b" when z == {string} }}
  let own = {int}
  score own + {int}
  normalize {{
    view by_zone = sum n1.score for n1 in feasible by n1.labels["zone"]
    let most = feasible.map(n2, n2.score).max({int})
    score div(node.score * 100 + by_zone[{string}], most, {int})
  }}
}}"""


def _hole(kind: str) -> Strategy:
    if kind == "views":
        return st.just(VIEWS)
    return expression(kind, 3)


def _template(text: str) -> Strategy:
    pieces: list[Strategy] = []
    for i, piece in enumerate(text.replace("{{", "\0").replace("}}", "\1").replace("{", "}").split("}")):
        pieces.append(_hole(piece) if i % 2 else st.just(piece.replace("\0", "{").replace("\1", "}")))
    return st.tuples(*pieces).map("".join)


policies = st.tuples(st.just(HEAD), _template(PREDICATE), st.just("\n"), _template(PRIORITY)).map("".join)
"""A file with a predicate and a priority that use every statement."""
