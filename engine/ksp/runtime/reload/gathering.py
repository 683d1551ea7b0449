"""Which files belong together: what policies import, and what their tests name with `from`.

Nothing is parsed for that, since texts are not to be trusted before they were tried elsewhere: names are found as they
are written. A file too many does no harm, and one that is not there is the checker's to report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from ksp.source.origin import SHIPPED, resolve

_GAP: Final = r"(?:[ \t\r\n]{1,100}|//[^\n]{0,200}\n){0,20}+"  # bounded: a hostile text takes no more than a look each
_TEXT: Final = rf"""{_GAP}[rR]?(["'])([^"'\n]{{1,1000}}+)\1"""
_IMPORT: Final = re.compile(rf"\bimport{_TEXT}")
_FROM: Final = re.compile(rf"\bfrom{_TEXT}")


def imported(text: str, path: str) -> Iterator[str]:
    """The paths that the policy at `path` imports, but those of the shipped library."""
    for match in _IMPORT.finditer(text):
        key, refusal = resolve(match[2], path)
        if not refusal and not key.startswith(SHIPPED):
            yield key


def fixtures(text: str, path: str) -> Iterator[str]:
    """The paths of the files that tests of the policy at `path` take objects from."""
    folder = PurePosixPath(path).parent
    for match in _FROM.finditer(text):
        pure = PurePosixPath(match[2])
        if not pure.is_absolute() and ".." not in pure.parts and "\0" not in match[2] and pure.parts:
            yield str(folder / pure)


def named(text: str, path: str) -> list[str]:
    """All of them."""
    return [*imported(text, path), *fixtures(text, path)]
