"""When it matters to `normalize` which nodes are feasible, though none has scored."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import compiled

from ksp.compile.steady import steady_at_zero

STEADY = {
    "no block": "normalize reversed",
    "the highest": "normalize { let top = feasible.map(n, n.score).max(0) score div(100 * node.score, top, 7) }",
    "of some of them": """normalize {
        let low = feasible.filter(n, "a" in n.labels).map(n, n.score).min(0)
        score node.labels["zone"] == "" ? low : 50 }""",
    "sums by zone": """normalize {
        view inZone = sum n.score for n in feasible by n.labels["zone"]
        score min(inZone[node.labels["zone"]], inZone.values().max(0)) }""",
}
NOT_STEADY = {
    "how many there are": "normalize { score min(100, size(feasible)) }",
    "what an empty list gives": "normalize { score feasible.map(n, n.score).max(3) }",
    "who is there": "normalize { score feasible.exists(n, n.podCount == 0) ? 1 : 2 }",
    "which zones there are": """normalize {
        view inZone = sum n.score for n in feasible by n.labels["zone"]
        score min(100, size(inZone)) }""",
    "another sum": """normalize {
        view inZone = sum n.podCount for n in feasible by n.labels["zone"]
        score min(100, inZone[node.labels["zone"]]) }""",
    "a count": """normalize {
        view inZone = count n in feasible by n.labels["zone"]
        score min(100, inZone[node.labels["zone"]]) }""",
}


@pytest.mark.parametrize("normalize", STEADY.values(), ids=STEADY)
def test_only_scores_are_looked_at(normalize: str) -> None:
    assert steady_at_zero(compiled(f"priority P {{ score 0 {normalize} }}").rule)


@pytest.mark.parametrize("normalize", NOT_STEADY.values(), ids=NOT_STEADY)
def test_more_is_looked_at(normalize: str) -> None:
    assert not steady_at_zero(compiled(f"priority P {{ score 0 {normalize} }}").rule)
