"""What the core asks of extenders, and what they may answer.

A decision that extenders have a say in stops with an `Ask`. Whoever drives the core puts its questions, all at once if
he likes, and tells the answers: one for each question, in order. `Failed` always is an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ksp.model.info import PodInfo
from ksp.policy.extender import Extender

MOST_PRIORITY: Final = 10
"""The best score that an extender gives."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which of these nodes, by name, may take the pod?"""

    extender: Extender
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prioritize:
    """How good is each of these nodes, by name, for the pod?"""

    extender: Extender
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """Who would have to leave a node, in the order of eviction; the first `violations` of them violate disruption
    budgets."""

    pods: tuple[PodInfo, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class ProcessPreemption:
    """On which of these nodes, by name, may others be evicted for the pod's sake, and who has to go there?"""

    extender: Extender
    victims: Mapping[str, NodeVictims]


Question = Filter | Prioritize | ProcessPreemption


@dataclass(frozen=True, slots=True)
class Ask:
    """The decision for the pod waits for the answers to these questions, of which there is at least one."""

    pod: PodInfo
    questions: tuple[Question, ...]

    def failed(self, message: str) -> tuple[Failed, ...]:
        """The answers if nobody can be asked."""
        return (Failed(message),) * len(self.questions)


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """To Filter: the nodes that may take the pod, by name; why others may not, and why others never will, whoever
    leaves them. A node that is named nowhere may not, for no reason."""

    nodes: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Priorities:
    """To Prioritize: 0 to MOST_PRIORITY by the names of nodes; who is not named scores 0."""

    scores: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class VictimUids:
    """Who has to leave a node, by uid, in the order of eviction, and how many violate disruption budgets."""

    uids: tuple[str, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Victims:
    """To ProcessPreemption: the nodes, by name, that are left."""

    by_node: Mapping[str, VictimUids]


@dataclass(frozen=True, slots=True)
class Failed:
    """To any question: there is no answer. The message says why, as users are to read it."""

    message: str


Answer = FilterAnswer | Priorities | Victims | Failed
