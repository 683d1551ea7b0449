"""`docs/language.md`: its fenced blocks, and its sections between `<!-- NAME -->` and `<!-- /NAME -->`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its language, its text, and the line of the page on which the text starts."""

    language: str
    text: str
    line: int

    @property
    def title(self) -> str:
        """The file that a first line `// NAME.ksp` or `# NAME.yaml` names; "" if there is none."""
        named = re.match(r"(?://|#) (\S+\.(?:ksp|yaml))$", self.text.partition("\n")[0])
        return named[1] if named else ""


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def fences(language: str) -> list[Fence]:
    text = page()
    found = (Fence(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in _FENCE.finditer(text))
    return [fence for fence in found if fence.language == language]


def section(text: str, name: str) -> str:
    """What stands between the marks of that name, with a blank line on either side of it left out."""
    start, end = _marks(name)
    return text.partition(start)[2].partition(end)[0].strip("\n")


def with_section(text: str, name: str, content: str) -> str:
    """The text with other content between the marks."""
    start, end = _marks(name)
    before, _, rest = text.partition(start)
    return f"{before}{start}\n\n{content}\n\n{end}{rest.partition(end)[2]}"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def rows(text: str) -> list[list[str]]:
    """The cells of the lines of a table, its head left out."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines[2:]]
