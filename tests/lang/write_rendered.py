"""`python -m tests.lang.write_rendered` writes `rendered.txt` anew, after a message or a page has changed."""

from __future__ import annotations

from tests.lang.rendered import GOLDEN, rendered


def main() -> None:
    GOLDEN.write_text(rendered(), encoding="utf-8")


if __name__ == "__main__":
    main()
