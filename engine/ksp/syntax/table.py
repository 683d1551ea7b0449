"""The parse table: loaded from a file that the wheel carries, or built from the grammar where that does not fit.

Building takes about a quarter of a second with all checks of the grammar, loading a hundredth. `python -m
ksp.syntax.table` writes the file; so does the build hook of the wheel, which loads this module by its path: nothing of
ksp is imported here.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from functools import cache
from pathlib import Path

import lark

GRAMMAR = Path(__file__).parent.parent / "grammar" / "ksp.lark"
TABLE = Path(__file__).parent / "grammar.table"


def build_parser(grammar: str, *, strict: bool) -> lark.Lark:
    """The parser of a grammar text. `strict` refuses what is ambiguous, and needs the package `interegular`."""
    return lark.Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=["start", "expression"],
        strict=strict,
        keep_all_tokens=True,
        maybe_placeholders=True,
    )


def header(grammar: str) -> bytes:
    """The first line of a table: of which grammar, lark and Python it is."""
    digest = hashlib.sha256(grammar.encode()).hexdigest()
    return f"ksp-table {digest} {lark.__version__} {sys.version_info[0]}.{sys.version_info[1]}\n".encode()


def write_table(grammar: Path, table: Path) -> None:
    """Write the table of a grammar file."""
    text = grammar.read_text(encoding="utf-8")
    content = io.BytesIO()
    build_parser(text, strict=False).save(content)
    table.write_bytes(header(text) + content.getvalue())


def read_table(grammar: str, table: Path) -> lark.Lark | None:
    """The parser in a table file; None if there is none, or it is of another grammar, lark or Python, or damaged."""
    expected = header(grammar)
    try:
        with table.open("rb") as file:
            return lark.Lark.load(file) if file.readline(len(expected)) == expected else None
    except (OSError, EOFError, ValueError, LookupError, AttributeError, pickle.UnpicklingError):
        return None


@cache
def load_parser() -> lark.Lark:
    """The parser of ksp; one for the process."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    return read_table(grammar, TABLE) or build_parser(grammar, strict=False)


if __name__ == "__main__":
    write_table(GRAMMAR, TABLE)
