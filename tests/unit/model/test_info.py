from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.model.affinity import AffinityTerm, affinity_term_matches
from ksp.model.decode import convert
from ksp.model.info import EMPTY_NODE, EMPTY_POD, NodeInfo, PodInfo
from ksp.model.int64 import MAX, MIN
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.ports import HostPort
from ksp.model.selector import NOTHING

MI = 2**20


def pod(name: str = "p", metadata: dict[str, Any] | None = None, **spec: Any) -> PodInfo:
    return PodInfo.of(convert(Pod, {"metadata": {"name": name, "namespace": "ns", **(metadata or {})}, "spec": spec}))


def container(port: Any = None, restart: str = "", **requests: Any) -> dict[str, Any]:
    named = {name.replace("__", "/").replace("_", "-"): quantity for name, quantity in requests.items()}
    return {"resources": {"requests": named}, "ports": port or [], "restartPolicy": restart}


def node(name: str = "n", **fields: Any) -> NodeInfo:
    return NodeInfo.of(convert(Node, {"metadata": {"name": name}, **fields}))


def test_a_pod_shows_what_it_is() -> None:
    info = pod("web", {"uid": "u1", "labels": {"a": "b"}, "deletionTimestamp": "2020-01-01T00:00:00Z"}, priority=7)
    assert (info.name, info.namespace, info.uid, info.labels) == ("web", "ns", "u1", {"a": "b"})
    assert info.metadata.labels is info.labels
    assert (info.terminating, info.priority, info.scheduler_name) == (True, 7, "default-scheduler")
    assert info.node is EMPTY_NODE


def test_what_a_pod_does_not_say() -> None:
    info = pod("web", schedulerName="mine")
    assert (info.uid, info.terminating, info.priority, info.scheduler_name) == ("ns/web", False, 0, "mine")
    assert info.requests == {"cpu": 0, "ephemeral-storage": 0, "memory": 0}
    assert info.error == info.affinity_error == ""


def test_requests_add_up_and_init_containers_count_by_their_largest() -> None:
    info = pod(
        containers=[container(cpu="1500u", memory="2500m"), container(cpu="0.5", example_com__gpu=2)],
        initContainers=[container(cpu="200m", memory="1Mi"), container(cpu="2", memory="1")],
        overhead={"cpu": "250m", "memory": "1Ki", "example.com/gpu": 1},
    )
    assert info.requests == {
        "cpu": 2250,
        "ephemeral-storage": 0,
        "memory": MI + 1024,
        "example-com/gpu": 2,
        "example.com/gpu": 1,
    }
    assert list(info.requests) == sorted(info.requests)


def test_only_resources_that_scheduling_knows_count() -> None:
    names = {
        "hugepages-2Mi": True, "attachable-volumes-aws-ebs": True, "example.com/x": True, "kubernetes.io/batch": True,
        "x.kubernetes.io/y": True, "pods": False, "storage": False, "requests.example.com/x": False, "Bad /x": False,
    }  # fmt: skip
    info = pod(containers=[{"resources": {"requests": dict.fromkeys(names, "1")}}])
    assert {name: name in info.requests for name in names} == names


def test_a_scalar_resource_of_amount_zero_counts_where_containers_name_it() -> None:
    assert "a.b/c" in pod(containers=[{"resources": {"requests": {"a.b/c": "0"}}}]).requests
    assert "a.b/c" not in pod(initContainers=[{"resources": {"requests": {"a.b/c": "0"}}}]).requests


def test_limits_do_not_count() -> None:
    assert pod(containers=[{"resources": {"limits": {"cpu": "5"}}}]).requests["cpu"] == 0


def test_nonzero_requests_fill_in_what_is_absent_only() -> None:
    info = pod(
        containers=[container(), container(cpu="0", memory="0"), container(cpu="1", ephemeral_storage="5")],
        initContainers=[container(memory="700Mi")],
        overhead={"cpu": "250m"},
    )
    assert info.nonzero_requests == {"cpu": 100 + 1000 + 250, "ephemeral-storage": 5, "memory": 700 * MI}
    assert pod(initContainers=[container()]).nonzero_requests["memory"] == 200 * MI
    assert pod().nonzero_requests["cpu"] == 0


def test_sidecars_run_on_while_others_start() -> None:
    info = pod(
        containers=[container(cpu="100m", memory="100Mi")],
        initContainers=[
            container(cpu="500m", memory="50Mi"),
            container(restart="Always", cpu="200m", memory="10Mi"),
            container(cpu="400m", memory="10Mi"),
        ],
    )
    assert (info.requests["cpu"], info.requests["memory"]) == (600, 110 * MI)


def test_what_the_pod_states_as_a_whole_replaces_the_sum() -> None:
    info = pod(
        containers=[container(cpu="1", memory="1Gi", ephemeral_storage="1"), container()],
        resources={"requests": {"cpu": "300m", "ephemeral-storage": "9"}},
        overhead={"cpu": "50m"},
    )
    assert info.requests == {"cpu": 350, "ephemeral-storage": 1, "memory": 1024 * MI}
    assert info.nonzero_requests == info.requests
    assert pod(containers=[container()], resources={"requests": {"cpu": "1"}}).nonzero_requests["memory"] == 200 * MI


def test_sums_wrap_as_in_go() -> None:
    info = pod(containers=[container(memory=str(MAX)), container(memory="1")])
    assert info.requests["memory"] == MIN


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"containers": [container(), container(memory="1GiB")]},
            'spec.containers[1].resources.requests[memory]: "1GiB" is not a quantity',
        ),
        (
            {"initContainers": [container(cpu="x")]},
            'spec.initContainers[0].resources.requests[cpu]: "x" is not a quantity',
        ),
        ({"overhead": {"cpu": ""}}, 'spec.overhead[cpu]: "" is not a quantity'),
        (
            {"resources": {"requests": {"cpu": "1 "}}, "overhead": {"foo": "1x"}},
            'spec.overhead[foo]: "1x" is not a quantity',
        ),
    ],
)
def test_a_quantity_that_cannot_be_read(spec: dict[str, Any], error: str) -> None:
    info = pod(**spec)
    assert info.error == error
    assert set(info.requests.values()) == {0}


def test_host_ports() -> None:
    ports = [{"hostPort": 80}, {"containerPort": 1}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    info = pod(
        containers=[container(port=ports), container(port=[{"hostPort": -1}])],
        initContainers=[container(port=[{"hostPort": 81}]), container(port=[{"hostPort": 82}], restart="Always")],
    )
    assert info.host_ports == (
        HostPort(port=80, protocol="TCP", ip="0.0.0.0"),
        HostPort(port=53, protocol="UDP", ip="10.0.0.1"),
        HostPort(port=82, protocol="TCP", ip="0.0.0.0"),
    )


REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
WEB = {"matchLabels": {"app": "web"}}
BAD = {"matchExpressions": [{"key": "app", "operator": "Foo"}]}


def term(selector: Any, *namespaces: str) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": selector, "namespaces": list(namespaces)}


def test_affinity_terms() -> None:
    info = pod(
        affinity={
            "podAffinity": {REQUIRED: [term(WEB), term(None)], PREFERRED: [{"weight": 5, "podAffinityTerm": term({})}]},
            "podAntiAffinity": {REQUIRED: [term(WEB, "x", "y")]},
        }
    )
    assert [(t.topology_key, t.weight, t.namespaces) for t in info.required_affinity] == [("zone", 0, ("ns",))] * 2
    assert info.required_affinity[1].selector is NOTHING
    assert info.preferred_affinity[0].weight == 5
    assert info.required_anti_affinity[0].namespaces == ("x", "y")
    assert info.preferred_anti_affinity == ()
    assert info.affinity_error == ""


def test_affinity_terms_match_by_namespace_and_labels() -> None:
    web, other = pod(metadata={"labels": {"app": "web"}}), pod(metadata={"labels": {"app": "web"}, "namespace": "x"})
    near = pod(affinity={"podAffinity": {REQUIRED: [term(WEB), term(None), term({})]}})
    matches = [[affinity_term_matches(t, p) for t in near.required_affinity] for p in (web, other, pod())]
    assert matches == [[True, False, True], [False, False, False], [False, False, True]]


def test_a_malformed_selector_empties_its_list_and_the_last_is_named() -> None:
    info = pod(
        affinity={
            "podAffinity": {REQUIRED: [term(WEB), term(BAD)], PREFERRED: [{"weight": 1, "podAffinityTerm": term(WEB)}]},
            "podAntiAffinity": {REQUIRED: [term({"matchExpressions": [{"key": "a", "operator": "In"}]})]},
        }
    )
    assert info.required_affinity == info.required_anti_affinity == ()
    assert len(info.preferred_affinity) == 1
    assert info.affinity_error == "requiredAntiAffinityTerms: for 'in', 'notin' operators, values set can't be empty"
    only = pod(affinity={"podAffinity": {REQUIRED: [term(BAD)]}})
    assert only.affinity_error == 'requiredAffinityTerms: "Foo" is not a valid pod selector operator'


def test_a_node_shows_what_it_is() -> None:
    info = node(
        spec={"unschedulable": True},
        status={
            "allocatable": {"cpu": "3850m", "memory": "8Gi", "pods": "110", "example.com/gpu": 4, "odd": "1"},
            "images": [{"names": ["a:1", "b"], "sizeBytes": 5}, {"names": ["b"], "sizeBytes": 7}],
        },
    )
    assert info.allocatable == {
        "cpu": 3850, "memory": 8192 * MI, "ephemeral-storage": 0, "pods": 110, "example.com/gpu": 4
    }  # fmt: skip
    assert info.images == {"a:1": 5, "b": 5}
    assert (info.name, info.uid, info.pod_count, info.host_ports, info.error) == ("n", "", 0, (), "")
    assert info.spec.unschedulable


def test_a_node_that_cannot_be_read_offers_nothing() -> None:
    info = node(status={"allocatable": {"cpu": "4", "memory": "lots"}})
    assert info.error == 'status.allocatable[memory]: "lots" is not a quantity'
    assert info.allocatable == {"cpu": 0, "memory": 0, "ephemeral-storage": 0, "pods": 0}


def test_pods_come_and_go() -> None:
    info = node()
    web = pod("web", containers=[container(port=[{"hostPort": 80}], cpu="1", a_b__gpu=1)])
    idle = pod("idle", containers=[container()])
    info.add_pod(web)
    info.add_pod(idle)
    assert info.requested == {"cpu": 1000, "memory": 0, "ephemeral-storage": 0, "a-b/gpu": 1}
    assert info.nonzero_requested == {"cpu": 1100, "memory": 400 * MI, "ephemeral-storage": 0, "a-b/gpu": 1}
    assert (info.pod_count, list(info.pods), info.generation) == (2, ["ns/web", "ns/idle"], 3)
    assert info.host_ports == web.host_ports
    assert web.node is idle.node is info
    info.remove_pod(web)
    assert info.requested == {"cpu": 0, "memory": 0, "ephemeral-storage": 0}
    assert (info.pod_count, info.host_ports, web.node) == (1, (), EMPTY_NODE)


def test_a_pod_is_on_a_node_once() -> None:
    info, web = node(), pod("web")
    with pytest.raises(ValueError, match="not on node n"):
        info.remove_pod(web)
    info.add_pod(web)
    with pytest.raises(ValueError, match="on node n already"):
        info.add_pod(pod("web"))
    with pytest.raises(ValueError, match="not on node n"):
        info.remove_pod(pod("web"))
    assert info.pod_count == 1


def test_a_changed_node_keeps_its_pods() -> None:
    info, web = node(status={"allocatable": {"cpu": "1"}}), pod("web", containers=[container(cpu="1")])
    info.add_pod(web)
    info.set_node(
        convert(Node, {"metadata": {"name": "n", "labels": {"a": "b"}}, "status": {"allocatable": {"cpu": 2}}})
    )
    assert (info.allocatable["cpu"], info.labels, info.requested["cpu"]) == (2000, {"a": "b"}, 1000)
    assert web.node is info


PODS = [
    pod("a", containers=[container(port=[{"hostPort": 80}], cpu="1", example_com__gpu=2)]),
    pod("b", containers=[container(memory=str(MAX))]),
    pod("c", containers=[container(memory=str(MAX), cpu="1n"), container()]),
    pod("d", containers=[container(port=[{"hostPort": 80}, {"hostPort": 81}], example_com__gpu=0)]),
    pod("e", overhead={"cpu": "-3", "example-com/gpu": -2}),
]


@given(st.lists(st.integers(0, len(PODS) - 1)))
def test_sums_are_those_of_the_pods_that_are_there(moves: list[int]) -> None:
    """Each move takes the pod away if it is there, and puts it there if not."""
    lived = node()
    for i in moves:
        if PODS[i].uid in lived.pods:
            lived.remove_pod(PODS[i])
        else:
            lived.add_pod(PODS[i])
    fresh = node()
    for info in list(lived.pods.values()):
        fresh.add_pod(info)
    assert fresh.requested == lived.requested
    assert fresh.nonzero_requested == lived.nonzero_requested
    assert (fresh.pod_count, fresh.host_ports) == (lived.pod_count, lived.host_ports)
    assert list(fresh.pods) == list(lived.pods)


SPECS: list[dict[str, Any]] = [
    {"containers": [container(port=[{"hostPort": 80}], cpu="1", example_com__gpu=2)]},
    {"containers": [container(memory=str(MAX))]},
    {"containers": [container(port=[{"hostPort": 81}], cpu="1", example_com__gpu=2)]},
    {"containers": [container()]},
]


@given(st.sampled_from(SPECS), st.sampled_from(SPECS))
def test_a_pod_takes_the_place_of_what_it_was(was: dict[str, Any], now: dict[str, Any]) -> None:
    others = [pod("first", **SPECS[0]), pod("last", **SPECS[1])]
    lived, fresh = node(), node()
    old, new = pod("p", **was), pod("p", **now)
    for info in (others[0], old, others[1]):
        lived.add_pod(info)
    lived.replace_pod(old, new)
    assert (old.node, new.node, list(lived.pods.values())) == (EMPTY_NODE, lived, [others[0], new, others[1]])
    for info in (others[0], new, others[1]):
        fresh.add_pod(info)
    assert (fresh.requested, fresh.nonzero_requested) == (lived.requested, lived.nonzero_requested)
    assert (fresh.pod_count, fresh.host_ports) == (lived.pod_count, lived.host_ports)
    with pytest.raises(ValueError, match="not on node n"):
        fresh.replace_pod(old, new)


def test_pods_that_ask_for_the_same_share_what_is_derived() -> None:
    one, same = (pod(name, containers=[container(cpu="1"), container()]) for name in ("a", "b"))
    assert one.requests is same.requests
    assert one.nonzero_requests is same.nonzero_requests
    many = {f"example.com/r{i}": i + 1 for i in range(40)}
    long = pod(containers=[{"resources": {"requests": many}}])
    assert long.requests == {"cpu": 0, "memory": 0, "ephemeral-storage": 0} | many


def test_terms_that_did_not_change_stay_the_same_objects() -> None:
    raw: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [term(WEB)]}, "podAffinity": {REQUIRED: [term(BAD)]}}},
    }
    before = PodInfo.of(convert(Pod, raw))
    bound = convert(Pod, {**raw, "spec": {**raw["spec"], "nodeName": "n"}})
    after = PodInfo.of(bound, before)
    assert after.required_anti_affinity is before.required_anti_affinity
    assert after.affinity_error == before.affinity_error != ""
    assert after.spec.node_name == "n"
    moved = PodInfo.of(convert(Pod, {**raw, "metadata": {"name": "p", "namespace": "other"}}), before)
    assert moved.required_anti_affinity[0].namespaces == ("other",)
    other = {**raw, "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [term({})]}}}}
    assert PodInfo.of(convert(Pod, other), before).required_anti_affinity[0].selector.match_labels == {}
    assert PodInfo.of(convert(Pod, other), before).affinity_error == ""


def test_empty_ones() -> None:
    assert EMPTY_POD.node is EMPTY_NODE
    assert EMPTY_NODE.pods == {}
    assert EMPTY_POD.requests == {"cpu": 0, "memory": 0, "ephemeral-storage": 0}
    assert AffinityTerm().selector is NOTHING


# ---- containers that are being resized


def resized(asked: str, has: Any, *conditions: dict[str, str], restart: str = "") -> PodInfo:
    """A pod with a container, or sidecar, that asks for that much cpu, and whose status is `has`."""
    kinds = ("initContainers", "initContainerStatuses") if restart else ("containers", "containerStatuses")
    own = {"name": "c", **container(restart=restart, cpu=asked)}
    status = {kinds[1]: [{"name": "c", **has}], "conditions": list(conditions)}
    return PodInfo.of(convert(Pod, {"metadata": {"name": "p"}, "spec": {kinds[0]: [own]}, "status": status}))


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.mark.parametrize("restart", ["", "Always"])
@pytest.mark.parametrize(
    ("asked", "has", "conditions", "cpu"),
    [
        ("1", {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}, [], 1000),
        ("1", {"resources": {"requests": {"cpu": "2"}}}, [], 2000),
        ("1", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}, [], 3000),
        ("4", {"resources": {"requests": {"cpu": "2"}}}, [], 4000),
        ("4", {"resources": {"requests": {"cpu": "2"}}}, [DEFERRED], 4000),
        ("4", {"resources": {"requests": {"cpu": "2"}}}, [INFEASIBLE], 2000),
        ("1", {"resources": {}}, [], 1000),
        ("1", {"allocatedResources": {"cpu": "3"}}, [], 1000),
        ("4", {}, [INFEASIBLE], 4000),
    ],
)
def test_a_container_counts_as_the_larger_of_what_it_asks_for_and_has(
    restart: str, asked: str, has: Any, conditions: list[dict[str, str]], cpu: int
) -> None:
    info = resized(asked, has, *conditions, restart=restart)
    assert info.requests["cpu"] == info.nonzero_requests["cpu"] == cpu


def test_the_status_of_another_container_says_nothing() -> None:
    info = resized("1", {"name": "other", "resources": {"requests": {"cpu": "2"}}})
    assert info.requests["cpu"] == 1000


def test_what_a_container_has_may_be_unreadable_too() -> None:
    info = resized("1", {"resources": {"requests": {"cpu": "2x"}}})
    assert info.error == 'status.containerStatuses[0].resources.requests[cpu]: "2x" is not a quantity'
