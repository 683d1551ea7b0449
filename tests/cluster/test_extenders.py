"""Extenders have a say: real HTTP servers, asked by a scheduler of an API server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from tests.cluster.conftest import Scheduling
from tests.cluster.test_preemption import goes, settled
from tests.cluster.view import Cluster, Json
from tests.unit.kube.certificates import Authority
from tests.unit.kube.extender_server import Answer, ExtenderServer, extending

from ksp.core.changes import SetNode
from ksp.policy.assemble import Settings, assemble
from ksp.policy.extender import Extender, ExtenderTLS
from ksp.policy.texts import PolicyTexts
from ksp.runtime.app import App

GPU = "example.com/gpu"
SHORT = 0.2
"""Seconds after which an extender that never answers is given up."""
FEW_RULES: Json = {"predicates": [{"name": "PodFitsResources"}], "priorities": []}
"""Of a Policy: to compile all takes a second."""


def extender(server: ExtenderServer, *verbs: str, **fields: Any) -> Extender:
    """One that is asked for these verbs."""
    asked = {f"{verb}_verb": verb for verb in verbs}
    return Extender(server.url, **{"timeout": 20.0, **asked, **fields})


def names(question: Json) -> list[str]:
    return [node["metadata"]["name"] for node in question["Nodes"]["items"]]


def all_of_them(question: Json) -> Json:
    return {"NodeNames": question["NodeNames"], "Nodes": question["Nodes"]}


def only(node: str, why: str = "not here") -> Answer:
    return lambda question: {
        "Nodes": {"items": [each for each in question["Nodes"]["items"] if each["metadata"]["name"] == node]},
        "FailedNodes": {name: why for name in names(question) if name != node},
    }


# ---- filter


async def test_it_says_which_nodes_may_take_the_pod(cluster: Cluster, scheduling: Scheduling) -> None:
    one, two = [await cluster.node(name) for name in ("one", "two")]
    async with extending({"filter": only(two)}) as server, scheduling(extenders=[extender(server, "filter")]):
        await cluster.pod("p")
        assert await cluster.bound("p") == two
    assert [sorted(names(question)) for question in server.asked["filter"]] == [[one, two]]


async def test_what_it_receives_is_what_the_server_holds(cluster: Cluster, scheduling: Scheduling) -> None:
    """Field by field, fields that ksp does not read among them, of a node from a list and one from a watch."""
    first = await cluster.node("first")
    args = {"metadata": {"annotations": {"unread": "äöü \u2028 <>&"}}}
    await cluster.patch(f"/api/v1/nodes/{first}", args)
    async with extending({"filter": all_of_them}) as server, scheduling(extenders=[extender(server, "filter")]) as app:
        second = await cluster.node("second")
        await knows(app, second)
        spec: Json = {
            "terminationGracePeriodSeconds": 7,
            "dnsConfig": {"searches": ["a.example"]},
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["sh", "-c", 'echo "\u00e9"'],
                    "env": [{"name": "A", "value": "1"}],
                    "livenessProbe": {"tcpSocket": {"port": 80}},
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ],
        }
        await cluster.pod("p", **spec)
        await cluster.bound("p")
        question = server.asked["filter"][0]
        pod = await cluster.send("GET", f"{cluster.pods}/p")
        there = {name: await cluster.send("GET", f"/api/v1/nodes/{name}") for name in (first, second)}
    assert sorted(names(question)) == sorted(there)
    same = 0
    for node in question["Nodes"]["items"]:
        held = there[node["metadata"]["name"]]
        if held["metadata"]["resourceVersion"] == node["metadata"]["resourceVersion"]:  # it may have changed since
            assert untyped(node) == untyped(held)
            same += 1
    assert same
    received = untyped(question["Pod"])
    assert received["metadata"] | {"resourceVersion": ""} == pod["metadata"] | {"resourceVersion": ""}
    assert received["spec"] | {"nodeName": pod["spec"]["nodeName"]} == pod["spec"]
    assert question["NodeNames"] is None


def untyped(value: Json) -> Json:
    """Without kind and apiVersion, which items of lists do not have."""
    return {name: each for name, each in value.items() if name not in ("kind", "apiVersion")}


async def knows(app: App, node: str) -> None:
    """Returns when the scheduler knows the node. It is told of the next one by whoever watches."""
    told = asyncio.Event()
    on = app.scheduler.on

    def hearing(change: Any, now: float) -> None:
        on(change, now)
        if isinstance(change, SetNode):
            told.set()

    app.scheduler.on = hearing  # type: ignore[method-assign]
    try:
        async with asyncio.timeout(20):
            while node not in app.scheduler.state.nodes:
                await told.wait()
                told.clear()
    finally:
        app.scheduler.on = on  # type: ignore[method-assign]


async def test_one_that_keeps_nodes_is_sent_their_names(cluster: Cluster, scheduling: Scheduling, once: None) -> None:
    one, two = [await cluster.node(name) for name in ("one", "two")]
    answers: dict[str, Answer] = {
        "filter": lambda _: {"nodenames": [two, one]},
        "prioritize": lambda _: [{"host": two, "score": 10}, {"host": one, "score": 0}],
    }
    async with extending(answers) as server:
        one_that_knows = extender(server, "filter", "prioritize", node_cache_capable=True, weight=100)
        async with scheduling(extenders=[one_that_knows]):
            await cluster.pod("p")
            assert await cluster.bound("p") == two
    for verb in ("filter", "prioritize"):
        (question,) = server.asked[verb]
        assert question["Nodes"] is None
        assert sorted(question["NodeNames"]) == [one, two]
        assert question["Pod"]["metadata"]["name"] == "p"


async def test_why_it_refuses_nodes_is_told_to_the_pods_user(
    cluster: Cluster, scheduling: Scheduling, once: None
) -> None:
    node = await cluster.node("only")
    nothing: Answer = lambda _: {"NodeNames": [], "FailedNodes": {node: "no licence"}}
    async with extending({"filter": nothing}) as server, scheduling(extenders=[extender(server, "filter")]):
        await cluster.pod("p")
        await cluster.refused("p", "0/1 nodes are available: 1 no licence.")
        server.verbs["filter"] = all_of_them
        await cluster.node("another")  # something happens, and it is asked again
        await cluster.bound("p")


# ---- what goes wrong


async def test_an_attempt_fails_with_an_extender_that_must_not(
    cluster: Cluster, scheduling: Scheduling, once: None
) -> None:
    """Each time it is told what is wrong; and once it answers again, all are bound."""
    await cluster.node("only")
    async with extending({}) as server, scheduling(extenders=[extender(server, "filter", timeout=SHORT)]):
        faults: dict[str, tuple[Answer, str]] = {
            "garbage": (lambda _: web.Response(text="<html>"), "cannot read its answer to filter"),
            "error": (lambda _: {"Error": "out of order"}, "it says: out of order"),
            "status": (lambda _: web.Response(status=503), "filter is answered with status 503"),
            "never": (server.never, "no whole answer to filter in"),
        }
        server.verbs["filter"] = lambda question: faults[question["Pod"]["metadata"]["name"]][0](question)
        for name, (_, why) in faults.items():
            await cluster.pod(name)
            told = await cluster.refused(name, f"extender {server.url}: {why}")
            assert told["reason"] == "SchedulerError"
        server.verbs["filter"] = all_of_them
        for name in faults:
            await cluster.bound(name)


async def test_an_ignorable_one_that_is_away_is_left_out(cluster: Cluster, scheduling: Scheduling, once: None) -> None:
    one, two = [await cluster.node(name) for name in ("one", "two")]
    async with extending({}) as away:
        pass
    async with extending({"filter": only(two)}) as server:
        both = [extender(away, "filter", "prioritize", ignorable=True), extender(server, "filter")]
        async with scheduling(extenders=both):
            await cluster.pod("p")
            assert await cluster.bound("p") == two
    assert one in names(server.asked["filter"][0])


async def test_what_happens_while_it_thinks_is_not_lost(cluster: Cluster, scheduling: Scheduling) -> None:
    first = await cluster.node("first")

    async def late(question: Json) -> Json:
        await server.let_go.wait()
        return all_of_them(question)

    async with extending({"filter": late}) as server, scheduling(extenders=[extender(server, "filter")]) as app:
        await cluster.pod("p")
        await server.was_asked("filter")
        assert app.scheduler.asked is not None
        second = await cluster.node("second")
        await cluster.pod("q", nodeSelector={"kubernetes.io/hostname": second})
        await cluster.delete(f"{cluster.pods}/p")
        await cluster.pod("r", nodeSelector={"kubernetes.io/hostname": first})
        server.let_go.set()
        assert await cluster.bound("q") == second
        assert await cluster.bound("r") == first
    assert app.scheduler.asked is None


async def test_a_scheduler_that_waits_for_an_answer_can_be_stopped(
    cluster: Cluster, scheduling: Scheduling, once: None
) -> None:
    await cluster.node("only")
    async with extending({}) as server:
        server.verbs["filter"] = server.never
        async with asyncio.timeout(20), scheduling(extenders=[extender(server, "filter")]) as app:
            await cluster.pod("p")
            await server.was_asked("filter")
            assert app.scheduler.asked is not None


# ---- whose business a pod is


async def test_resources_that_an_extender_manages(cluster: Cluster, scheduling: Scheduling, once: None) -> None:
    """Pods that ask for one are its business, and NodeResourcesFit takes no notice: no node says that it has any. All
    that a Policy says."""
    node = await cluster.node("only")
    async with extending({"filter": all_of_them}) as server:
        manager = {
            "urlPrefix": server.url, "filterVerb": "filter", "httpTimeout": 20_000_000_000,
            "managedResources": [{"name": GPU, "ignoredByScheduler": True}],
        }  # fmt: skip
        legacy = json.dumps({"kind": "Policy", "apiVersion": "v1", **FEW_RULES, "extenders": [manager]})
        texts = PolicyTexts("policy.cfg", {"policy.cfg": legacy}, (), "policy.cfg")
        async with scheduling(policy=assemble(texts, Settings(cluster.scheduler))):
            resources = {"requests": {"cpu": "100m", GPU: "1"}, "limits": {GPU: "1"}}
            await cluster.pod("plain")
            await cluster.pod("gpu", containers=[{"name": "main", "image": "none", "resources": resources}])
            assert await cluster.bound("plain") == await cluster.bound("gpu") == node
    assert [question["Pod"]["metadata"]["name"] for question in server.asked["filter"]] == ["gpu"]


# ---- prioritize


async def test_its_scores_count_by_its_weight(cluster: Cluster, scheduling: Scheduling, once: None) -> None:
    """Rules prefer the emptier node; the extenders' weights decide between the two of them, and against the rules."""
    one, two = await cluster.node("one", cpu="1"), await cluster.node("two", cpu="16")

    def liking(node: str) -> Answer:
        return lambda question: [{"Host": name, "Score": 10 * (name == node)} for name in names(question)]

    async with extending({"prioritize": liking(one)}) as light, extending({"prioritize": liking(two)}) as heavy:
        first = [extender(light, "prioritize", weight=1000), extender(heavy, "prioritize", weight=1)]
        async with scheduling(extenders=first):
            await cluster.pod("p")
            assert await cluster.bound("p") == one
        assert len(light.asked["prioritize"]) == len(heavy.asked["prioritize"]) == 1


# ---- preempt


@pytest.mark.parametrize("by_uid", [False, True])
async def test_it_has_a_say_in_who_has_to_go(by_uid: bool, cluster: Cluster, scheduling: Scheduling) -> None:
    for name in ("one", "two"):
        await cluster.node(name, cpu="1")
    high = await cluster.priority("high", 1000)
    chosen: dict[str, Any] = {}

    def spare_the_others(question: Json) -> Json:
        asked = question["NodeNameToMetaVictims" if by_uid else "NodeNameToVictims"]
        chosen["asked"], chosen["node"] = asked, max(asked)
        pods = asked[chosen["node"]]["Pods"]
        uids = [pod["UID"] if by_uid else pod["metadata"]["uid"] for pod in pods]
        meta = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
        return {"NodeNameToMetaVictims": {chosen["node"]: meta}}

    async with extending({"preempt": spare_the_others}) as server:
        preempting = extender(server, "preempt", node_cache_capable=by_uid)
        async with scheduling(extenders=[preempting]):
            places = {name: await settled(cluster, name) for name in ("a", "b")}
            await cluster.pod("high", cpu="800m", priorityClassName=high)
            node = await cluster.nominated("high")
            victim = next(name for name, place in places.items() if place == node)
            held = await cluster.until(cluster.pods, victim, goes)
            await cluster.let_go(victim)
            assert await cluster.bound("high") == node == chosen["node"]
    assert sorted(chosen["asked"]) == sorted(places.values())
    (pod,) = chosen["asked"][node]["Pods"]
    if by_uid:
        assert pod == {"UID": held["metadata"]["uid"]}
    else:
        assert untyped(pod)["spec"] == held["spec"]
        assert pod["metadata"]["uid"] == held["metadata"]["uid"]


# ---- bind


def binding(cluster: Cluster, *, answers: bool = True) -> Answer:
    """Binds as it is asked to; and answers, or hides that."""

    async def bind(question: Json) -> Any:
        target = {"apiVersion": "v1", "kind": "Node", "name": question["Node"]}
        metadata = {"name": question["PodName"], "uid": question["PodUID"]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await cluster.send("POST", f"{cluster.pods}/{question['PodName']}/binding", body)
        return {} if answers else web.Response(text="<html>")

    return bind


@pytest.mark.parametrize("answers", [True, False])
async def test_it_binds_and_a_lost_answer_is_found_out(answers: bool, cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("only")
    bind = binding(cluster, answers=answers)
    async with extending({"bind": bind}) as server, scheduling(extenders=[extender(server, "bind")]) as app:
        pod = await cluster.pod("p")
        assert await cluster.bound("p") == node
        await cluster.event("p", "Scheduled")
        assert app.scheduler.cache_size()["assumed_pods"] == 0
    asked = {"PodName": "p", "PodNamespace": cluster.namespace, "PodUID": pod["metadata"]["uid"], "Node": node}
    assert server.asked["bind"] == [asked]


async def test_a_binding_that_it_refuses_is_told_and_tried_again(cluster: Cluster, scheduling: Scheduling) -> None:
    node = await cluster.node("only")
    refuses: Answer = lambda _: {"Error": "no room"}
    async with extending({"bind": refuses}) as server, scheduling(extenders=[extender(server, "bind")]):
        await cluster.pod("p")
        told = await cluster.refused("p", "Binding rejected: no room")
        assert told["reason"] == "SchedulerError"
        server.verbs["bind"] = binding(cluster)
        assert await cluster.bound("p") == node


# ---- TLS


async def test_over_tls(cluster: Cluster, scheduling: Scheduling, once: None) -> None:
    node, ours = await cluster.node("only"), Authority()
    async with extending({"filter": all_of_them}, ours.server()) as server:
        trusting = extender(server, "filter", enable_https=True, tls=ExtenderTLS(ca_data=ours.pem))
        async with scheduling(extenders=[trusting]):
            await cluster.pod("p")
            assert await cluster.bound("p") == node
    assert server.url.startswith("https://")
