"""What the edge to the API server tells of itself: counted for /metrics, and logged where somebody should act."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram

from ksp.kube.http.client import Answered
from ksp.kube.watch.observer import Ending
from ksp.kube.write.writes import Evicted, Failed, Gone, Patched
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender
from ksp.runtime.log import DECISIONS, Seldom, entry
from ksp.runtime.metrics import exponential

_log = logging.getLogger(__name__)

_DIGITS = re.compile(r"[0-9]+")
_LIVED = 30.0
"""Seconds: a watch that lived for so long and then lost its connection is opened again without a word. Load balancers
and API servers that restart one after another do that all the time; one that cannot be opened again is said."""


class RequestWatch:
    """Requests to the API server, under the names of client-go's metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "rest_client_requests",
            "Requests that were sent to the API server; the code is <error> where there was no answer.",
            ("code", "method", "host"),
            registry=registry,
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time from a request to the head of its answer.",
            ("verb",),
            buckets=exponential(0.001, 2, 10),
            registry=registry,
        )

    def of(self, host: str) -> Answered:
        """For a client of that server."""

        def answered(method: str, status: int | None, seconds: float) -> None:
            self._requests.labels("<error>" if status is None else str(status), method, host).inc()
            self._seconds.labels(method).observe(seconds)

        return answered


class ReflectorWatch:
    """Lists and watches, by resource; a `ReflectorObserver`."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self._seldom = Seldom(_log, now)
        self._now = now
        self._opened: dict[str, float] = {}
        self._excused: set[str] = set()
        self._troubled: set[str] = set()
        self._lists = _counter(registry, "lists", "Whole lists that were read.", "resource")
        self._seconds = Histogram(
            "ksp_reflector_list_duration_seconds",
            "Time to read a whole list.",
            ("resource",),
            buckets=exponential(0.01, 2, 15),
            registry=registry,
        )
        self._watches = _counter(registry, "watches", "Watches that were opened.", "resource")
        self._ended = _counter(registry, "watches_ended", "Watches that came to an end, and how.", "resource", "ending")
        self._relists = _counter(registry, "relists", "Lists that were read again, and why.", "resource", "reason")
        self._undecodable = _counter(registry, "undecodable", "Objects that could not be read.", "resource")
        self._repeated = _counter(registry, "repeated", "Events that came again, and were dropped.", "resource")
        self._failures = _counter(registry, "failures", "Attempts to list or watch that failed.", "resource")

    def listed(self, resource: str, items: int, seconds: float) -> None:
        self._lists.labels(resource).inc()
        self._seconds.labels(resource).observe(seconds)
        _log.debug(entry("listed", resource=resource, items=items, seconds=seconds))

    def watching(self, resource: str) -> None:
        self._watches.labels(resource).inc()
        self._opened[resource] = self._now()
        if resource in self._troubled:
            self._troubled.discard(resource)
            if not self._troubled:
                _log.info("all caches are kept up to date again")

    def watch_ended(self, resource: str, ending: Ending) -> None:
        self._ended.labels(resource, ending).inc()
        if ending == "lost" and self._now() - self._opened.get(resource, self._now()) >= _LIVED:
            self._excused.add(resource)
        _log.debug(entry("a watch ended", resource=resource, ending=ending))

    def relisting(self, resource: str, reason: str) -> None:
        self._relists.labels(resource, reason).inc()
        _log.info(entry("everything is listed again", resource=resource, reason=reason))

    def undecodable(self, resource: str, key: str, message: str) -> None:
        self._undecodable.labels(resource).inc()
        self._seldom.say(resource, "an object cannot be read", resource=resource, object=key, error=message)

    def repeated(self, resource: str) -> None:
        self._repeated.labels(resource).inc()

    def position(self, resource: str, resource_version: str) -> None:
        """Not shown: it changes all the time, and only its standing still would be of interest."""

    def failed(self, resource: str, why: str) -> None:
        """What fails for the same reason is said once: a server that goes away breaks all watches."""
        self._failures.labels(resource).inc()
        if resource in self._excused:
            self._excused.discard(resource)
            _log.log(DECISIONS, why)
            return
        self._troubled.add(resource)
        reason = _DIGITS.sub("", why.partition(": ")[2])
        self._seldom.say(reason or why, why)


def _counter(registry: CollectorRegistry, name: str, help: str, *labels: str) -> Counter:
    return Counter(f"ksp_reflector_{name}", help, labels, registry=registry)


class WriteWatch:
    """Bindings that take long, conditions, and evictions; a `WriteObserver`."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self._seldom = Seldom(_log, now)
        self._unsettled = Counter(
            "ksp_bindings_unsettled", "Attempts to find out what became of a binding that failed.", registry=registry
        )
        self._conditions = Counter(
            "ksp_pod_conditions", "Conditions of pods that were to be written.", ("outcome",), registry=registry
        )

        self._evictions = Counter(
            "ksp_evictions", "Pods that were to be deleted for another's sake.", ("outcome",), registry=registry
        )

    def unsettled(self, pod: PodInfo, node: str, why: str) -> None:
        self._unsettled.inc()
        about = f"{pod.namespace}/{pod.name}"
        self._seldom.say("bind", "it is not known yet whether a pod is bound", pod=about, node=node, error=why)

    def condition(self, pod: PodInfo, outcome: Patched, why: str) -> None:
        self._conditions.labels(outcome.value).inc()
        if outcome is Patched.FAILED:
            about = f"{pod.namespace}/{pod.name}"
            self._seldom.say("condition", "cannot write the condition of a pod", pod=about, error=why)

    def eviction(self, victim: PodInfo, outcome: Evicted | Gone | Failed) -> None:
        self._evictions.labels(type(outcome).__name__.lower()).inc()


class ExtenderWatch:
    """Questions to extenders."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self._seldom = Seldom(_log, now)
        self._requests = Counter(
            "ksp_extender_requests",
            "Questions to extenders, by what they were for and what came of them.",
            ("extender", "verb", "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            "ksp_extender_duration_seconds",
            "Time from a question to the end of its answer, or of waiting for it.",
            ("extender", "verb"),
            buckets=exponential(0.001, 2, 15),
            registry=registry,
        )

    def asked(self, extender: Extender, verb: str, outcome: str, seconds: float, why: str) -> None:
        self._requests.labels(extender.name, verb, outcome).inc()
        self._seconds.labels(extender.name, verb).observe(seconds)
        if why:
            about = {"url": extender.name, "verb": verb, "outcome": outcome, "seconds": seconds}
            key, message = f"{extender.name} {verb} {outcome}", "an extender gives no good answer"
            self._seldom.say(key, message, **about, ignorable=extender.ignorable, error=why)


class EventWatch:
    """Events; an `EventObserver`."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        self._seldom = Seldom(_log, now)
        self._written = Counter("ksp_events_written", "Requests that wrote events.", ("verb",), registry=registry)
        self._dropped = Counter(
            "ksp_events_dropped", "Occurrences that are not told of in the cluster.", ("reason",), registry=registry
        )

    def event_written(self, verb: Literal["create", "patch"]) -> None:
        self._written.labels(verb).inc()

    def event_dropped(self, reason: str, count: int) -> None:
        self._dropped.labels(reason).inc(count)

    def event_failed(self, message: str) -> None:
        self._seldom.say("event", "cannot write an event", error=message)
