"""PersistentVolumeClaims: which a pod uses, and what their annotations and classes say.

The names of annotations, and what follows from them, are those of Kubernetes' volume controller
(`k8s.io/component-helpers/storage/volume`) and of its ephemeral volumes (`.../storage/ephemeral`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ksp.model.meta import ObjectMeta
from ksp.model.pod import PodSpec
from ksp.model.storage import PersistentVolumeClaim, StorageClass, TopologySelectorTerm

CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Of a claim or a volume: its class, from before there was a field."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Of a claim: the node for whose sake a volume is to be made. The provisioner takes it away if it cannot."""
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Of a claim: the volume controller has bound both sides."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Of a volume: its promise is not its owner's, so it ends with the claim."""

WAITS_FOR_POD: Final = "WaitForFirstConsumer"
LOST: Final = "Lost"
NO_PROVISIONER: Final = frozenset({"", "kubernetes.io/no-provisioner"})


class ClaimUse(NamedTuple):
    """The name of a claim in the pod's namespace. An `ephemeral` one is made for the pod, and has to belong to it."""

    name: str
    ephemeral: bool


def claim_uses(metadata: ObjectMeta, spec: PodSpec) -> Iterator[ClaimUse]:
    """The claims of a pod's volumes, in order; a claim that two volumes name stands there twice."""
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimUse(volume.persistent_volume_claim.claim_name, ephemeral=False)
        elif volume.ephemeral is not None:
            yield ClaimUse(f"{metadata.name}-{volume.name}", ephemeral=True)


def claim_names_of(metadata: ObjectMeta, spec: PodSpec) -> tuple[str, ...]:
    """The names alone."""
    return tuple(use.name for use in claim_uses(metadata, spec))


def is_made_for(claim: PersistentVolumeClaim, pod: ObjectMeta) -> bool:
    """Whether the claim's controller is that pod: this very object, not one of its name."""
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    return controller is not None and controller.uid == pod.uid


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Bound, and the binding is complete."""
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def class_name(claim: PersistentVolumeClaim) -> str:
    """The old annotation wins over the field, even if it is empty."""
    return claim.metadata.annotations.get(CLASS, claim.spec.storage_class_name or "")


def can_provision(storage_class: StorageClass, labels: Mapping[str, str]) -> bool:
    """Whether volumes of the class can be made for a node with these labels."""
    terms = storage_class.allowed_topologies
    return storage_class.provisioner not in NO_PROVISIONER and (
        not terms or any(_term_matches(term, labels) for term in terms)
    )


def _term_matches(term: TopologySelectorTerm, labels: Mapping[str, str]) -> bool:
    """All its expressions do; one without any matches nothing."""
    expressions = term.match_label_expressions
    return bool(expressions) and all(labels.get(each.key) in each.values for each in expressions)
