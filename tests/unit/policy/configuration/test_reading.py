"""The text of a configuration: strict, with all that is wrong told at once; and hostile texts."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.configuration.configurations import BUILDER, VERSIONS, errors, module, read, text_of, warnings

from ksp.policy.configuration import (
    ClientConnection,
    ConfigurationError,
    LeaderElection,
    profiles_of,
    read_configuration,
)

STRICT = "strict decoding error: "


@pytest.mark.parametrize("version", VERSIONS)
def test_a_configuration_that_says_nothing_has_the_defaults(version: str) -> None:
    found = read(version=version)
    assert found.api_version == f"kubescheduler.config.k8s.io/{version}"
    assert (found.profiles, found.extenders, found.percentage, found.warnings) == (None, (), None, ())
    assert found.leader_election == LeaderElection(True, 15, 10, 2, "leases", "kube-scheduler", "kube-system")
    assert found.client_connection == ClientConnection("", "", "application/vnd.kubernetes.protobuf", 50, 100)
    assert (found.initial_backoff, found.max_backoff, found.parallelism) == (1, 10, 16)
    assert (found.health_bind_address, found.metrics_bind_address) == ("", "")
    assert (found.profiling, found.contention_profiling, found.delay_cache_until_active) == (True, True, False)
    assert [each.scheduler_name for each in found.all_profiles()] == ["default-scheduler"]
    assert not found.has_plugins


FULL = """\
parallelism: 16
leaderElection:
  leaderElect: false
  leaseDuration: 1m30s
  renewDeadline: 1m
  retryPeriod: 500ms
  resourceLock: leases
  resourceName: n
  resourceNamespace: ns
clientConnection:
  {kubeconfig: /k, acceptContentTypes: application/json, contentType: application/json, qps: 5.5, burst: 7}
enableProfiling: false
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
"""


def test_every_field_is_read() -> None:
    found = read(FULL + "delayCacheUntilActive: false\nprofiles: [{schedulerName: a, percentageOfNodesToScore: 0}]\n")
    assert found.leader_election == LeaderElection(False, 90, 60, 0.5, "leases", "n", "ns")
    assert found.client_connection == ClientConnection("/k", "application/json", "application/json", 5.5, 7)
    assert (found.percentage, found.initial_backoff, found.max_backoff) == (30, 2, 20)
    assert (found.profiling, found.contention_profiling) == (False, False)
    (profile,) = found.profiles or ()
    assert (profile.scheduler_name, profile.percentage) == ("a", 0)
    assert warnings(found) == []


def test_null_and_zeros_are_as_if_they_were_not_there() -> None:
    body = "leaderElection: {leaderElect: null, leaseDuration: 0s, resourceName: ''}\nprofiles: null\nextenders: ~\n"
    assert read(body + "clientConnection: {qps: 0, burst: 0}\npercentageOfNodesToScore: null\n") == read()


def test_null_in_a_list_is_the_zero_of_its_type() -> None:
    body = "profiles: [null, {pluginConfig: [null, {name: NodeResourcesFit, args: {ignoredResources: [null]}}]}]"
    found = [each.partition(": ")[2].partition(": name part must consist")[0] for each in errors(lambda: read(body))]
    assert sorted(dict.fromkeys(found)) == [
        "profiles[0].schedulerName: Required value",
        "profiles[1].pluginConfig[0].name: Required value",
        'profiles[1].pluginConfig[1].args.ignoredResources[0]: Invalid value: ""',
        'profiles[1].pluginConfig[1].args.ignoredResources[0]: Invalid value: "": name part must be non-empty',
        "profiles[1].schedulerName: Required value",
    ]


def test_json_is_read_too() -> None:
    value = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 16}
    assert read_configuration(json.dumps(value, indent="\t"), "c.json") == read()
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(json.dumps(value | {"percentageOfNodesToScore": 101}, indent=1), "c.json")
    assert caught.value.messages == (
        "c.json:5: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    )


ALL_WRONG = """\
foo: 1
percentageOfNodesToScore: 101
podInitialBackoffSeconds: 0
podMaxBackoffSeconds: -1
parallelism: 0
enableProfiling: "yes"
leaderElection:
  leaseDuration: 5s
  renewDeadline: 10
  renewDeadline: 10
  retryPeriods: 2s
clientConnection: {burst: -1, qps: [1]}
profiles:
- schedulerName: a
- schedulerName: a
  plugins: {filter: {enabled: [{name: 5}]}}
- pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 101}
extenders: {}
"""


def test_all_that_is_wrong_is_told_at_once_with_field_and_line() -> None:
    assert errors(lambda: read(ALL_WRONG)) == [
        f'3: foo: {STRICT}unknown field "foo"',
        "4: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        "5: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        "6: podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
        "7: parallelism: Invalid value: 0: should be an integer value greater than zero",
        f"8: enableProfiling: {STRICT}json: cannot unmarshal string into a value of type bool",
        "10: leaderElection.leaseDuration: Invalid value: 10s: LeaseDuration must be greater than RenewDeadline",
        f'12: leaderElection.renewDeadline: {STRICT}duplicate field "leaderElection.renewDeadline"',
        f"12: leaderElection.renewDeadline: {STRICT}json: cannot unmarshal number 10 into a value of type string",
        (
            f"13: leaderElection.retryPeriods: {STRICT}unknown field "
            f'"leaderElection.retryPeriods"; did you mean `retryPeriod`?'
        ),
        f"14: clientConnection.qps: {STRICT}json: cannot unmarshal array into a value of type float32",
        "14: clientConnection.burst: Invalid value: -1: must be non-negative",
        '17: profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"',
        (
            f"18: profiles[1].plugins.filter.enabled[0].name: {STRICT}json: "
            f"cannot unmarshal number 5 into a value of type string"
        ),
        "19: profiles[2].schedulerName: Required value",
        "21: profiles[2].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        f"22: extenders: {STRICT}json: cannot unmarshal object into a list",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: Object 'Kind' is missing"),
        ("[1]", "1: the configuration is not an object"),
        ("kind: KubeSchedulerConfiguration", "1: Object 'apiVersion' is missing"),
        ("apiVersion: kubescheduler.config.k8s.io/v1", "1: Object 'Kind' is missing"),
        (
            text_of(version="v1alpha1"),
            '1: apiVersion: no kind "KubeSchedulerConfiguration" is registered for version '
            '"kubescheduler.config.k8s.io/v1alpha1"; read are KubeSchedulerConfiguration of '
            + ", ".join(f"kubescheduler.config.k8s.io/{version}" for version in VERSIONS),
        ),
        (
            "kind: Policy\napiVersion: v1",
            '2: apiVersion: no kind "Policy" is registered for version "v1"; a Policy is named by --policy-config-file',
        ),
        (text_of() + "---\n" + text_of(), "4: a second document: a file has one configuration"),
        ("a: [", "1: not YAML: did not find expected node content"),
        ("a: &a [*a]", "1: the alias `*a` has no anchor before it"),
        ("a: !!python/object:os.system x", "1: the tag `tag:yaml.org,2002:python/object:os.system` is not supported"),
        ("[" * 200, "1: nested deeper than 100 levels"),
        ("a" * 2**20 + "b", "1: larger than 1,048,576 characters"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_configuration(text: str, said: str) -> None:
    assert errors(lambda: read_configuration(text, "c.yaml")) == [said]


@pytest.mark.parametrize(
    ("field", "versions"),
    [
        ("healthzBindAddress: ''", {"v1beta1", "v1beta2"}),
        ("metricsBindAddress: ''", {"v1beta1", "v1beta2"}),
        ("delayCacheUntilActive: false", {"v1"}),
        ("profiles: [{percentageOfNodesToScore: 5}]", {"v1"}),
        ("profiles: [{plugins: {multiPoint: {}}}]", {"v1beta3", "v1"}),
        ("profiles: [{plugins: {preEnqueue: {}}}]", {"v1beta2", "v1beta3", "v1"}),
        ("profiles: [{plugins: {placementScore: {}}}]", {"v1"}),
        ("parallelism: 16", set(VERSIONS)),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_fields_are_those_of_the_version(field: str, versions: set[str], version: str) -> None:
    if version in versions:
        read(field, version)
    else:
        (error,) = errors(lambda: read(field, version))
        assert "unknown field" in error
        assert error.endswith(f"; it is a field of {', '.join(each for each in VERSIONS if each in versions)}")


@pytest.mark.parametrize(
    ("given", "address"),
    [("0.0.0.0:10251", "0.0.0.0:10251"), (":80", "0.0.0.0:80"), ("10.0.0.1", "10.0.0.1:10251"), ("[::1]:0", "[::1]:0")],
)
def test_bind_addresses_are_completed(given: str, address: str) -> None:
    found = read(f"healthzBindAddress: '{given}'\nmetricsBindAddress: '{given}'", "v1beta1")
    assert (found.health_bind_address, found.metrics_bind_address) == (address, address)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere", "must be a valid socket address format, (e.g. 0.0.0.0:10254 or [::]:10254)"),
        ("a:80", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ("0.0.0.0:70000", "must be a valid port number, or 0 for none"),
    ],
)
def test_bind_addresses_that_are_none(given: str, said: str) -> None:
    (error,) = errors(lambda: read(f"metricsBindAddress: {given}", "v1beta2"))
    assert error.startswith("3: metricsBindAddress: Invalid value: ")
    assert error.endswith(said)


@pytest.mark.parametrize(
    ("body", "version", "said"),
    [
        ("parallelism: 4", "v1", "3: parallelism: has no effect: nodes are judged together, not by several threads"),
        (
            "clientConnection: {contentType: application/yaml}", "v1",
            '3: clientConnection.contentType: "application/yaml" is not used: JSON is spoken',
        ),
        (
            "leaderElection: {resourceLock: endpointsleases}", "v1beta1",
            '3: leaderElection.resourceLock: "endpointsleases" is not used: the lock is a Lease',
        ),
        (
            "delayCacheUntilActive: true", "v1",
            "3: delayCacheUntilActive: has no effect: caches are kept from the start, so that a new leader has them",
        ),
        (
            "healthzBindAddress: :1\nmetricsBindAddress: :2", "v1beta1",
            "4: metricsBindAddress: is not used: one server answers at healthzBindAddress",
        ),
    ],
)  # fmt: skip
def test_what_means_something_else_here_is_warned_of(body: str, version: str, said: str) -> None:
    assert warnings(read(body, version)) == [said]


def test_a_provider_is_for_v1beta1_only() -> None:
    (error,) = errors(lambda: read(version="v1", provider="ClusterAutoscalerProvider"))
    assert error == (
        "1: apiVersion: --algorithm-provider=ClusterAutoscalerProvider has no meaning in kubescheduler.config.k8s.io/v1"
    )


# ---- hostile texts


def test_aliases_that_stand_for_too_much_end_quickly() -> None:
    rows = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    start = time.process_time()
    (error,) = errors(lambda: read("\n".join(rows)))
    assert "aliases stand for more than 1,000,000 values" in error
    assert time.process_time() - start < 1


def test_many_values_are_refused_before_they_are_looked_at() -> None:
    body = "a: &a [" + "{x: 1}," * 9000 + "]\nprofiles: *a\nextenders: *a\n"
    assert errors(lambda: read(body)) == ["1: more than 50,000 values, with those that aliases stand for"]


def test_profiles_are_not_without_number() -> None:
    named = ", ".join(f"{{schedulerName: p{i}}}" for i in range(101))
    assert errors(lambda: read(f"profiles: [{named}]")) == ["3: profiles: Too many: 101: must have at most 100 items"]
    assert len(read(f"profiles: [{named.rpartition(', ')[0]}]").profiles or ()) == 100


def test_many_mistakes_are_counted_not_listed() -> None:
    found = read_errors("".join(f"field{i}: 1\n" for i in range(5000)))
    assert len(found) == 101
    assert found[-1] == "c.yaml: 4900 more are not shown"


def read_errors(body: str) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        read(body)
    return caught.value.messages


NAMES = [
    "profiles", "extenders", "plugins", "pluginConfig", "name", "args", "filter", "enabled", "disabled", "weight",
    "leaderElection", "leaseDuration", "multiPoint", "managedResources", "tlsConfig", "caData", "urlPrefix",
    "httpTimeout", "schedulerName", "percentageOfNodesToScore", "scoringStrategy", "resources", "shape",
]  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner),
    max_leaves=8,
)
documents = st.fixed_dictionaries(
    {"kind": st.just("KubeSchedulerConfiguration")},
    optional={
        "leaderElection": values,
        "clientConnection": values,
        "extenders": st.lists(values, max_size=2),
        "profiles": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "schedulerName": values,
                    "plugins": st.dictionaries(st.sampled_from(["filter", "score", "multiPoint", "bind"]), values),
                    "pluginConfig": st.lists(
                        st.fixed_dictionaries(
                            {
                                "name": st.sampled_from(["NodeResourcesFit", "PodTopologySpread", "NodeAffinity", "X"]),
                                "args": st.dictionaries(
                                    st.sampled_from(
                                        ["scoringStrategy", "defaultConstraints", "addedAffinity", "ignoredResources"]
                                    ),
                                    values | st.lists(st.none() | st.text(max_size=3), max_size=2),
                                ),
                            }
                        ),
                        max_size=2,
                    ),
                },
            ),
            max_size=2,
        ),
    },
)


@given(documents, st.sampled_from(VERSIONS))
def test_whatever_the_document_it_is_read_or_refused(document: dict[str, object], version: str) -> None:
    text = json.dumps(document | {"apiVersion": f"kubescheduler.config.k8s.io/{version}"})
    messages = _refusal(text)
    assert messages is None or (messages and all("\n" not in each for each in messages))


@given(documents, st.sampled_from(VERSIONS))
def test_what_could_be_read_of_a_wrong_document_can_be_held_against_rules(
    document: dict[str, object], version: str
) -> None:
    text = json.dumps(document | {"apiVersion": f"kubescheduler.config.k8s.io/{version}"})
    try:
        found = read_configuration(text, "c.yaml")
    except ConfigurationError as error:
        if error.partial is None:
            return
        found = error.partial
    with suppress(ConfigurationError):
        profiles_of(found, module(found.rules), BUILDER)


def _refusal(text: str) -> tuple[str, ...] | None:
    try:
        read_configuration(text, "c.yaml")
    except ConfigurationError as error:
        return error.messages
    return None


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_whatever_the_text_it_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        read_configuration(text, "c.yaml")
