"""The words of every diagnostic, as a user reads them: `rendered.txt` is read by people when it changes."""

from __future__ import annotations

import pytest
from tests.lang.rendered import GOLDEN, diagnostics, rendered

from ksp.source.catalogue import CATALOGUE


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_code_is_shown(code: str) -> None:
    assert {each.code for each in diagnostics(code)} == {code}


def test_every_diagnostic_is_rendered_as_before() -> None:
    again = "python -m tests.lang.write_rendered writes the file anew"
    assert rendered() == GOLDEN.read_text(encoding="utf-8"), again
