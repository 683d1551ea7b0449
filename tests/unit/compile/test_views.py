"""The code of views: which rows are looked at, what it depends on, and when it is not made at all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.compile.compiling import Asked, Watched, bound, compiled
from tests.unit.core.scheduling import REQUIRED, anti_affinity, cluster, info, node

from ksp.compile.tables import Tables, ViewPlan
from ksp.model.info import PodInfo


def plan_of(body: str, kind: str = "predicate") -> ViewPlan:
    """The plan of a rule's only view."""
    (plan,) = (p for p in compiled(f"{kind} P {{ {body} }}").constants.values() if isinstance(p, ViewPlan))
    return plan


def pods(where: str) -> ViewPlan:
    return plan_of(f'view w = count p in cluster.pods {where} deny "x" when w > node.podCount')


def looked_at(view: str, pod: PodInfo | None = None) -> set[str]:
    """The pods that a new table asks, of some in two namespaces."""
    state = cluster(node("n"))
    for name, namespace, app in (("w", "default", "web"), ("d", "default", "db"), ("o", "other", "web")):
        state.add_pod(info(name, labels={"app": app}, metadata={"namespace": namespace}), "n")
    tables = Watched(state)
    bound(f'predicate P {{ view w = {view} deny "x" when w > node.podCount }}', state, tables, pod or info("p"))
    (candidates,) = tables.candidates
    found = candidates() if candidates is not None else None
    return {*(state.pods if found is None else found)}


ALL_PODS = {"w", "d", "o"}


@pytest.mark.parametrize(
    ("where", "pods_"),
    [
        ("p.namespace == pod.namespace", {"w", "d"}),
        ('"other" == p.namespace && p.name != "x"', {"o"}),
        ("p.namespace != pod.namespace", ALL_PODS),
        ('p.namespace == pod.namespace || p.name == "a"', ALL_PODS),
        ('p.namespace == "default" || p.namespace == "other" && p.labels["app"] == "web"', ALL_PODS),
        ('p.namespace == "default" && p.labels["app"] == "db" || p.namespace == "other"', {"d", "o"}),
        ("p.namespace == p.name", ALL_PODS),
        ('p.namespace == "default" && p.labels["app"] == "web"', {"w"}),
        ('p.namespace == "default" && p.labels["app"] == ""', {"w", "d"}),
        ('p.namespace == "default" && selector({"app": "db"}).matches(p.labels)', {"d"}),
        ('p.namespace == "default" && !selector({"app": "db"}).matches(p.labels)', {"w", "d"}),
        ('p.namespace == "default" && [selector({"app": "db"})].all(s, s.matches(p.labels))', {"d"}),
        ('p.namespace == "default" && [selector({"app": "db"})].exists(s, s.matches(p.labels))', {"d"}),
        ('p.namespace == "default" && (pod.spec.hostNetwork ? p.name == "w" : p.labels["app"] == "db")', {"d"}),
        ('p.namespace == "default" && (pod.spec.hostNetwork || p.labels["app"] == "db")', {"d"}),
    ],
)
def test_a_new_view_looks_where_its_conditions_lead(where: str, pods_: set[str]) -> None:
    assert looked_at(f"count p in cluster.pods where {where}") == pods_


def test_one_of_the_elements_of_a_list_has_to_be_met() -> None:
    both = info("p", affinity=anti_affinity("web"))
    view = "count p in cluster.pods, t in pod.requiredAntiAffinity where t.matches(p)"
    assert looked_at(view, both) == {"w"}
    assert (
        looked_at("count p in cluster.pods, t in pod.requiredAntiAffinity where t.topologyKey in p.labels", both)
        == ALL_PODS
    )


def test_what_an_element_is_compared_with_is_no_namespace_of_the_view() -> None:
    view = "count p in cluster.pods, t in pod.requiredAntiAffinity where p.namespace == t.namespaces[0]"
    assert looked_at(view, info("p", affinity=anti_affinity("web"))) == {"w", "d"}


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
    assert pods('where p.name == "a"').kinds == ("pod",)
    assert pods('where p.node.name == "a"').kinds == ("pod",)
    assert pods('where p.node.labels["a"] == "b"').node_parts == {"labels"}
    assert pods('where p.node.labels["a"] == "b"').kinds == ("pod", "node")
    assert pods("where p.node.podCount > 1").reads_sums
    assert pods("where p.node.podCount > 1").kinds == ("pod",)
    assert pods('where "s" in cluster.services[p.namespace]').kinds == ("pod", "services")
    nodes = plan_of('view w = count n in cluster.nodes where has(n.hostPorts) deny "x" when w > node.podCount')
    assert nodes.kinds == ("pod", "node")
    plain = plan_of('view w = count n in cluster.nodes where "a" in n.labels deny "x" when w > node.podCount')
    assert plain.kinds == ("node",)
    assert plain.node_parts == {"labels", "*"}


def test_a_node_that_is_compared_as_a_whole_matters_in_all_its_parts() -> None:
    view = 'first p in cluster.pods where p.namespace == "a"'
    read = plan_of(f'view w = {view} deny "x" when w.node.labels["z"] != node.labels["z"] && w.node.podCount > 1')
    assert read.node_parts == {"labels", "podCount"}


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


ABOUT = "view w = count p in cluster.pods, t in p.requiredAntiAffinity where t.matches(pod)"


def test_terms_of_others_that_match_the_pod_take_the_place_of_its_labels() -> None:
    text = f'{ABOUT} deny "x" when w > node.podCount'
    state = cluster(node("n"))
    state.add_pod(info("there", affinity=anti_affinity("web")), "n")
    tables = Watched(state)
    for labels in ({"app": "web"}, {"app": "web", "index": "7"}, {"app": "db"}):
        bound(f"predicate P {{ {text} }}", state, tables, info("p", labels=labels))
    (one,), (other,) = [given for _, given in tables.asked]  # of the third there is nothing to ask
    assert one == other == tables.matching("required_anti_affinity", info("p", labels={"app": "web"}))


def test_terms_that_come_later_do_not_count_to_a_view_for_others() -> None:
    """Two pods share a view while the same terms match them; then a term comes that matches one of them only."""
    state = cluster(node("n"))
    state.add_pod(info("there", affinity=anti_affinity("web")), "n")
    asked = Asked(f'predicate P {{ {ABOUT} deny "${{w}}" when node.podCount > 0 }}', state)
    one, other = info("one", labels={"app": "web", "x": "1"}), info("other", labels={"app": "web"})
    assert asked.says(one) == asked.says(other) == {"n": ("1",)}
    term = {"topologyKey": "z", "labelSelector": {"matchLabels": {"x": "1"}}}
    state.add_pod(info("late", affinity={"podAntiAffinity": {REQUIRED: [term]}}), "n")
    assert asked.says(one) == {"n": ("2",)}
    assert asked.says(other) == {"n": ("1",)}


def test_a_view_that_reads_more_of_the_pod_than_terms_do_depends_on_that_too() -> None:
    text = f'{ABOUT} && p.labels["x"] == pod.labels["x"] deny "x" when w > node.podCount'
    state = cluster(node("n"))
    state.add_pod(info("there", affinity=anti_affinity("web")), "n")
    tables = Watched(state)
    for x in "12":
        bound(f"predicate P {{ {text} }}", state, tables, info("p", labels={"app": "web", "x": x}))
    assert [given[0] for _, given in tables.asked] == ["1", "2"]


def test_of_the_elements_of_a_list_a_view_depends_on_what_it_reads() -> None:
    text = """view w = count n in cluster.nodes, c in pod.spec.topologySpreadConstraints by n.labels[c.topologyKey]
        deny "x" when w[node.name] > 0"""
    found = [
        values(text, info("p", topologySpreadConstraints=[{"maxSkew": skew, "topologyKey": "zone"}])) for skew in (1, 2)
    ]
    assert found[0] == found[1] == [(("zone",),)]


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
