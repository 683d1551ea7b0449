"""What a user is shown of each mistake of the catalogue: of the wrong policy on its page, or of a file made for it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ksp.check.program import Checker
from ksp.check.reach import warn_of_unreached
from ksp.source.catalogue import CATALOGUE
from ksp.source.diagnostic import Diagnostic
from ksp.source.origin import Texts
from ksp.source.reading import MAX_FILE_BYTES, read_source
from ksp.source.render import render_text
from ksp.syntax import limits

GOLDEN = Path(__file__).with_name("rendered.txt")
MAIN = "main.ksp"
WRONG = re.compile(r"^Wrong:\n\n```ksp\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def found_in(text: str) -> Sequence[Diagnostic]:
    """All that `ksp check` finds in a file."""
    checker = Checker(Texts({MAIN: text}))
    module = checker.check(MAIN)
    if module is not None:
        warn_of_unreached(checker.report, [module])
    return checker.report.found


def _folder() -> Sequence[Diagnostic]:
    return _read(GOLDEN.parent)


def _latin() -> Sequence[Diagnostic]:
    with tempfile.NamedTemporaryFile(suffix=".ksp") as file:
        file.write("const a = 1\n// ü\n".encode("latin-1"))
        file.flush()
        return _read(Path(file.name))


def _read(path: Path) -> Sequence[Diagnostic]:
    refused = read_source(path, shown=MAIN)
    assert isinstance(refused, Diagnostic)
    return [refused]


# Mistakes that no short text can have.
MADE: dict[str, Callable[[], Sequence[Diagnostic]]] = {
    "KSP0101": _folder,
    "KSP0102": lambda: found_in("// " + "x" * MAX_FILE_BYTES),
    "KSP0103": _latin,
    "KSP0126": lambda: found_in("".join(f"const a{i} = 1\n" for i in range(limits.MAX_DECLARATIONS + 1))),
}


def diagnostics(code: str) -> Sequence[Diagnostic]:
    """Diagnostics of this code, and no others."""
    wrong = WRONG.search(CATALOGUE[code].page)
    assert (wrong is None) == (code in MADE), f"{code} has a wrong policy on its page, or a file made for it"
    return found_in(wrong[1]) if wrong is not None else MADE[code]()


def rendered() -> str:
    """All codes in their order."""
    return "\n".join(render_text(diagnostics(code), color=False) for code in sorted(CATALOGUE))
