"""Which unschedulable pods are asked about again after an event, and which of them are tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.core.scheduling import REQUIRED, FakeDice, default_profile, node, pod, scheduler, stepped

from ksp.core.changes import DeletePod, SetNode, SetPod
from ksp.core.node_order import ZONE
from ksp.core.scheduler import Scheduler
from ksp.core.sleepers import ASKS
from ksp.model.info import PodInfo

LATER = 5.0  # after the first backoff, before the end of patience
WEB = {"app": "web"}


def waiting(subject: Scheduler) -> tuple[int, int, int]:
    sizes = subject.pending()
    return sizes["active"], sizes["backoff"], sizes["unschedulable"]


def crowd(pods: int, node_labels: Mapping[str, str] | None = None, **spec: Any) -> Scheduler:
    """A full node `n`, with `one` and `two` on it, of half its size each; and so many unschedulable pods that are alike
    and, unless said otherwise, of that size, too."""
    subject = scheduler()
    subject.on(SetNode(node("n", cpu="4", labels=node_labels or {})), 0.0)
    for name in ("one", "two"):
        subject.on(SetPod(pod(name, on="n", requests={"cpu": "2"})), 0.0)
    for i in range(pods):
        subject.on(SetPod(pod(f"p{i}", **{"requests": {"cpu": "2"}, **spec})), 0.0)
        assert not stepped(subject).decision.node
    return subject


def test_room_that_is_too_small_wakes_nobody() -> None:
    subject = crowd(2, requests={"cpu": "3"})
    subject.on(DeletePod("one"), LATER)
    assert waiting(subject) == (0, 0, 2)
    assert subject.queue.sleepers.answers == {"waits": 1}
    assert subject.queue.sleepers.left_waiting == 2
    subject.on(DeletePod("two"), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_where_there_is_room_for_one_of_many_one_is_tried() -> None:
    subject = crowd(20)
    attempts = sum(subject.queue.incoming.values())
    subject.on(DeletePod("one"), LATER)
    assert waiting(subject) == (1, 0, 19)
    assert stepped(subject, LATER).pod.name == "p0"
    assert subject.next_deadline(LATER) == LATER  # there may be room for another
    assert subject.step(LATER) is None
    assert waiting(subject) == (0, 0, 19)
    assert sum(subject.queue.incoming.values()) == attempts + 1
    assert subject.queue.sleepers.answers == {"fits": 1, "waits": 1}
    assert subject.next_deadline(LATER) == 60.0


def test_where_there_is_room_for_two_two_are_placed() -> None:
    subject = crowd(20)
    subject.on(DeletePod("one"), LATER)
    subject.on(DeletePod("two"), LATER)
    assert [stepped(subject, LATER).decision.node for _ in range(2)] == ["n", "n"]
    assert subject.step(LATER) is None
    assert waiting(subject) == (0, 0, 18)


def test_the_next_takes_the_room_if_the_pod_that_was_woken_goes() -> None:
    subject = crowd(3)
    subject.on(DeletePod("one"), LATER)
    subject.on(DeletePod("p0"), LATER)
    assert subject.next_deadline(LATER) == LATER
    assert stepped(subject, LATER).pod.name == "p1"


def test_a_pod_that_backs_off_is_waited_for() -> None:
    """Those that are like it would have to wait as long, or longer."""
    subject = crowd(3)
    subject.on(DeletePod("one"), 0.5)
    assert waiting(subject) == (0, 1, 2)
    assert subject.next_deadline(0.5) == 1.0
    subject.on(DeletePod("two"), 0.6)
    assert waiting(subject) == (0, 1, 2)
    assert stepped(subject, 1.0).decision.node == "n"
    assert stepped(subject, 1.0).decision.node == "n"
    assert subject.step(1.0) is None


def test_a_bind_does_not_wake_pods_that_lack_cpu_nor_asks_about_them() -> None:
    subject = crowd(5)
    subject.on(SetNode(node("m", cpu="1")), LATER)
    asked = subject.queue.sleepers.answers.copy()
    subject.on(SetPod(pod("small", requests={"cpu": "500m"})), LATER)
    assert stepped(subject, LATER).decision.node == "m"
    subject.bind_succeeded("small", LATER)
    subject.on(SetPod(pod("small", on="m", requests={"cpu": "500m"})), LATER)
    assert waiting(subject) == (0, 0, 5)
    assert subject.queue.sleepers.answers == asked == {"waits": 1}


def test_a_bind_wakes_who_waited_for_its_neighbour() -> None:
    near = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": WEB}}]}}
    subject = scheduler()
    subject.on(SetNode(node("n", zone="z")), 0.0)
    subject.on(SetPod(pod("p", affinity=near)), 0.0)
    assert not stepped(subject).decision.node
    subject.on(SetPod(pod("other", on="n")), LATER)
    assert waiting(subject) == (0, 0, 1)
    subject.on(SetPod(pod("web", on="n", labels=WEB)), 2 * LATER)
    assert stepped(subject, 2 * LATER).decision.node == "n"


def test_pods_of_other_priorities_namespaces_or_requests_are_asked_about_apart() -> None:
    subject = crowd(1)
    others: list[dict[str, Any]] = [
        {"priority": 5}, {"metadata": {"namespace": "other"}}, {"requests": {"cpu": "3"}}, {"labels": WEB},
    ]  # fmt: skip
    for i, other in enumerate(others):
        subject.on(SetPod(pod(f"q{i}", **{"requests": {"cpu": "2"}, **other})), 0.0)
        assert not stepped(subject).decision.node
    subject.on(DeletePod("one"), LATER)
    assert stepped(subject, LATER).pod.name == "q0"  # the urgent one, which takes the room
    assert subject.step(LATER) is None
    assert subject.queue.sleepers.answers == {"fits": 1, "waits": 4}
    assert waiting(subject) == (0, 0, 4)


def test_names_and_tokens_make_no_pod_different() -> None:
    subject = crowd(0)
    for i in range(3):
        token = {"name": f"kube-api-access-{i}", "projected": {}}
        subject.on(SetPod(pod(f"p{i}", requests={"cpu": "3"}, volumes=[token])), 0.0)
        stepped(subject)
    subject.on(DeletePod("one"), LATER)
    assert subject.queue.sleepers.answers == {"waits": 1}


def test_without_classes_nobody_is_asked() -> None:
    without = Scheduler([default_profile()], FakeDice(), equivalence_classes=0)
    assert without.queue.sleepers.denied_by is None


# ---- while pods are nominated


def claimed(subject: Scheduler, name: str, node: str = "n") -> None:
    """The pod that sleeps claims the node."""
    queued = subject.queue.get(name)
    assert queued is not None
    subject.queue.nominate(queued.info, node)


def test_a_claim_wakes_nobody_and_is_no_question() -> None:
    subject = crowd(3)
    claimed(subject, "p1")
    assert waiting(subject) == (0, 0, 3)
    assert not subject.queue.sleepers.owing


def test_a_claim_that_is_lost_or_moves_is_a_question() -> None:
    """The pod waits for no victims any more, and may evict others."""
    subject = crowd(3)
    claimed(subject, "p1")
    claimed(subject, "p1", "elsewhere")
    assert subject.queue.sleepers.owing
    assert subject.step(LATER) is None
    subject.queue.clear_nomination("p1")
    assert subject.queue.sleepers.owing
    assert subject.step(LATER) is None
    assert subject.queue.sleepers.answers == {"waits": 2}
    assert waiting(subject) == (0, 0, 3)


def test_room_wakes_the_pod_that_claims_it_and_not_those_like_it() -> None:
    subject = crowd(3)
    claimed(subject, "p1")
    subject.on(DeletePod("one"), LATER)
    assert subject.queue.sleepers.answers == {"waits": 1, "fits": 1}
    assert stepped(subject, LATER).pod.name == "p1"
    assert subject.step(LATER) is None
    assert waiting(subject) == (0, 0, 2)


def test_room_beside_a_claim_wakes_one() -> None:
    """Of those whose turn is before the claimant's: both get room."""
    subject = crowd(3)
    claimed(subject, "p1")
    for name in ("one", "two"):
        subject.on(DeletePod(name), LATER)
    assert {stepped(subject, LATER).pod.name for _ in range(2)} == {"p0", "p1"}
    assert subject.step(LATER) is None
    assert waiting(subject) == (0, 0, 1)


def test_a_claim_of_a_lower_priority_keeps_nobody_waiting() -> None:
    subject = crowd(1)
    claimed(subject, "p0")
    subject.on(SetPod(pod("urgent", requests={"cpu": "2"}, priority=1, preemptionPolicy="Never")), 0.0)
    assert not stepped(subject).decision.node
    subject.on(DeletePod("one"), LATER)
    assert stepped(subject, LATER).pod.name == "urgent"


def test_the_rules_that_a_claim_breaks_are_slept_by() -> None:
    """There is room but for the claim; when that ends, it is there."""
    subject = crowd(1)
    subject.queue.nominate(PodInfo.of(pod("elsewhere", requests={"cpu": "2"})), "n")
    subject.on(DeletePod("one"), LATER)
    assert subject.queue.sleepers.answers == {"waits": 1}
    subject.on(DeletePod("elsewhere"), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_an_answer_tells_which_rules_deny_the_pod_now() -> None:
    """While there is no room the node gets another label, which cannot help; then room comes, and the label with it
    is in the way; then the label is as before."""
    subject = crowd(1, nodeSelector={"disk": "ssd"}, node_labels={"disk": "ssd"})
    subject.on(SetNode(node("n", cpu="4")), LATER)
    subject.on(DeletePod("one"), LATER)
    assert waiting(subject) == (0, 0, 1)
    subject.on(SetNode(node("n", cpu="4", labels={"disk": "ssd"})), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_who_joins_those_that_wait_for_a_long_backoff_does_not_have_to_wait_for_it() -> None:
    subject = crowd(1)
    for name, now in (("one", 1.0), ("three", 3.0)):  # p0 fails three times: its backoff is 4 s
        subject.queue.move_all(now)
        assert not stepped(subject, now).decision.node, name
    subject.on(DeletePod("one"), 3.5)
    assert waiting(subject) == (0, 1, 0)
    subject.on(SetPod(pod("three", on="n", requests={"cpu": "2"})), 3.5)
    subject.on(SetPod(pod("p1", requests={"cpu": "2"})), 3.5)
    assert not stepped(subject, 3.5).decision.node
    subject.on(DeletePod("two"), 3.6)
    assert stepped(subject, 4.5).pod.name == "p1"


def test_of_those_that_are_ready_the_one_that_failed_first_is_tried() -> None:
    """Though its backoff was longer."""
    subject = crowd(1)
    subject.queue.move_all(1.0)
    assert not stepped(subject, 1.0).decision.node
    subject.on(SetPod(pod("p1", requests={"cpu": "2"})), 1.5)
    assert not stepped(subject, 1.5).decision.node
    subject.on(DeletePod("one"), LATER)
    assert stepped(subject, LATER).pod.name == "p0"


def test_the_highest_priority_of_many_kinds_gets_the_room() -> None:
    subject = crowd(0)
    for i in range(50):
        urgent: dict[str, Any] = {"priority": 1} if i == 40 else {}
        subject.on(SetPod(pod(f"q{i}", requests={"cpu": "2"}, labels={"app": f"a{i}"}, **urgent)), 0.0)
        assert not stepped(subject).decision.node
    subject.on(DeletePod("one"), LATER)
    assert stepped(subject, LATER).pod.name == "q40"
    subject.on(DeletePod("two"), LATER)
    assert stepped(subject, LATER).pod.name == "q0"


def test_the_end_of_patience_and_a_round_for_all_ask_nobody() -> None:
    """They are the net for what events and answers may miss, so they must not depend on them."""
    subject = crowd(3, requests={"cpu": "3"})
    assert subject.queue.move_all(LATER) == 3
    assert [stepped(subject, LATER).pod.name for _ in range(3)] == ["p0", "p1", "p2"]
    assert [stepped(subject, LATER + 60.0).pod.name for _ in range(3)] == ["p0", "p1", "p2"]
    assert not subject.queue.sleepers.answers


def test_questions_are_spread_over_steps_and_a_new_pod_does_not_wait_for_them() -> None:
    subject = crowd(0)
    for i in range(3 * ASKS):
        subject.on(SetPod(pod(f"q{i}", requests={"cpu": "3"}, labels={"app": f"a{i}"})), 0.0)
        assert not stepped(subject).decision.node
    subject.on(DeletePod("one"), LATER)
    assert subject.queue.sleepers.answers == {"waits": ASKS}
    subject.on(SetPod(pod("new", requests={"cpu": "1"})), LATER)
    assert stepped(subject, LATER).decision.node == "n"
    assert subject.queue.sleepers.answers == {"waits": 2 * ASKS}
    assert subject.next_deadline(LATER) == LATER
    assert subject.step(LATER) is None
    assert subject.queue.sleepers.answers == {"waits": 3 * ASKS}
    assert subject.next_deadline(LATER) == 60.0
