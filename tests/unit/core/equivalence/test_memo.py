"""When a memo asks its rule about a node again, and when it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.core.scheduling import cluster, info, node, profile_of

from ksp.compile.runtime import Denial, Failure
from ksp.core.equivalence.counters import Counters
from ksp.core.equivalence.memo import LINES, Memo, Subject
from ksp.core.equivalence.predicates import PredicateMemo
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.priorities import PriorityMemo
from ksp.core.state import ClusterState
from ksp.model.apps import Service
from ksp.model.info import NodeInfo, PodInfo

FULL = Denial(unresolvable=False, reasons=("full",))
CROWDED = "predicate Crowded { deny 'full' when node.podCount >= 2 }"
NEAR = """
predicate Near {
  view there = count p in cluster.pods where p.namespace == pod.namespace by p.node.name
  deny 'full' when there[node.name] >= 2
}
"""
FEWEST = """
predicate Fewest {
  view there = count p in cluster.pods by p.node.name
  let most = there.keys().map(n, there[n]).max(0)
  deny 'less than the fullest' when there[node.name] < most
}
"""
SCORED = "priority Scored { score size(node.labels['n']) * 10 }"


class Asked:
    """A rule's memo, the state under it, and the nodes about which the rule was asked since one looked last."""

    def __init__(self, rules: str, state: ClusterState, *, columns: bool = False, pod: PodInfo | None = None) -> None:
        kind = "priorities" if rules.strip().startswith("priority") else "predicates"
        name = rules.split()[1]
        profile = profile_of(rules, f"{kind} {{ {name}{': 1' if kind == 'priorities' else ''} }}")
        self.state = state
        self.present = Present.of(state)
        self.nodes: list[str] = []
        self.breaks_at = ""
        self.counters = Counters()
        active = (profile.predicates or profile.priorities)[0]
        self.subject = Subject(0, active, self.counters, columns=columns)
        self.memo: Memo = (PredicateMemo if profile.predicates else PriorityMemo)(self.subject, self.present)
        self.pod = pod or info("p")
        self.prepare()

    def prepare(self) -> None:
        _, at = self.subject.run(self.pod, self.present.tables)

        def watched(tables: Any) -> tuple[Any, ...]:
            return tuple(self._watched(value) for value in at(tables))

        self.memo.take(watched)

    def _watched(self, value: Any) -> Any:
        """Notes the nodes about which `check` or `score` is asked."""
        if getattr(value, "__name__", "") not in ("check", "score"):
            return value
        function: Callable[[NodeInfo], Any] = value

        def asking(node: NodeInfo) -> Any:
            if node.name == self.breaks_at:
                raise RuntimeError("broken")
            self.nodes.append(node.name)
            return function(node)

        return asking

    def again(self) -> list[str]:
        """Brings the memo up to date; the nodes about which it asked."""
        self.nodes.clear()
        self.present.follow()
        self.memo.refresh()
        return sorted(self.nodes)

    def answers(self) -> dict[str, Any]:
        slot_of = self.present.columns.slot_of
        memo = self.memo
        if isinstance(memo, PredicateMemo):
            codes = memo.codes
            return {name: None if codes is None else memo.answers[codes[slot]] for name, slot in slot_of.items()}
        assert isinstance(memo, PriorityMemo)
        raw = memo.raw
        return {name: memo.uniform if raw is None else int(raw[slot]) for name, slot in slot_of.items()}


def three() -> ClusterState:
    return cluster(*map(node, "abc"))


# ---- nodes


def test_all_nodes_are_asked_once_and_then_none() -> None:
    asked = Asked(CROWDED, three())
    assert asked.again() == ["a", "b", "c"]
    assert asked.again() == []
    assert asked.answers() == dict.fromkeys("abc")


def test_only_a_node_whose_part_changed_that_the_rule_reads_is_asked_again() -> None:
    asked = Asked(CROWDED, three())
    asked.again()
    asked.state.add_pod(info("x"), "b")
    assert asked.again() == ["b"]
    asked.state.set_node(node("c", labels={"new": "label"}))
    assert asked.again() == []
    asked.state.add_pod(info("y"), "b")
    assert asked.again() == ["b"]
    assert asked.answers() == {"a": None, "b": FULL, "c": None}
    asked.state.remove_pod("x")
    assert asked.again() == ["b"]
    assert asked.answers() == dict.fromkeys("abc")


def test_it_notes_other_answers_only() -> None:
    asked = Asked(CROWDED, three())
    asked.again()
    seen, slot = asked.memo.end, asked.present.columns.slot_of["b"]
    asked.state.add_pod(info("x"), "b")
    asked.again()
    assert asked.memo.end == seen  # asked, with the same answer
    asked.state.add_pod(info("y"), "b")
    asked.again()
    assert asked.memo.changed_since(seen) == [slot]
    assert asked.memo.changed_since(asked.memo.end) == []
    assert asked.memo.changed_since(-1) is None


def test_a_long_list_of_notes_is_forgotten() -> None:
    asked = Asked(CROWDED, three())
    asked.state.add_pod(info("x"), "b")
    asked.again()
    seen = asked.memo.end
    for i in range(LINES + 1):
        if i % 2:
            asked.state.remove_pod("y")
        else:
            asked.state.add_pod(info("y"), "b")
        asked.again()
    assert asked.memo.changed_since(seen) is None


@pytest.mark.parametrize("columns", [False, True])
def test_nodes_that_come_and_go_are_followed(columns: bool) -> None:
    asked = Asked(CROWDED, three(), columns=columns)
    asked.again()
    for name in ("x", "y"):
        asked.state.add_pod(info(name), "d")
    asked.state.set_node(node("d"))
    asked.again()
    assert asked.answers() == {"a": None, "b": None, "c": None, "d": FULL}
    asked.state.remove_node("d")
    asked.state.set_node(node("e"))  # in the place of the other
    asked.again()
    assert asked.answers() == dict.fromkeys("abce")


def test_many_nodes_are_asked_in_columns() -> None:
    asked = Asked(CROWDED, cluster(*(node(f"n{i}") for i in range(20))), columns=True)
    assert asked.again() == []
    for i in range(12):
        for name in ("x", "y"):
            asked.state.add_pod(info(f"{name}{i}"), f"n{i}")
    assert asked.again() == []
    assert asked.answers() == {f"n{i}": FULL if i < 12 else None for i in range(20)}
    asked.state.remove_pod("x3")
    assert asked.again() == ["n3"]


def test_what_is_too_long_ago_is_asked_anew() -> None:
    state = ClusterState(journal_capacity=2)
    for name in "abc":
        state.set_node(node(name))
    asked = Asked(CROWDED, state)
    asked.again()
    for i in range(4):
        state.add_pod(info(f"x{i}"), "a")
    assert asked.again() == ["a", "b", "c"]
    assert asked.answers()["a"] == FULL


# ---- views


def test_a_changed_entry_of_a_view_concerns_the_nodes_that_read_it() -> None:
    asked = Asked(NEAR, cluster(*(node(f"n{i}") for i in range(40))))
    asked.again()
    asked.state.add_pod(info("x"), "n7")
    asked.state.add_pod(info("y"), "n7")
    assert asked.again() == ["n7"]
    assert asked.answers()["n7"] == FULL
    assert asked.counters.invalidations == 0


def test_what_the_view_says_of_all_nodes_concerns_all_nodes() -> None:
    asked = Asked(FEWEST, three())
    asked.again()
    asked.state.add_pod(info("x"), "a")
    assert asked.again() == ["a", "b", "c"]
    assert [name for name, answer in asked.answers().items() if answer is None] == ["a"]
    assert asked.counters.invalidations == 1


def test_a_memo_that_broke_half_way_begins_anew() -> None:
    """It has seen the view as it is now, and not asked all the nodes that this concerns."""
    asked = Asked(FEWEST, three())
    asked.again()
    asked.state.add_pod(info("x"), "a")
    asked.breaks_at = "c"
    with pytest.raises(RuntimeError, match="broken"):
        asked.again()
    asked.breaks_at = ""
    assert asked.again() == ["a", "b", "c"]
    assert [name for name, answer in asked.answers().items() if answer is None] == ["a"]


@pytest.mark.parametrize("rules", [CROWDED, "priority Crowded { score node.podCount }"])
def test_what_was_stored_before_it_broke_off_is_told_to_others_that_hold_the_memo(rules: str) -> None:
    asked = Asked(rules, three())
    asked.again()
    seen = asked.memo.end
    for i in range(6):
        asked.state.add_pod(info(f"x{i}"), "abc"[i % 3])
    asked.breaks_at = "c"
    with pytest.raises(RuntimeError, match="broken"):
        asked.again()
    asked.breaks_at = ""
    asked.again()
    changed = asked.memo.changed_since(seen)
    assert changed is None or {*changed} == {0, 1, 2}


def test_pods_that_the_view_does_not_count_concern_none() -> None:
    asked = Asked(NEAR, three())
    asked.again()
    asked.state.add_pod(info("x", metadata={"namespace": "other"}), "a")
    assert asked.again() == []


# ---- objects that the pod names


SERVED = """
predicate Served { deny 'not served' when node.name != 'a' && size(cluster.services[pod.namespace]) == 0 }
"""


def test_what_a_rule_makes_of_a_pod_is_worth_nothing_once_an_object_changed() -> None:
    asked = Asked(SERVED, three())
    asked.again()
    assert [name for name, answer in asked.answers().items() if answer is None] == ["a"]
    asked.state.set_object("services", "default", "s", Service())
    asked.prepare()
    asked.again()
    assert asked.answers() == dict.fromkeys("abc")


# ---- priorities


def labelled(name: str, n: str) -> Any:
    return node(name, labels={"n": n})


@pytest.mark.parametrize("columns", [False, True])
def test_equal_scores_are_one_number_until_they_are_not(columns: bool) -> None:
    asked = Asked(SCORED, cluster(*(labelled(name, "xx") for name in "abcdef")), columns=columns)
    memo = asked.memo
    assert isinstance(memo, PriorityMemo)
    asked.again()
    assert (memo.uniform, memo.raw) == (20, None)
    asked.state.set_node(labelled("b", "xxx"))
    asked.again()
    assert asked.answers() == {**dict.fromkeys("abcdef", 20), "b": 30}
    for name in "abcdef":
        asked.state.set_node(labelled(name, "x"))
    asked.again()
    assert asked.answers() == dict.fromkeys("abcdef", 10)


def test_a_node_that_goes_leaves_equal_scores_equal() -> None:
    asked = Asked(SCORED, cluster(*(labelled(name, "xx") for name in "abc")))
    memo = asked.memo
    assert isinstance(memo, PriorityMemo)
    asked.again()
    asked.state.remove_node("b")
    asked.again()
    assert (memo.uniform, memo.raw) == (20, None)


@pytest.mark.parametrize("columns", [False, True])
def test_what_is_no_score_is_noted_until_it_is_mended(columns: bool) -> None:
    asked = Asked(SCORED, cluster(labelled("a", "x"), labelled("b", "x" * 11)), columns=columns)
    memo = asked.memo
    assert isinstance(memo, PriorityMemo)
    asked.again()
    assert (memo.outside, memo.odd) == ({asked.present.columns.slot_of["b"]}, True)
    asked.state.set_node(labelled("b", "x" * 10))
    asked.again()
    assert (memo.outside, memo.odd) == (set(), False)
    asked.state.set_node(labelled("b", "x" * 12))
    asked.again()
    assert memo.odd
    asked.state.remove_node("b")
    asked.again()
    assert not memo.odd


@pytest.mark.parametrize("columns", [False, True])
def test_failures_are_noted_until_they_are_mended(columns: bool) -> None:
    rules = "priority Odd { fail 'no ${node.name}' when 'bad' in node.labels score 1 }"
    asked = Asked(rules, cluster(*map(node, "abcdef")), columns=columns)
    memo = asked.memo
    assert isinstance(memo, PriorityMemo)
    asked.again()
    assert memo.failures == {}
    for name in "abcde":
        asked.state.set_node(node(name, labels={"bad": "yes"}))
    asked.again()
    slot_of = asked.present.columns.slot_of
    assert memo.failures == {slot_of[name]: Failure(f"no {name}") for name in "abcde"}
    for name in "abcd":
        asked.state.set_node(node(name))
    asked.state.remove_node("e")
    asked.again()
    assert not memo.odd


# ---- a rule that says the same of all nodes


def test_a_rule_that_says_the_same_of_all_nodes_is_not_asked_again() -> None:
    asked = Asked("predicate Any { deny 'full' when pod.spec.priority > 3 && node.podCount > 0 }", three())
    asked.again()
    assert asked.memo.fixed
    asked.state.add_pod(info("x"), "a")
    assert asked.again() == []
    assert asked.answers() == dict.fromkeys("abc")


def test_answers_that_no_node_has_any_more_are_dropped() -> None:
    """The text of an answer may change for ever; what is remembered of them does not grow for ever."""
    rules = "predicate Told { deny 'it is ${node.labels[\"n\"]}' when 'n' in node.labels }"
    asked = Asked(rules, cluster(node("a")))
    memo = asked.memo
    assert isinstance(memo, PredicateMemo)
    for i in range(1_500):
        asked.state.set_node(labelled("a", str(i)))
        asked.again()
    assert len(memo.answers) < 1_400
    assert asked.answers()["a"] == Denial(unresolvable=False, reasons=("it is 1499",))


def test_subjects_know_what_their_rule_reads() -> None:
    profile = profile_of(CROWDED, "predicates { Crowded }")
    subject = Subject(3, profile.predicates[0], Counters())
    assert (subject.place, subject.active.name) == (3, "Crowded")
    assert {"podCount", "*"} <= subject.reads
    assert "labels" not in subject.reads
