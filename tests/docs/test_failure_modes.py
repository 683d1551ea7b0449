"""`docs/failure-modes.md` names tests and figures: each test is there, each figure is the code's."""

from __future__ import annotations

import ast
import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.page import rows

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "failure-modes.md").read_text(encoding="utf-8")
MODES, FIGURES = TEXT.split("## Figures\n")


def _tests() -> set[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py"))
    return {
        node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_each_test_that_is_named_is_there() -> None:
    named = re.findall(r"`(test_\w+)`", MODES)
    assert len(named) > 100
    assert sorted(set(named) - _tests()) == []


def test_each_mode_names_a_test_and_no_mode_stands_there_twice() -> None:
    modes = [row for section in MODES.split("\n## ")[1:] for row in rows(section)]
    assert [row for row in modes if len(row) != 3 or "`test_" not in row[2]] == []
    assert len({row[0] for row in modes}) == len(modes)


def test_each_path_that_is_named_is_there() -> None:
    paths = re.findall(r"`((?:tests|docs)/[\w./-]+)`", TEXT)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("row", rows(FIGURES), ids=lambda row: row[2])
def test_each_figure_is_that_of_the_code(row: list[str]) -> None:
    said, _, where = row
    assert [float(number) for number in said.split(" to ")] == [_value(name) for name in re.findall(r"`(.+?)`", where)]


def _value(name: str) -> object:
    """Of a dotted name: of a module, a constant in it, and perhaps an attribute of that."""
    parts = name.split(".")
    constant = next(i for i, part in enumerate(parts) if part.isupper())
    module = import_module(".".join(parts[:constant]))
    return reduce(getattr, parts[constant:], module)
