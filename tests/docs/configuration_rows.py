"""The table of `docs/configuration.md`: every field that the decoder knows, in which versions, what it does, a test.

`python -m tests.docs.configuration_rows` writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ksp.policy.configuration.arguments import argument_shapes
from ksp.policy.shapes import field_paths
from ksp.policy.configuration.versions import GROUP_POINTS, MULTI_POINT, POINTS, Version, shape_of

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "configuration.md"
BEGIN, END = "<!-- fields -->", "<!-- end of fields -->"

_ALL_POINTS: Final = "|".join((*POINTS, *GROUP_POINTS, "preEnqueue", MULTI_POINT))
_INNER: Final = re.compile(rf"(profiles\[\]\.plugins\.)(?:{_ALL_POINTS})(\..+)")

_UNIT: Final = "unit/policy/configuration/test_"
_READ: Final = f"{_UNIT}reading.py::test_every_field_is_read"
_ZERO: Final = f"{_UNIT}reading.py::test_null_and_zeros_are_as_if_they_were_not_there"
_IDLE: Final = f"{_UNIT}reading.py::test_what_means_something_else_here_is_warned_of"
_WRONG: Final = f"{_UNIT}reading.py::test_all_that_is_wrong_is_told_at_once_with_field_and_line"
_ADDRESS: Final = f"{_UNIT}reading.py::test_bind_addresses_are_completed"
_HEADER: Final = f"{_UNIT}reading.py::test_what_is_no_configuration"
_ELECTION: Final = f"{_UNIT}leader_election.py::test_what_settings_must_be"
_LOCK: Final = f"{_UNIT}leader_election.py::test_locks"
_MERGED: Final = f"{_UNIT}merging.py::test_a_set_is_merged_as_each_version_does"
_SPREAD: Final = f"{_UNIT}merging.py::test_multi_point_is_spread_out"
_POINT: Final = f"{_UNIT}points.py::test_only_kube_schedulers_own_plugins_take_part_there"
_OTHERWISE: Final = f"{_UNIT}points.py::test_what_works_otherwise_here_is_warned_of"
_PREEMPTS: Final = f"{_UNIT}points.py::test_preemption_is_on_or_off"
_GATES: Final = f"{_UNIT}points.py::test_gates_hold_pods_back_whatever_is_said"
_GROUPS: Final = f"{_UNIT}points.py::test_pods_are_not_scheduled_in_groups"
_CUSTOM: Final = f"{_UNIT}profiles.py::test_a_custom_rule_is_enabled_by_its_plugins_name"
_NAMES: Final = f"{_UNIT}profiles.py::test_a_name_without_a_rule_is_an_error_with_the_nearest_name"
_PERCENTAGE: Final = f"{_UNIT}profiles.py::test_the_percentage_is_the_profiles_or_the_files"
_IGNORED: Final = f"{_UNIT}profiles.py::test_resources_that_the_scheduler_ignores_are_so_in_every_profile"
_ORDER: Final = f"{_UNIT}profiles.py::test_several_profiles_are_in_the_order_of_the_file"
_EXTENDER: Final = f"{_UNIT}extenders.py::test_every_field_is_read"
_EXTENDER_WRONG: Final = f"{_UNIT}extenders.py::test_what_is_wrong_with_an_extender"
_BINDS: Final = f"{_UNIT}extenders.py::test_only_one_extender_binds"
_LAST: Final = f"{_UNIT}extenders.py::test_those_that_may_fail_are_asked_last"
_URL: Final = f"{_UNIT}extenders.py::test_an_extender_has_a_url"
_LITTLE: Final = f"{_UNIT}extenders.py::test_an_extender_that_says_little"
_COMPLETED: Final = f"{_UNIT}arguments.py::test_arguments_are_completed"
_PARAMETERS: Final = f"{_UNIT}arguments.py::test_arguments_are_the_parameters_of_the_rules"
_MODERN: Final = f"{_UNIT}arguments.py::test_modern_arguments_are_the_parameters_of_the_modern_rules"
_CANDIDATES: Final = f"{_UNIT}arguments.py::test_how_many_candidates_a_search_for_victims_wants"
_NO_EFFECT: Final = f"{_UNIT}arguments.py::test_arguments_without_effect_are_warned_of"
_OLD: Final = f"{_UNIT}arguments.py::test_arguments_of_the_plugins_of_1_19_are_parameters"
_V1BETA1: Final = f"{_UNIT}arguments.py::test_what_is_wrong_in_v1beta1"
_RECORDED: Final = f"{_UNIT}profiles.py::test_v1beta1_decides_as_the_providers_did"
_LATER: Final = f"{_UNIT}points.py::test_a_plugin_of_later_releases_is_warned_of"

# What a field does here, and the test that shows it.
ROWS: Final[dict[str, tuple[str, str]]] = {
    "apiVersion": ("says which fields, defaults and default plugins there are", _HEADER),
    "kind": ("`KubeSchedulerConfiguration`", _HEADER),
    "parallelism": ("no effect: nodes are judged together. Not 16: a warning; not above 0: an error", _IDLE),
    "leaderElection": ("as the flags `--leader-elect…`", _READ),
    "leaderElection.leaderElect": ("whether only the holder of the Lease schedules (true)", _READ),
    "leaderElection.leaseDuration": ("how long a Lease that is not renewed is left alone (15s)", _ELECTION),
    "leaderElection.renewDeadline": ("how long the holder tries to renew it before it gives up (10s)", _ELECTION),
    "leaderElection.retryPeriod": ("how often both try (2s)", _ELECTION),
    "leaderElection.resourceLock": ("always a Lease (`leases`); another name is a warning, in v1 an error", _LOCK),
    "leaderElection.resourceName": ("the Lease's name (`kube-scheduler`)", _READ),
    "leaderElection.resourceNamespace": ("its namespace (`kube-system`)", _READ),
    "clientConnection": ("how the API server is asked", _READ),
    "clientConnection.kubeconfig": ("the kubeconfig's path", _READ),
    "clientConnection.acceptContentTypes": ("no effect: JSON is spoken. Another type is a warning", _IDLE),
    "clientConnection.contentType": ("the same", _IDLE),
    "clientConnection.qps": ("requests a second in the long run (50); below 0 is no limit", _ZERO),
    "clientConnection.burst": ("requests at once (100)", _WRONG),
    "healthzBindAddress": ("where `/healthz` and `/metrics` are served without TLS; none if not given", _ADDRESS),
    "metricsBindAddress": ("the same address as the one above; another is a warning", _IDLE),
    "enableProfiling": ("no effect: it is for profiles of Go programs", _READ),
    "enableContentionProfiling": ("no effect: there is no lock to contend for", _READ),
    "percentageOfNodesToScore": (
        "how many nodes are enough; 0 adapts to the cluster's size; 100 if not given", _PERCENTAGE),
    "podInitialBackoffSeconds": ("how long a pod that failed waits first (1)", _WRONG),
    "podMaxBackoffSeconds": ("how long at most (10)", _WRONG),
    "delayCacheUntilActive": ("no effect: caches are kept from the start. true is a warning", _IDLE),
    "profiles": ("who schedules the pods of which scheduler name; up to 100 share queue and cache", _ORDER),
    "profiles[].schedulerName": ("what pods name; `default-scheduler` for a single profile", _WRONG),
    "profiles[].percentageOfNodesToScore": ("instead of the one above", _PERCENTAGE),
    "profiles[].plugins": ("what is on and off, beside the default plugins", _MERGED),
    "profiles[].plugins.multiPoint": ("plugins at every point where they take part", _SPREAD),
    "profiles[].plugins.preEnqueue": ("`SchedulingGates`; pods with gates are held whatever is said", _GATES),
    "profiles[].plugins.queueSort": ("`PrioritySort`, once, the same in all profiles", _POINT),
    "profiles[].plugins.preFilter": ("a first part of what filters: on or off with it", _OTHERWISE),
    "profiles[].plugins.filter": ("the predicates, in order", _NAMES),
    "profiles[].plugins.postFilter": ("`DefaultPreemption`: whether pods of lower priority give way", _PREEMPTS),
    "profiles[].plugins.preScore": ("a first part of what scores: on or off with it", _OTHERWISE),
    "profiles[].plugins.score": ("the priorities and their weights", _NAMES),
    "profiles[].plugins.reserve": ("`VolumeBinding`; on with its filter", _OTHERWISE),
    "profiles[].plugins.permit": ("there is none", _POINT),
    "profiles[].plugins.preBind": ("`VolumeBinding`; on with its filter", _OTHERWISE),
    "profiles[].plugins.bind": ("`DefaultBinder`", _POINT),
    "profiles[].plugins.postBind": ("there is none", _POINT),
    "profiles[].plugins.placementGenerate": ("no effect, with a warning: pods are scheduled one by one", _GROUPS),
    "profiles[].plugins.placementScore": ("the same", _GROUPS),
    "profiles[].plugins.podGroupPostFilter": ("the same", _GROUPS),
    "profiles[].plugins.*.enabled": ("what is on there, after the default plugins", _MERGED),
    "profiles[].plugins.*.enabled[].name": ("the plugin: the rule that implements it", _CUSTOM),
    "profiles[].plugins.*.enabled[].weight": ("of a score; 0 is 1", _SPREAD),
    "profiles[].plugins.*.disabled": ("default plugins that are off there", _MERGED),
    "profiles[].plugins.*.disabled[].name": ("one of them, or `*` for all", _MERGED),
    "profiles[].plugins.*.disabled[].weight": ("no effect", _MERGED),
    "profiles[].pluginConfig": ("arguments of plugins: parameters of the rules that implement them", _PARAMETERS),
    "profiles[].pluginConfig[].name": ("the plugin", _CUSTOM),
    "profiles[].pluginConfig[].args": ("below; of a rule of your own, its parameters by name", _CUSTOM),
    "extenders": ("HTTP services with a say: [`extenders.md`](extenders.md); ignorable ones are asked last", _LAST),
    "extenders[].urlPrefix": ("where it is; a verb is appended", _URL),
    "extenders[].filterVerb": ("asked which nodes fit", _EXTENDER),
    "extenders[].preemptVerb": ("asked about victims", _EXTENDER),
    "extenders[].prioritizeVerb": ("asked for scores", _EXTENDER),
    "extenders[].weight": ("of its scores; above 0 with `prioritizeVerb`", _EXTENDER_WRONG),
    "extenders[].bindVerb": ("asked to bind; one extender at most has it", _BINDS),
    "extenders[].enableHTTPS": ("without an authority in `tlsConfig` its certificate is not verified", _EXTENDER),
    "extenders[].tlsConfig": ("certificates; a certificate and its key go together", _EXTENDER_WRONG),
    "extenders[].tlsConfig.insecure": ("its certificate is not checked; not with a CA", _EXTENDER_WRONG),
    "extenders[].tlsConfig.serverName": ("the name that its certificate has to have", _EXTENDER),
    "extenders[].tlsConfig.certFile": ("ksp's certificate, a path", _EXTENDER),
    "extenders[].tlsConfig.keyFile": ("its key", _EXTENDER),
    "extenders[].tlsConfig.caFile": ("who signs the extender's", _EXTENDER),
    "extenders[].tlsConfig.certData": ("as `certFile`, PEM in base64", _EXTENDER_WRONG),
    "extenders[].tlsConfig.keyData": ("as `keyFile`", _EXTENDER_WRONG),
    "extenders[].tlsConfig.caData": ("as `caFile`", _EXTENDER),
    "extenders[].httpTimeout": ("how long an answer may take; 0 is 5s", _LITTLE),
    "extenders[].nodeCacheCapable": ("it is sent names of nodes, not nodes", _EXTENDER),
    "extenders[].managedResources": ("it is asked only for pods that want one of them", _EXTENDER),
    "extenders[].managedResources[].name": ("an extended resource; of one extender", _EXTENDER_WRONG),
    "extenders[].managedResources[].ignoredByScheduler": (
        "NodeResourcesFit of every profile takes no notice of it", _IGNORED),
    "extenders[].ignorable": ("it is left out if it fails", _LAST),
    "DefaultPreemption.minCandidateNodesPercentage": (
        "nodes that a search for victims is content with (10)", _CANDIDATES),
    "DefaultPreemption.minCandidateNodesAbsolute": ("but so many at least (100)", _CANDIDATES),
    "DynamicResources.filterTimeout": ("no effect, with a warning: there is no such rule", _LATER),
    "DynamicResources.bindingTimeout": ("the same", _LATER),
    "InterPodAffinity.hardPodAffinityWeight": (
        "what a required affinity of a running pod scores (1; 0 to 100)", _COMPLETED),
    "InterPodAffinity.ignorePreferredTermsOfExistingPods": ("running pods' preferences do not score", _MODERN),
    "NodeAffinity.addedAffinity": ("an affinity that every pod has beside its own", _MODERN),
    "NodeLabel.presentLabels": ("labels that a node must have", _OLD),
    "NodeLabel.absentLabels": ("labels that it must not have", _OLD),
    "NodeLabel.presentLabelsPreference": ("labels that score", _OLD),
    "NodeLabel.absentLabelsPreference": ("labels whose absence scores", _OLD),
    "NodeResourcesBalancedAllocation.resources": ("of which the shares should be even (cpu, memory)", _COMPLETED),
    "NodeResourcesBalancedAllocation.resources[].name": ("the resource", _COMPLETED),
    "NodeResourcesBalancedAllocation.resources[].weight": ("1", _COMPLETED),
    "NodeResourcesFit.ignoredResources": ("extended resources of which no notice is taken", _PARAMETERS),
    "NodeResourcesFit.ignoredResourceGroups": ("and those with such a prefix", _PARAMETERS),
    "NodeResourcesFit.scoringStrategy": ("how NodeResourcesFit scores", _MODERN),
    "NodeResourcesFit.scoringStrategy.type": (
        "`LeastAllocated` (default), `MostAllocated`, `RequestedToCapacityRatio`", _MODERN),
    "NodeResourcesFit.scoringStrategy.resources": ("what is looked at (cpu, memory)", _COMPLETED),
    "NodeResourcesFit.scoringStrategy.resources[].name": ("the resource", _COMPLETED),
    "NodeResourcesFit.scoringStrategy.resources[].weight": ("how much it counts (1; to 100)", _COMPLETED),
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio": ("the curve of that type", _COMPLETED),
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio.shape": ("its points", _COMPLETED),
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio.shape[].utilization": ("percent, rising", _COMPLETED),
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio.shape[].score": ("0 to 10", _COMPLETED),
    "NodeResourcesLeastAllocated.resources": ("what is looked at (cpu, memory)", _COMPLETED),
    "NodeResourcesLeastAllocated.resources[].name": ("the resource", _RECORDED),
    "NodeResourcesLeastAllocated.resources[].weight": ("how much it counts; 1 to 100", _V1BETA1),
    "NodeResourcesMostAllocated.resources": ("what is looked at (cpu, memory)", _RECORDED),
    "NodeResourcesMostAllocated.resources[].name": ("the resource", _RECORDED),
    "NodeResourcesMostAllocated.resources[].weight": ("how much it counts; 1 to 100", _V1BETA1),
    "PodTopologySpread.defaultConstraints": (
        "constraints of pods without any; `minDomains`, `matchLabelKeys` and the two policies: a warning", _NO_EFFECT),
    "PodTopologySpread.defaultingType": (
        "`List`: those; `System`: by host and zone (in v1beta1 List, then System)", _COMPLETED),
    "RequestedToCapacityRatio.shape": ("the curve from utilization to score", _V1BETA1),
    "RequestedToCapacityRatio.shape[].utilization": ("percent, rising", _V1BETA1),
    "RequestedToCapacityRatio.shape[].score": ("0 to 10", _COMPLETED),
    "RequestedToCapacityRatio.resources": ("what is looked at (cpu, memory)", _COMPLETED),
    "RequestedToCapacityRatio.resources[].name": ("the resource", _COMPLETED),
    "RequestedToCapacityRatio.resources[].weight": ("how much it counts (1)", _COMPLETED),
    "ServiceAffinity.affinityLabels": ("labels that nodes of a service's pods have in common", _OLD),
    "ServiceAffinity.antiAffinityLabelsPreference": ("labels over whose values they are spread", _OLD),
    "VolumeBinding.bindTimeoutSeconds": ("how long a pod waits for its claims (600); 0 does not wait", _PARAMETERS),
    "VolumeBinding.shape": ("no effect, with a warning", _NO_EFFECT),
    "VolumeBinding.shape[].utilization": ("the same", _NO_EFFECT),
    "VolumeBinding.shape[].score": ("the same", _NO_EFFECT),
}  # fmt: skip


def known() -> dict[str, list[str]]:
    """The versions that have a field, by its path: the fields of the document, then arguments by plugin."""
    found: dict[str, list[str]] = {}
    for paths in (_document_paths, _argument_paths):
        for version in Version:
            for path in dict.fromkeys(paths(version)):
                found.setdefault(path, []).append(version.value)
    return found


def _document_paths(version: Version) -> Iterator[str]:
    for path in field_paths(shape_of(version)):
        yield _INNER.sub(r"\1*\2", path)


def _argument_paths(version: Version) -> Iterator[str]:
    for name, shape in sorted(argument_shapes(version).items()):
        yield from field_paths(shape, name)


def table() -> str:
    """The rows in the order of `ROWS`."""
    versions = known()
    lines = ["| field | versions | what it does | test |", "| --- | --- | --- | --- |"]
    for path, (does, test) in ROWS.items():
        which = versions.get(path, [])
        shown = "all" if len(which) == len(Version) else f"{which[0]} on" if which[-1:] == ["v1"] else ", ".join(which)
        shown = "v1" if which == ["v1"] else shown
        lines.append(f"| `{path}` | {shown} | {does} | `{test}` |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
