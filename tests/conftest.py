"""What all tests share: repeatable Hypothesis runs, and the material that may lie beside the repository."""

from __future__ import annotations

import gc
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def own_heap() -> Iterator[None]:
    """What other tests left in memory is not gone through while processor time is bounded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
