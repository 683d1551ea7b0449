"""Rules that are hard to remember anything of: while the cluster changes, decisions are those of a cycle that remembers
nothing (`tests.state.reference`). Each is about one way in which what was said of nodes grows old."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.state.reference import PlainCycle
from tests.unit.core.scheduling import FakeDice, cycle_of, info, node, profile_of

from ksp.core.cycle import Decision
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.policy.unread import UnreadBy, UnreadFields

STEPS = 80
ROOM = "predicate Room { deny 'full' when node.podCount >= 3 }"
PREDICATES = {
    "sums of the first node": """
        view leader = first n in cluster.nodes where n.labels["disk"] == "ssd"
        deny 'the leader is full' when leader.podCount >= 2 && node.labels["disk"] != "ssd" """,
    "labels of the first pod's node": """
        view leader = first p in cluster.pods where p.labels["app"] == "web"
        deny 'not with the leader' when leader.name != "" && leader.node.labels["disk"] != node.labels["disk"] """,
    "labels of the first pod": """
        view leader = first p in cluster.pods where p.namespace == pod.namespace
        deny 'not like the leader' when leader.labels["app"] == node.labels["disk"] """,
    "nodes counted without a look at them": """
        view all = count n in cluster.nodes
        deny 'too few' when all < 6 && node.podCount > 0""",
    "how many entries a view has": """
        view used = count p in cluster.pods by p.node.name
        deny 'spread wider' when size(used) >= 3 && used[node.name] == 0""",
    "a view's map by a key of the pod": """
        view used = count p in cluster.pods by p.labels["app"], p.node.labels["disk"]
        deny 'there are some' when used[pod.labels["app"]][node.labels["disk"]] >= 2""",
    "an inner map that is emptied and filled": """
        view used = count p in cluster.pods where p.labels["app"] == "web" by p.node.labels["disk"], p.node.name
        deny 'alone' when size(used[node.labels["disk"]]) == 1 && !(node.name in used[node.labels["disk"]])""",
    "objects read for a node": """
        deny 'not served' when !(node.labels["disk"] in cluster.services[pod.namespace])""",
    "objects read in a view": """
        view served = count p in cluster.pods where p.labels["app"] in cluster.services[p.namespace] by p.node.name
        deny 'served here' when served[node.name] > 1""",
    "sums of nodes in a view": """
        view full = count n in cluster.nodes where n.podCount >= 2 by n.labels["disk"]
        deny 'full ones beside' when full[node.labels["disk"]] > 1""",
    "another view's entry": """
        view on = count p in cluster.pods by p.node.labels["disk"]
        let most = on.values().max(0)
        deny '${on[node.labels["disk"]]} of ${most}' when on[node.labels["disk"]] == most && most > 1""",
    "a failure that comes and goes": """
        fail 'odd' when node.podCount == 2 && node.labels["disk"] == "odd" """,
}
PRIORITIES = {
    "scores by who is feasible, of the highest": """
        score feasible.map(n, n.podCount).max(0) == node.podCount ? 7 : node.podCount > 0 ? 1 : 2
        normalize""",
    "scores by who is feasible, by labels": """
        let judged = feasible.filter(n, "disk" in n.labels)
        score node.podCount * size(judged) + (judged.map(n, n.podCount).max(0) == node.podCount ? 5 : 0)
        normalize {
          let top = judged.map(n, n.score).max(0)
          score "disk" in node.labels ? div(100 * (top - node.score), top, 100) : 0
        }""",
    "now constant, now not, normalised by nodes": """
        view pods = count p in cluster.pods where p.labels["app"] == "web"
        score pods > 2 ? node.podCount : 0
        normalize {
          view inZone = sum n.score for n in feasible by n.labels["disk"]
          score div(100 * inZone[node.labels["disk"]], inZone.values().max(0), node.labels["disk"] == "ssd" ? 100 : 30)
        }""",
    "of the feasible, now and then": """
        view pods = count p in cluster.pods where p.labels["app"] == "web"
        score pods > 2 ? (feasible[0].podCount + node.podCount) : node.podCount
        normalize reversed""",
    "normalised by a view": """
        view pods = count p in cluster.pods by p.node.name
        score node.podCount
        normalize { score min(100, node.score * 10 + pods[node.name] + size(pods)) }""",
    "normalised by labels of the feasible": """
        score node.podCount
        normalize {
          view inZone = count n in feasible by n.labels["disk"]
          score min(100, 10 * node.score + inZone[node.labels["disk"]])
        }""",
    "a score that is none": "score node.podCount * 40",
    "a failure": "fail 'odd' when node.podCount == 2 && node.labels['disk'] == 'odd' score node.podCount",
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("body", PREDICATES.values(), ids=PREDICATES)
def test_predicates(body: str, seed: int) -> None:
    rules = f"{ROOM} predicate Hard {{ {body} }} priority Empty {{ score 100 - node.podCount }}"
    churn(rules, "predicates { Room, Hard } priorities { Empty: 1 }", seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("body", PRIORITIES.values(), ids=PRIORITIES)
def test_priorities(body: str, seed: int) -> None:
    churn(f"{ROOM} priority Hard {{ {body} }}", "predicates { Room } priorities { Hard: 2 }", seed)


def churn(rules: str, uses: str, seed: int) -> None:
    """With odd seeds the journal is short, so that now and then all is begun anew."""
    profile = profile_of(rules, uses)
    random, state = Random(seed), ClusterState(6) if seed % 2 else ClusterState()
    for i in range(4):
        state.set_node(node(f"n{i}", labels={"disk": "ssd"}))
    plain = PlainCycle(profile, state, dict, FakeDice(), UnreadBy(profile, UnreadFields.IGNORE))
    settings: list[dict[str, Any]] = [{}, {"columns": False}, {"equivalence_classes": 2}]
    cycles = [cycle_of(profile, state, FakeDice(), keep_scores=False, **each) for each in settings]

    def compare() -> None:
        pod = info("p", labels={"app": random.choice(("web", "db"))})
        expected = said(plain.decide(pod))
        assert [said(cycle.decide(pod)) for cycle in cycles] == [expected] * len(cycles)

    for _ in range(STEPS):
        for _ in range(random.choice((1, 1, 1, 5))):
            change(random, state)
        if state.pods and random.randrange(8) == 0:
            with WhatIf(state, *random.choice(([], [cycles[0].present, cycles[1].present]))) as trial:
                for uid in random.sample(list(state.pods), random.randrange(1, 1 + len(state.pods))):
                    trial.remove(uid)
                compare()
                if random.randrange(2):
                    continue  # the next that is said is said when others may have changed
        compare()


def said(decision: Decision) -> tuple[object, ...]:
    found = decision.filtered
    return decision.node, decision.message, [each.name for each in found.feasible], found.refused


def change(random: Random, state: ClusterState) -> None:
    names, pods = list(state.nodes), list(state.pods)
    labels = random.choice(({"disk": "ssd"}, {"disk": "odd"}, {"disk": "web"}, {}))
    match random.randrange(9):
        case 0 | 1 | 2:
            state.add_pod(info(f"x{state.generation}", labels=app(random)), random.choice(names))
        case 3 | 4 if pods:
            state.remove_pod(random.choice(pods))
        case 5 if pods:
            state.update_pod(info(random.choice(pods), labels=app(random)))
        case 6:
            state.set_node(node(random.choice([*names, f"m{random.randrange(4)}"]), labels=labels))
        case 7 if len(names) > 2:
            gone = random.choice(names)
            state.remove_node(gone)
            if random.randrange(2):
                state.set_node(node(gone, labels=labels))
        case 8:
            serve(random, state)


def app(random: Random) -> dict[str, str]:
    return {"app": random.choice(("web", "db", "ssd"))}


def serve(random: Random, state: ClusterState) -> None:
    name = random.choice(("web", "ssd", "odd"))
    if name in state.objects["services"].get("default", {}):
        state.remove_object("services", "default", name)
    else:
        state.set_object("services", "default", name, convert(Service, {"metadata": {"name": name}}))
