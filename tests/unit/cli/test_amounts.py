"""Amounts as people write them."""

from __future__ import annotations

import pytest

from ksp.cli.amounts import human, percent


@pytest.mark.parametrize(
    ("resource", "amount", "written"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 337_960_000, "337,960"),
        ("memory", 0, "0 B"),
        ("memory", 1024**3, "1 GiB"),
        ("memory", 1536 * 1024**2, "1.5 GiB"),
        ("hugepages-2Mi", 2 * 1024**2, "2 MiB"),
        ("ephemeral-storage", 2**62, "4 EiB"),
        ("pods", 167530, "167,530"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_human(resource: str, amount: int, written: str) -> None:
    assert human(resource, amount) == written


def test_percent() -> None:
    assert (percent(1, 3), percent(0, 0)) == ("33.3 %", "-")
