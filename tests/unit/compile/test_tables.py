"""Views follow the journal of the cluster's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.compile.compiling import Asked
from tests.unit.core.scheduling import cluster, info, node

from ksp.compile.table import LOG
from ksp.compile.tables import FIXED, Table, Tables, ViewPlan
from ksp.core.state import ClusterState
from ksp.core.what_if import WhatIf
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo

WEB = {"app": "web"}
COUNT = """predicate P {
  view w = count p in cluster.pods by p.labels["app"], p.node.name
  deny "${w['web'][node.name]}" when true
}"""


def table(form: str = "count", depth: int = 1) -> Table:
    """One whose rows are lists of entries."""
    return Table(ViewPlan("w", "pods", form, depth), lambda row: row)


def test_an_entry_is_there_as_long_as_a_row_counts_to_it() -> None:
    made = table(depth=2)
    for sign, entry in [(1, ("a", "x")), (1, ("a", "y")), (1, ("b", "x")), (1, ("a", "x"))]:
        made.count(entry, sign)
    assert made.value() == {"a": {"x": 2, "y": 1}, "b": {"x": 1}}
    made.count(("b", "x"), -1)
    made.count(("a", "x"), -1)
    assert made.value() == {"a": {"x": 1, "y": 1}}
    made.count(("a", "x"), -1)
    made.count(("a", "y"), -1)
    assert made.value() == {}


def test_an_entry_of_a_sum_of_0_is_there_too() -> None:
    made = table("sum")
    made.count((("a",), 5), 1)
    made.count((("a",), -5), 1)
    assert made.value() == {"a": 0}
    made.count((("a",), -5), -1)
    made.count((("a",), 5), -1)
    assert made.value() == {}


def test_sums_wrap_on_their_way_and_come_back() -> None:
    made = table("sum", depth=0)
    for _ in range(3):
        made.count(((), 2**62), 1)
    assert made.value() == 3 * 2**62 - 2**64
    made.count(((), 2**62), -1)
    made.count(((), 2**62), -1)
    assert made.value() == 2**62


class Steps:
    """A cluster that changes; what a rule says of it from tables that follow, and from new ones, is the same."""

    def __init__(self, text: str) -> None:
        self.state = cluster(node("a"), node("b"))
        self.asked = Asked(text, self.state)

    def says(self) -> dict[str, tuple[str, ...]]:
        found = self.asked.says()
        assert found == self.asked.says_anew()
        return found


def test_a_table_follows_pods_as_they_come_change_and_go() -> None:
    steps = Steps(COUNT)
    assert steps.says() == {"a": ("0",), "b": ("0",)}
    steps.state.add_pod(info("p", labels=WEB), "a")
    steps.state.add_pod(info("q", labels=WEB), "a")
    assert steps.says()["a"] == ("2",)
    steps.state.update_pod(info("q", labels={"app": "db"}))
    assert steps.says()["a"] == ("1",)
    steps.state.remove_pod("p")
    assert steps.says()["a"] == ("0",)
    steps.state.add_pod(info("p", labels=WEB), "b")
    assert steps.says() == {"a": ("0",), "b": ("1",)}


def test_a_table_follows_pods_whose_node_goes_and_comes() -> None:
    steps = Steps(COUNT)
    steps.state.add_pod(info("p", labels=WEB), "a")
    steps.says()
    steps.state.remove_node("a")
    assert steps.says() == {"b": ("0",)}
    steps.state.set_node(node("a"))
    assert steps.says()["a"] == ("1",)


def test_what_a_pod_counts_to_moves_with_its_node() -> None:
    steps = Steps("predicate P { view w = count p in cluster.pods by p.node.labels['z'] deny \"${w['1']}\" when true }")
    steps.state.add_pod(info("p"), "a")
    assert steps.says()["b"] == ("0",)
    steps.state.set_node(node("a", labels={"z": "1"}))
    assert steps.says()["b"] == ("1",)


@pytest.mark.parametrize(
    "where",
    ["n.podCount > 0", "n.requested.cpu > 0", "size(n.hostPorts) > 0", "has(n.hostPorts)", "has(n.podCount)"],
)
def test_a_view_of_nodes_follows_their_pods(where: str) -> None:
    steps = Steps(f'predicate P {{ view w = count n in cluster.nodes where {where} deny "${{w}}" when true }}')
    port = {"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    assert steps.says()["a"] == ("0",)
    steps.state.add_pod(info("p", containers=[port]), "a")
    assert steps.says()["a"] == ("1",)
    steps.state.remove_pod("p")
    assert steps.says()["a"] == ("0",)


def service(state: ClusterState) -> None:
    state.set_object("services", "default", "s", convert(Service, {"metadata": {"name": "s"}}))


@pytest.mark.parametrize("named", ["", 'let services = cluster.services["default"]'])
def test_objects_that_go_and_come_again_are_seen(named: str) -> None:
    """A namespace without services has no map; the next one has another map with the same in it."""
    services = "services" if named else 'cluster.services["default"]'
    where = f'where "s" in {services} && p.name != ""'
    steps = Steps(f'predicate P {{ {named} view w = count p in cluster.pods {where} deny "${{w}}" when true }}')
    steps.state.add_pod(info("p"), "a")
    service(steps.state)
    assert steps.says()["a"] == ("1",)
    steps.state.remove_object("services", "default", "s")
    assert steps.says()["a"] == ("0",)
    service(steps.state)
    steps.state.add_pod(info("q"), "a")
    assert steps.says()["a"] == ("2",)


def test_what_a_row_contributes_changes_with_the_objects_that_it_names() -> None:
    where = "where p.name in cluster.services[p.namespace]"
    steps = Steps(f'predicate P {{ view w = count p in cluster.pods {where} deny "${{w}}" when node.podCount >= 0 }}')
    for name in "st":
        steps.state.add_pod(info(name), "a")
    assert steps.says()["a"] == ("0",)
    service(steps.state)
    assert steps.says()["a"] == ("1",)
    steps.state.remove_object("services", "default", "s")
    assert steps.says()["a"] == ("0",)


def test_who_falls_behind_the_journal_starts_again() -> None:
    state = ClusterState(journal_capacity=2)
    state.set_node(node("a"))
    asked = Asked(COUNT, state)
    assert asked.says()["a"] == ("0",)
    for i in range(5):
        state.add_pod(info(f"p{i}", labels=WEB), "a")
    assert asked.says()["a"] == ("5",)


def test_a_delta_looks_at_what_changed_only() -> None:
    state = cluster(node("a"))
    for i in range(5):
        state.add_pod(info(f"p{i}"), "a")
    seen: list[PodInfo] = []

    def contribute(row: PodInfo) -> list[tuple[str, ...]]:
        seen.append(row)
        return [()]

    tables = Tables(state)
    plan = ViewPlan("w", "pods", "count", 0)
    assert tables.view(plan, (), contribute) == 5
    seen.clear()
    state.remove_pod("p3")
    state.add_pod(info("new"), "a")
    assert tables.view(plan, (), contribute) == 5
    assert [pod.name for pod in seen] == ["new"]


# ---- what changed


class Followed:
    """A view over the pods of three nodes by their label `app`, which follows its state."""

    def __init__(self, form: str = "count", journal: int = 100) -> None:
        self.state = ClusterState(journal_capacity=journal)
        for name in "abc":
            self.state.set_node(node(name))
        self.asked: list[str] = []
        plan = ViewPlan("w", "pods", form, 0 if form == "first" else 1, node_parts=frozenset({"labels"}))
        self.table = Table(plan, self.contribute, lambda: self.state.pods)
        self.table.follow(self.state)

    def contribute(self, pod: PodInfo) -> list[Any]:
        self.asked.append(pod.name)
        app = pod.labels.get("app")
        if self.table.plan.form == "first":
            return [()] if app else []
        keys = (app or pod.node.labels.get("app", "?"),)
        return [(keys, 5)] if self.table.plan.form == "sum" else [keys]

    def add(self, name: str, app: str = "", on: str = "a") -> None:
        self.state.add_pod(info(name, labels={"app": app} if app else {}), on)

    def changed(self, *, presence: bool = False) -> list[tuple[Any, ...]] | None:
        """The keys that are other than when this was last asked."""
        since = self.table.version
        self.table.follow(self.state)
        return self.table.changed(since, presence=presence)

    def first(self) -> str:
        self.table.follow(self.state)
        name: str = self.table.first(self.state).name
        return name


@pytest.mark.parametrize("form", ["count", "sum"])
def test_a_table_tells_which_keys_changed(form: str) -> None:
    view = Followed(form)
    view.add("p", "web")
    view.add("q", "db")
    assert view.changed() == [("web",), ("db",)]
    assert view.changed() == []
    view.state.update_pod(info("q", labels={"app": "web"}))
    assert view.changed() == [("web",), ("db",)]


def test_it_tells_which_entries_came_and_went() -> None:
    view = Followed()
    view.add("p", "web")
    assert view.changed(presence=True) == [("web",)]
    view.add("q", "web")
    view.add("r", "db")
    assert view.changed(presence=True) == [("db",)]
    view.state.remove_pod("p")
    assert view.changed(presence=True) == []
    view.state.remove_pod("q")
    assert view.changed(presence=True) == [("web",)]


def test_a_row_that_counts_to_what_it_counted_to_changes_nothing() -> None:
    view = Followed()
    view.add("p", "web")
    view.table.follow(view.state)
    version = view.table.version
    view.state.update_pod(info("p", labels={"app": "web", "more": "x"}))
    view.table.follow(view.state)
    assert view.asked == ["p", "p"]
    assert view.table.version == version


def test_the_map_is_the_same_as_long_as_the_table_lives() -> None:
    view = Followed(journal=2)
    found = view.table.value()
    for i in range(5):
        view.add(f"p{i}", "web")
    view.state.remove_pod("p0")
    view.table.follow(view.state)
    assert view.table.value() is found
    assert found == {"web": 4}


def test_rows_that_left_unseen_are_no_longer_counted() -> None:
    view = Followed(journal=2)
    view.add("p", "web")
    view.table.follow(view.state)
    view.state.remove_pod("p")
    for name in "abc":
        view.state.set_node(node(name, labels={"x": "y"}))
    assert view.changed() == [("web",)]
    assert view.table.value() == {}


def test_changes_long_past_are_not_known() -> None:
    view = Followed()
    for i in range(2 * LOG + 2):
        view.state.add_pod(info("p", labels={"app": str(i)}), "a")
        view.table.follow(view.state)
        view.state.remove_pod("p")
    view.table.follow(view.state)
    assert view.table.changed(0) is None
    assert view.table.changed(view.table.version - 1) == [(str(2 * LOG + 1),)]


def test_only_changes_of_what_is_read_of_nodes_are_looked_at() -> None:
    view = Followed()
    view.add("p")
    assert view.changed() == [("?",)]
    view.state.set_node(node("a", cpu="8"))
    view.state.set_object("services", "default", "s", convert(Service, {}))
    assert view.changed() == []
    assert view.asked == ["p"]
    view.state.set_node(node("a", labels={"app": "web"}))
    assert view.changed() == [("web",), ("?",)]


def test_the_first_row_is_another_when_pods_or_the_order_of_nodes_change() -> None:
    view = Followed("first")
    view.add("p", "web", on="b")
    assert view.changed() is None
    assert view.first() == "p"
    view.add("q", "web", on="a")
    assert view.first() == "q"
    view.state.set_node(node("a", zone="z"))  # now it comes after the first one of no zone
    assert view.changed() is None
    assert view.first() == "p"
    assert view.changed() == []
    view.add("r", on="a")
    assert view.changed() == []


def test_the_first_row_is_another_when_a_node_without_rows_goes() -> None:
    view = Followed("first")
    view.state.set_node(node("b", zone="z"))
    view.add("p", "web", on="b")
    view.add("q", "web", on="c")
    assert [each.name for each in view.state.node_list()] == ["a", "b", "c"]
    assert view.first() == "p"
    view.state.remove_node("a")
    assert [each.name for each in view.state.node_list()] == ["c", "b"]
    assert view.changed() is None
    assert view.first() == "q"


def test_the_first_row_is_read_anew_when_it_changes() -> None:
    view = Followed("first")
    view.add("p", "web")
    view.table.follow(view.state)
    view.state.update_pod(info("p", labels={"app": "db"}))
    assert view.changed() is None
    assert view.table.first(view.state).labels == {"app": "db"}


def test_what_if_a_pod_were_not_there_leaves_the_first_row_where_it_was() -> None:
    view = Followed("first")
    for name in "pqr":
        view.add(name, "web")
    assert view.first() == "p"
    with WhatIf(view.state) as trial:
        trial.remove("p")
        assert view.first() == "q"
        trial.restore("p")
        assert view.first() == "p"
        trial.remove("p")
        trial.remove("q")
        assert view.first() == "r"
    assert view.first() == "p"


def test_tables_say_from_which_tables_views_were_taken() -> None:
    tables = Tables(cluster(node("a")))
    plans = [ViewPlan(name, "nodes", "count", 0) for name in "vw"]
    tables.view(plans[0], (), lambda _: [()])
    used: list[Table] = []
    tables.used = used
    for plan in plans:
        assert tables.view(plan, (), lambda _: [()]) == 1
    assert [table.plan for table in used] == plans


def test_functions_that_are_given_later_see_the_objects_of_today() -> None:
    """A table that follows by itself reads objects by the function that it has; the next one may lead to others."""
    state = cluster(node("a"))
    tables = Tables(state)
    used: list[Table] = []
    tables.used = used
    plan = ViewPlan("w", "nodes", "count", 1, objects=frozenset({"services"}))

    def ask(*names: str) -> Any:
        return tables.view(plan, (), lambda _: [(name,) for name in names])

    assert ask("s") == {"s": 1}
    state.set_object("services", "default", "s", convert(Service, {}))
    used[0].follow(state)
    assert ask("t") == {"t": 1}


def test_objects_are_not_read_again_as_long_as_none_changes() -> None:
    state = cluster(node("a"))
    tables = Tables(state)
    asked: list[str] = []

    def ask() -> None:
        def contribute(row: NodeInfo) -> list[tuple[()]]:
            asked.append(row.name)
            return [()]

        assert tables.view(plan, (), contribute) == 1

    plan = ViewPlan("w", "nodes", "count", 0, objects=frozenset({"services"}))
    ask()
    ask()
    assert asked == ["a"]
    service(state)
    ask()
    ask()
    assert asked == ["a", "a"]


def made_by(most: int, asked: Iterable[int]) -> list[int]:
    """The values for which a table over two nodes is made, of those that are asked for one after another."""
    tables = Tables(cluster(node("a"), node("b")), most)
    plan = ViewPlan("w", "nodes", "count", 0)
    made: dict[int, int] = {}
    for i, value in enumerate(asked):

        def contribute(_: object, i: int = i, value: int = value) -> list[tuple[str, ...]]:
            made[i] = value
            return [()]

        assert tables.view(plan, (value,), contribute) == 2
    return list(made.values())


def test_the_least_recently_used_tables_give_way() -> None:
    assert made_by(2 * (FIXED + 2), (1, 2, 1, 3, 1, 2)) == [1, 2, 3, 2]


def test_tables_with_many_rows_give_way_sooner() -> None:
    assert made_by(2 * (FIXED + 2) - 1, (1, 2, 2, 1)) == [1, 2, 1]


def test_a_table_that_is_too_large_is_made_each_time() -> None:
    assert made_by(FIXED + 1, (1, 1)) == [1, 1]


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), (0.0, -0.0), (1, 1.0), ("1", 1), ((), {}), ("", ()), (("a",), "a")]
)
def test_values_that_python_takes_for_equal_have_tables_of_their_own(one: object, other: object) -> None:
    tables = Tables(cluster(node("a")))
    plan = ViewPlan("w", "nodes", "sum", 0)
    assert tables.view(plan, (one,), lambda _: [((), 1)]) == 1
    assert tables.view(plan, (other,), lambda _: [((), 2)]) == 2
