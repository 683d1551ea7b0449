"""The language, tested in the language: every `*.ksp` beside this file is a list of chunks, split by a line `---`.

A chunk is a policy. `//! KSP0201 did you mean` at the end of a line says that the line must report that code, with that
text in its message, label, help or notes; on a line of its own it speaks of the next line that is not such a comment.
What is not announced must not be reported, except for advice. `//file NAME` starts another file of the chunk, for
imports; the text before the first is `main.ksp`, the one that is checked. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ksp.check.program import Checker
from ksp.check.reach import warn_of_unreached
from ksp.source.catalogue import CATALOGUE
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.origin import Texts
from ksp.source.reading import MAX_FILE_BYTES, read_source
from ksp.source.render import render_github, render_json, render_text
from ksp.syntax import limits

FOLDER = Path(__file__).parent
PACKAGE = FOLDER.parent.parent / "engine" / "ksp"
MARK = re.compile(r"//!\s*(KSP\d{4})\s*([^/\n]*(?:/(?!/)[^/\n]*)*)")
FILE = re.compile(r"//file (\S+)")
MAIN = "main.ksp"


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a chunk announces."""

    file: str
    line: int
    code: str
    text: str


@dataclass(frozen=True)
class Chunk:
    """`start` is its first line in the file that it stands in; `texts` are its policies by name."""

    path: Path
    start: int
    texts: dict[str, str]
    expected: tuple[Expected, ...]


def chunks_of(path: Path) -> Iterator[Chunk]:
    lines = path.read_text(encoding="utf-8").split("\n")
    ends = [i for i, line in enumerate(lines) if line.strip() == "---"] + [len(lines)]
    start = 0
    for end in ends:
        yield _chunk(path, start, lines[start:end])
        start = end + 1


def _chunk(path: Path, start: int, lines: list[str]) -> Chunk:
    """Each file of a chunk has empty lines in the place of what stands above it."""
    texts: dict[str, list[str]] = {MAIN: [""] * start}
    expected: list[Expected] = []
    waiting: list[re.Match[str]] = []
    name = MAIN
    for number, line in enumerate(lines, start + 1):
        header = FILE.fullmatch(line.strip())
        if header is not None:
            name = header[1]
            texts[name] = [""] * number
            continue
        texts[name].append(line)
        marks = list(MARK.finditer(line))
        if marks and line.lstrip().startswith("//!"):
            waiting += marks
            continue
        expected += [Expected(name, number, mark[1], mark[2].strip()) for mark in (*waiting, *marks)]
        waiting = []
    return Chunk(path, start + 1, {name: "\n".join(text) for name, text in texts.items()}, tuple(expected))


CHUNKS = [chunk for path in sorted(FOLDER.rglob("*.ksp")) for chunk in chunks_of(path)]


def said(diagnostic: Diagnostic) -> str:
    """All that it tells a reader."""
    notes = [note.text for note in diagnostic.notes]
    return " / ".join([diagnostic.message, diagnostic.label, diagnostic.help, *notes])


def place(diagnostic: Diagnostic) -> tuple[str, int]:
    return diagnostic.span.source.name, diagnostic.span.source.place(diagnostic.span.start)[0]


def is_announced(diagnostic: Diagnostic, expected: Expected) -> bool:
    """A text that is not quoted has no lines."""
    file, line = place(diagnostic)
    on_line = line == expected.line or not diagnostic.span.source.text
    return file == expected.file and on_line and diagnostic.code == expected.code and expected.text in said(diagnostic)


def shown(diagnostic: Diagnostic) -> str:
    return f"{place(diagnostic)[0]}:{place(diagnostic)[1]}: {diagnostic.code} {said(diagnostic)}"


def found_in(chunk: Chunk) -> list[Diagnostic]:
    """All that `ksp check` finds in the main file of a chunk."""
    return _found(chunk.texts)


def _found(texts: dict[str, str]) -> list[Diagnostic]:
    checker = Checker(Texts(texts))
    module = checker.check(MAIN)
    if module is not None:
        warn_of_unreached(checker.report, [module])
    return list(checker.report.found)


@pytest.mark.parametrize("chunk", CHUNKS, ids=[f"{c.path.stem}:{c.start}" for c in CHUNKS])
def test_a_chunk_reports_what_it_announces(chunk: Chunk) -> None:
    found = found_in(chunk)
    missing = []
    for expected in chunk.expected:
        match = next((d for d in found if is_announced(d, expected)), None)
        if match is None:
            missing.append(expected)
        else:
            found.remove(match)
    extra = [shown(d) for d in found if d.severity is not Severity.ADVICE]
    assert (missing, extra) == ([], [])


@pytest.mark.parametrize("chunk", CHUNKS, ids=[f"{c.path.stem}:{c.start}" for c in CHUNKS])
def test_diagnostics_keep_to_the_form(chunk: Chunk) -> None:
    found = found_in(chunk)
    for diagnostic in found:
        assert diagnostic.code in CATALOGUE
        for text in (diagnostic.message, diagnostic.label, diagnostic.help):
            assert "\n" not in text
            assert text.count("`") % 2 == 0
            assert not text.endswith(".") or text.endswith("…")
            assert not re.search(r"\b(None|True|False|dict|tuple|Unknown|NoneType|object at)\b", text.split("`")[0])
        assert not diagnostic.message[:1].isupper() or diagnostic.message.startswith("U+")
    render_text(found, color=True)
    render_json(found)
    render_github(found)


# ---- the catalogue

NEED_A_FILE_OR_A_SIZE = {"KSP0101", "KSP0102", "KSP0103", "KSP0126"}


def test_every_code_has_a_chunk() -> None:
    announced = {expected.code for chunk in CHUNKS for expected in chunk.expected}
    assert announced | NEED_A_FILE_OR_A_SIZE == set(CATALOGUE)


def test_every_code_that_is_used_is_in_the_catalogue() -> None:
    sources = [*(PACKAGE / "check").glob("*.py"), *(PACKAGE / "syntax").glob("*.py"), PACKAGE / "source" / "reading.py"]
    used = {code for source in sources for code in re.findall(r'"(KSP\d{4})"', source.read_text(encoding="utf-8"))}
    assert used == set(CATALOGUE)


def test_codes_that_no_chunk_can_show(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ksp"
    broken.write_bytes(b"const a = '\xff'")
    large = "const a = 1\n" + "// \n" * (MAX_FILE_BYTES // 4)
    many = "".join(f"const a{i} = 1\n" for i in range(limits.MAX_DECLARATIONS + 1))
    found = [read_source(tmp_path), read_source(broken), *_found({MAIN: large}), *_found({MAIN: many})]
    assert {d.code for d in found if isinstance(d, Diagnostic)} == NEED_A_FILE_OR_A_SIZE


def test_lines_keep_their_numbers() -> None:
    for chunk in CHUNKS:
        assert all(text.split("\n")[: chunk.start - 1] == [""] * (chunk.start - 1) for text in chunk.texts.values())
