"""From a text to what a legacy Policy comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ksp.policy.legacy.decoding import decoded
from ksp.policy.legacy.mistakes import LegacyPolicyError, Mistake
from ksp.policy.legacy.model import LegacyPolicy
from ksp.policy.legacy.reading import read_value
from ksp.policy.legacy.translation import Configured, translated

RULES: Final = "ksp:legacy.ksp"
"""The shipped file with every rule that a Policy can name."""
DEFAULT_SCHEDULER: Final = "default-scheduler"


def read_policy(text: str, name: str, scheduler_name: str = DEFAULT_SCHEDULER) -> LegacyPolicy:
    """The Policy in a text, JSON or YAML, which is known by `name`. Raises LegacyPolicyError with all that is wrong: of
    the text, of its fields, and of what it comes to for the pods of that scheduler."""
    return policy_of(read_value(text, name), name, scheduler_name)


def policy_of(value: Mapping[str, Any], name: str, scheduler_name: str = DEFAULT_SCHEDULER) -> LegacyPolicy:
    """The same from a value, as JSON parsers give it."""
    policy, unread = decoded(value, name)
    mistakes = (*unread, *_others(translated(policy, scheduler_name)[1], unread))
    if mistakes:
        raise LegacyPolicyError(name, mistakes)
    return policy


def _others(mistakes: Iterable[Mistake], unread: Iterable[Mistake]) -> Iterator[Mistake]:
    """Those that are not of a part of which something could not be read, nor lie in such a part."""
    unreadable = {each.pointer for each in unread}
    around = {outer for pointer in unreadable for outer in _outwards(pointer)}
    for each in mistakes:
        if each.pointer not in around and unreadable.isdisjoint(_outwards(each.pointer)):
            yield each


def _outwards(pointer: str) -> Iterator[str]:
    """The place itself, and those around it."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]


def configuration(policy: LegacyPolicy, scheduler_name: str = DEFAULT_SCHEDULER) -> Configured:
    """What a Policy comes to. Raises LegacyPolicyError for one that was not read, but made, and is not valid."""
    configured, mistakes = translated(policy, scheduler_name)
    if mistakes:
        raise LegacyPolicyError(policy.name, mistakes)
    return configured


def read_and_configure(text: str, name: str, scheduler_name: str = DEFAULT_SCHEDULER) -> Configured:
    """Both in one."""
    return configuration(read_policy(text, name, scheduler_name), scheduler_name)
