from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.kube.resource_versions import is_newer, is_older


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_versions_that_are_numbers_compare_as_numbers(one: int, other: int) -> None:
    assert is_newer(str(one), str(other)) == (one > other)
    assert is_older(str(one), str(other)) == (one < other)


@pytest.mark.parametrize("version", ["", "0", "007", "v5", "1.5", "-3", "٣", "5 "])
def test_what_is_no_positive_number_is_only_compared_for_equality(version: str) -> None:
    for other in ("7", "0", "", "zz"):
        assert not is_older(version, other)
        assert not is_older(other, version)
        assert is_newer(version, other) == (version != other)
    assert not is_newer(version, version)
