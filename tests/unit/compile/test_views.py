"""The code of views: which rows are looked at, what it depends on, and when it is not made at all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.compile.compiling import Watched, bound, compiled
from tests.unit.core.scheduling import anti_affinity, cluster, info, node

from ksp.compile.tables import Tables, ViewPlan
from ksp.model.info import PodInfo


def plan_of(body: str, kind: str = "predicate") -> ViewPlan:
    """The plan of a rule's only view."""
    (plan,) = (p for p in compiled(f"{kind} P {{ {body} }}").constants.values() if isinstance(p, ViewPlan))
    return plan


def pods(where: str) -> ViewPlan:
    return plan_of(f'view w = count p in cluster.pods {where} deny "x" when w > node.podCount')


def test_a_view_of_one_namespace_looks_at_its_pods() -> None:
    assert pods("where p.namespace == pod.namespace").by_namespace
    assert pods('where p.name == "a" && "b" == p.namespace').by_namespace
    assert not pods("where p.namespace != pod.namespace").by_namespace
    assert not pods('where p.namespace == pod.namespace || p.name == "a"').by_namespace
    assert not pods("where p.namespace == p.name").by_namespace
    assert not pods(", t in pod.requiredAffinity where p.namespace == t.namespaces[0]").by_namespace


@pytest.mark.parametrize(
    ("joined", "field"),
    [
        ("t in p.requiredAntiAffinity", "required_anti_affinity"),
        ("t in p.preferredAffinity", "preferred_affinity"),
        ("t in pod.requiredAffinity", ""),
        ("t in p.spec.tolerations", ""),
        ('t in (p.name == "" ? p.requiredAffinity : p.preferredAffinity)', ""),
    ],
)
def test_a_view_over_terms_of_pods_looks_at_those_that_have_some(joined: str, field: str) -> None:
    assert pods(f", {joined}").pods_with == field


def test_what_a_row_reads_beyond_itself_is_known() -> None:
    assert not pods('where p.name == "a"').reads_nodes
    assert pods('where p.node.labels["a"] == "b"').reads_nodes
    assert pods("where p.node.podCount > 1").reads_sums
    assert pods('where "s" in cluster.services[p.namespace]').objects == {"services"}
    nodes = plan_of('view w = count n in cluster.nodes where has(n.hostPorts) deny "x" when w > node.podCount')
    assert (nodes.relation, nodes.reads_sums) == ("nodes", True)


# ---- what a view depends on


def values(body: str, pod: PodInfo, **arguments: object) -> list[tuple[Any, ...]]:
    """The values by which the views of a rule are asked for."""
    state = cluster(node("n"))
    tables = Watched(state)
    bound(f"predicate P {{ {body} }}", state, tables, pod, **arguments)
    return [given for _, given in tables.asked]


def test_a_view_that_reads_nothing_of_the_pod_is_one_for_all() -> None:
    text = 'view w = count p in cluster.pods where p.name == "a" deny "x" when w > node.podCount'
    assert values(text, info("p")) == [()]


def test_a_view_depends_on_what_it_reads_of_the_pod_and_no_more() -> None:
    text = 'view w = count p in cluster.pods where p.labels["app"] == pod.labels["app"] deny "x" when w > node.podCount'
    mine = info("mine", labels={"app": "web", "pod-template-hash": "1"})
    other = info("other", labels={"app": "web", "pod-template-hash": "2"})
    assert values(text, mine) == values(text, other) == [("web",)]


def test_a_view_depends_on_whether_a_selector_matches_not_on_the_labels() -> None:
    text = """view w = count p in cluster.pods
        where selector({"app": "web"}).matches(pod.labels) == p.terminating deny "x" when w > node.podCount"""
    assert values(text, info("a", labels={"app": "web", "x": "1"})) == [(True,)]
    assert values(text, info("a", labels={"x": "2"})) == [(False,)]


def test_a_view_depends_on_the_parameters_that_it_reads() -> None:
    text = """param app: string = "web" param other: int = 1
        view w = count p in cluster.pods where p.labels["app"] == app deny "x" when w > other"""
    assert values(text, info("p"), app="db", other=5) == [("db",)]


def test_terms_of_others_that_are_held_against_the_pod_need_its_labels_and_namespace() -> None:
    text = """view w = count p in cluster.pods, t in p.requiredAntiAffinity where t.matches(pod)
        deny "x" when w > node.podCount"""
    state = cluster(node("n"))
    state.add_pod(info("there", affinity=anti_affinity("web")), "n")
    tables = Watched(state)
    bound(f"predicate P {{ {text} }}", state, tables, info("p", labels={"app": "web"}))
    assert [given for _, given in tables.asked] == [("default", {"app": "web"})]


def test_instances_of_a_rule_with_other_arguments_do_not_share_a_table() -> None:
    made = compiled("""predicate P {
      param app: string
      view w = count p in cluster.pods where p.labels["app"] == app
      deny "${w}" when true
    }""")
    state = cluster(node("n"))
    state.add_pod(info("p", labels={"app": "web"}), "n")
    tables = Tables(state)
    found = []
    for app in ("web", "db"):
        check: Any = made.instantiate({"app": app}).bind(info("incoming"), tables)
        found.append(check.check(state.nodes["n"]).reasons)
    assert found == [("1",), ("0",)]


# ---- when it is not made


@pytest.mark.parametrize(
    ("view", "spec"),
    [
        ("count p in cluster.pods, t in pod.requiredAntiAffinity where t.matches(p)", {"affinity": anti_affinity("a")}),
        ("count p in cluster.pods where pod.spec.hostNetwork && p.spec.hostNetwork", {"hostNetwork": True}),
        ("first p in cluster.pods where pod.spec.hostNetwork && p.name > pod.name", {"hostNetwork": True}),
    ],
)
def test_a_view_to_which_no_row_can_count_is_not_made(view: str, spec: dict[str, Any]) -> None:
    read = "w.name == node.name" if view.startswith("first") else "w >= 0 && node.podCount == 0"
    body = f'view w = {view} deny "x" when {read}'
    assert values(body, info("plain")) == []
    assert len(values(body, info("special", **spec))) == 1


def test_a_view_that_no_one_reads_is_not_made() -> None:
    body = 'view w = count p in cluster.pods deny "x" when pod.spec.hostNetwork && node.podCount == 0'
    assert values(body, info("p", hostNetwork=True)) == []
