"""What is remembered between attempts is forgotten when it may be another."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from tests.unit.core.preemption.worlds import World, running, urgent
from tests.unit.core.scheduling import anti_affinity, node, profile_of

from ksp.core.bare_node import BareNode
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.storage import CSINode

WEB = {"app": "web"}
ZONE_A: dict[str, Any] = {"zone": "a"}


def test_a_pod_that_leaves_another_node_of_the_domain_may_help() -> None:
    """The node itself is as before, and what rules make of the pod, too; the view is another."""
    world = World(
        {"n": [running("low", cpu="4")], "m": [running("web", cpu="4", labels=WEB, priority=20)]}, n=ZONE_A, m=ZONE_A
    )
    shy = anti_affinity("web")
    assert world.victims(urgent("one", affinity=shy)) is None
    world.state.remove_pod("web")
    world.state.add_pod(running("other", cpu="4", priority=20), "m")
    assert world.victims(urgent("two", affinity=shy)) == ("n", ["low"])


def test_another_object_that_a_node_is_looked_up_in_may_help() -> None:
    rules = """
        predicate Full { deny "full" when node.podCount > 0 }
        predicate Driven { deny "no driver" when size(cluster.csiNodes[node.name].spec.drivers) == 0 }
    """
    world = World({"n": [running("low")]}, profile_of(rules, "predicates { Full, Driven }"))
    assert world.victims(urgent("one")) is None
    drivers = {"drivers": [{"name": "d", "nodeID": "n"}]}
    world.state.set_object("csiNodes", "", "n", convert(CSINode, {"metadata": {"name": "n"}, "spec": drivers}))
    assert world.victims(urgent("two")) == ("n", ["low"])


def test_a_search_gives_the_same_again_though_views_were_changed_meanwhile() -> None:
    pods = {"n": [running("low", cpu="4")], "m": [running("web", cpu="4", labels=WEB)]}
    world = World(pods, n=ZONE_A, m=ZONE_A)
    pod, nodes = urgent(affinity=anti_affinity("web")), world.state.node_list()
    world.nominations.put(pod, "n")  # what is said of its own node is not remembered
    search = world.preemption.search(pod)
    for _ in range(2):
        assert [option.node for option in search.options(nodes)] == ["m"]
        assert [option.node for option in search.best(nodes)] == ["m"]
        assert search.any(nodes)


def test_pods_of_other_priorities_have_other_victims() -> None:
    world = World({"n": [running("low", cpu="2"), running("middle", cpu="2", priority=5)]})
    assert world.victims(urgent("one", cpu="4", priority=4)) is None
    assert world.victims(urgent("two", cpu="4", priority=9)) == ("n", ["middle", "low"])
    assert world.victims(urgent("three", cpu="4", priority=4)) is None


def test_nodes_change_come_and_go() -> None:
    world = World({"n": [running("low", cpu="4")]})
    assert world.victims(urgent("one", cpu="6")) is None
    world.state.set_node(node("n", cpu="8"))
    assert world.victims(urgent("two", cpu="6")) == ("n", ["low"])
    world.state.remove_node("n")
    world.state.set_node(node("m"))
    world.state.add_pod(running("other", cpu="4"), "m")
    assert world.victims(urgent("three")) == ("m", ["other"])
    world.state.set_node(node("n"))
    world.dice.falls = [1]
    assert world.victims(urgent("four")) == ("n", ["low"])


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes of which copies were made: those that were judged."""
    names: list[str] = []

    class Counted(BareNode):
        def __init__(self, node: NodeInfo) -> None:
            names.append(node.name)
            super().__init__(node)

    monkeypatch.setattr("ksp.core.preemption.search.BareNode", Counted)
    return names


def test_a_large_pool_is_judged_once_and_not_again(copied: list[str]) -> None:
    world = World({f"n{i}": [running(f"p{i}", cpu="4")] for i in range(100)})
    for name in ("one", "two"):
        assert len(world.preemption.search(urgent(name)).best(world.state.node_list())) == 100
    assert copied == ["n0"]


def test_what_a_budget_allows_concerns_the_nodes_of_those_whom_it_covers(copied: list[str]) -> None:
    world = World({app: [running(app, cpu="4", labels={"app": app})] for app in "abc"})
    for app in "ab":
        world.budget(app, {"matchLabels": {"app": app}}, allowed=1)
    for allowed, judged, best in ((1, "abc", "abc"), (0, "b", "ac"), (0, "", "ac"), (1, "b", "abc")):
        world.budget("b", {"matchLabels": {"app": "b"}}, allowed=allowed)
        options = world.preemption.search(urgent()).best(world.state.node_list())
        assert [option.node for option in options] == list(best)
        assert copied == list(judged)
        copied.clear()
    world.budget("b", {"matchLabels": {"app": "c"}})
    assert [option.node for option in world.preemption.search(urgent()).best(world.state.node_list())] == ["a", "b"]
    assert copied == ["a", "b", "c"]


def test_pods_that_are_gone_are_not_kept_for_searches_that_nobody_repeats() -> None:
    world = World({f"n{i}": [running(f"forgotten{i}", cpu="4")] for i in range(3)})
    for priority in (8, 9, 10):
        assert world.preemption.would_help(urgent(priority=priority))
    for i in range(3):
        world.state.remove_pod(f"forgotten{i}")
        world.state.add_pod(running(f"known{i}", cpu="4"), f"n{i}")
    assert world.preemption.would_help(urgent(priority=10))
    gc.collect()
    names = {each.name for each in gc.get_objects() if isinstance(each, PodInfo)}
    assert "known0" in names
    assert not [name for name in names if name.startswith("forgotten")]
