"""What becomes of an assumed pod, in the cases that have cost schedulers dearly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.state.objects import node, pod

from ksp.core.cache import TRANSITIONS, CacheEvent, CachePhase, SchedulerCache
from ksp.core.errors import IllegalMoveError, InternalError
from ksp.core.state import ClusterState


def cache_of(*names: str, ttl: float | None = None) -> SchedulerCache:
    state = ClusterState()
    for name in names:
        state.set_node(node(name))
    return SchedulerCache(state, ttl)


def cpu(cache: SchedulerCache, name: str) -> int:
    return cache.state.nodes[name].requested["cpu"]


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    cache = cache_of("n")
    info = pod("p")
    cache.assume(info, "n")
    assert cpu(cache, "n") == 100
    assert cache.is_assumed("p")
    assert cache.assumed() == [info]
    assert cache.forget("p") is info
    assert cpu(cache, "n") == 0
    assert "p" not in cache


def test_an_assumed_pod_never_expires_by_default() -> None:
    cache = cache_of("n")
    cache.assume(pod("p"), "n")
    cache.finish_binding("p", 0.0)
    assert cache.next_deadline() is None
    assert cache.expire(1e9) == []
    assert cpu(cache, "n") == 100


def test_with_a_ttl_only_bound_pods_expire() -> None:
    cache = cache_of("n", ttl=30.0)
    slow, bound, later = pod("slow"), pod("bound"), pod("later")
    for info in (slow, bound, later):
        cache.assume(info, "n")
    cache.finish_binding("bound", 10.0)
    cache.finish_binding("later", 11.0)
    assert cache.next_deadline() == 40.0
    assert cache.expire(39.9) == []
    assert cache.expire(40.0) == [bound]
    assert cache.next_deadline() == 41.0
    assert cache.phase("slow") is CachePhase.ASSUMED
    assert cpu(cache, "n") == 200


def test_a_list_from_after_the_binding_is_the_truth() -> None:
    cache = cache_of("n")
    slow, bound, later = pod("slow"), pod("bound"), pod("later")
    for info in (slow, bound, later):
        cache.assume(info, "n")
    cache.finish_binding("bound", 10.0)
    cache.finish_binding("later", 11.0)
    assert cache.unshown(10.0) == []  # it may not know of the binding yet
    assert cache.unshown(11.0) == [bound]
    assert cache.phase("later") is CachePhase.BOUND
    assert cache.phase("slow") is CachePhase.ASSUMED
    assert cpu(cache, "n") == 200
    cache.confirm(later, "n")
    assert cache.unshown(99.0) == []


def test_an_expired_pod_that_is_confirmed_after_all_counts_again() -> None:
    cache = cache_of("n", ttl=30.0)
    cache.assume(pod("p"), "n")
    cache.finish_binding("p", 0.0)
    cache.expire(30.0)
    cache.confirm(pod("p"), "n")
    assert cache.phase("p") is CachePhase.ADDED
    assert cpu(cache, "n") == 100
    assert cache.next_deadline() is None


def test_the_watch_wins_over_the_assumption() -> None:
    cache = cache_of("n", "m", ttl=30.0)
    cache.assume(pod("p"), "n")
    cache.finish_binding("p", 0.0)
    cache.confirm(pod("p"), "m")
    assert (cpu(cache, "n"), cpu(cache, "m")) == (0, 100)
    assert cache.node_name_of("p") == "m"
    assert cache.expire(100.0) == []


def test_a_confirmation_may_come_before_the_outcome_of_the_binding() -> None:
    cache = cache_of("n", ttl=30.0)
    cache.assume(pod("p"), "n")
    cache.confirm(pod("p"), "n")
    cache.finish_binding("p", 0.0)
    assert cache.forget("p") is None
    assert cache.phase("p") is CachePhase.ADDED
    assert cache.next_deadline() is None


def test_a_pod_deleted_while_it_is_bound_frees_its_place_once() -> None:
    cache = cache_of("n")
    info = pod("p")
    cache.assume(info, "n")
    assert cache.remove("p") is info
    cache.finish_binding("p", 0.0)
    assert cache.forget("p") is None
    assert cache.remove("p") is None
    assert cpu(cache, "n") == 0


def test_an_assumed_pod_takes_its_updates() -> None:
    cache = cache_of("n")
    cache.assume(pod("p"), "n")
    changed = pod("p", labels={"app": "web"})
    cache.update(changed)
    assert cache.get("p") is cache.state.pods["p"] is changed
    assert cache.is_assumed("p")
    cache.forget("p")
    assert not cache.state.pods


@pytest.mark.parametrize("come", [SchedulerCache.assume, SchedulerCache.confirm])
def test_a_pod_under_the_name_of_another_takes_its_place(come: Callable[..., None]) -> None:
    cache = cache_of("n", "m")
    cache.confirm(pod("old", name="web-0"), "n")
    come(cache, pod("new", name="web-0"), "m")
    assert list(cache.state.pods) == ["new"]
    assert cpu(cache, "n") == 0
    assert cache.remove("old") is None
    assert "new" in cache
    come(cache, pod("other", name="web-0", namespace="elsewhere"), "m")
    assert len(cache) == 2


def test_pods_on_a_vanished_node_stay_known() -> None:
    cache = cache_of("n")
    cache.assume(pod("p"), "n")
    cache.confirm(pod("q"), "n")
    cache.state.remove_node("n")
    assert not cache.state.pods
    cache.confirm(pod("p"), "n")
    cache.remove("q")
    cache.state.set_node(node("n"))
    assert list(cache.state.pods) == ["p"]
    assert cpu(cache, "n") == 100


REACH: dict[CachePhase, list[CacheEvent]] = {
    CachePhase.ABSENT: [],
    CachePhase.ASSUMED: [CacheEvent.ASSUME],
    CachePhase.BOUND: [CacheEvent.ASSUME, CacheEvent.FINISH_BINDING],
    CachePhase.ADDED: [CacheEvent.CONFIRM],
}
DO: dict[CacheEvent, Callable[[SchedulerCache], object]] = {
    CacheEvent.ASSUME: lambda cache: cache.assume(pod("p"), "n"),
    CacheEvent.FINISH_BINDING: lambda cache: cache.finish_binding("p", 0.0),
    CacheEvent.FORGET: lambda cache: cache.forget("p"),
    CacheEvent.CONFIRM: lambda cache: cache.confirm(pod("p"), "n"),
    CacheEvent.UPDATE: lambda cache: cache.update(pod("p")),
    CacheEvent.REMOVE: lambda cache: cache.remove("p"),
}


@pytest.mark.parametrize("phase", CachePhase)
@pytest.mark.parametrize("event", DO)
def test_every_move_is_the_table_s(phase: CachePhase, event: CacheEvent) -> None:
    cache = cache_of("n")
    for step in REACH[phase]:
        DO[step](cache)
    following = TRANSITIONS.get((phase, event))
    if following is None:
        with pytest.raises(IllegalMoveError, match=f"cache: {event.value} of pod p which is {phase.value}") as caught:
            DO[event](cache)
        assert isinstance(caught.value, InternalError)
    else:
        DO[event](cache)
    assert cache.phase("p") is (following or phase)
    assert cpu(cache, "n") == (100 if "p" in cache else 0)


def test_a_ttl_is_positive() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        SchedulerCache(ClusterState(), ttl=0)


# ---- pods that come again under another name, which no API server has them do


@pytest.mark.parametrize("confirmed", [False, True])
def test_a_pod_under_another_name_is_the_same_pod(confirmed: bool) -> None:
    cache = cache_of("n", "m", ttl=30.0)
    cache.assume(pod("p", name="old"), "n")
    cache.finish_binding("p", 0.0)
    renamed = pod("p", name="new", namespace="other", cpu="200m")
    if confirmed:
        cache.confirm(renamed, "n")
    else:
        cache.update(renamed)
    assert (cpu(cache, "n"), len(cache), cache.get("p")) == (200, 1, renamed)
    assert (cache.is_assumed("p"), cache.next_deadline()) == ((False, None) if confirmed else (True, 30.0))
    assert cache.namesake(pod("q", name="old")) is None
    assert cache.namesake(pod("q", name="new", namespace="other")) == "p"
    assert list(cache.state.pods_in_namespace("other")) == ["p"]
    assert not cache.state.pods_in_namespace("default")
    cache.remove("p")
    assert cpu(cache, "n") == 0
    assert cache.namesake(pod("q", name="new", namespace="other")) is None


def test_a_pod_under_another_name_on_another_node_is_the_same_pod() -> None:
    cache = cache_of("n", "m")
    cache.confirm(pod("p", name="old"), "n")
    cache.confirm(pod("p", name="new"), "m")
    assert (cpu(cache, "n"), cpu(cache, "m"), len(cache)) == (0, 100, 1)
    assert cache.namesake(pod("q", name="old")) is None


def test_a_pod_that_takes_the_name_of_another_takes_its_place() -> None:
    cache = cache_of("n")
    cache.confirm(pod("p", name="a"), "n")
    cache.assume(pod("q", name="b"), "n")
    cache.update(pod("q", name="a"))
    assert "p" not in cache
    assert (cpu(cache, "n"), cache.assumed_count) == (100, 1)
