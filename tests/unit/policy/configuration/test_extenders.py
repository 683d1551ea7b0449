"""Extenders of a configuration."""

from __future__ import annotations

import base64

import pytest
from tests.unit.policy.configuration.configurations import VERSIONS, errors, read

from ksp.policy.extender import Extender, ExtenderTLS

FULL = f"""extenders:
- urlPrefix: https://e:8443/x
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 3
  bindVerb: bind
  enableHTTPS: true
  tlsConfig:
    serverName: s
    certFile: /c
    keyFile: /k
    caData: {base64.b64encode(b"PEM").decode()}
  httpTimeout: 1500ms
  nodeCacheCapable: true
  managedResources: [{{name: example.com/a, ignoredByScheduler: true}}, {{name: example.com/b}}]
  ignorable: true
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_is_read(version: str) -> None:
    assert read(FULL, version).extenders == (
        Extender(
            "https://e:8443/x", "filter", "prioritize", "preempt", "bind", 3, enable_https=True,
            tls=ExtenderTLS(server_name="s", cert_file="/c", key_file="/k", ca_data=b"PEM"), timeout=1.5,
            node_cache_capable=True, managed_resources=frozenset({"example.com/a", "example.com/b"}),
            ignored_resources=frozenset({"example.com/a"}), ignorable=True,
        ),
    )  # fmt: skip


def test_an_extender_that_says_little() -> None:
    (found,) = read("extenders: [{urlPrefix: http://e, httpTimeout: 0s}]").extenders
    assert found == Extender("http://e", weight=0)
    assert found.timeout == 5


def test_those_that_may_fail_are_asked_last() -> None:
    given = "[{urlPrefix: http://a, ignorable: true}, {urlPrefix: http://b}, {urlPrefix: http://c}]"
    assert [each.url_prefix for each in read(f"extenders: {given}").extenders] == ["http://b", "http://c", "http://a"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("prioritizeVerb: p", "[0].weight: Invalid value: 0: must have a positive weight applied to it"),
        ("prioritizeVerb: p, weight: -1", "[0].weight: Invalid value: -1: must have a positive weight applied to it"),
        ("httpTimeout: -1s", "[0].httpTimeout: Invalid value: -1s: must not be negative"),
        ("httpTimeout: 5", (
            "[0].httpTimeout: strict decoding error: json: cannot "
            "unmarshal number 5 into a value of type string"
        )),
        ("httpTimeout: soon", '[0].httpTimeout: strict decoding error: time: invalid duration "soon"'),
        ("enableHttps: true",
         (
             '[0].enableHttps: strict decoding error: unknown field '
             '"extenders[0].enableHttps"; did you mean `enableHTTPS`?'
         )),
        ("tlsConfig: {certFile: a}", "[0].tlsConfig: Invalid value: a certificate and its key go together"),
        ("tlsConfig: {caData: '?'}", "[0].tlsConfig.caData: strict decoding error: illegal base64 data"),
        ("tlsConfig: {insecure: true, caFile: a}",
         "[0].tlsConfig.insecure: Invalid value: true: certificates of a CA cannot be given with insecure"),
        ("managedResources: [{name: cpu}]",
         '[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name'),
        ("managedResources: [{name: kubernetes.io/a}]",
         '[0].managedResources[0].name: Invalid value: "kubernetes.io/a": is an invalid extended resource name'),
        ("managedResources: [{}]", '[0].managedResources[0].name: Invalid value: "": name part must be non-empty'),
        ("managedResources: [{name: e.c/a}, {name: e.c/a}]",
         '[0].managedResources[1].name: Invalid value: "e.c/a": duplicate extender managed resource name'),
        ("managedResources: [{name: /a}]",
         '[0].managedResources[0].name: Invalid value: "/a": prefix part must be non-empty'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_extender(given: str, said: str) -> None:
    assert errors(lambda: read(f"extenders: [{{urlPrefix: http://e, {given}}}]"))[0] == f"3: extenders{said}"


@pytest.mark.parametrize("url", ["", "e:80", "ftp://e", "http://", "http://e:port", "https://[::1"])
def test_an_extender_has_a_url(url: str) -> None:
    (error,) = errors(lambda: read(f"extenders: [{{urlPrefix: '{url}'}}]"))
    assert error.startswith("3: extenders[0].urlPrefix: Invalid value: ")


def test_only_one_extender_binds() -> None:
    body = "extenders: [{urlPrefix: http://e, bindVerb: b}, {urlPrefix: http://f, bindVerb: b}]"
    said = 'Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'
    assert errors(lambda: read(body)) == [f"3: extenders: {said}"]


def test_a_resource_has_one_extender() -> None:
    managed = "managedResources: [{name: e.c/a}]"
    (error,) = errors(
        lambda: read(f"extenders: [{{urlPrefix: http://e, {managed}}}, {{urlPrefix: http://f, {managed}}}]")
    )
    assert error.startswith("3: extenders[1].managedResources[0].name: ")
