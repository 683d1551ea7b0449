"""`python -m tests.docs.write_tables` writes the tables of `docs/language.md` anew, after the code has changed."""

from __future__ import annotations

from tests.docs.page import PAGE, page, with_section
from tests.docs.tables import SECTIONS


def main() -> None:
    text = page()
    for name, make in SECTIONS.items():
        text = with_section(text, name, make())
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
