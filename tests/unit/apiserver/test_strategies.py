from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.in_process import PODS, VERSIONS, Api, causes, pod

from ksp.apiserver.validation.names import label, qualified_name, subdomain
from ksp.apiserver.versions import V1_19, V1_36

Json = dict[str, Any]
NAMESPACED = "/api/v1/namespaces/default"
TEMPLATE = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def storage_class(api: Api, name: str, *, default: bool = False) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    obj = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "x"}
    assert api.post("/apis/storage.k8s.io/v1/storageclasses", obj)[0] == 201


def claim(**spec: Any) -> Json:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}


# --- names


@pytest.mark.parametrize(
    ("text", "good"),
    [("a", True), ("a.b-c", True), ("A", False), ("-a", False), ("a..b", False), ("", False), ("a" * 254, False)],
)
def test_subdomains(text: str, good: bool) -> None:
    assert (subdomain(text, V1_36) == []) is good


def test_labels_are_short_and_have_no_dots() -> None:
    assert label("a" * 63, V1_36) == []
    assert label("a" * 64, V1_36) == ["must be no more than 63 characters"]
    assert label("a.b", V1_19)[0].startswith("a DNS-1123 label must")
    assert label("a.b", V1_36)[0].startswith("a lowercase RFC 1123 label must")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("a/b/c", "a qualified name must consist"),
        ("/b", "prefix part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("A/b", "prefix part a lowercase RFC 1123 subdomain"),
        ("a" * 64, "name part must be no more than 63"),
        ("a b", "name part must consist"),
    ],
)
def test_qualified_names(text: str, start: str) -> None:
    assert qualified_name(text, V1_36)[0].startswith(start)
    assert qualified_name("example.com/Name_1.x", V1_36) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("metadata", "cause"),
    [
        ({"name": "a", "labels": {"k": "x y"}}, 'metadata.labels: Invalid value: "x y": a valid label'),
        ({"name": "a", "annotations": {"x y": ""}}, 'metadata.annotations: Invalid value: "x y": name part'),
        ({"name": "a", "finalizers": ["mine"]}, 'metadata.finalizers[0]: Invalid value: "mine": name is neither'),
        ({"generateName": "A-"}, 'metadata.generateName: Invalid value: "A-": '),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]},
            'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
        ),
    ],
)
def test_metadata_that_is_refused(version: str, metadata: Json, cause: str) -> None:
    code, status = Api(version).post(f"{NAMESPACED}/configmaps", {"metadata": metadata})
    assert code == 422
    assert any(each.startswith(cause) for each in causes(status)), causes(status)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kind_without_a_type_has_its_metadata_read(version: str) -> None:
    api = Api(version)
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    code, found = api.post(path, {"metadata": {"name": "x", "labels": {}, "odd": 1}, "spec": {"any": []}})
    assert (code, found["spec"]) == (201, {"any": []})
    assert not {"labels", "odd"} & set(found["metadata"])
    assert api.post(path, {"metadata": {"name": "y", "labels": {"a": 1}}})[0] == 400
    assert api.patch(f"{path}/x", {"metadata": None})[0] == 400


# --- namespaces and nodes


@pytest.mark.parametrize("version", VERSIONS)
def test_a_namespace_goes_when_its_finalizers_do(version: str) -> None:
    api = Api(version)
    api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    _, found = api.delete("/api/v1/namespaces/x")
    assert found["status"]["phase"] == "Terminating"
    code, status = api.post("/api/v1/namespaces/x/configmaps", {"metadata": {"name": "c"}})
    assert (code, status["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert api.put("/api/v1/namespaces/x/finalize", {**found, "spec": {}})[0] == 200
    assert api.get("/api/v1/namespaces/x")[0] == 404


@pytest.mark.parametrize("version", VERSIONS)
def test_only_finalize_changes_the_finalizers_of_a_namespace(version: str) -> None:
    api = Api(version)
    api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    _, found = api.patch("/api/v1/namespaces/x", {"spec": {"finalizers": None}})
    assert found["spec"]["finalizers"] == ["kubernetes"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_namespaces_of_the_system_stay(version: str) -> None:
    code, status = Api(version).delete("/api/v1/namespaces/kube-system")
    assert (code, status["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_address_range_of_a_node_is_set_once(version: str) -> None:
    api = Api(version)
    _, found = api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    _, found = api.patch("/api/v1/nodes/n", {"spec": {"podCIDR": "10.1.0.0/24"}})
    assert found["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    other = {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}
    assert api.patch("/api/v1/nodes/n", other)[0] == 422


# --- services


def test_services_get_different_addresses_and_node_ports() -> None:
    api = Api()
    found = []
    for name in ("a", "b", "c"):
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        found.append(api.post(f"{NAMESPACED}/services", {"metadata": {"name": name}, "spec": spec})[1]["spec"])
    assert len({spec["clusterIP"] for spec in found}) == 3
    assert len({spec["ports"][0]["nodePort"] for spec in found}) == 3
    assert all(30_000 <= spec["ports"][0]["nodePort"] < 32_768 for spec in found)


def test_what_a_service_was_given_stays_when_a_manifest_does_not_repeat_it() -> None:
    api = Api()
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    _, before = api.post(f"{NAMESPACED}/services", {"metadata": {"name": "s"}, "spec": spec})
    obj = {"metadata": {"name": "s", "resourceVersion": before["metadata"]["resourceVersion"]}, "spec": spec}
    code, after = api.put(f"{NAMESPACED}/services/s", obj)
    assert (code, after["spec"]) == (200, before["spec"])
    code, status = api.patch(f"{NAMESPACED}/services/s", {"spec": {"clusterIP": "10.0.0.77"}})
    assert (code, causes(status)) == (422, ['spec.clusterIP: Invalid value: "10.0.0.77": field is immutable'])


def test_a_headless_service_has_no_address() -> None:
    _, found = Api().post(f"{NAMESPACED}/services", {"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}})
    assert found["spec"]["clusterIPs"] == ["None"]


# --- volumes


def test_of_several_default_classes_the_newest_counts() -> None:
    api = Api()
    for name in ("z", "a"):
        storage_class(api, name, default=True)
        api.clock.advance(1)
    _, found = api.post(f"{NAMESPACED}/persistentvolumeclaims", claim())
    assert found["spec"]["storageClassName"] == "a"


def test_the_old_server_does_not_choose_between_default_classes() -> None:
    api = Api("1.19")
    for name in ("z", "a"):
        storage_class(api, name, default=True)
    assert api.post(f"{NAMESPACED}/persistentvolumeclaims", claim())[0] == 403


@pytest.mark.parametrize("version", VERSIONS)
def test_a_claim_with_an_empty_class_keeps_it(version: str) -> None:
    api = Api(version)
    storage_class(api, "a", default=True)
    _, found = api.post(f"{NAMESPACED}/persistentvolumeclaims", claim(storageClassName=""))
    assert found["spec"]["storageClassName"] == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_claim_gets_its_volume_once(version: str) -> None:
    api = Api(version)
    path = f"{NAMESPACED}/persistentvolumeclaims"
    api.post(path, claim(storageClassName="x"))
    assert api.patch(f"{path}/c", {"spec": {"volumeName": "v"}})[0] == 200
    assert api.patch(f"{path}/c", {"spec": {"volumeName": "w"}})[0] == 422
    assert api.patch(f"{path}/c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})[0] == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}, "spec: Required value: must specify"),
        ({"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}, "spec.accessModes: Required value"),
        ({"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}, "spec.capacity: Required value"),
    ],
)
def test_volumes_that_are_refused(version: str, spec: Json, cause: str) -> None:
    code, status = Api(version).post("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    assert code == 422
    assert any(each.startswith(cause) for each in causes(status)), causes(status)


@pytest.mark.parametrize("version", VERSIONS)
def test_of_a_volume_only_its_claim_changes(version: str) -> None:
    api, path = Api(version), "/api/v1/persistentvolumes"
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/x"}}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}
    volume = {"metadata": {"name": "v"}, "spec": spec | {"nodeAffinity": affinity}}
    assert api.post(path, volume)[0] == 201
    for name in ("c", "d"):
        to = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": name}
        code, found = api.patch(f"{path}/v", {"spec": {"claimRef": to}})
        assert (code, found["spec"]["claimRef"]["uid"]) == (200, name)
    code, found = api.patch(f"{path}/v", {"spec": {"claimRef": None}})
    assert (code, "claimRef" in found["spec"]) == (200, False)
    term = {"matchExpressions": [{"key": "b", "operator": "Exists"}]}
    for change, cause in (
        ({"local": {"path": "/y"}}, "spec.persistentvolumesource: Forbidden"),
        ({"volumeMode": "Block"}, "volumeMode: Invalid value"),
        ({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}, "nodeAffinity: Invalid value"),
    ):
        code, status = api.patch(f"{path}/v", {"spec": change})
        assert (code, [each.startswith(cause) for each in causes(status)]) == (422, [True])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_volume_without_a_place_gets_one(version: str) -> None:
    api, path = Api(version), "/api/v1/persistentvolumes"
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    assert api.post(path, {"metadata": {"name": "v"}, "spec": spec})[0] == 201
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}
    assert api.patch(f"{path}/v", {"spec": {"nodeAffinity": affinity}})[0] == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_annotations_of_a_claim_change_but_for_its_class(version: str) -> None:
    api, path = Api(version), f"{NAMESPACED}/persistentvolumeclaims"
    old = "volume.beta.kubernetes.io/storage-class"
    assert api.post(path, {**claim(), "metadata": {"name": "c", "annotations": {old: "x"}}})[0] == 201
    assert api.patch(f"{path}/c", {"metadata": {"annotations": {"a": "b"}}})[0] == 200
    assert api.patch(f"{path}/c", {"metadata": {"annotations": {"a": None}}})[0] == 200
    for value in ("y", None):
        code, status = api.patch(f"{path}/c", {"metadata": {"annotations": {old: value}}})
        assert (code, causes(status)[0].split(":")[0]) == (422, f"metadata.annotations.{old}")
    moved = {"metadata": {"annotations": {old: None}}, "spec": {"storageClassName": "x"}}
    assert api.patch(f"{path}/c", moved)[0] == 200


# --- workloads


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("plural", ["replicasets", "statefulsets", "deployments", "daemonsets"])
def test_workloads_count_generations_and_keep_their_selector(version: str, plural: str) -> None:
    api = Api(version)
    path = f"/apis/apps/v1/namespaces/default/{plural}"
    selector = {"matchLabels": {"a": "1"}}
    code, found = api.post(path, {"metadata": {"name": "x"}, "spec": {"selector": selector, "template": TEMPLATE}})
    assert (code, found["metadata"]["generation"]) == (201, 1)
    patch: Json = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    assert api.patch(f"{path}/x", patch)[1]["metadata"]["generation"] == 2
    patch = {"spec": {"selector": {"matchLabels": {"a": None, "b": "1"}}}}
    assert api.patch(f"{path}/x", patch)[0] == 422


@pytest.mark.parametrize("version", VERSIONS)
def test_a_template_that_the_selector_does_not_select_is_refused(version: str) -> None:
    path = "/apis/apps/v1/namespaces/default/replicasets"
    spec = {"selector": {"matchLabels": {"a": "2"}}, "template": TEMPLATE}
    code, status = Api(version).post(path, {"metadata": {"name": "x"}, "spec": spec})
    assert code == 422
    assert causes(status) == [
        'spec.template.metadata.labels: Invalid value: {"a":"1"}: `selector` does not match template `labels`'
    ]


@pytest.mark.parametrize(("version", "port"), [("1.19", 80), ("1.36", None)])
def test_ports_of_templates_in_the_network_of_the_host(version: str, port: int | None) -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}
    template = {"metadata": {"labels": {"a": "1"}}, "spec": spec}
    obj = {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"a": "1"}}, "template": template}}
    code, found = Api(version).post("/apis/apps/v1/namespaces/default/daemonsets", obj)
    assert code == 201, found
    assert found["spec"]["template"]["spec"]["containers"][0]["ports"][0].get("hostPort") == port


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stateful_set_may_mount_its_claims(version: str) -> None:
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/x"}]}
    template = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [container]}}
    claims = [{"metadata": {"name": "data"}, "spec": claim()["spec"]}]
    spec = {"selector": {"matchLabels": {"a": "1"}}, "template": template, "volumeClaimTemplates": claims}
    code, status = Api(version).post(
        "/apis/apps/v1/namespaces/default/statefulsets", {"metadata": {"name": "x"}, "spec": spec}
    )
    assert code == 201, status
    assert status["spec"]["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"}


@pytest.mark.parametrize("version", VERSIONS)
def test_roles_have_any_name(version: str) -> None:
    obj = {"metadata": {"name": "system:a"}, "rules": []}
    code, status = Api(version).post("/apis/rbac.authorization.k8s.io/v1/clusterroles", obj)
    assert code == 201, status


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_name_their_resources_as_they_like(version: str) -> None:
    api = Api(version)
    status = {"capacity": {"attachable-volumes-aws-ebs": "39", "hugepages-2Mi": "0"}}
    assert api.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})[0] == 201
    code, found = api.post(
        "/api/v1/nodes", {"metadata": {"name": "m"}, "status": {"capacity": {"example.com/x": "500m"}}}
    )
    assert code == 422
    assert causes(found)[:1] == ['status.capacity[example.com/x]: Invalid value: "500m": must be an integer']


@pytest.mark.parametrize("version", VERSIONS)
def test_beta_versions_of_a_kind_are_the_same_objects(version: str) -> None:
    api = Api(version)
    made = api.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "l"}})[1]
    code, found = api.get("/apis/coordination.k8s.io/v1beta1/namespaces/default/leases/l")
    if version == "1.36":
        assert code == 404
    else:
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert found["apiVersion"] == "coordination.k8s.io/v1beta1"
        patched = api.patch(
            "/apis/coordination.k8s.io/v1beta1/namespaces/default/leases/l", {"spec": {"holderIdentity": "a"}}
        )
        assert patched[1]["spec"] == {"holderIdentity": "a"}


# --- configuration, leases, budgets, events


def test_texts_of_a_secret_are_stored_coded() -> None:
    obj = {"metadata": {"name": "s"}, "stringData": {"a": "x"}, "data": {"b": "eQ=="}}
    _, found = Api().post(f"{NAMESPACED}/secrets", obj)
    assert found["data"] == {"a": "eA==", "b": "eQ=="}
    assert found["type"] == "Opaque"
    assert "stringData" not in found


@pytest.mark.parametrize("version", VERSIONS)
def test_an_immutable_config_map(version: str) -> None:
    api = Api(version)
    path = f"{NAMESPACED}/configmaps"
    api.post(path, {"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": True})
    assert api.patch(f"{path}/c", {"metadata": {"labels": {"a": "1"}}})[0] == 200
    code, status = api.patch(f"{path}/c", {"data": {"a": "2"}})
    assert (code, causes(status)) == (422, ["data: Forbidden: field is immutable when `immutable` is set"])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lease_is_not_overwritten_blindly(version: str) -> None:
    api = Api(version)
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    assert api.put(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})[0] == 201
    code, status = api.put(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}})
    assert code == 422
    assert causes(status)[0].endswith("must be specified for an update")


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"minAvailable": -1}, "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
        ({"minAvailable": "x"}, 'spec.minAvailable: Invalid value: "x": a valid percent string'),
        ({"maxUnavailable": "101%"}, 'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'),
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec: Invalid value: "),
    ],
)
def test_budgets_that_are_refused(spec: Json, cause: str) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    code, status = Api().post(path, {"metadata": {"name": "b"}, "spec": spec})
    assert code == 422
    assert causes(status)[0].startswith(cause)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_event_looks_the_same_from_both_sides(version: str) -> None:
    api = Api(version)
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    sent = {
        "metadata": {"name": "e"},
        "eventTime": "2020-01-02T03:04:05.000006Z",
        "reportingController": "ksp",
        "reportingInstance": "ksp-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": "n",
        "type": "Normal",
    }
    code, made = api.post(new, sent)
    assert code == 201
    assert {name: made[name] for name in sent if name != "metadata"} == {
        name: value for name, value in sent.items() if name != "metadata"
    }
    _, core = api.get(f"{NAMESPACED}/events/e")
    assert (core["apiVersion"], core["message"], core["reportingComponent"]) == ("v1", "n", "ksp")
    assert core["involvedObject"] == sent["regarding"]
    _, again = api.get(f"{new}/e")
    assert again == made


# --- objects from files


@pytest.mark.parametrize("version", VERSIONS)
def test_loaded_objects_keep_their_status_and_meet_no_admission(version: str) -> None:
    api = Api(version)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    loaded = {"apiVersion": "v1", "kind": "Pod", **pod(nodeName="n", priorityClassName="none", priority=5)}
    loaded["status"] = {"phase": "Running"}
    api.server.load([{**node, "status": {"capacity": {"cpu": "1"}}}, loaded])
    assert "taints" not in api.get("/api/v1/nodes/n")[1]["spec"]
    _, found = api.get(f"{PODS}/p")
    assert found["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert found["spec"]["priority"] == 5
