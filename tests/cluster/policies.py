"""The shipped rules, for a scheduler of any name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.runtime.options import Policy
from ksp.source.origin import Texts


def default_policy(scheduler_name: str) -> Policy:
    profiles = tuple(replace(profile, scheduler_name=scheduler_name) for profile in _default())
    return Policy("default", "not hashed", profiles)


@cache
def _default() -> tuple[Profile, ...]:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    return tuple(profiles(module))
