"""Build hook: writes the parse table into the package, for wheels and for editable installs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLE = "engine/ksp/syntax/grammar.table"


def table_module(root: Path) -> ModuleType:
    """`ksp.syntax.table` by its path: the package itself is not installed where it is built."""
    path = root / "engine" / "ksp" / "syntax" / "table.py"
    spec = importlib.util.spec_from_file_location("ksp_syntax_table", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TableHook(BuildHookInterface[Any]):
    """Named in pyproject.toml as `[tool.hatch.build.hooks.custom]`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        table_module(root).write_table(root / "grammar" / "ksp.lark", root / TABLE)
        build_data["artifacts"].append(TABLE)
