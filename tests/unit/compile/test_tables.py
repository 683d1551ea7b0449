"""Views follow the journal of the cluster's state."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.unit.compile.compiling import Asked
from tests.unit.core.scheduling import cluster, info, node

from ksp.compile.tables import FIXED, Table, Tables, ViewPlan
from ksp.core.state import ClusterState
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import PodInfo

WEB = {"app": "web"}
COUNT = """predicate P {
  view w = count p in cluster.pods by p.labels["app"], p.node.name
  deny "${w['web'][node.name]}" when true
}"""


def table(form: str = "count", depth: int = 1) -> Table:
    """One whose rows are lists of entries."""
    return Table(ViewPlan("w", "pods", form, depth, False, "", frozenset(), False), lambda row: row, None)


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
    plan = ViewPlan("w", "pods", "count", 0, False, "", frozenset(), False)
    assert tables.view(plan, (), contribute) == 5
    seen.clear()
    state.remove_pod("p3")
    state.add_pod(info("new"), "a")
    assert tables.view(plan, (), contribute) == 5
    assert [pod.name for pod in seen] == ["new"]


def made_by(most: int, asked: Iterable[int]) -> list[int]:
    """The values for which a table over two nodes is made, of those that are asked for one after another."""
    tables = Tables(cluster(node("a"), node("b")), most)
    plan = ViewPlan("w", "nodes", "count", 0, False, "", frozenset(), False)
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
    plan = ViewPlan("w", "nodes", "sum", 0, False, "", frozenset(), False)
    assert tables.view(plan, (one,), lambda _: [((), 1)]) == 1
    assert tables.view(plan, (other,), lambda _: [((), 2)]) == 2
