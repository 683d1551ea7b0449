from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.in_process import PODS, STRATEGIC, VERSIONS, Api, causes, pod

Json = dict[str, Any]
TOPOLOGY = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
NODE = {"metadata": {"name": "n1", "labels": TOPOLOGY}}


def bind(api: Api, name: str = "p", node: str = "n1", **metadata: Any) -> tuple[int, Json]:
    body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
    return api.post(f"{PODS}/{name}/binding", body)


def evict(api: Api, name: str = "p", **options: Any) -> tuple[int, Json]:
    return api.post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}, "deleteOptions": options})


# --- create


@pytest.mark.parametrize("version", VERSIONS)
def test_the_server_says_what_the_status_is(version: str) -> None:
    api = Api(version)
    code, found = api.post(PODS, {**pod(), "status": {"phase": "Running", "nominatedNodeName": "n"}})
    assert code == 201
    assert found["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert found["metadata"].get("generation") == (1 if version == "1.36" else None)


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({}, "BestEffort"),
        ({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: Json, qos: str) -> None:
    container = {"name": "c", "image": "i", "resources": resources}
    _, found = Api().post(PODS, pod(containers=[container]))
    assert found["status"]["qosClass"] == qos


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("pause", "Always"),
        ("pause:latest", "Always"),
        ("pause:1", "IfNotPresent"),
        ("host:5000/pause", "Always"),
        ("host:5000/a/pause:2", "IfNotPresent"),
        ("pause@sha256:0123", "IfNotPresent"),
        ("pause:latest@sha256:0123", "IfNotPresent"),
    ],
)
def test_images_of_the_latest_tag_are_always_pulled(image: str, policy: str) -> None:
    _, found = Api().post(PODS, pod(containers=[{"name": "c", "image": image}]))
    assert found["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_pod_that_tolerates_everything_gets_no_more_tolerations() -> None:
    _, found = Api().post(PODS, pod(tolerations=[{"operator": "Exists"}]))
    assert found["spec"]["tolerations"] == [{"operator": "Exists"}]
    _, found = Api().post(PODS, pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]))
    assert [each["key"] for each in found["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_volumes_and_probes_get_defaults() -> None:
    probe = {"httpGet": {"port": 80}}
    spec: Json = {
        "volumes": [{"name": "e"}, {"name": "c", "configMap": {"name": "x"}}],
        "containers": [{"name": "c", "image": "i", "readinessProbe": probe}],
    }
    _, found = Api().post(PODS, pod(**spec))
    assert found["spec"]["volumes"] == [
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "x", "defaultMode": 420}},
    ]
    assert found["spec"]["containers"][0]["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
        ({"restartPolicy": "No"}, 'spec.restartPolicy: Unsupported value: "No"'),
        ({"dnsPolicy": "No"}, 'spec.dnsPolicy: Unsupported value: "No"'),
        ({"nodeSelector": {"a b": "c"}}, 'spec.nodeSelector: Invalid value: "a b": name part must consist'),
        ({"tolerations": [{"key": "a", "operator": "Is"}]}, 'spec.tolerations[0].operator: Unsupported value: "Is"'),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator: Invalid value: "),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 1}]},
            'spec.tolerations[0].effect: Invalid value: "": effect must be',
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                        }
                    }
                }
            },
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].match",
        ),
        (
            {
                "affinity": {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}
                        ]
                    }
                }
            },
            "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid",
        ),
        ({"nodeName": "A"}, 'spec.nodeName: Invalid value: "A": '),
        (
            {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/x"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]},
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "-1"}}}]},
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "500m"}}}]},
            'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer',
        ),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, 'spec.volumes[1].name: Duplicate value: "v"'),
    ],
)
def test_nonsense_in_a_spec_is_refused(version: str, spec: Json, cause: str) -> None:
    code, status = Api(version).post(PODS, pod(**spec))
    assert code == 422
    assert any(each.startswith(cause) for each in causes(status)), causes(status)


def test_label_keys_become_part_of_the_selectors() -> None:
    selector = {"matchLabels": {"app": "a"}}
    term = {"topologyKey": "z", "labelSelector": selector, "matchLabelKeys": ["v", "w"], "mismatchLabelKeys": ["t"]}
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["v"]}
    spec: Json = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [{**constraint, "labelSelector": selector}],
    }
    obj = pod(**spec)
    obj["metadata"]["labels"] = {"app": "a", "v": "1", "t": "2"}
    _, found = Api().post(PODS, obj)
    version = {"key": "v", "operator": "In", "values": ["1"]}
    merged = found["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert merged["labelSelector"]["matchExpressions"] == [
        version,
        {"key": "t", "operator": "NotIn", "values": ["2"]},
    ]
    assert found["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [version]


# --- priority


@pytest.mark.parametrize("version", VERSIONS)
def test_of_two_default_classes_the_lesser_counts(version: str) -> None:
    api = Api(version)
    for name, value in (("a", 7), ("b", 5)):
        obj = {"metadata": {"name": name}, "value": value, "globalDefault": True}
        api.server.load([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **obj}])
    _, found = api.post(PODS, pod())
    assert (found["spec"]["priorityClassName"], found["spec"]["priority"]) == ("b", 5)


def test_a_preemption_policy_that_is_not_that_of_the_class_is_refused() -> None:
    api = Api()
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    api.post(classes, {"metadata": {"name": "c"}, "value": 5, "preemptionPolicy": "Never"})
    code, status = api.post(PODS, pod(priorityClassName="c", preemptionPolicy="PreemptLowerPriority"))
    assert code == 403
    assert "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided" in status["message"]


# --- binding


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bound_pod_has_its_node_and_the_condition(version: str) -> None:
    api = Api(version)
    api.post("/api/v1/nodes", NODE)
    api.post(PODS, pod())
    assert bind(api, annotations={"a": "1"}, labels={"l": "1"})[0] == 201
    _, found = api.get(f"{PODS}/p")
    assert found["spec"]["nodeName"] == "n1"
    assert found["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
    ]
    assert found["metadata"]["annotations"] == {"a": "1"}
    assert found["metadata"].get("labels") == ({"l": "1", **TOPOLOGY} if version == "1.36" else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_binding_is_a_conflict_and_changes_nothing(version: str) -> None:
    api = Api(version)
    api.post(PODS, pod())
    bind(api)
    _, before = api.get(f"{PODS}/p")
    code, status = bind(api, node="n2")
    assert (code, status["details"]["kind"]) == (409, "pods/binding")
    assert api.get(f"{PODS}/p")[1] == before


@pytest.mark.parametrize(("version", "code"), [("1.19", 201), ("1.36", 409)])
@pytest.mark.parametrize("precondition", [{"uid": "other"}, {"resourceVersion": "1"}])
def test_preconditions_of_a_binding(version: str, code: int, precondition: dict[str, str]) -> None:
    api = Api(version)
    api.post(PODS, pod())
    assert bind(api, **precondition)[0] == code
    assert ("nodeName" in api.get(f"{PODS}/p")[1]["spec"]) is (code == 201)


def test_a_gated_pod_is_not_bound_until_the_last_gate_is_gone() -> None:
    api = Api()
    _, found = api.post(PODS, pod(schedulingGates=[{"name": "a"}]))
    assert found["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert bind(api)[0] == 409
    api.patch(f"{PODS}/p", {"spec": {"schedulingGates": None}})
    assert bind(api)[0] == 201
    conditions = api.get(f"{PODS}/p")[1]["status"]["conditions"]
    assert [(each["type"], each["status"]) for each in conditions] == [("PodScheduled", "True")]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_binding_binds_nothing(version: str) -> None:
    api = Api(version)
    api.post(PODS, pod())
    assert api.post(f"{PODS}/p/binding?dryRun=All", {"target": {"name": "n1"}})[0] == 201
    assert "nodeName" not in api.get(f"{PODS}/p")[1]["spec"]


@pytest.mark.parametrize(("version", "node"), [("1.19", "n2"), ("1.36", None)])
def test_the_nomination_of_a_bound_pod(version: str, node: str | None) -> None:
    api = Api(version)
    api.post(PODS, pod())
    api.patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": "n2"}})
    bind(api)
    assert api.get(f"{PODS}/p")[1]["status"].get("nominatedNodeName") == node


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("Binding", {"metadata": {"annotations": 5}}),
        ("Binding", {"target": "n1"}),
        ("Binding", {"target": {"name": 5}}),
        ("Eviction", {"metadata": {"name": []}}),
        ("Eviction", {"deleteOptions": {"gracePeriodSeconds": "soon"}}),
    ],
)
def test_bodies_of_subresources_are_read_as_strictly_as_objects(version: str, kind: str, body: Json) -> None:
    api = Api(version)
    api.post(PODS, pod())
    code, status = api.post(f"{PODS}/p/{kind.lower()}", body)
    assert code == 400
    assert status["message"].startswith(f'{kind} in version "v1')


# --- updates


@pytest.mark.parametrize("version", VERSIONS)
def test_the_seconds_of_a_toleration_may_change_and_the_toleration_may_not(version: str) -> None:
    api = Api(version)
    _, found = api.post(PODS, pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}]))
    tolerations = found["spec"]["tolerations"]
    longer = [{**tolerations[0], "tolerationSeconds": 5}, *tolerations[1:]]
    assert api.patch(f"{PODS}/p", {"spec": {"tolerations": longer}})[0] == 200
    code, status = api.patch(f"{PODS}/p", {"spec": {"tolerations": tolerations[1:]}})
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.tolerations")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_status_subresource_leaves_the_spec_and_the_class_alone(version: str) -> None:
    api = Api(version)
    _, found = api.post(PODS, pod())
    sent = {**found, "spec": {**found["spec"], "nodeName": "n"}, "status": {"phase": "Running"}}
    code, after = api.put(f"{PODS}/p/status", sent)
    assert code == 200
    assert after["spec"] == found["spec"]
    assert after["status"] == {"phase": "Running", "qosClass": "BestEffort"}


def test_the_generation_counts_changes_of_the_spec_only() -> None:
    api = Api()
    api.post(PODS, pod())
    patch: Json = {"metadata": {"labels": {"a": "1"}}}
    assert api.patch(f"{PODS}/p", patch)[1]["metadata"]["generation"] == 1
    patch = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
    assert api.patch(f"{PODS}/p", patch, STRATEGIC)[1]["metadata"]["generation"] == 2


# --- eviction

BUDGETS = {
    "1.19": "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
    "1.36": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
}


def running(api: Api, version: str, allowed: int, selector: Json | None) -> None:
    """A running pod p, and a budget b whose controller has seen it."""
    api.post(PODS, {**pod(nodeName="n1"), "metadata": {"name": "p", "labels": {"a": "1"}}})
    ready = {"type": "Ready", "status": "True"}
    api.patch(f"{PODS}/p/status", {"status": {"phase": "Running", "conditions": [ready]}})
    spec = {"minAvailable": 1} if selector is None else {"minAvailable": 1, "selector": selector}
    api.post(BUDGETS[version], {"metadata": {"name": "b"}, "spec": spec})
    numbers = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    api.patch(f"{BUDGETS[version]}/b/status", {"status": {"observedGeneration": 1, **numbers}})


@pytest.mark.parametrize("version", VERSIONS)
def test_an_eviction_takes_from_the_budget_and_deletes(version: str) -> None:
    api = Api(version)
    running(api, version, 1, {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]})
    assert evict(api)[0] == 201
    status = api.get(f"{BUDGETS[version]}/b")[1]["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (0, {"p": "2026-01-02T03:04:05Z"})
    assert api.get(f"{PODS}/p")[1]["metadata"]["deletionGracePeriodSeconds"] == 30


@pytest.mark.parametrize("version", VERSIONS)
def test_a_budget_without_disruptions_refuses(version: str) -> None:
    api = Api(version)
    running(api, version, 0, {"matchLabels": {"a": "1"}})
    code, status = evict(api)
    assert (code, status["reason"]) == (429, "TooManyRequests")
    assert "deletionTimestamp" not in api.get(f"{PODS}/p")[1]["metadata"]


@pytest.mark.parametrize(
    ("version", "selector", "code"),
    [("1.19", {}, 201), ("1.36", {}, 429), ("1.36", None, 201), ("1.36", {"matchLabels": {"a": "2"}}, 201)],
)
def test_which_pods_a_budget_selects(version: str, selector: Json | None, code: int) -> None:
    api = Api(version)
    running(api, version, 0, selector)
    assert evict(api)[0] == code


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_pod_needs_no_budget(version: str) -> None:
    api = Api(version)
    running(api, version, 0, {"matchLabels": {"a": "1"}})
    api.patch(f"{PODS}/p/status", {"status": {"phase": "Pending"}})
    assert evict(api)[0] == 201


@pytest.mark.parametrize(
    ("version", "policy", "healthy", "code"),
    [
        ("1.19", None, 1, 429),
        ("1.36", None, 1, 201),
        ("1.36", None, 0, 429),
        ("1.36", "AlwaysAllow", 0, 201),
        ("1.36", "IfHealthyBudget", 0, 429),
    ],
)
def test_a_pod_that_is_not_ready_may_go_if_enough_others_are(
    version: str, policy: str | None, healthy: int, code: int
) -> None:
    api = Api(version)
    running(api, version, 0, {"matchLabels": {"a": "1"}})
    api.patch(f"{PODS}/p/status", {"status": {"conditions": None}})
    api.patch(f"{BUDGETS[version]}/b", {"spec": {"unhealthyPodEvictionPolicy": policy}})
    seen = {"observedGeneration": 2, "currentHealthy": healthy}
    api.patch(f"{BUDGETS[version]}/b/status", {"status": seen})
    assert evict(api)[0] == code


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_eviction_deletes_nothing(version: str) -> None:
    api = Api(version)
    running(api, version, 1, {"matchLabels": {"a": "1"}})
    before = api.server.state.store.revision
    assert api.post(f"{PODS}/p/eviction?dryRun=All", {"metadata": {"name": "p"}})[0] == 201
    assert api.server.state.store.revision == before


# --- deletes


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("spec", "phase", "query", "grace"),
    [
        ({}, "Pending", "", 0),
        ({"nodeName": "n"}, "Running", "", 30),
        ({"nodeName": "n"}, "Succeeded", "", 0),
        ({"nodeName": "n"}, "Running", "?gracePeriodSeconds=3", 3),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 0}, "Running", "", 0),
    ],
)
def test_how_long_a_pod_has_to_go(version: str, spec: Json, phase: str, query: str, grace: int) -> None:
    api = Api(version)
    api.post(PODS, pod(**spec))
    api.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
    _, found = api.delete(f"{PODS}/p{query}")
    assert found["metadata"]["deletionGracePeriodSeconds"] == grace
    assert api.get(f"{PODS}/p")[0] == (200 if grace else 404)


@pytest.mark.parametrize(("version", "grace"), [("1.19", -5), ("1.36", 1)])
def test_a_negative_grace_period(version: str, grace: int) -> None:
    api = Api(version)
    api.post(PODS, pod(nodeName="n"))
    _, found = api.delete(f"{PODS}/p?gracePeriodSeconds=-5")
    assert found["metadata"]["deletionGracePeriodSeconds"] == grace
