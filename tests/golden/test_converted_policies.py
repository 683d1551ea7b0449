"""What `ksp convert` writes for the Policies of recorded cases decides as kube-scheduler did under the Policy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.golden.recorded import FIELDS, SAMPLE, Case, Difference, cases, differences
from tests.unit.policy.legacy.converting import convert, read_back

from ksp.sim.cases import decided


def disagreements(recorded: Iterable[Case]) -> tuple[int, str]:
    """How many cases have a Policy, and what differs in the first of them."""
    number = 0
    found: list[Difference] = []
    for case in recorded:
        if isinstance(case["provider"], dict):
            number += 1
            answer = decided(read_back(convert(case["provider"])), case)
            found += differences(case, {**dict.fromkeys(FIELDS), **answer})
    return number, "\n".join(map(str, found[:5]))


def test_converted_policies_of_the_sample_decide_as_recorded() -> None:
    number, found = disagreements(cases(SAMPLE))
    assert number > 40
    assert not found, found


@pytest.mark.shared
def test_all_converted_policies_decide_as_recorded(shared: Path) -> None:
    number, found = disagreements(cases(shared / "golden" / "public-1.19.jsonl.gz"))
    assert number == 272
    assert not found, found
