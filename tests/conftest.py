"""What all tests share: repeatable Hypothesis runs, and the material that may lie beside the repository."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Where Python is told to leave no bytecode beside its sources, pytest's cache has it: else every worker, and every
    process that a test starts, compiles all modules anew."""
    if sys.dont_write_bytecode and sys.pycache_prefix is None and config.pluginmanager.hasplugin("cacheprovider"):
        assert config.cache is not None
        sys.pycache_prefix = str(config.cache.mkdir("bytecode"))
        sys.dont_write_bytecode = False
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """The garbage collector need not go through all modules and thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded decisions and traces beside the repository; a test that asks for it is skipped without."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("there is no ../shared")
    return folder


@pytest.fixture(scope="module")
def own_heap() -> None:
    """What other tests left in memory is not gone through while processor time is bounded."""
    gc.collect()
    gc.freeze()
