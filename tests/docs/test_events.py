"""`docs/events.md` has a row for each test of the event table, and a test for each row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.docs.page import rows

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests" / "unit" / "core" / "test_event_table.py"


def _tests() -> set[str]:
    tree = ast.parse(TESTS.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def _rows() -> list[list[str]]:
    return [row for section in TEXT.split("\n## ")[1:] for row in rows(section)]


def test_the_page_and_the_tests_are_about_the_same_events() -> None:
    named = re.findall(r"`(test_\w+)`", TEXT)
    assert sorted(named) == sorted(set(named))
    assert set(named) == _tests()


def test_each_row_names_its_test() -> None:
    found = _rows()
    assert len(found) > 30
    assert [row for row in found if len(row) != 4 or "`test_" not in row[3]] == []


def test_each_path_that_is_named_is_there() -> None:
    paths = re.findall(r"`((?:tests|docs)/[\w./-]+)`", TEXT)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
