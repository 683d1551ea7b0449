"""`docs/flags.md` names every flag of kube-scheduler 1.19 and of `ksp run`, what it does, and tests that exist."""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.docs.flag_rows import EFFECTS, KUBE_SCHEDULER, ONLY, PAGE, ROOT, row, shown_by, with_tables

from ksp.cli.feature_gates import RULES
from ksp.cli.run import run
from ksp.cli.scheduler_flags.command import shown_default
from ksp.cli.scheduler_flags.flag import Flag
from ksp.cli.scheduler_flags.table import FLAGS

TEST = re.compile(r"`((?:unit|cluster|golden|docs)/[\w/]+\.py)::(test_\w+)`")


@cache
def page() -> str:
    return PAGE.read_text("utf-8")


def section(head: str) -> str:
    return page().partition(f"## {head}\n")[2].partition("\n## ")[0]


@cache
def names_in(path: str) -> frozenset[str]:
    return frozenset(
        re.findall(r"^(?:async )?def (test_\w+)", (ROOT / "tests" / path).read_text("utf-8"), re.MULTILINE)
    )


def test_every_flag_of_kube_scheduler_is_there() -> None:
    assert KUBE_SCHEDULER.keys() - {flag.name for flag in FLAGS} == set()


def test_the_parser_and_the_table_have_the_same_flags_each_once() -> None:
    names = [flag.name for flag in FLAGS]
    assert sorted(f"--{name}" for name in names) == sorted(run.params[i].opts[0] for i in range(len(run.params)))
    assert len(names) == len(set(names))


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_has_its_row(flag: Flag) -> None:
    assert row(flag) in page(), "run `python -m tests.docs.flag_rows`"


def test_there_are_no_other_rows() -> None:
    assert with_tables(page()) == page(), "run `python -m tests.docs.flag_rows`"
    assert (EFFECTS.keys() | ONLY.keys()) - {flag.name for flag in FLAGS} == set()


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_the_shown_by_a_row_exist(flag: Flag) -> None:
    for test in shown_by(flag):
        path, _, name = test.partition("::")
        assert name in names_in(path), test


def test_all_tests_that_the_page_names_exist() -> None:
    named = TEST.findall(page())
    assert len(named) > len(FLAGS) / 2
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


def test_defaults_that_differ_are_the_table() -> None:
    named = set(re.findall(r"^\| `--([\w-]+)` \|", section("Defaults that differ"), re.MULTILINE))
    differ = {flag.name for flag in FLAGS if KUBE_SCHEDULER.get(flag.name, shown_default(flag)) != shown_default(flag)}
    assert named == differ | {"percentage-of-nodes-to-score", "assumed-pod-ttl"}
    for name in named & KUBE_SCHEDULER.keys():
        assert f"| `--{name}` | `{KUBE_SCHEDULER[name]}` |" in section("Defaults that differ")


def test_each_row_of_precedence_has_a_test() -> None:
    rows = [line for line in section("Precedence").splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 8
    assert [line for line in rows if not TEST.search(line)] == []


def test_the_gates_that_are_fixed_are_named() -> None:
    assert [name for name in RULES if f"`{name}`" not in section("Feature gates")] == []
