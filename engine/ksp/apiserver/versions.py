"""What differs between the emulated versions, as data: a flag is named for the behaviour that it switches."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Version:
    """One emulated kube-apiserver. All flags are those of the older one when off."""

    name: str
    minor: int
    self_links: bool = False
    """metadata.selfLink on every object and list."""
    null_creation_timestamps: bool = False
    """`"creationTimestamp": null` inside templates and other metadata that was never stored."""
    pod_generation: bool = False
    namespace_name_label: bool = False
    """kubernetes.io/metadata.name on namespaces."""
    field_validation: bool = False
    """The parameter fieldValidation is known; Warn is its default."""
    binding_preconditions: bool = False
    """uid and resourceVersion of a Binding are compared; its namespace must fit; its labels are copied."""
    scheduling_gates: bool = False
    deletion_revision: bool = False
    """A DELETE answers the object with the resourceVersion of the deletion."""
    bad_revision_is_400: bool = False
    """A malformed resourceVersion of a list, a malformed patch and malformed DeleteOptions are 400 and not 500."""
    gone_update_is_404: bool = False
    """PUT with a uid and resourceVersion of what is gone is 404, not 409."""
    cached_lists_sorted: bool = False
    """Lists from the watch cache come by key; else in any order."""
    cached_history: bool = False
    """Lists at old versions are served from snapshots of the cache, also after a compaction."""
    cached_events: bool = False
    """events have a watch cache."""
    watch_list: bool = False
    """sendInitialEvents is known; a watch from the start with bookmarks ends its initial events with one."""
    openapi_v3: bool = False
    aggregated_discovery: bool = False
    deprecation_warnings: bool = False
    lists_representations: bool = False
    """A 406 says what there is."""
    restart_writes: int = 0
    """Revisions that a new process takes for objects of its own (its lease, ...) before it serves."""
    selector_operators: str = "'=', '!=', '==', 'in', notin'"
    """How the error of a malformed label selector lists them."""
    partial_lists_count: bool = False
    """A PartialObjectMetadataList has its remainingItemCount."""
    tracks_legacy_tokens: bool = False
    """There is a configmap for it in kube-system."""
    shared_delete_options: bool = True
    """In a delete of a collection, the grace that one object came to is the one that is asked of the next."""
    options_scheme: str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
    """Where the kinds of options are registered, as errors name it."""
    json_values: bool = False
    """Lists inside of messages are written as JSON, not as Go does."""
    plain_404: bool = False
    """An unknown path is text/plain, not a JSON list of paths."""
    lowercase_rfc_1123: bool = False
    """Refusals of names speak of `a lowercase RFC 1123 subdomain`, not of `a DNS-1123 subdomain`."""
    may_not_be_more_than: bool = False
    """Refusals of long texts say `may not be more than`, not `must have at most`."""
    names_limits: bool = False
    """Refusals of a request above its limit say what the limit is."""
    doubled_names_last: bool = False
    """A container's doubled name is found after its other mistakes."""
    copies_topology: bool = False
    """Region and zone of its node become labels of a pod."""
    negative_grace_is_1: bool = False
    """A negative gracePeriodSeconds counts as 1."""
    phase_times: bool = False
    """status.lastPhaseTransitionTime of volumes."""
    claim_retention: bool = False
    """spec.persistentVolumeClaimRetentionPolicy and status.availableReplicas of stateful sets."""
    dual_stack: bool = False
    """clusterIPs, families and internalTrafficPolicy of services, and a DELETE that answers the service."""
    capital_value: bool = False
    """The value of a priority class is called `Value` where it is refused."""
    immutable_events: bool = False
    """Of an event in events.k8s.io/v1 only the series changes."""
    disruption_target: bool = False
    """An eviction sets the condition DisruptionTarget of the pod, and DisruptionAllowed of a budget that is used up."""
    eviction_retry_after: bool = False
    """An eviction under a budget that is still new to its controller says when to ask again."""
    eviction_says_currently: bool = False
    """An eviction is refused in other words if there are more healthy pods than needed."""
    empty_budget_is_all: bool = False
    """An empty selector of a disruption budget selects all pods, not none."""
    restarts_say_when: bool = False
    """kubectl's column of restarts is a text, with the time of the last."""
    preemption_column: bool = False
    """kubectl shows the preemptionPolicy of priority classes."""
    series_count_all: bool = False
    """kubectl shows the count of an event's series as it is, not one more."""
    unready_evicted: bool = False
    """Pods that are not ready may be evicted while enough others are."""
    binding_clears_nomination: bool = False
    """A pod that gets its node loses status.nominatedNodeName."""
    relaxed_environment_names: bool = False
    """Environment variables may have nearly any name."""
    merges_label_keys: bool = False
    """matchLabelKeys of a pod become part of its label selectors."""
    host_ports_in_templates: bool = False
    """Ports of templates in the host's network get their hostPort, not only those of pods."""


V1_19: Final = Version(
    name="1.19",
    minor=19,
    self_links=True,
    null_creation_timestamps=True,
    cached_events=True,
    capital_value=True,
    host_ports_in_templates=True,
)
V1_36: Final = Version(
    name="1.36",
    minor=36,
    pod_generation=True,
    namespace_name_label=True,
    field_validation=True,
    binding_preconditions=True,
    scheduling_gates=True,
    deletion_revision=True,
    bad_revision_is_400=True,
    gone_update_is_404=True,
    cached_lists_sorted=True,
    cached_history=True,
    watch_list=True,
    openapi_v3=True,
    aggregated_discovery=True,
    deprecation_warnings=True,
    lists_representations=True,
    restart_writes=8,
    selector_operators="in, notin, =, ==, !=, gt, lt",
    partial_lists_count=True,
    tracks_legacy_tokens=True,
    shared_delete_options=False,
    options_scheme="pkg/apis/meta/internalversion/scheme/register.go:27",
    json_values=True,
    plain_404=True,
    lowercase_rfc_1123=True,
    may_not_be_more_than=True,
    names_limits=True,
    doubled_names_last=True,
    copies_topology=True,
    negative_grace_is_1=True,
    phase_times=True,
    claim_retention=True,
    dual_stack=True,
    immutable_events=True,
    disruption_target=True,
    merges_label_keys=True,
    relaxed_environment_names=True,
    unready_evicted=True,
    binding_clears_nomination=True,
    eviction_retry_after=True,
    eviction_says_currently=True,
    empty_budget_is_all=True,
    restarts_say_when=True,
    preemption_column=True,
    series_count_all=True,
)
VERSIONS: Final = {version.name: version for version in (V1_19, V1_36)}
