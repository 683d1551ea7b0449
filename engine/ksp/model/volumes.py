"""Which claims find an existing volume on a node, and which: the matching half of Kubernetes' volume binder.

Policies call it as `matchVolumes(claims, node)`; `ksp.core.volume_binder` puts to use what was found. The work has two
parts. What a claim may take is the same for all nodes: volumes of its class that are large enough, of its mode, not
being deleted, and promised to it or to nobody. On a node, claims then choose in turn, the smallest first: a volume that
is promised to the claim, or else the smallest that the node reaches. Objects are read as they are given: bindings under
way have to be in them already.

Kubernetes takes any of several volumes of one size, and any of several that are promised to one claim; here it is the
first by name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from operator import is_not
from typing import Any, Final, NamedTuple, NoReturn

from msgspec.structs import replace

from ksp.model.claims import BOUND_BY_CONTROLLER, CLASS, class_name
from ksp.model.info import NodeInfo
from ksp.model.quantity import Quantity, QuantityError, _parse
from ksp.model.reach import RankedVolumes, is_reached
from ksp.model.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)

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
    free: RankedVolumes


Claims = Sequence[PersistentVolumeClaim]
Claim = tuple[str, str]
"""Namespace and name."""


class VolumeMap(dict[str, PersistentVolume]):
    """Volumes by name, as the cluster's state keeps them. Most of those of a large cluster have their claim; the ones
    that a claim may want are found without a look at the others. What the claims that were asked about last may take is
    remembered, since they are asked about for one node after the other. Items are set and deleted one by one; other
    ways to change a dict are closed."""

    def __init__(self) -> None:
        super().__init__()
        self._wanted_by: dict[str | Claim, dict[str, PersistentVolume]] = {}
        self._claims: Claims = ()
        self._wishes: Sequence[_Wish] | None = None

    def __setitem__(self, name: str, volume: PersistentVolume) -> None:
        if name in self:
            self._take_out(name)
        self._wanted_by.setdefault(_wanted_by(volume), {})[name] = volume
        self._wishes = None
        super().__setitem__(name, volume)

    def __delitem__(self, name: str) -> None:
        self._take_out(name)
        self._wishes = None
        super().__delitem__(name)

    def _closed(self, *_arguments: object, **_fields: object) -> NoReturn:
        raise TypeError("a VolumeMap is changed item by item")

    clear = pop = popitem = setdefault = update = __ior__ = _closed

    def _take_out(self, name: str) -> None:
        whose = _wanted_by(self[name])
        del self._wanted_by[whose][name]
        if not self._wanted_by[whose]:
            del self._wanted_by[whose]

    def wishes(self, claims: Claims) -> Sequence[_Wish]:
        """What the claims may take."""
        if self._wishes is None or len(claims) != len(self._claims) or any(map(is_not, claims, self._claims)):
            self._claims, self._wishes = tuple(claims), _wishes(claims, self._candidates)
        return self._wishes

    def _candidates(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Volumes of the claim's class that nobody has, and volumes that name it."""
        whose = (class_name(claim), (claim.metadata.namespace, claim.metadata.name))
        return chain.from_iterable(self._wanted_by.get(each, {}).values() for each in whose)


def _wanted_by(volume: PersistentVolume) -> str | Claim:
    """The claim that the volume names; else the class whose claims may have it."""
    ref = volume.spec.claim_ref
    return _class_of_volume(volume) if ref is None else (ref.namespace, ref.name)


def match_volumes(objects: Mapping[str, Any], claims: Claims, node: NodeInfo) -> tuple[PersistentVolumeClaim, ...]:
    """The claims, in their order, for which there is no volume on the node.

    `objects` has the cluster's volumes by name under `persistentVolumes`. No two claims get the same volume. A claim
    whose size or selector is malformed finds nothing; nobody finds a volume whose capacity is malformed.
    """
    return matching(objects["persistentVolumes"], claims, node.labels).unmatched if claims else ()


class Matching(NamedTuple):
    """What claims find on a node: the `pairs` in the order in which they were chosen, and those that find nothing in
    the order in which they were given. A claim that is given twice may be in both, or in two pairs."""

    pairs: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...]
    unmatched: tuple[PersistentVolumeClaim, ...]


def matching(volumes: Mapping[str, PersistentVolume], claims: Claims, labels: dict[str, str]) -> Matching:
    """As `match_volumes`, for a node with these labels, and with what was found. `volumes` are by name."""
    wishes = volumes.wishes(claims) if isinstance(volumes, VolumeMap) else _wishes(claims, lambda _: volumes.values())
    chosen: dict[str, tuple[PersistentVolume, PersistentVolumeClaim]] = {}
    matched: set[int] = set()
    for wish in wishes:
        volume = _choose(wish, chosen, labels)
        if volume is not None:
            chosen[volume.metadata.name] = volume, claims[wish.place]
            matched.add(wish.place)
    unmatched = tuple(claim for place, claim in enumerate(claims) if place not in matched)
    return Matching(tuple(chosen.values()), unmatched)


# ---- promises


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """What a volume that is promised to the claim has as its `claimRef`."""
    who = claim.metadata
    return ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace=who.namespace, name=who.name, uid=who.uid,
        resource_version=who.resource_version,
    )  # fmt: skip


def is_promised(volume: PersistentVolume, to: ObjectReference) -> bool:
    """Whether the volume names that claim: this very object, if it names a uid."""
    ref = volume.spec.claim_ref
    return ref is not None and (ref.name, ref.namespace) == (to.name, to.namespace) and ref.uid in ("", to.uid)


def promised(volume: PersistentVolume, to: ObjectReference) -> PersistentVolume:
    """The volume, promised to that claim as kube-scheduler does it (GetBindVolumeToClaim): the whole reference, and the
    annotation which says that it was not the volume's owner who promised it, unless he had. The same object if it has
    all that."""
    ref = volume.spec.claim_ref
    before = is_promised(volume, to)
    if before and ref is not None and ref.uid == to.uid:
        return volume
    annotations = volume.metadata.annotations
    if not before:
        annotations = {BOUND_BY_CONTROLLER: "yes"} | annotations
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=annotations),
        spec=replace(volume.spec, claim_ref=to),
    )


# ---- what is the same for all nodes


def _wishes(
    claims: Claims, candidates: Callable[[PersistentVolumeClaim], Iterable[PersistentVolume]]
) -> Sequence[_Wish]:
    """The claims that can find something, in the order in which they choose: the smallest first, then as given.
    `candidates` gives, of all volumes, at least those that a claim may take."""
    sized = [
        (size, place)
        for place, claim in enumerate(claims)
        if (size := _size(claim.spec.resources.requests.get("storage", 0))) is not None and not _malformed(claim.spec)
    ]
    wishes = [_wish(place, claims[place], size, candidates(claims[place])) for size, place in sorted(sized)]
    return [wish for wish in wishes if wish.promised or wish.free.volumes]


def _wish(place: int, claim: PersistentVolumeClaim, size: Decimal, volumes: Iterable[PersistentVolume]) -> _Wish:
    named: list[PersistentVolume] = []
    free: list[tuple[Decimal, str, PersistentVolume]] = []
    wanted, mode, who = class_name(claim), _mode(claim.spec), reference_to(claim)
    for volume in volumes:
        if _class_of_volume(volume) != wanted or volume.metadata.deletion_timestamp is not None:
            continue
        capacity = _size(volume.spec.capacity.get("storage", 0))
        if capacity is None or capacity < size or _mode(volume.spec) != mode:
            continue
        if volume.spec.claim_ref is None:
            if _is_free_for(volume, claim.spec):
                free.append((capacity, volume.metadata.name, volume))
        elif is_promised(volume, who):
            named.append(volume)
    return _Wish(
        place,
        sorted(named, key=lambda volume: volume.metadata.name),
        RankedVolumes([volume for _, _, volume in sorted(free, key=lambda entry: entry[:2])]),
    )


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


def _class_of_volume(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(CLASS, volume.spec.storage_class_name)


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


def _choose(wish: _Wish, chosen: Container[str], labels: dict[str, str]) -> PersistentVolume | None:
    """The volume that the claim gets on a node with these labels, given those that other claims got."""
    for volume in wish.promised:
        if volume.metadata.name not in chosen:
            return volume if is_reached(volume, labels) else None
    return wish.free.best(labels, chosen)
