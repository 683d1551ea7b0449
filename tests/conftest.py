"""What all tests share: repeatable Hypothesis runs, and the material that may lie beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded decisions and traces beside the repository; a test that asks for it is skipped without."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("there is no ../shared")
    return folder
