"""Policies that follow each other: profiles come and go, rules get stricter and looser, extenders have a say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from tests.unit.core.scheduling import default_profile, profile_of

from ksp.policy.extender import Extender
from ksp.policy.profile import Profile

ANOTHER: Final = "another"
FILTERS: Final = Extender(
    "http://cpu", filter_verb="filter", prioritize_verb="prioritize", preempt_verb="preempt",
    managed_resources=frozenset({"cpu"}),
)  # fmt: skip
OPTIONAL: Final = Extender("http://all", filter_verb="filter", prioritize_verb="prioritize", ignorable=True, weight=2)
PREEMPTS: Final = Extender("http://preempts", preempt_verb="preempt", bind_verb="bind")


@dataclass(frozen=True)
class Policy:
    """What decides. Each is made once, so that they are told apart by what they are."""

    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Of the schedulers whose pods it decides for."""
        return frozenset(profile.scheduler_name for profile in self.profiles)


@cache
def policies() -> tuple[Policy, ...]:
    """The first is the shipped one."""
    shipped = default_profile()
    spread = next(active for active in shipped.predicates if active.plugin == "PodTopologySpread")
    crowded = profile_of("predicate Crowded { deny 'crowded' when node.podCount >= 2 }", "predicates { Crowded }")
    ssd = profile_of(
        "predicate Slow { deny unresolvable 'slow' when !(\"disk\" in node.labels) }", "predicates { Slow }"
    )
    looser = replace(shipped, predicates=tuple(each for each in shipped.predicates if each is not spread))
    stricter = replace(shipped, predicates=(*shipped.predicates, *crowded.predicates))
    slow = replace(shipped, predicates=(*ssd.predicates, *shipped.predicates))
    second = replace(shipped, scheduler_name=ANOTHER)
    return (
        Policy((shipped,)),
        Policy((looser,)),
        Policy((stricter,)),
        Policy((slow, second)),
        Policy((shipped, replace(stricter, scheduler_name=ANOTHER))),
        Policy((second,)),
        Policy((shipped,), (FILTERS,)),
        Policy((shipped, second), (OPTIONAL, PREEMPTS, FILTERS)),
    )
