from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from tests.unit.core.scheduling import info

from ksp.kube.write.writes import Evicted, Failed, Patched
from ksp.policy.extender import Extender
from ksp.runtime.edge import EventWatch, ExtenderWatch, ReflectorWatch, RequestWatch, WriteWatch


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_a_server_that_goes_away_is_said_once_for_all_watches(caplog: pytest.LogCaptureFixture) -> None:
    registry, now = CollectorRegistry(), [0.0]
    watch = ReflectorWatch(registry, lambda: now[0])
    caplog.set_level("INFO", logger="ksp")
    for resource in ("pods", "nodes"):
        watch.failed(resource, f"cannot watch {resource}: https://10.0.0.1:6443: Connection refused")
    for resource in ("pods", "nodes"):
        watch.failed(resource, f"cannot watch {resource}: 410 Expired: too old resource version: 1{len(resource)}")
    watch.failed("services", "cannot list services: add to the ClusterRole: services")
    assert [message.split(": ")[0] for message in caplog.messages] == [
        "cannot watch pods", "cannot watch pods", "cannot list services",
    ]  # fmt: skip
    assert value(registry, "ksp_reflector_failures_total", resource="nodes") == 2


def test_that_all_is_well_again_is_said(caplog: pytest.LogCaptureFixture) -> None:
    watch = ReflectorWatch(CollectorRegistry(), lambda: 0.0)
    caplog.set_level("INFO", logger="ksp")
    watch.watching("pods")
    assert caplog.messages == []
    watch.failed("pods", "cannot watch pods: no")
    watch.failed("nodes", "cannot watch nodes: no")
    watch.watching("pods")
    assert "all caches are kept up to date again" not in caplog.messages
    watch.watching("nodes")
    assert caplog.messages[-1] == "all caches are kept up to date again"


def test_a_connection_that_is_lost_now_and_then_is_no_news_and_one_that_is_lost_at_once_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry, now = CollectorRegistry(), [0.0]
    watch = ReflectorWatch(registry, lambda: now[0])
    caplog.set_level("INFO", logger="ksp")
    for _ in range(3):
        watch.watching("pods")
        now[0] += 60.0
        watch.watch_ended("pods", "lost")
        watch.failed("pods", "cannot watch pods: the connection was lost")
    assert caplog.messages == []
    assert value(registry, "ksp_reflector_failures_total", resource="pods") == 3
    watch.failed("pods", "cannot watch pods: Connection refused")  # it cannot be opened again
    watch.watching("pods")
    now[0] += 1.0
    watch.watch_ended("pods", "lost")
    watch.failed("pods", "cannot watch pods: the connection was lost")
    assert caplog.messages == [
        "cannot watch pods: Connection refused",
        "all caches are kept up to date again",
        "cannot watch pods: the connection was lost",
    ]


def test_what_reflectors_do_is_counted() -> None:
    registry = CollectorRegistry()
    watch = ReflectorWatch(registry, lambda: 0.0)
    watch.listed("pods", 5, 0.5)
    watch.watching("pods")
    watch.watch_ended("pods", "silent")
    watch.relisting("pods", "too old")
    watch.undecodable("pods", "default/a", "expected a string")
    watch.repeated("pods")
    watch.position("pods", "7")
    assert value(registry, "ksp_reflector_lists_total", resource="pods") == 1
    assert value(registry, "ksp_reflector_list_duration_seconds_sum", resource="pods") == 0.5
    assert value(registry, "ksp_reflector_watches_total", resource="pods") == 1
    assert value(registry, "ksp_reflector_watches_ended_total", resource="pods", ending="silent") == 1
    assert value(registry, "ksp_reflector_relists_total", resource="pods", reason="too old") == 1
    assert value(registry, "ksp_reflector_undecodable_total", resource="pods") == 1
    assert value(registry, "ksp_reflector_repeated_total", resource="pods") == 1


def test_requests_are_counted_by_answer() -> None:
    registry = CollectorRegistry()
    answered = RequestWatch(registry).of("10.0.0.1:6443")
    answered("GET", 200, 0.25)
    answered("POST", None, 1.0)
    labels = {"host": "10.0.0.1:6443"}
    assert value(registry, "rest_client_requests_total", code="200", method="GET", **labels) == 1
    assert value(registry, "rest_client_requests_total", code="<error>", method="POST", **labels) == 1
    assert value(registry, "rest_client_request_duration_seconds_sum", verb="GET") == 0.25


def test_writes_and_events_are_counted_and_failures_said(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    writes, events = WriteWatch(registry, lambda: 0.0), EventWatch(registry, lambda: 0.0)
    writes.unsettled(info("a"), "n1", "no answer")
    writes.condition(info("a"), Patched.SENT, "")
    writes.condition(info("a"), Patched.FAILED, "forbidden")
    writes.eviction(info("a"), Evicted())
    writes.eviction(info("a"), Failed("forbidden"))
    events.event_written("create")
    events.event_dropped("spam", 3)
    events.event_failed("rejected")
    assert value(registry, "ksp_bindings_unsettled_total") == 1
    assert value(registry, "ksp_pod_conditions_total", outcome="failed") == 1
    assert value(registry, "ksp_evictions_total", outcome="evicted") == 1
    assert value(registry, "ksp_evictions_total", outcome="failed") == 1
    assert value(registry, "ksp_events_written_total", verb="create") == 1
    assert value(registry, "ksp_events_dropped_total", reason="spam") == 3
    assert caplog.messages == [
        'it is not known yet whether a pod is bound pod=default/a node=n1 error="no answer"',
        "cannot write the condition of a pod pod=default/a error=forbidden",
        "cannot write an event error=rejected",
    ]


def test_questions_to_extenders_are_counted_and_bad_answers_said_once(caplog: pytest.LogCaptureFixture) -> None:
    registry, extender = CollectorRegistry(), Extender("http://x", ignorable=True)
    watch = ExtenderWatch(registry, lambda: 0.0)
    caplog.set_level("INFO", logger="ksp")
    for outcome, why in (("ok", ""), ("timeout", "too late"), ("timeout", "too late"), ("cancelled", "")):
        watch.asked(extender, "filter", outcome, 0.5, why)
    about = {"extender": "http://x", "verb": "filter"}
    assert value(registry, "ksp_extender_requests_total", outcome="ok", **about) == 1
    assert value(registry, "ksp_extender_requests_total", outcome="timeout", **about) == 2
    assert value(registry, "ksp_extender_duration_seconds_sum", **about) == 2
    (said,) = caplog.messages
    assert said == (
        "an extender gives no good answer url=http://x verb=filter outcome=timeout seconds=0.5 ignorable=True "
        'error="too late"'
    )
