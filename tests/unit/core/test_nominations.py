"""Claims on nodes, and what the API shows of them later."""

from __future__ import annotations

from tests.unit.core.scheduling import info

from ksp.core.nominations import MOST_ASKED, Nominations
from ksp.model.info import PodInfo


def shown(node: str) -> PodInfo:
    return info("p", nominated=node)


def nominated_to(*nodes: str) -> Nominations:
    """One after another; "" withdraws the claim. No watch has shown any of that."""
    subject = Nominations()
    for node in nodes:
        if node:
            subject.nominate(shown(""), node)
        else:
            subject.withdraw(shown(""))
    return subject


def claims(subject: Nominations, *statuses: str) -> list[str]:
    """The claim after each of the statuses, which come one after another."""
    found, before = [], ""
    for status in statuses:
        subject.update(shown(before), shown(status))
        found.append(subject.node_of("p") or "")
        before = status
    return found


def test_an_echo_of_what_was_asked_before_moves_nothing() -> None:
    assert claims(nominated_to("a", "", "b"), "a", "", "b") == ["b", "b", "b"]
    assert claims(nominated_to("a", "b"), "a", "b") == ["b", "b"]
    assert claims(nominated_to("a", ""), "a", "") == ["", ""]


def test_what_comes_of_a_claim_that_was_made_twice() -> None:
    assert claims(nominated_to("a", "b", "a"), "a", "b", "a") == ["a", "a", "a"]


def test_writes_that_are_overtaken_or_fail_are_not_waited_for() -> None:
    subject = nominated_to("a", "", "b")
    assert claims(subject, "b", "a") == ["b", "a"]  # nothing older is shown after "b": somebody else wrote "a"


def test_what_somebody_else_has_written_moves_the_claim() -> None:
    assert claims(nominated_to("a"), "a", "c", "") == ["a", "c", ""]
    assert claims(nominated_to("a"), "c") == ["c"]
    assert claims(nominated_to(), "c", "d") == ["c", "d"]


def test_what_was_asked_before_somebody_else_wrote_is_not_waited_for() -> None:
    assert claims(nominated_to("a", "b"), "c", "b") == ["c", "b"]


def test_a_pod_that_comes_back_claims_what_its_status_will_say() -> None:
    subject = nominated_to("a")
    subject.remove("p")
    subject.put_if_claimed(shown(""))
    assert subject.node_of("p") == "a"
    subject.withdraw(shown(""))
    subject.put_if_claimed(shown("a"))
    assert subject.node_of("p") is None


def test_nothing_is_kept_of_a_pod_that_is_gone() -> None:
    subject = nominated_to("a", "b")
    subject.forget("p")
    assert subject.said(shown("c")) == "c"
    assert not subject.nodes()


def test_so_many_echoes_are_waited_for_and_no_more() -> None:
    """Each write may fail, for ever."""
    nodes = [f"n{i}" for i in range(MOST_ASKED + 1)]
    assert claims(nominated_to(*nodes), nodes[1]) == [nodes[-1]]
    assert claims(nominated_to(*nodes), nodes[0]) == [nodes[0]]


def test_what_the_status_says_already_is_not_waited_for() -> None:
    subject = Nominations()
    for _ in range(3):
        subject.withdraw(shown(""))
    assert claims(subject, "c", "") == ["c", ""]
