"""What a pod asks for and a profile does not read.

The API grows: a pod may ask for devices, for a gang, for namespaces by selector. A rule that was written before cannot
know, and would put the pod where it must not be. Which of the fields in `ksp.policy.api_fields` a profile reads follows
from the footprints of its rules, so that a policy which reads `minDomains` is trusted with it. Of the rest, those whose
guarantee would break keep their pods waiting, and for the others the pod's user is warned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ksp.model.info import PodInfo
from ksp.policy.api_fields import FIELDS, PROTECTING, ApiField, Without
from ksp.policy.profile import Profile


class UnreadFields(Enum):
    """What becomes of pods with unread fields. REFUSE: where a guarantee would break they wait, else a warning is
    written. WARN: warnings only. IGNORE: nothing."""

    REFUSE = "refuse"
    WARN = "warn"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Unread:
    """The unread fields that a pod uses: for those `refused` it waits, of those `warned` its user is told."""

    refused: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


NOTHING: Final = Unread()


class UnreadBy:
    """Finds the fields that a pod uses and one profile does not read."""

    def __init__(self, profile: Profile, mode: UnreadFields) -> None:
        self.mode = mode
        self._name = profile.scheduler_name
        self._parts = _by_part(() if mode is UnreadFields.IGNORE else unread_fields(profile))

    def of(self, pod: PodInfo) -> Unread:
        """The unread fields that the pod uses. Takes about a microsecond for a pod that uses none."""
        spec = pod.spec
        found = [field for part, fields in self._parts if getattr(spec, part) for field in fields if field.used(pod)]
        if not found:
            return NOTHING
        refused = {f.path for f in found if f.without is Without.BROKEN and self.mode is UnreadFields.REFUSE}
        paths = dict.fromkeys(field.path for field in found)
        return Unread(tuple(p for p in paths if p in refused), tuple(p for p in paths if p not in refused))

    def refusal(self, unread: Unread) -> str:
        """Why the pod waits, and what to do."""
        them = "it" if len(unread.refused) == 1 else "them"
        return (
            f"{self._said(unread.refused)}: add a predicate that reads {them}, "
            f"or let ksp ignore {them} with --unread-fields=warn"
        )

    def warning(self, unread: Unread) -> str:
        """What the pod's user is told."""
        return f"{self._said(unread.warned)}: {'it is' if len(unread.warned) == 1 else 'they are'} ignored"

    def _said(self, paths: Sequence[str]) -> str:
        return f'pod uses {_listed(paths)}, which the policy does not read (profile "{self._name}")'


class UnreadOfRunning:
    """Finds what does not protect a running pod: fields of its required anti-affinity that a profile does not read of
    the pods that run. Newcomers are kept away from it only as far as the rest of its terms says."""

    def __init__(self, profiles: Iterable[Profile], mode: UnreadFields) -> None:
        unread = {} if mode is UnreadFields.IGNORE else {f: None for p in profiles for f in unread_of_running(p)}
        self._fields = tuple(unread)

    def of(self, pod: PodInfo) -> tuple[str, ...]:
        """The paths of such fields that the pod uses."""
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None:
            return ()
        return tuple(field.path for field in self._fields if field.used(pod))

    @staticmethod
    def warning(paths: Sequence[str]) -> str:
        """What the pod's user is told."""
        return (
            f"pod uses {_listed(paths)}, which the policy does not read of pods that run: "
            "newcomers are not kept away from it as it demands"
        )


def unread_fields(profile: Profile) -> list[ApiField]:
    """The fields that the profile's rules do not read of the pod that is to be placed.

    A demand is read if a predicate reads it, a wish if any rule does.
    """
    demands = {path for active in profile.predicates for path in active.footprint.fields.pod}
    wishes = demands | {path for active in profile.priorities for path in active.footprint.fields.pod}
    return [field for field in FIELDS if not field.is_in(wishes if field.without is Without.WORSE else demands)]


def unread_of_running(profile: Profile) -> list[ApiField]:
    """The fields by which a running pod keeps newcomers away, and that no predicate reads of running pods."""
    rows = {path for active in profile.predicates for path in active.footprint.fields.rows}
    return [field for field in PROTECTING if not field.is_in(rows)]


def _by_part(fields: Iterable[ApiField]) -> tuple[tuple[str, tuple[ApiField, ...]], ...]:
    parts: dict[str, list[ApiField]] = {}
    for field in fields:
        parts.setdefault(field.part, []).append(field)
    return tuple((part, tuple(inside)) for part, inside in parts.items())


def _listed(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{', '.join(paths[:-1])} and {paths[-1]}"
