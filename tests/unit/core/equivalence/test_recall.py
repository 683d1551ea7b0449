"""Which pods are known to be of one class, and when that has to be found out anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.core.scheduling import anti_affinity, cluster, default_profile, info, node, profile_of

from ksp.compile.tables import Tables
from ksp.core.equivalence.classes import Classes, PodClass
from ksp.core.equivalence.counters import Counters
from ksp.core.equivalence.labels import Looks, looks_of
from ksp.core.equivalence.memo import Subject
from ksp.core.equivalence.paths import compared, fingerprint_of, own_of
from ksp.core.equivalence.present import Present
from ksp.core.state import ClusterState
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.policy.profile import ActivePredicate, ActivePriority, Profile

WEB = {"app": "web"}


class Found:
    """The classes of a profile over three nodes."""

    def __init__(self, profile: Profile | None = None, most: int = 1_000) -> None:
        self.state: ClusterState = cluster(*map(node, "abc"))
        self.present = Present.of(self.state)
        self.classes = Classes(profile or default_profile(), self.present, most=most)

    def of(self, pod: PodInfo) -> PodClass:
        self.present.follow()
        return self.classes.of(pod)

    def serve(self, name: str, selector: Mapping[str, str]) -> None:
        service = convert(Service, {"metadata": {"name": name}, "spec": {"selector": dict(selector)}})
        self.state.set_object("services", "default", name, service)

    def same(self, one: PodInfo, other: PodInfo) -> bool:
        return self.of(one) is self.of(other)


def own(name: str, **labels: str) -> PodInfo:
    """A pod with a label of its own, as a StatefulSet gives it."""
    return info(name, labels={**WEB, "statefulset.kubernetes.io/pod-name": name, **labels})


# ---- which pods are alike


def test_what_no_rule_reads_makes_no_class() -> None:
    found = Found()
    assert found.same(own("web-0"), own("web-1"))
    assert found.same(own("web-0"), info("other", labels={"pod-template-hash": "x"}))
    assert found.classes.counters == Counters(hits=3, misses=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"requests": {"cpu": "2"}},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        {"affinity": anti_affinity("web")},
        {"containers": [{"name": "x", "image": "other", "resources": {"requests": {"cpu": "1"}}}]},
    ],
    ids=["requests", "nodeSelector", "tolerations", "affinity", "image"],
)
def test_what_a_rule_reads_makes_a_class(fields: dict[str, Any]) -> None:
    found = Found()
    assert not found.same(info("p"), info("q", **fields))


def test_what_differs_shares_the_memos_of_all_other_rules() -> None:
    found = Found()
    found.of(info("p"))
    before = found.classes.size()["memos"]
    found.of(info("q", nodeSelector={"a": "b"}))
    rules: tuple[ActivePredicate | ActivePriority, ...] = (*default_profile().predicates, *default_profile().priorities)
    read_it = [rule for rule in rules if "spec.nodeSelector" in rule.footprint.pod]
    assert 0 < found.classes.size()["memos"] - before <= len(read_it)


# ---- labels


def test_a_selector_makes_classes_of_the_labels_that_it_asks_for() -> None:
    found = Found()
    found.serve("web", WEB)
    assert found.same(own("web-0"), own("web-1"))
    assert not found.same(own("web-0"), own("web-1", app="db"))
    found.serve("first", {"statefulset.kubernetes.io/pod-name": "web-0"})
    assert not found.same(own("web-0"), own("web-1"))
    assert found.same(own("web-1"), own("web-2"))


def test_the_terms_of_other_pods_make_classes_of_those_that_they_match() -> None:
    found = Found()
    assert found.same(own("web-0"), own("db-0", app="db"))
    found.state.add_pod(info("hermit", affinity=anti_affinity("db")), "a")
    assert not found.same(own("web-0"), own("db-0", app="db"))
    assert found.same(own("web-0"), own("web-1"))
    found.state.remove_pod("hermit")
    assert found.same(own("web-0"), own("db-0", app="db"))


def test_labels_are_looked_up_one_by_one_or_taken_as_a_whole() -> None:
    rules = """
    predicate One { deny 'one' when pod.labels['a'] == 'x' && node.podCount > 0 }
    predicate Some { deny 'some' when 'b' in pod.labels && node.podCount > 0 }
    predicate All { deny 'all' when pod.labels.all(k, v, k != v) && node.podCount > 0 }
    """
    profile = profile_of(rules, "predicates { One, Some, All }")
    one, some, everything = (Subject(i, active, Counters()) for i, active in enumerate(profile.predicates))
    tables = Tables(ClusterState())
    pod = info("p", labels={"a": "y", "c": "d"})
    assert looks_of([one, some], pod, tables) == Looks(("a", "b"))
    assert looks_of([everything], pod, tables).whole
    assert looks_of([one], pod, tables) | looks_of([some], pod, tables) == Looks(("a", "b"))


def test_labels_that_are_read_with_the_node_count_all() -> None:
    """Which label is asked for depends on the node: `prepare` asks for none."""
    rules = "predicate Wants { deny 'unwanted' when pod.labels[node.labels['wants']] != 'yes' }"
    found = Found(profile_of(rules, "predicates { Wants }"))
    assert not found.same(info("p", labels={"a": "yes"}), info("q", labels={"b": "yes"}))
    assert found.same(info("p", labels={"a": "yes"}), info("r", labels={"a": "yes"}))


def test_labels_that_are_read_with_rows_count() -> None:
    rules = """
    predicate Alike {
      view alike = count p in cluster.pods where p.labels[pod.labels['by']] == pod.labels['is'] by p.node.name
      deny 'alike' when alike[node.name] > 0
    }
    """
    found = Found(profile_of(rules, "predicates { Alike }"))
    assert not found.same(info("p", labels={"by": "a", "is": "x"}), info("q", labels={"by": "a", "is": "y"}))
    assert found.same(info("p", labels={"by": "a", "own": "x"}), info("q", labels={"by": "a", "own": "y"}))


def test_several_labels_of_one_selector_are_looked_at_one_by_one() -> None:
    found = Found()
    found.serve("web", {**WEB, "tier": "front"})
    assert found.same(own("web-0", tier="front"), own("web-1", tier="front"))
    assert not found.same(own("web-0", tier="front"), own("web-1", tier="back"))


def test_a_label_that_only_some_pods_lead_to_is_learnt() -> None:
    """Which labels count depends on others: for the second pod one more is looked at."""
    rules = """
    predicate Two { deny 'two' when (pod.labels['a'] == 'x' ? pod.labels['b'] : 'none') == node.labels['n'] }
    """
    found = Found(profile_of(rules, "predicates { Two }"))
    assert found.same(info("p", labels={"a": "y", "b": "1"}), info("q", labels={"a": "y", "b": "2"}))
    assert not found.same(info("p", labels={"a": "x", "b": "1"}), info("q", labels={"a": "x", "b": "2"}))
    assert found.same(info("p", labels={"a": "y", "b": "1"}), info("q", labels={"a": "z", "b": "2"}))


# ---- when it has to be found out anew


def test_an_object_that_comes_or_goes_may_split_a_class_and_join_it() -> None:
    found = Found()
    one, other = own("web-0"), own("db-0", app="db")
    assert found.same(one, other)
    found.serve("web", WEB)
    assert not found.same(one, other)
    found.state.remove_object("services", "default", "web")
    assert found.same(one, other)


# ---- how many


def test_no_more_classes_are_kept_than_are_wanted() -> None:
    found = Found(most=2)
    pods = [info("p", requests={"cpu": str(i)}) for i in range(1, 6)]
    for pod in pods:
        found.of(pod)
    assert found.classes.size()["classes"] == 2
    assert found.classes.counters.misses == 5


def test_without_classes_nothing_is_kept() -> None:
    found = Found(most=0)
    assert not found.same(info("p"), info("p"))
    assert found.classes.size() == {"classes": 0, "memos": 0}
    assert found.classes.counters == Counters(hits=0, misses=2)


# ---- fields


def test_fields_are_compared_as_a_whole() -> None:
    paths = ("spec.affinity.nodeAffinity.required", 'requests["cpu"]', "spec.tolerations[…].key", "labels")
    assert compared(paths) == {"spec.affinity", "requests", "spec.tolerations", "labels"}
    assert own_of(compared(paths)) == {"spec.affinity", "labels"}


def test_fingerprints_tell_pods_apart_by_their_fields() -> None:
    fields = frozenset({"requests", "spec.tolerations"})
    fingerprint = fingerprint_of(fields)
    assert fingerprint(info("p")) == fingerprint(info("q", labels=WEB))
    assert fingerprint(info("p")) != fingerprint(info("p", requests={"cpu": "2"}))
    assert fingerprint_of(frozenset())(info("p")) == fingerprint_of(frozenset())(info("q", requests={"cpu": "2"}))
    whole = fingerprint_of(frozenset({"*"}))
    assert whole(info("p")) == whole(info("p"))
    assert whole(info("p")) != whole(info("q"))
