"""Policies to texts and back, many of them: the shipped library is checked once, its rules are compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.unit.policy.legacy.policies import Json

from ksp.check.program import Checker, Module
from ksp.policy.legacy import RULES, policy_of
from ksp.policy.legacy.conversion import Conversion, converted
from ksp.policy.plugins import profile_of
from ksp.policy.profile import Profile, ProfileBuilder
from ksp.source.text import Source


class Growing:
    """Texts to which more are added: the shipped library is checked once for all of them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, text: str) -> str:
        key = f"{len(self.texts)}.ksp"
        self.texts[key] = text
        return key

    def read(self, path: str) -> Source | None:
        return Source(path, self.texts[path]) if path in self.texts else None

    def files(self) -> Iterator[str]:
        return iter(self.texts)


TEXTS = Growing()
CHECKER = Checker(TEXTS)


@cache
def rules() -> Module:
    module = CHECKER.check(RULES)
    assert module is not None
    return module


@cache
def builder() -> ProfileBuilder:
    return ProfileBuilder()


def convert(fields: Json, name: str = "policy.json", **settings: Any) -> Conversion:
    """A Policy, converted with the shipped rules."""
    return converted(policy_of(fields, name), rules(), **settings)


def read_back(conversion: Conversion) -> Profile:
    """The profile that the text declares."""
    module = CHECKER.check(TEXTS.add(conversion.text))
    assert not CHECKER.report.failed, CHECKER.report.found
    assert module is not None
    (profile,) = module.profiles()
    return builder().of(profile)


def meant(conversion: Conversion) -> Profile:
    """The profile that the Policy is."""
    return profile_of(conversion.plugins, rules(), builder(), "default-scheduler")
