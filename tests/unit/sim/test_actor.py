from __future__ import annotations

import pytest

from ksp.sim.actor import Json, desired_healthy


@pytest.mark.parametrize(
    ("spec", "pods", "desired"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": 7}, 5, 7),
        ({"minAvailable": "50%"}, 5, 3),
        ({"minAvailable": "100%"}, 5, 5),
        ({"maxUnavailable": 2}, 5, 3),
        ({"maxUnavailable": "30%"}, 5, 3),
        ({"maxUnavailable": 7}, 5, 0),
        ({}, 5, 0),
        ({"minAvailable": "50%"}, 0, 0),
    ],
)
def test_what_a_budget_wants(spec: Json, pods: int, desired: int) -> None:
    assert desired_healthy(spec, pods) == desired
