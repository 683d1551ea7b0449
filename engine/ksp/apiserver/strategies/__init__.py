"""The rules of the kinds: a strategy for each resource."""

from typing import Final

from ksp.apiserver.resources import Resource
from ksp.apiserver.strategies.base import Plain
from ksp.apiserver.strategies.configuration import ConfigMaps, Secrets, ServiceAccounts
from ksp.apiserver.strategies.events import Events, NewEvents
from ksp.apiserver.strategies.leases import Leases
from ksp.apiserver.strategies.nodes import Namespaces, Nodes
from ksp.apiserver.strategies.pods import Pods
from ksp.apiserver.strategies.scheduling import PodDisruptionBudgets, PriorityClasses
from ksp.apiserver.strategies.services import Endpoints, Services
from ksp.apiserver.strategies.storage import CSIDrivers, CSINodes, StorageClasses, VolumeAttachments
from ksp.apiserver.strategies.volumes import PersistentVolumeClaims, PersistentVolumes
from ksp.apiserver.strategies.workloads import (
    DaemonSets,
    Deployments,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
)
from ksp.apiserver.strategy import Strategy

STRATEGIES: Final[dict[str, Strategy]] = {
    "configmaps": ConfigMaps(),
    "endpoints": Endpoints(),
    "events": Events(),
    "namespaces": Namespaces(),
    "nodes": Nodes(),
    "persistentvolumeclaims": PersistentVolumeClaims(),
    "persistentvolumes": PersistentVolumes(),
    "pods": Pods(),
    "replicationcontrollers": ReplicationControllers(),
    "secrets": Secrets(),
    "serviceaccounts": ServiceAccounts(),
    "services": Services(),
    "daemonsets.apps": DaemonSets(),
    "deployments.apps": Deployments(),
    "replicasets.apps": ReplicaSets(),
    "statefulsets.apps": StatefulSets(),
    "leases.coordination.k8s.io": Leases(),
    "events.events.k8s.io": NewEvents(),
    "poddisruptionbudgets.policy": PodDisruptionBudgets(),
    "priorityclasses.scheduling.k8s.io": PriorityClasses(),
    "csidrivers.storage.k8s.io": CSIDrivers(),
    "csinodes.storage.k8s.io": CSINodes(),
    "storageclasses.storage.k8s.io": StorageClasses(),
    "volumeattachments.storage.k8s.io": VolumeAttachments(),
}
"""By the resource's id; a kind that is not here has no rules but those of metadata."""

_PLAIN: Final = Plain()


def strategy_of(resource: Resource) -> Strategy:
    return STRATEGIES.get(resource.id, _PLAIN)
