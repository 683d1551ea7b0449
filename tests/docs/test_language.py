"""Every example of `docs/language.md` is true, and its tables say what the code says.

A `ksp` block is a policy file, or, after `// in a predicate` or `// in a priority`, what stands in such a rule. It
has no errors and no warnings; a line that ends with `//! KSP0201` has just these, and perhaps advice. Its `test`
blocks pass. A line of a `cel` block is a condition that holds, or an expression and, after `//`, its value as text;
both see the objects of the block `# objects.yaml`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.page import PAGE, Fence, fences, page, rows, section
from tests.docs.tables import SECTIONS

from ksp.check import cost, schema
from ksp.check.program import Checker, Module
from ksp.check.reach import warn_of_unreached
from ksp.check.typed import Rule
from ksp.check.types import show
from ksp.cli.main import COMMANDS
from ksp.compile.program import Predicate, compile_rule
from ksp.compile.runtime import Denial
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState
from ksp.model.decode import KINDS, convert
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.policy_tests import Runner
from ksp.sim.scenes import scene_of
from ksp.source.catalogue import CATALOGUE
from ksp.source.diagnostic import Severity
from ksp.source.origin import Texts
from ksp.syntax.limits import NESTING_COST
from ksp.syntax.words import RESERVED

KSP = Path(schema.__file__).parents[1]
EXPECTED = re.compile(r"//!((?: KSP[0-9]{4})+)$")
UNUSED = "KSP0704"  # a fragment need not use all that it declares
PARTS = {"// in a predicate": "predicate Example", "// in a priority": "priority Example"}


def identity(fence: Fence) -> str:
    return f"line {fence.line}"


# ---- policies


def policy(fence: Fence) -> str:
    """The block as a file, its lines where they were."""
    first, _, rest = fence.text.partition("\n")
    if first not in PARTS:
        return fence.text
    scored = "" if first.endswith("predicate") or re.search(r"^score ", rest, re.MULTILINE) else "score 0"
    return f"{PARTS[first]} {{\n{rest}\n{scored} }}\n"


def key(fence: Fence) -> str:
    return fence.title or f"line-{fence.line}.ksp"


@cache
def origin() -> Texts:
    return Texts({key(fence): policy(fence) for fence in fences("ksp")})


def checked(fence: Fence) -> tuple[Checker, Module]:
    checker = Checker(origin())
    module = checker.check(key(fence))
    assert module is not None
    warn_of_unreached(checker.report, [module])
    return checker, module


def own_tests() -> list[Fence]:
    return [fence for fence in fences("ksp") if re.search(r"^test ", fence.text, re.MULTILINE)]


@pytest.mark.parametrize("fence", fences("ksp"), ids=identity)
def test_a_policy_has_the_mistakes_that_the_page_says_and_no_others(fence: Fence) -> None:
    checker, _ = checked(fence)
    own = [d for d in checker.report.found if d.span.source.name == key(fence)]
    lines = fence.text.splitlines()
    marks = ((i, EXPECTED.search(line)) for i, line in enumerate(lines, 1))
    expected = {(i, code) for i, mark in marks if mark is not None for code in mark[1].split()}
    found = {(d.span.source.place(d.span.start)[0], d.code): d for d in own}
    is_part = lines[0] in PARTS
    kept = {
        place
        for place, d in found.items()
        if place in expected or (d.severity is not Severity.ADVICE and not (is_part and d.code == UNUSED))
    }
    assert kept == expected, [found[place] for place in kept ^ expected if place in found]


@pytest.mark.parametrize("fence", own_tests(), ids=identity)
def test_the_tests_of_a_policy_pass(fence: Fence, tmp_path: Path) -> None:
    for fixture in fences("yaml"):
        target = tmp_path / fixture.title
        target.parent.mkdir(exist_ok=True)
        target.write_text(fixture.text, encoding="utf-8")
    checker, module = checked(fence)
    assert not checker.report.failed
    runner = Runner()
    for each in module.tests:
        scene, mistakes = scene_of(each, tmp_path)
        assert not mistakes
        assert scene is not None
        assert [(r.expect.span.text, r.happened) for r in runner.run(scene) if r.happened] == []


# ---- expressions


def conditions() -> list[tuple[str, str]]:
    """The lines of the `cel` blocks as a text to show and the text that it must be."""
    found = []
    for fence in fences("cel"):
        for line in filter(None, fence.text.splitlines()):
            expr, _, value = line.partition("  // ")
            found.append((expr.strip(), value.strip() or "true"))
    return found


@cache
def example_objects() -> dict[str, Any]:
    fence = next(f for f in fences("yaml") if f.title == "objects.yaml")
    return {value["kind"]: convert(KINDS[value["kind"]], value) for value in yaml.safe_load_all(fence.text)}


def said(rule: Rule) -> str:
    """The reason with which the rule denies the example's node to the example's pod."""
    objects = example_objects()
    node, pod = objects["Node"], objects["Pod"]
    assert isinstance(node, Node)
    assert isinstance(pod, Pod)
    state = ClusterState()
    state.set_node(node)
    predicate = compile_rule(rule).instantiate()
    assert isinstance(predicate, Predicate)
    check = predicate.bind(PodInfo.of(pod), Tables(state)).check
    assert check is not None
    answer = check(state.nodes[node.metadata.name])
    assert isinstance(answer, Denial)
    return answer.reasons[0]


@pytest.mark.parametrize(("expr", "value"), conditions())
def test_an_expression_has_the_value_that_the_page_says(expr: str, value: str) -> None:
    text = f'predicate Example {{\n  let value = {expr}\n  deny "${{value}}" when true\n}}\n'
    checker = Checker(Texts({"example.ksp": text}))
    module = checker.check("example.ksp")
    assert module is not None
    assert [d for d in checker.report.found if d.severity is Severity.ERROR] == []
    assert said(module.own_rules()[0]) == value


def test_there_are_examples() -> None:
    assert len(fences("ksp")) > 20
    assert len(conditions()) > 50
    assert len(own_tests()) >= 4


# ---- tables


@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_is_what_the_code_says(name: str) -> None:
    written = section(page(), name)
    assert written == SECTIONS[name](), "python -m tests.docs.write_tables writes the tables anew"


@pytest.mark.parametrize("name", ["Pod", "Node"])
def test_the_fields_of_pods_and_nodes_are_those_of_the_schema(name: str) -> None:
    written = {field.strip("`"): kind.strip("`") for field, kind, _ in rows(section(page(), f"fields of {name}"))}
    assert written == {field: show(info.type) for field, info in schema.fields_of(name).items()}


def test_the_objects_of_the_cluster_are_those_of_the_schema() -> None:
    written = {field.strip("`"): kind.strip("`") for field, kind in rows(section(page(), "objects"))}
    expected = {}
    for name, (kind, namespaced) in schema.OBJECTS.items():
        keys = "[NAMESPACE][NAME]" if namespaced else "[NAME]"
        expected[f"cluster.{name}{keys}"] = kind
    assert written == expected


def test_the_reserved_words_are_those_of_the_syntax() -> None:
    assert section(page(), "reserved words").split() == [f"`{word}`" for word in sorted(RESERVED)]


def test_the_sizes_that_are_taken_for_granted_are_those_of_the_code() -> None:
    text = " ".join(page().split())
    assert f"taken to have {cost.ITEMS:,} items, and a text {cost.CHARACTERS} characters" in text
    assert f"grows by {NESTING_COST} with every step down" in text


# ---- what the page names


def named_codes() -> list[str]:
    return sorted(set(re.findall(r"KSP[0-9]{4}", page())))


@pytest.mark.parametrize("code", named_codes())
def test_a_code_that_the_page_names_can_be_reported(code: str) -> None:
    reported = "".join((KSP / name / "mistakes.py").read_text(encoding="utf-8") for name in ("check", "syntax"))
    assert code in CATALOGUE or f'"{code}"' in reported


def test_a_command_that_the_page_names_exists() -> None:
    assert set(re.findall(r"^ksp ([a-z]+)|`ksp ([a-z]+)", page(), re.MULTILINE)) <= {
        pair for command in COMMANDS for pair in ((command, ""), ("", command))
    }


def test_a_file_that_the_page_links_to_exists() -> None:
    text = re.sub(r"```.*?```", "", page(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#][^)]*)\)", text):
        assert (PAGE.parent / target).exists(), target


def test_a_place_that_the_page_links_to_exists() -> None:
    text = re.sub(r"```.*?```", "", page(), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    assert {*re.findall(r"\]\(#([^)]*)\)", text)} <= anchors
