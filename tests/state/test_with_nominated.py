"""What is remembered of nodes with nominated pods is what a filter says of them that remembers nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.state.crowds import RULES, WISHES, Clusters, Random, profile
from tests.state.plain_filter import PlainFilter
from tests.unit.core.scheduling import FakeDice

from ksp.compile.tables import Tables
from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.filter import Nominated
from ksp.core.nominations import Nominations
from ksp.model.info import PodInfo
from ksp.policy.profile import Profile


class Crowd:
    """Nominated pods and others, of few kinds, in a cluster that changes."""

    def __init__(self, seed: int, profile_: Profile) -> None:
        self.choose = Random(seed)
        self.clusters = Clusters(self.choose)
        self.state = self.clusters.cluster()
        self.nominations = Nominations()
        self.profile = profile_
        self.cycle = Cycle(profile_, Present.of(self.state), self.nominations.nodes, FakeDice())
        self.subject = self.cycle.with_nominated
        self.pods = [self.pod(f"w{i}") for i in range(6)]

    def pod(self, uid: str) -> PodInfo:
        kind = self.clusters.any_pod() | {"priority": self.choose.pick((4, 5)), "leaving": False}
        return self.clusters.pod_of(uid, kind, self.choose.pick(WISHES))

    def change(self) -> None:
        pod = self.choose.pick(self.pods)
        match self.choose.number(0, 5):
            case 0 | 4 | 5:
                self.nominations.put(pod, self.choose.pick([*sorted(self.state.nodes), "gone"]))
            case 1:
                self.nominations.remove(pod.uid)
            case 2:
                self.clusters.change(self.state)
            case _:
                self.pods[self.pods.index(pod)] = other = self.pod(pod.uid)
                if self.nominations.node_of(pod.uid):
                    self.nominations.update(pod, other)

    def naive(self, pod: PodInfo) -> dict[str, object]:
        return dict(self.plain(self.nominations.nodes).with_nominated(pod))

    def plain(self, nominated: Nominated) -> PlainFilter:
        return PlainFilter(self.profile, self.state, Tables(self.state), nominated)

    def kept_by(self, pod: PodInfo) -> frozenset[str] | None:
        """The rules of which one has to give way on each node: with nominated pods only where the pod fits without."""
        nodes = self.state.node_list()
        alone, together = self.plain(dict).run(pod, nodes), self.plain(self.nominations.nodes).run(pod, nodes)
        if alone.failure() is not None or together.failure() is not None:
            return None
        if alone.before is not None:
            return frozenset({alone.before.rule})
        if together.feasible:
            return frozenset()
        return frozenset(alone.refused.get(name, refused).rule for name, refused in together.refused.items())


@pytest.mark.parametrize("rules", ["shipped", *RULES, "all"])
def test_what_is_said_is_what_a_filter_says_that_remembers_nothing(rules: str) -> None:
    found: Counter[str] = Counter()
    for seed in range(60):
        crowd = Crowd(seed, profile(rules))
        for _ in range(12):
            crowd.change()
            pod = crowd.choose.pick(crowd.pods)
            said = crowd.subject.verdicts(pod)
            assert said == crowd.naive(pod)
            among = crowd.choose.some(2, lambda c=crowd: c.choose.pick(c.state.node_list()))  # type: ignore[misc]
            names = {node.name for node in among}
            assert crowd.subject.verdicts(pod, among) == {n: r for n, r in said.items() if n in names}
            found.update("admitted" if refused is None else "refused" for refused in said.values())
    assert found["admitted"] > 2, found
    assert found["refused"] > 5 or rules == "Closed", found


@pytest.mark.parametrize("rules", ["shipped", "Spare", "all"])
def test_pods_are_kept_from_all_nodes_by_what_such_a_filter_says(rules: str) -> None:
    found: Counter[str] = Counter()
    for seed in range(40):
        crowd = Crowd(seed, profile(rules))
        for _ in range(8):
            crowd.change()
            for pod in crowd.pods:
                wanted = crowd.kept_by(pod)
                said = crowd.cycle.denied_by(pod, crowd.nominations)
                if wanted is not None:  # else a rule fails on a node that others need not look at
                    assert said is not None
                    assert said == wanted or (wanted and said > wanted), (pod, said, wanted)
                    found[f"{len(said)} rules"] += 1
                    found["another's rule"] += said != wanted
    assert min(found["0 rules"], found["1 rules"]) > 10, found
    assert found["another's rule"] < 20, found
