from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lark
import pytest
from tests.conftest import REPOSITORY

from ksp.syntax import table
from ksp.syntax.builder import Builder
from ksp.syntax.machine import Reduction, load_grammar
from ksp.syntax.words import KEYWORDS


def grammar() -> str:
    return table.GRAMMAR.read_text(encoding="utf-8")


def test_the_grammar_is_strict() -> None:
    assert isinstance(table.build_parser(grammar(), strict=True), lark.Lark)


def test_every_rule_of_the_grammar_has_its_method() -> None:
    rows = load_grammar().actions.values()
    reductions = {action for row in rows for action in row.values() if isinstance(action, Reduction)}
    methods = {action.method for action in reductions} - {"", "items"}
    assert methods
    assert [name for name in sorted(methods) if not callable(getattr(Builder, name, None))] == []


def test_keywords_are_those_of_the_grammar() -> None:
    terminals = table.load_parser().terminals
    assert {each.pattern.value for each in terminals if each.pattern.value.isidentifier()} == KEYWORDS


def test_a_written_table_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "grammar.table"
    table.write_table(table.GRAMMAR, path)
    parser = table.read_table(grammar(), path)
    assert parser is not None
    assert {each.name for each in parser.terminals} == {each.name for each in table.load_parser().terminals}


def test_a_table_that_does_not_fit_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "grammar.table"
    assert table.read_table(grammar(), path) is None
    path.write_bytes(table.header(grammar()) + b"damaged")
    assert table.read_table(grammar(), path) is None
    table.write_table(table.GRAMMAR, path)
    assert table.read_table(grammar() + "\n", path) is None
    monkeypatch.setattr(lark, "__version__", "0.0")
    assert table.read_table(grammar(), path) is None


def test_the_header_names_the_grammar() -> None:
    assert hashlib.sha256(grammar().encode()).hexdigest().encode() in table.header(grammar())


def hook(root: Path, target: str) -> Any:
    """The build hook, without the builder round it."""
    spec = importlib.util.spec_from_file_location("hatch_build", REPOSITORY / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = object.__new__(module.TableHook)
    made.__dict__.update(
        SimpleNamespace(_BuildHookInterface__root=str(root), _BuildHookInterface__target_name=target).__dict__
    )
    return made


def test_the_build_hook_writes_the_table(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    (tmp_path / "engine" / "ksp" / "syntax").mkdir(parents=True)
    (tmp_path / "grammar").mkdir()
    (tmp_path / "grammar" / "ksp.lark").write_text(grammar(), encoding="utf-8")
    source = REPOSITORY / "engine" / "ksp" / "syntax" / "table.py"
    (tmp_path / "engine" / "ksp" / "syntax" / "table.py").write_bytes(source.read_bytes())
    data: dict[str, Any] = {"artifacts": []}
    hook(tmp_path, "sdist").initialize("standard", data)
    assert data == {"artifacts": []}
    hook(tmp_path, "wheel").initialize("standard", data)
    assert data == {"artifacts": ["engine/ksp/syntax/grammar.table"]}
    assert table.read_table(grammar(), tmp_path / data["artifacts"][0]) is not None
