"""`--feature-gates NAME=true,NAME=false`, as Kubernetes' commands take them.

One gate is ksp's own. Those of kube-scheduler 1.19 that decide where pods go are fixed here: the policy says what they
said, so another value than the rules have is an error. Those of other components are accepted, as all components of a
cluster are often given the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import click

from ksp.check.report import did_you_mean
from ksp.cli.scheduler_flags.values import WORDS

EQUIVALENCE_CLASSES: Final = "EnableEquivalenceClassCache"

DEFAULTS: Final = {EQUIVALENCE_CLASSES: True}
"""The gates of ksp, and what each is if nobody says."""

RULES: Final = {
    "AttachVolumeLimit": True, "BalanceAttachedNodeVolumes": False, "CSIStorageCapacity": False,
    "DefaultPodTopologySpread": False, "EvenPodsSpread": True, "LocalStorageCapacityIsolation": True,
    "NonPreemptingPriority": True, "PodDisruptionBudget": True, "PodOverhead": True, "PodPriority": True,
    "TaintNodesByCondition": True, "VolumeScheduling": True, "AllAlpha": False, "AllBeta": False,
}  # fmt: skip
"""The gates of kube-scheduler 1.19 that change decisions, with the value that the shipped rules act by."""

_NAMES: Final = """
    APIListChunking APIPriorityAndFairness APIResponseCompression AdvancedAuditing AllowInsecureBackendProxy
    AnyVolumeDataSource AppArmor BlockVolume BoundServiceAccountTokenVolume CPUCFSQuotaPeriod CPUManager
    CRIContainerLogRotation CSIBlockVolume CSIDriverRegistry CSIInlineVolume CSIMigration CSIMigrationAWS
    CSIMigrationAWSComplete CSIMigrationAzureDisk CSIMigrationAzureDiskComplete CSIMigrationAzureFile
    CSIMigrationAzureFileComplete CSIMigrationGCE CSIMigrationGCEComplete CSIMigrationOpenStack
    CSIMigrationOpenStackComplete CSIMigrationvSphere CSIMigrationvSphereComplete CSINodeInfo
    CSIPersistentVolume CSIVolumeFSGroupPolicy ConfigurableFSGroupPolicy CustomResourceDefaulting DevicePlugins
    DryRun DynamicKubeletConfig EndpointSlice EndpointSliceProxying EphemeralContainers ExpandCSIVolumes
    ExpandInUsePersistentVolumes ExpandPersistentVolumes ExperimentalHostUserNamespaceDefaulting
    GenericEphemeralVolume HPAScaleToZero HugePageStorageMediumSize HyperVContainer IPv6DualStack
    ImmutableEphemeralVolumes KubeletPodResources LegacyNodeRoleBehavior
    LocalStorageCapacityIsolationFSQuotaMonitoring MountContainers NodeDisruptionExclusion NodeLease
    PersistentLocalVolumes PodShareProcessNamespace ProcMountType QOSReserved RemainingItemCount RemoveSelfLink
    ResourceQuotaScopeSelectors RotateKubeletClientCertificate RotateKubeletServerCertificate RunAsGroup
    RuntimeClass SCTPSupport ScheduleDaemonSetPods SelectorIndex ServerSideApply ServiceAccountIssuerDiscovery
    ServiceAppProtocol ServiceLoadBalancerFinalizer ServiceNodeExclusion ServiceTopology SetHostnameAsFQDN
    StartupProbe StorageObjectInUseProtection StorageVersionHash StreamingProxyRedirects SupportIPVSProxyMode
    SupportNodePidsLimit SupportPodPidsLimit Sysctls TTLAfterFinished TaintBasedEvictions TokenRequest
    TokenRequestProjection TopologyManager ValidateProxyRedirects VolumePVCDataSource VolumeSnapshotDataSource
    VolumeSubpath VolumeSubpathEnvExpansion WarningHeaders WinDSR WinOverlay WindowsGMSA WindowsRunAsUserName
"""
OTHERS: Final = frozenset(_NAMES.split())
"""Gates of Kubernetes 1.19 that no scheduler asks."""


@dataclass(frozen=True, slots=True)
class Gates:
    """`own` are ksp's gates with their values, `meaningless` the names of those that change nothing here."""

    own: dict[str, bool]
    meaningless: tuple[str, ...]


def feature_gates(given: Iterable[str]) -> Gates:
    """What several values of the flag come to; the last one about a gate counts, as in Kubernetes. Raises BadParameter
    with all that is wrong."""
    said: dict[str, bool] = {}
    errors = []
    for pair in (part.strip() for text in given for part in text.split(",")):
        name, equals, word = (part.strip() for part in pair.partition("="))
        if not pair:
            continue
        error = _unknown(name) or _unclear(pair, name, word if equals else "") or _not_ours(name, word)
        if error:
            errors.append(error)
        else:
            said[name] = WORDS[word]
    if errors:
        raise click.BadParameter("; ".join(errors), param_hint="'--feature-gates'")
    own = DEFAULTS | {name: value for name, value in said.items() if name in DEFAULTS}
    return Gates(own, tuple(name for name in said if name not in DEFAULTS))


def _unknown(name: str) -> str:
    if name in DEFAULTS or name in RULES or name in OTHERS:
        return ""
    meant = did_you_mean(name, [*DEFAULTS, *RULES, *OTHERS])
    return f"there is no feature gate `{name}`: {meant or 'there is ' + EQUIVALENCE_CLASSES}"


def _unclear(pair: str, name: str, word: str) -> str:
    if word in WORDS:
        return ""
    return f"`{pair}` does not say true or false: write {name}=true or {name}=false"


def _not_ours(name: str, word: str) -> str:
    if name not in RULES or RULES[name] is WORDS[word]:
        return ""
    there = "true" if RULES[name] else "false"
    return f"{name} is {there} here: what kube-scheduler's gate decides, a policy says in its rules"


def own_gates(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, bool]:
    """The callback of an option that may be given several times: ksp's gates with their values."""
    return feature_gates(given).own
