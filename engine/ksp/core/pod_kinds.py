"""Which pods the rules of a profile cannot tell apart, whatever happens in the cluster.

A rule is a function of what its footprint names. So two pods of one profile that are equal in all that its predicates
read of a pod get the same verdicts at any time, on any node. What the machinery reads beside that is their namespace
and claims (which must be there, and belong to the very pod if they are made for it), their priority (nominated pods of
the same or a higher one count, lower ones may be evicted) and whether they may preempt.

Pods of one template are of one kind unless rules read what differs: their names, or labels that are their own, as pods
of a StatefulSet or of an indexed Job have. Of volumes the names differ, since each pod gets one with a token of its
own: they count only if some rule reads the names of volumes, or takes volumes as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import msgpack
from msgspec.structs import replace

from ksp.check.schema import fields_of
from ksp.compile.footprint import Footprint
from ksp.model.info import PodInfo
from ksp.model.pod import Volume
from ksp.policy.profile import Profile

_ENCODED: Final = msgpack.Encoder(order="deterministic").encode
_DERIVED: Final = dict.fromkeys(  # from the spec: decoded selectors are no data
    ("requiredAffinity", "preferredAffinity", "requiredAntiAffinity", "preferredAntiAffinity", "affinityError"),
    "spec.affinity",
)
_MACHINERY: Final = ("namespace", "claimNames", "spec.priority", "spec.preemptionPolicy")
VOLUMES: Final = "spec.volumes"
WHOLE: Final = "*"

Values = Callable[[PodInfo], Any]


class PodKinds:
    """The kinds of pods, by the profile that decides for them."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._values = {profile.scheduler_name: _values(profile) for profile in profiles}

    def of(self, pod: PodInfo) -> Hashable:
        """Equal for pods that are alike."""
        values = self._values.get(pod.scheduler_name)
        if values is None or _has_claims_of_its_own(pod):
            return pod.uid
        return pod.scheduler_name, _ENCODED(values(pod))


def _has_claims_of_its_own(pod: PodInfo) -> bool:
    """For a generic ephemeral volume a claim is made, which another pod could name, too, and only this one may use."""
    return bool(pod.claim_names) and any(volume.ephemeral is not None for volume in pod.spec.volumes)


def _values(profile: Profile) -> Values | None:
    """What the profile reads of a pod, as a function of it; None if that is everything."""
    paths = {path for active in profile.predicates for path in active.footprint.pod} | {*_MACHINERY}
    if WHOLE in paths or paths & {"metadata", "spec", "status"}:
        return None
    named = any(_reads_names_of_volumes(active.footprint) for active in profile.predicates)
    heads = {_DERIVED.get(head, head) for head in map(_head, paths)}
    if named or VOLUMES not in heads:
        return attrgetter(*sorted(map(_attributes, heads)))
    fields = attrgetter(*sorted(_attributes(head) for head in heads - {VOLUMES}))
    return lambda pod: (fields(pod), _without_names(pod.spec.volumes))


def _reads_names_of_volumes(footprint: Footprint) -> bool:
    """Or may, as it takes volumes as they are."""
    return not footprint.fields.structs.isdisjoint({"Volume", "Volume.name"})


def _without_names(volumes: Sequence[Volume]) -> list[Volume]:
    return [replace(volume, name="") for volume in volumes]


def _head(path: str) -> str:
    """As far as it names fields that every pod has: the first, or of metadata, spec and status the second."""
    first, *rest = path.split("[", maxsplit=1)[0].split(".")
    return f"{first}.{rest[0]}" if rest and first in ("metadata", "spec", "status") else first


def _attributes(path: str) -> str:
    """The Python attributes that a path in the words of the language leads along."""
    steps: list[str] = []
    owner = "Pod"
    for name in path.split("."):
        field = fields_of(owner)[name]
        steps += field.path
        owner = getattr(field.type, "name", "")
    return ".".join(steps)
