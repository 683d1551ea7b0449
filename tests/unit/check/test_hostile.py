"""Policies of any content: diagnostics in bounded time and memory, no exception; and what passes can be compiled."""

# ruff: noqa: E501 - tables of policies

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.check import soup, typed_soup

from ksp.check import limits
from ksp.check.parts import expressions
from ksp.check.program import Checker
from ksp.check.report import LONGEST_LINE, MOST
from ksp.compile.footprint import footprint_of
from ksp.compile.program import compile_rule
from ksp.source.diagnostic import Severity
from ksp.source.origin import Texts
from ksp.source.render import render_github, render_json, render_text

pytestmark = pytest.mark.usefixtures("own_heap")

T = TypeVar("T")
MAIN = "main.ksp"
N = "node.podCount"


def checked(text: str, **others: str) -> Checker:
    checker = Checker(Texts({MAIN: text, **{f"{name}.ksp": other for name, other in others.items()}}))
    checker.check(MAIN)
    return checker


def codes(text: str) -> set[str]:
    return {d.code for d in checked(text).report.found if d.severity is Severity.ERROR}


def predicate(*lines: str) -> str:
    return "\n".join(["predicate P {", *lines, "}"])


def lets(first: str, following: str, count: int) -> list[str]:
    """`let a1 = …` from `let a0 = …`, with `@` for the one before."""
    return [f"let a0 = {first}", *(f"let a{i} = {following.replace('@', f'a{i - 1}')}" for i in range(1, count))]


def functions(following: str, count: int) -> list[str]:
    made = [f"fn f{i}(a: int): int = {following.replace('@', f'f{i - 1}')}" for i in range(1, count)]
    return ["fn f0(a: int): int = a + 1", *made]


def listed(text: str, count: int) -> str:
    return ", ".join(text.replace("@", str(i)) for i in range(count))


# ---- what is refused, or passes, soon

HUNDRED = "[" + listed("@", 100) + "]"
HOSTILE: dict[str, str] = {
    "functions that call twice": "\n".join(functions("@(a) + @(a + 1)", 999)),
    "functions in a row": "\n".join(functions("@(a)", 999)),
    "functions in a row, last first": "\n".join(reversed(functions("@(a)", 999))),
    "constants in a row, last first": "\n".join([*(f"const c{i} = c{i - 1} + 1" for i in range(999, 0, -1)), "const c0 = 1"]),
    "constants that double": "\n".join(["const c0 = [1]", *(f"const c{i} = c{i - 1} + c{i - 1}" for i in range(1, 999))]),
    "constants that overflow": "\n".join(["const c0 = 2", *(f"const c{i} = c{i - 1} * c{i - 1}" for i in range(1, 999))]),
    "functions in a circle": "\n".join(f"fn f{i}(a: int): int = f{(i + 1) % 990}(a)" for i in range(990)),
    "functions that all call all": "\n".join(
        f"fn f{i}(a: int): int = {' + '.join(f'f{j}(a)' for j in range(0, i, max(1, i // 30)))} + 1" for i in range(250)
    ),
    "large functions": "\n".join(
        [f"fn f0(a: int): int = {' + '.join(['(a + 1)'] * 80)}", *(f"fn f{i}(a: int): int = f0(a)" for i in range(1, 990))]
    ),
    "lets that double a list": predicate(*lets("[1]", "@ + @", 2000)),
    "lets that double an int": predicate(*lets(N, "@ + @", 2000)),
    "lets that double a text": predicate(*lets('"0123456789"', '"${@}${@}"', 2000)),
    "lets in a row": predicate(*lets(N, "@ + 1", 4000)),
    "lets of a function": "\n".join(["fn f(a: int): int {", *lets("a", "@ + 1", 4000), "return a1 }"]),
    "parameters of a function": f"fn f({listed('a@: int', 5000)}): int = a0",
    "arguments": f"fn f(a: int): int = a\nconst c = f({listed('1', 10000)})",
    "names that nobody knows": predicate(*(f'deny "x" when nme{i}.foo > podd{i}' for i in range(4000))),
    "long names": predicate(*(f"let {'a' * 3000}{i} = {'b' * 3000}{i}" for i in range(40))),
    "fields that nobody knows": predicate(*(f"let a{i} = pod.{'x' * 50}" for i in range(1000))),
    "one name": "\n".join(['predicate P { deny "x" when node.podCount > 1 }'] * 990),
    "providers in a row": "\n".join([*(f"provider A{i} extends A{i - 1} {{ }}" for i in range(990, 0, -1)), "provider A0 { }"]),
    "providers in a circle": "\n".join(f"provider A{i} extends A{(i + 1) % 990} {{ }}" for i in range(990)),
    "providers named often": "\n".join(
        [
            *(f'predicate P{i} {{ deny "x" when node.podCount > {i} }}' for i in range(400)),
            f"provider A {{ predicates {{ {listed('P@', 400)} }} }}",
            f"provider B {{ predicates {{ {', '.join(['A'] * 20000)} }} }}",
        ]
    ),
    "providers of all rules": "\n".join(
        [
            *(f'predicate P{i} {{ deny "x" when node.podCount > {i} }}' for i in range(300)),
            f"provider A0 {{ predicates {{ {listed('P@', 300)} }} }}",
            *(f"provider A{i} extends A{i - 1} {{ predicates {{ -P{i % 300} }} }}" for i in range(1, 600)),
        ]
    ),
    "loops in loops": predicate(f"let a = {HUNDRED}", f'deny "x" when {"".join(f"a.exists(x{i}, " for i in range(8))}{N} > 1{")" * 8}'),
    "maps in maps": predicate(f"let a = {HUNDRED}", f"let b = {''.join(f'a.map(x{i}, ' for i in range(5))}{N} > 1{')' * 5}"),
    "fors in fors": predicate(f"let a = {HUNDRED}", *(f"for x{i} in a {{" for i in range(7)), 'deny "x" when x0 > 1', "}" * 7),
    "loops over the cluster": predicate(
        f'deny "x" when {"".join(f"pod.spec.tolerations.exists(x{i}, " for i in range(8))}{N} > 1{")" * 8}'
    ),
    "a wide list": predicate(f"let a = [{listed('1', 20000)}]"),
    "a wide map": predicate(f'let a = {{{listed(chr(34) + "a@" + chr(34) + ": 1", 8000)}}}'),
    "structs": predicate(f'let a: list<ResourceSpec> = [{listed("{name: chr, weight: @}", 2000)}]'),
    "conditions in conditions": predicate(f'deny "x" when {"(" * 60}{N} > 1{f" ? {N} > 2 : {N} > 3)" * 60}'),
    "views": predicate(*(f"view v{i} = count p in cluster.pods, t in pod.spec.tolerations by p.name, t.key" for i in range(1500))),
    "patterns": predicate(*(f'let a{i} = "a".matches("((a{{1,900}}){{1,900}}){{1,900}}{i}")' for i in range(200))),
    "64 bits": predicate(*(f"let a{i} = 9223372036854775807 * {i + 2}" for i in range(1000))),
    "reasons": predicate("collect {", *(f'deny {listed(chr(34) + "${node.name}" + chr(34), 20)} when {N} > 1' for _ in range(400)), "}"),
    "tests": "\n".join(
        [predicate(f'deny "x" when {N} > 1'), *(f'test "t{i}" {{ node n {{ }} pod p {{ }} {"expect P denies p on n with chr " * 5}}}' for i in range(900))]
    ).replace("chr", '"y"'),
    "objects": predicate(f'deny "x" when {N} > 1') + f'\ntest "t" {{ {" ".join(f"node n{i} {{ labels: {{a: 5}} }}" for i in range(2000))} }}',
    "settings": "\n".join([predicate(f'deny "x" when {N} > 1'), "provider Q { predicates { P } }", f'profile "a" uses Q {{ {"P.a = 1 " * 4000} }}']),
    "the same facts": predicate(*(f'deny "x" when {" + ".join([N] * 60)} != 0 && 1 / ({" + ".join([N] * 60)}) > 0' for _ in range(90))),
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_policies_end_soon(text: str) -> None:
    started = time.process_time()
    checker = checked(text)
    assert time.process_time() - started < 4
    found = checker.report.found
    by_severity = Counter(d.severity is Severity.ERROR for d in found)
    assert max(by_severity.values(), default=0) <= MOST
    assert all(len(part) <= LONGEST_LINE for d in found for part in (d.message, d.label, d.help))
    render_text(found, color=False)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("functions that call twice", "KSP0402"),
        ("lets that double a list", "KSP0402"),
        ("lets that double a text", "KSP0402"),
        ("loops in loops", "KSP0401"),
        ("fors in fors", "KSP0401"),
        ("loops over the cluster", "KSP0401"),
        ("large functions", "KSP0404"),
        ("parameters of a function", "KSP0404"),
        ("constants that overflow", "KSP0212"),
        ("functions in a circle", "KSP0214"),
    ],
)
def test_what_is_too_much_is_refused(name: str, code: str) -> None:
    assert code in codes(HOSTILE[name])


def test_a_chain_of_imports_has_an_end() -> None:
    others = {f"a{i}": f'import "a{i + 1}.ksp"\nconst c{i} = 1' for i in range(limits.FILES + 20)}
    checker = checked('import "a0.ksp"', **others)
    assert [d.code for d in checker.report.found] == ["KSP0404"]
    assert len(checker.modules) == limits.FILES


def test_imports_of_all_by_all() -> None:
    others = {f"a{i}": "\n".join(f'import "a{j}.ksp"' for j in range(60)) + f"\nconst c{i} = {i}" for i in range(60)}
    assert {d.code for d in checked('import "a0.ksp"', **others).report.found} == {"KSP0502"}


def test_warnings_do_not_push_out_errors() -> None:
    text = (
        predicate(*(f"let a{i} = {i}" for i in range(1500)), f'deny "x" when {N} > 1')
        + "\n"
        + predicate('deny "x" when nothing')
    )
    assert "KSP0202" in codes(text)


# ---- what passes can be compiled, as deep and as large as it may be

LAYERS: dict[str, str] = {
    "call": "abs(@)",
    "minus": "-(@)",
    "left": "(@ + v)",
    "right": "(v - @)",
    "condition": "(@ > 1 ? v : 2)",
    "choice": "(v > 1 ? @ : 2)",
    "index": "[1, v][@]",
    "map": "[@].map(x#, x# + v).sum()",
    "exists": "([v].exists(x#, x# > @) ? 1 : 2)",
    "in": "(@ in [v, 1] ? 1 : 2)",
    "text": 'size("a${@}b${v}")',
    "list": "[@, v].max(0)",
    "mapping": "{1: @}[v]",
    "division": "div(@, v, 1)",
    "logic": "((@ > 1 && v > 2) || v == 3 ? 1 : 2)",
}


def layered(layer: str, depth: int) -> str:
    """A rule that is `depth` layers deep, once its functions are put in."""
    bodies = [layer.replace("@", f"f{i - 1}(a, v)").replace("#", str(i)) for i in range(1, depth + 1)]
    made = [f"fn f{i}(a: int, v: int): int = {body}" for i, body in enumerate(["a", *bodies])]
    return "\n".join([*made, predicate(f'deny "x" when f{depth}({N}, size(pod.name)) > 0')])


def with_frames(frames: int, do: Callable[[], T]) -> T:
    """Calls the function with that many frames in use."""
    return do() if frames == 0 else with_frames(frames - 1, do)


def compiles(checker: Checker) -> None:
    """Every form of every rule, with a third of Python's stack in use already."""
    module = checker.modules[MAIN]
    assert module is not None
    for rule in module.own_rules():
        for traced in (False, True):
            compiled = compile_rule(rule, traced=traced)
            compiled.instantiate(trace=(lambda *values: values[1]) if traced else None)
            assert compiled.source
        footprint_of(rule)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
def test_the_deepest_rule_compiles(layer: str) -> None:
    assert sys.getrecursionlimit() == 1000
    deepest = bisect_left(range(limits.DEPTH), 1, key=lambda depth: checked(layered(layer, depth)).report.failed) - 1
    assert deepest >= 10
    assert codes(layered(layer, deepest + 1)) == {"KSP0402"}
    with_frames(300, lambda: compiles(checked(layered(layer, deepest))))


LARGE: dict[str, str] = {
    "and": predicate(f'deny "x" when {" && ".join(f"{N} > {i}" for i in range(2400))}'),
    "or": predicate(f'deny "x" when {" || ".join(f"{N} > {i}" for i in range(2400))}'),
    "score": f"priority P {{ score ({' && '.join(f'{N} > {i}' for i in range(2400))}) ? 1 : 0 }}",
    "conditions": predicate(f'deny "x" when {"(" * 32}{N} > 1{f" ? {N} > 2 : {N} > 3)" * 32}'),
    "conditions of a score": f"priority P {{ score {'(' * 30}{N} > 1{f' ? {N} > 2 : {N} > 3)' * 30} ? 1 : 2 }}",
    "choices": f"priority P {{ score {f'({N} > 2 ? {N} : ' * 30}1{')' * 30} }}",
    "lets": predicate(*lets(N, "@ + 1", 24), 'deny "x" when a23 > 5'),
    "lets of the pod": predicate(*lets("size(pod.name)", "@ + 1", 24), f'deny "x" when a23 > {N}'),
    "lets of a view": predicate(
        *lets("size(pod.name)", "@ + 1", 23), "view v = count p in cluster.pods where p.name.size() > a22", f'deny "x" when v > {N}'
    ),
    "lets of a score": f"priority P {{ {' '.join(lets(N, '@ + @', 9))} score a8 }}",
    "functions": "\n".join([*functions(f"@(a) + @(a + {1})", 8), predicate(f'deny "x" when f7({N}) > 5')]),
    "functions of a rule": predicate(*functions(f"@(a + {N}) - @(a - {N})", 8), f'deny "x" when f7({N}) > 5'),
    "lets of functions": "\n".join(
        [f"fn f(a: int): int {{ {' '.join(lets('a', '@ + a', 16))} return a15 }}", predicate(f'deny "x" when f({N}) > 5')]
    ),
    "denies": predicate(*(f'deny "x{i}" when {N} > {i} && node.name == "a{i}"' for i in range(1000))),
    "fors": predicate(
        *(f"for x{i} in pod.spec.tolerations {{" for i in range(5)),
        *(f'deny "x${{x4.key}}" when {N} > size(x0.key) + {i}' for i in range(500)),
        "}" * 5,
    ),
    "views": predicate(
        *(f"view v{i} = count p in cluster.pods, t in pod.spec.tolerations where p.name == t.key by p.name" for i in range(400)),
        f'deny "x" when {" && ".join(f"size(v{i}) > {N}" for i in range(400))}',
    ),
    "a list": predicate(f"let a = [{listed('1', 4900)}]", f'deny "x" when size(a) > {N}'),
    "lists in lists": predicate(f"let a = {'[' * 60}1{']' * 60}", f'deny "x" when size(a) > {N}'),
    "a text": predicate(f'let a = "{"${node.name}" * 1200}"', f'deny "x" when size(a) > {N}'),
}  # fmt: skip


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_large_rules_compile_soon(text: str) -> None:
    checker = checked(text)
    assert not checker.report.failed, checker.report.found[0].message
    started = time.process_time()
    with_frames(300, lambda: compiles(checker))
    assert time.process_time() - started < 8


def test_what_a_rule_makes_is_bounded() -> None:
    """The largest text that doubling may reach is made in no time."""
    text = predicate(*lets('"0123456789"', '"${@}${@}"', 10), f'deny "x" when size(a9) > {N} + 5000000')
    checker = checked(text)
    module = checker.modules[MAIN]
    assert module is not None
    assert not checker.report.failed
    (rule,) = module.own_rules()
    assert sum(limits.extent(expr)[0] for expr in expressions(rule)) < limits.SIZE


# ---- any text

MOST_EXAMPLES = settings(max_examples=100, suppress_health_check=list(HealthCheck))


def never_fails(text: str) -> Checker:
    """What holds of every policy."""
    checker = checked(text)
    found = checker.report.found
    for each in found:
        assert 0 <= each.span.start <= each.span.end <= len(each.span.source.text)
        assert "\n" not in each.message + each.label + each.help
    assert len({(d.code, d.span.start, d.span.end) for d in found}) == len(found)
    render_text(found, color=True)
    render_json(found)
    render_github(found)
    return checker


@MOST_EXAMPLES
@given(soup.policies)
def test_any_policy(text: str) -> None:
    checker = never_fails(text)
    if not checker.report.failed:
        compiles(checker)


@MOST_EXAMPLES
@given(st.lists(soup.statements, max_size=4), soup.expressions, st.sampled_from(["predicate", "priority"]))
def test_any_statements(statements: list[str], expression: str, kind: str) -> None:
    last = f'deny "x" when {expression}' if kind == "predicate" else f"score {expression}"
    checker = never_fails("\n".join([f"{kind} P {{", f"let a = {N}", "let xs = [1, 2]", *statements, last, "}"]))
    if not checker.report.failed:
        compiles(checker)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(typed_soup.policies)
def test_any_policy_that_has_types(text: str) -> None:
    checker = never_fails(text)
    assert {d.code for d in checker.report.found if d.severity is Severity.ERROR} <= {"KSP0212", "KSP0401", "KSP0403"}
    if not checker.report.failed:
        compiles(checker)
