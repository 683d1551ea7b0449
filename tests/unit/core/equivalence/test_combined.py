"""Scores that are normalised by combinations follow pods that come and nodes that fill up."""

from __future__ import annotations

from random import Random

import pytest
from tests.unit.core.scheduling import FakeDice, cluster, cycle_of, info, node, profile_of

from ksp.core.equivalence.combined import Combined

RULES = """
predicate Room { deny "full" when node.podCount >= 6 }
priority Spread {
  view mine = count p in cluster.pods where p.labels["app"] == pod.labels["app"] by p.node.name
  score mine[node.name]
  normalize {
    view inZone = sum n.score for n in feasible by n.labels["zone"] + "."
    let top = max(1, inZone.values().max(0))
    score div(100 * (top - inZone[node.labels["zone"] + "."]), top, 0) / 2 + (node.score == 0 ? 50 : 0)
  }
}
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_class_decides_as_if_all_were_scored_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_of(RULES, "predicates { Room } priorities { Spread: 1 }")
    state = cluster(*(node(f"n{i}", labels={"zone": "abc"[i % 3]}) for i in range(12)))
    dice = Random(seed)
    counted, followed = 0, 0
    count, follow = Combined._count, Combined._follow

    def counting(self: Combined) -> None:
        nonlocal counted
        counted += 1
        count(self)

    def following(self: Combined, changed: set[int]) -> bool:
        nonlocal followed
        followed += 1
        return follow(self, changed)

    monkeypatch.setattr(Combined, "_count", counting)
    monkeypatch.setattr(Combined, "_follow", following)
    kept = cycle_of(profile, state, FakeDice(), keep_scores=False)
    anew = cycle_of(profile, state, FakeDice(), keep_scores=False, equivalence_classes=0, columns=False)
    for i in range(60):
        pod = info(f"p{i}", labels={"app": dice.choice("xy")})
        found = kept.decide(pod)
        assert (found.node, found.message) == (anew.decide(pod).node, anew.decide(pod).message)
        if found.node:
            state.add_pod(pod, dice.choice([found.node, *(n.name for n in state.node_list() if n.pod_count < 6)]))
        if dice.random() < 0.2 and state.pods:
            state.remove_pod(dice.choice(list(state.pods)))
        if dice.random() < 0.05:
            state.set_node(node(f"n{dice.randrange(14)}", labels={"zone": dice.choice("abcd")}))
    assert followed > 2 * counted > 0
