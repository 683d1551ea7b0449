"""Which claims find an existing volume on a node: the matching half of Kubernetes' volume binder.

Policies call it as `matchVolumes(claims, node)`. The work has two parts. What a claim may take is the same for all
nodes: volumes of its class that are large enough, of its mode, not being deleted, and promised to it or to nobody. On a
node, claims then choose in turn, the smallest first: a volume that is promised to the claim, or else the smallest that
the node reaches. Objects are read as they are given: bindings under way have to be in them already.

Kubernetes takes any of several volumes of one size, and any of several that are promised to one claim; here it is the
first by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from ksp.model.info import NodeInfo
from ksp.model.quantity import Quantity, QuantityError, _parse
from ksp.model.selector import node_selector_term_matches_labels
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"

# Far beyond any amount, and well within what Decimal can hold.
_MAX_EXPONENT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Wish:
    """A claim at its place among the given ones, and what it may take on a node that reaches it, best first.

    `promised` are the volumes that name the claim: the first that is not chosen yet is what it gets, or nothing. A pod
    may name a claim twice, so that it can be chosen already.
    """

    place: int
    promised: Sequence[PersistentVolume]
    free: Sequence[PersistentVolume]


def match_volumes(
    objects: Mapping[str, Any], claims: Sequence[PersistentVolumeClaim], node: NodeInfo
) -> tuple[PersistentVolumeClaim, ...]:
    """The claims, in their order, for which there is no volume on the node.

    `objects` has the cluster's volumes by name under `persistentVolumes`. No two claims get the same volume. A claim
    whose size or selector is malformed finds nothing; nobody finds a volume whose capacity is malformed.
    """
    if not claims:
        return ()
    chosen: set[str] = set()
    matched: set[int] = set()
    for wish in _wishes(claims, objects["persistentVolumes"]):
        volume = _choose(wish, chosen, node.labels)
        if volume is not None:
            chosen.add(volume.metadata.name)
            matched.add(wish.place)
    return tuple(claim for place, claim in enumerate(claims) if place not in matched)


# ---- what is the same for all nodes


def _wishes(claims: Sequence[PersistentVolumeClaim], volumes: Mapping[str, PersistentVolume]) -> Iterable[_Wish]:
    """The claims that can find something, in the order in which they choose: the smallest first, then as given."""
    sized = [
        (size, place)
        for place, claim in enumerate(claims)
        if (size := _size(claim.spec.resources.requests.get("storage", 0))) is not None and not _malformed(claim.spec)
    ]
    return (_wish(place, claims[place], size, volumes) for size, place in sorted(sized))


def _wish(place: int, claim: PersistentVolumeClaim, size: Decimal, volumes: Mapping[str, PersistentVolume]) -> _Wish:
    promised: list[PersistentVolume] = []
    free: list[tuple[Decimal, str, PersistentVolume]] = []
    wanted, mode = _class_of_claim(claim), _mode(claim.spec)
    for volume in volumes.values():
        if _class_of_volume(volume) != wanted or volume.metadata.deletion_timestamp is not None:
            continue
        capacity = _size(volume.spec.capacity.get("storage", 0))
        if capacity is None or capacity < size or _mode(volume.spec) != mode:
            continue
        if volume.spec.claim_ref is None:
            if _is_free_for(volume, claim.spec):
                free.append((capacity, volume.metadata.name, volume))
        elif _is_promised(volume, claim):
            promised.append(volume)
    return _Wish(
        place,
        sorted(promised, key=lambda volume: volume.metadata.name),
        [volume for _, _, volume in sorted(free, key=lambda entry: entry[:2])],
    )


def _is_promised(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names the claim: this very object, if it names a uid."""
    to, who = volume.spec.claim_ref, claim.metadata
    return to is not None and (to.name, to.namespace) == (who.name, who.namespace) and to.uid in ("", who.uid)


def _is_free_for(volume: PersistentVolume, wanted: PersistentVolumeClaimSpec) -> bool:
    """What is asked of a volume only if it is not promised."""
    return (
        volume.status.phase == "Available"
        and (wanted.selector is None or wanted.selector.matcher(volume.metadata.labels))
        and set(wanted.access_modes).issubset(volume.spec.access_modes)
    )


def _malformed(wanted: PersistentVolumeClaimSpec) -> bool:
    """The binder gives up on a claim with a malformed selector before it looks at any volume, a promised one too."""
    return wanted.selector is not None and wanted.selector.error != ""


def _class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The old annotation wins over the field, even if it is empty."""
    return claim.metadata.annotations.get(CLASS_ANNOTATION, claim.spec.storage_class_name or "")


def _class_of_volume(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(CLASS_ANNOTATION, volume.spec.storage_class_name)


def _mode(spec: PersistentVolumeClaimSpec | PersistentVolumeSpec) -> str:
    return "Filesystem" if spec.volume_mode is None else spec.volume_mode


@lru_cache(maxsize=65_536)
def _size(amount: Quantity) -> Decimal | None:
    """The exact amount, without the rounding to whole units that resources have; None if it is not a quantity."""
    try:
        digits, scale, shift = _parse(amount.strip() if isinstance(amount, str) else repr(amount))
    except QuantityError:
        return None
    return Decimal(f"{digits << shift}e{max(-_MAX_EXPONENT, min(scale, _MAX_EXPONENT))}")


# ---- what depends on the node


def _choose(wish: _Wish, chosen: set[str], labels: dict[str, str]) -> PersistentVolume | None:
    """The volume that the claim gets on a node with these labels, given those that other claims got."""
    for volume in wish.promised:
        if volume.metadata.name not in chosen:
            return volume if _reaches(volume, labels) else None
    for volume in wish.free:
        if volume.metadata.name not in chosen and _reaches(volume, labels):
            return volume
    return None


def _reaches(volume: PersistentVolume, labels: dict[str, str]) -> bool:
    """Whether the volume can be used on a node with these labels."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(node_selector_term_matches_labels(term, labels) for term in affinity.required.node_selector_terms)
