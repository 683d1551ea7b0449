"""That a converted legacy Policy decides as the Policy does.

The text that was written is read, checked and compiled anew. It must say what the Policy comes to: rules, their order,
weights and arguments; and both must decide the same about generated clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ksp.check.program import Module
from ksp.policy.configuration import ConfigurationError, read_configuration
from ksp.policy.extender import Extender
from ksp.policy.legacy.conversion import Conversion
from ksp.policy.load import load
from ksp.policy.plugins import PluginSet, profile_of
from ksp.policy.profile import ProfileBuilder
from ksp.sim.same_decisions import Comparison, compared, said_otherwise
from ksp.sim.sample_clusters import Interests, sample_cases
from ksp.source.diagnostic import Severity
from ksp.source.origin import Texts

PODS: Final = 4
"""How many pods are decided in each cluster."""
SEED: Final = 1
KEY: Final = "converted.ksp"
EXTENDERS: Final = "converted.extenders.yaml"


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of it: the comparison, and the rules that had no say in it."""

    comparison: Comparison
    idle: tuple[str, ...]


class NotSoundError(Exception):
    """What was written is not accepted: by the checker of policies, whose limits it may pass, or by the reader of
    configurations, which is stricter with extenders."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = tuple(messages)
        super().__init__("; ".join(self.messages))


def proof(conversion: Conversion, rules: Module, decisions: int, seed: int = SEED) -> Proof:
    """What the Policy comes to, whose names mean these rules, and the text: what both say, and so many decisions.
    Raises NotSoundError."""
    loaded = load(Texts({KEY: conversion.text}), KEY)
    if loaded.module is None:
        raise NotSoundError(each.message for each in loaded.diagnostics if each.severity is Severity.ERROR)
    (declared,) = loaded.module.profiles()
    written = ProfileBuilder().of(declared)
    meant = profile_of(conversion.plugins, rules, ProfileBuilder(), conversion.scheduler_name)
    clusters = -(-decisions // PODS)
    cases = sample_cases(clusters, PODS, interests(conversion.plugins), seed)
    comparison = compared(meant, written, cases)
    if not comparison.difference:
        comparison.difference = said_otherwise(meant, written)
    if not comparison.difference and _extenders(conversion) != conversion.asked:
        comparison.difference = "the extenders differ"
    return Proof(comparison, comparison.idle(meant))


def _extenders(conversion: Conversion) -> tuple[Extender, ...]:
    """Those that the written file names."""
    if not conversion.extenders:
        return ()
    try:
        return read_configuration(conversion.extenders, EXTENDERS).extenders
    except ConfigurationError as error:
        raise NotSoundError(error.messages) from error


def interests(plugins: PluginSet) -> Interests:
    """The labels and resources that arguments of plugins name."""
    labels: dict[str, None] = {}
    resources: dict[str, None] = {}
    for name, value in _arguments(plugins):
        if name.lower().endswith(("labels", "labelspreference")):
            labels |= dict.fromkeys(value)
        elif name in ("resources", "ignoredResources"):
            resources |= dict.fromkeys(each["name"] if isinstance(each, dict) else each for each in value)
    return Interests(tuple(labels), tuple(resources))


def _arguments(plugins: PluginSet) -> Iterator[tuple[str, Any]]:
    for given in plugins.arguments.values():
        yield from given.items()
