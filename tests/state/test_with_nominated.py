"""What is remembered of nodes with nominated pods is what a filter says of them that remembers nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.state.crowds import RULES, WISHES, Clusters, Random, profile

from ksp.compile.tables import Tables
from ksp.core.filter import Filter
from ksp.core.nominations import Nominations
from ksp.core.state import ClusterState
from ksp.core.with_nominated import WithNominated
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
        self.subject = WithNominated(Filter(profile_, self.state, Tables(self.state), self.nominations.nodes))
        self.pods = [self.pod(f"w{i}") for i in range(4)]

    def pod(self, uid: str) -> PodInfo:
        kind = self.clusters.any_pod() | {"priority": self.choose.pick((4, 5)), "leaving": False}
        return self.clusters.pod_of(uid, kind, self.choose.pick(WISHES))

    def change(self) -> None:
        pod = self.choose.pick(self.pods)
        match self.choose.number(0, 3):
            case 0:
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
        state: ClusterState = self.state
        return dict(Filter(self.profile, state, Tables(state), self.nominations.nodes).with_nominated(pod))


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
    assert found["admitted"] > 5, found
    assert found["refused"] > 5 or rules == "Closed", found
