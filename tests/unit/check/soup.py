"""Policies of random words that are nearly right: nothing in them may make the checker or the compiler fail."""

# ruff: noqa: E501 - tables of words

from __future__ import annotations

from hypothesis import strategies as st

NAMES = [
    "pod",
    "node",
    "cluster",
    "feasible",
    "a",
    "b",
    "x",
    "xs",
    "m",
    "v",
    "w",
    "f",
    "g",
    "limit",
    "size",
    "count",
    "score",
]
FIELDS = ["name", "labels", "spec", "podCount", "allocatable", "cpu", "tolerations", "taints", "key", "pods", "nodes"]
FIELDS += [
    "services",
    "score",
    "requests",
    "node",
    "error",
    "namespace",
    "affinity",
    "requiredAffinity",
    "images",
    "weight",
]
METHODS = [
    "size",
    "matches",
    "map",
    "filter",
    "all",
    "exists",
    "exists_one",
    "sum",
    "max",
    "keys",
    "values",
    "contains",
]
METHODS += ["split", "distinct", "indexOf", "tolerates", "parse", "isEmpty", "substring", "isSorted", "join"]
FUNCTIONS = [
    "div",
    "min",
    "max",
    "size",
    "has",
    "int",
    "double",
    "string",
    "abs",
    "f",
    "g",
    "h",
    "selector",
    "ln",
    "sha1",
]
FUNCTIONS += ["matchVolumes", "isBasicResource", "round"]
LITERALS = [
    "0",
    "1",
    "-1",
    "2Gi",
    "500m",
    "1.5",
    '"a"',
    '"${a}"',
    '"${node.name} b"',
    "true",
    "false",
    "[]",
    "{}",
    '{"a": 1}',
]
LITERALS += ["[1, 2]", '["a"]', "9223372036854775807", "-9223372036854775808", "{key: 'a'}", "[[1]]", r'r"\d"']
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"]
TYPES = ["int", "bool", "cpu", "bytes", "double", "string", "list<int>", "map<string, int>", "Pod", "Node", "Taint"]
TYPES += ["ResourceList", "list<ResourceSpec>", "LabelSelector", "list<list<string>>", "nothing"]

names = st.sampled_from(NAMES)
leaves = st.one_of(names, st.sampled_from(LITERALS))


def _within(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("{}.{}".format, inner, st.sampled_from(FIELDS)),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}.{}({})".format, inner, st.sampled_from(METHODS), arguments),
        st.builds("{}.{}({}, {})".format, inner, st.sampled_from(METHODS), names, inner),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), arguments),
        st.builds("({} {} {})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("!{}".format, inner),
        st.builds("-{}".format, inner),
        st.builds("[{}]".format, arguments),
        st.builds("{{{}: {}}}".format, inner, inner),
    )


expressions = st.recursive(leaves, _within, max_leaves=12)
types = st.sampled_from(TYPES)
views = st.builds(
    "view {} = {} in {}{}{}".format,
    names,
    st.one_of(
        st.builds("count {}".format, names),
        st.builds("first {}".format, names),
        st.builds("sum {} for {}".format, expressions, names),
    ),
    st.one_of(st.sampled_from(["cluster.pods", "cluster.nodes", "feasible"]), expressions),
    st.one_of(st.just(""), st.builds(" where {}".format, expressions)),
    st.one_of(
        st.just(""), st.builds(" by {}".format, expressions), st.builds(" by {}, {}".format, expressions, expressions)
    ),
)
functions = st.builds("fn {}({}: {}): {} = {}".format, st.sampled_from("fgh"), names, types, types, expressions)
consts = st.builds("const {} = {}".format, names, expressions)
simple = st.one_of(
    st.builds("let {} = {}".format, names, expressions),
    st.builds("let {}: {} = {}".format, names, types, expressions),
    st.builds("param {}: {} = {}".format, names, types, expressions),
    views,
    functions,
    consts,
    st.builds('deny "a" when {}'.format, expressions),
    st.builds('deny unresolvable "a ${{{}}}", "b" when {}'.format, names, expressions),
    st.builds('fail "a" when {}'.format, expressions),
    st.builds("stop when {}".format, expressions),
    st.builds("score {}".format, expressions),
    st.sampled_from(["normalize", "normalize reversed"]),
)


def _block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, max_size=4).map("\n".join)
    return st.one_of(
        st.builds("for {} in {} {{\n{}\n}}".format, names, expressions, body),
        st.builds("for {}, {} in {} {{\n{}\n}}".format, names, names, expressions, body),
        st.builds("{} {{\n{}\n}}".format, st.sampled_from(["collect", "prefilter", "prescore", "normalize"]), body),
    )


statements = st.recursive(simple, _block, max_leaves=6)
rules = st.builds(
    "{} {} {{\n{}\n{}\n}}".format,
    st.sampled_from(["predicate", "priority"]),
    st.sampled_from(["P", "Q", "R"]),
    st.lists(statements, max_size=6).map("\n".join),
    st.sampled_from(["", "score 1", "score node.podCount normalize", 'deny "z" when node.podCount > 1']),
)
uses = st.lists(st.sampled_from(["P", "Q", "R", "S", "T", "-P", "Q(a: 1)", "P(limit: [])", "R: 2"]), max_size=4).map(
    ", ".join
)
providers = st.builds(
    "provider {}{} {{ predicates {{ {} }} priorities {{ {} }} }}".format,
    st.sampled_from("STU"),
    st.sampled_from(["", " extends S", " extends T", " extends V"]),
    uses,
    uses,
)
profiles = st.builds('profile "{}" uses {} {{ {} = {} }}'.format, names, st.sampled_from("STP"), st.sampled_from(["P.a", "percentageOfNodesToScore", "x"]), expressions)  # fmt: skip
tests = st.builds(
    'test "{}" {{ node n {{{}: {}}} pod p on n {{{}: {}}} expect {} }}'.format,
    names,
    st.sampled_from(["allocatable", "labels", "spec", "a"]),
    expressions,
    st.sampled_from(["requests", "labels", "spec", "a"]),
    expressions,
    st.sampled_from(
        ["P admits p on n", 'P denies p on n with "a"', "Q scores p on n 5", "S places p on n", "P admits n on p"]
    ),
)
declarations = st.one_of(rules, rules, functions, consts, providers, profiles, tests)
policies = st.lists(declarations, min_size=1, max_size=6).map("\n".join)
"""A whole file: as text it parses, or nearly; what it says makes seldom sense."""
