"""Inter-pod affinity terms, ready to be asked: with the namespaces that they mean, and a selector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ksp.model.meta import Int, LabelSelector
from ksp.model.pod import Affinity, Pod, PodAffinityTerm, WeightedPodAffinityTerm
from ksp.model.selector import NOTHING

if TYPE_CHECKING:
    from ksp.model.info import PodInfo


class AffinityTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """`weight` is 0 for required terms. `namespaces` are those of the pods it is about, never empty."""

    topology_key: str = ""
    weight: Int = 0
    namespaces: tuple[str, ...] = ()
    selector: LabelSelector = NOTHING


class AffinityTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of one pod. A list with a malformed selector is empty; `error` is about the last such list."""

    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()
    error: str = ""


_NO_TERMS = AffinityTerms()


def affinity_term_matches(term: AffinityTerm, pod: PodInfo) -> bool:
    """Whether the pod is one of those that the term is about."""
    return pod.namespace in term.namespaces and term.selector.matcher(pod.labels)


def affinity_terms_of(pod: Pod) -> AffinityTerms:
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return _NO_TERMS
    namespace = pod.metadata.namespace
    required, required_anti = (_terms(namespace, _plain(lists)) for lists in _required(affinity))
    preferred, preferred_anti = (_terms(namespace, _weighted(lists)) for lists in _preferred(affinity))
    errors = {
        "requiredAffinityTerms": _error(required),
        "requiredAntiAffinityTerms": _error(required_anti),
        "preferredAffinityTerms": _error(preferred),
        "preferredAntiAffinityTerms": _error(preferred_anti),
    }
    return AffinityTerms(
        required=_sound(required),
        preferred=_sound(preferred),
        required_anti=_sound(required_anti),
        preferred_anti=_sound(preferred_anti),
        error=next((f"{name}: {error}" for name, error in reversed(errors.items()) if error), ""),
    )


def _required(affinity: Affinity) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    near, away = affinity.pod_affinity, affinity.pod_anti_affinity
    return (
        near.required_during_scheduling_ignored_during_execution if near else (),
        away.required_during_scheduling_ignored_during_execution if away else (),
    )


def _preferred(affinity: Affinity) -> tuple[tuple[WeightedPodAffinityTerm, ...], tuple[WeightedPodAffinityTerm, ...]]:
    near, away = affinity.pod_affinity, affinity.pod_anti_affinity
    return (
        near.preferred_during_scheduling_ignored_during_execution if near else (),
        away.preferred_during_scheduling_ignored_during_execution if away else (),
    )


def _plain(terms: Iterable[PodAffinityTerm]) -> Iterable[tuple[PodAffinityTerm, int]]:
    return ((term, 0) for term in terms)


def _weighted(terms: Iterable[WeightedPodAffinityTerm]) -> Iterable[tuple[PodAffinityTerm, int]]:
    return ((term.pod_affinity_term, term.weight) for term in terms)


def _terms(namespace: str, terms: Iterable[tuple[PodAffinityTerm, int]]) -> tuple[AffinityTerm, ...]:
    """A term that names no namespaces is about those of the pod that has it."""
    return tuple(
        AffinityTerm(
            topology_key=term.topology_key,
            weight=weight,
            namespaces=term.namespaces or (namespace,),
            selector=NOTHING if term.label_selector is None else term.label_selector,
        )
        for term, weight in terms
    )


def _error(terms: tuple[AffinityTerm, ...]) -> str:
    return next((term.selector.error for term in terms if term.selector.error), "")


def _sound(terms: tuple[AffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
    return () if _error(terms) else terms
