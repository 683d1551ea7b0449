"""The shipped rules, for a scheduler of any name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from ksp.check.bind_timeout import BIND_TIMEOUT, VOLUME_BINDING
from ksp.policy.assemble import Policy
from ksp.policy.extender import Extender
from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.source.origin import Texts


def default_policy(scheduler_name: str, bind_timeout: int | None = None, extenders: Sequence[Extender] = ()) -> Policy:
    """`bind_timeout`: the seconds in which claims have to be bound, if not those of the policy."""
    profiles = (replace(profile, scheduler_name=scheduler_name) for profile in _default())
    if bind_timeout is not None:
        profiles = (_with_timeout(profile, bind_timeout) for profile in profiles)
    return Policy("default", "not hashed", tuple(profiles), tuple(extenders))


def _with_timeout(profile: Profile, seconds: int) -> Profile:
    predicates = (
        replace(each, arguments={**each.arguments, BIND_TIMEOUT: seconds}) if each.plugin == VOLUME_BINDING else each
        for each in profile.predicates
    )
    return replace(profile, predicates=tuple(predicates))


@cache
def _default() -> tuple[Profile, ...]:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    return tuple(profiles(module))
