"""Which nodes a changed entry of a view concerns."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import rule

from ksp.compile.entries import EntryPattern, view_entries

BY_NODE = "view v = count p in cluster.pods by p.node.name"
BY_LABEL = "view v = count p in cluster.pods, key in KEYS by key, p.node.labels[key]"
BY_ZONE = 'view v = count p in cluster.pods by p.node.labels["zone"], p.name'
NAME = (0, ("name",))


def patterns(text: str) -> list[tuple[int, tuple[str | int, ...]]] | None:
    """Those of the view `v`."""
    found = view_entries(rule(text))["v"]
    return None if found is None else [(pattern.position, pattern.part) for pattern in found]


@pytest.mark.parametrize(
    ("view", "condition", "found"),
    [
        (BY_NODE, "v[node.name] > 0", [NAME]),
        (BY_NODE, "node.name in v", [NAME]),
        (BY_NODE, "v[node.metadata.name] > size(v)", [NAME]),
        (BY_NODE, 'v[node.name] > 0 || v[node.labels["a"]] > 0', [NAME, (0, ("labels", "a"))]),
        (BY_NODE, 'v[node.annotations["a"]] > 0', [(0, ("annotations", "a"))]),
        (BY_NODE, "v[node.name + node.uid] > 0", None),
        (BY_NODE, "node.labels.exists(key, v[key] > 0)", None),
        (BY_NODE, '(node.podCount > 0 ? v : {"a": 1})[node.name] > 0', None),
        (BY_ZONE, 'size(v[node.labels["zone"]]) > 0', [(0, ("labels", "zone"))]),
        (BY_ZONE, 'v[node.labels["zone"]][pod.name] > 0', [(0, ("labels", "zone"))]),
        (BY_ZONE, 'v["a"][node.name] > 0', [(1, ("name",))]),
        (BY_ZONE, "v[node.uid][node.name] > 0", [(1, ("name",))]),
        (BY_ZONE, "v.values().exists(zone, zone[node.name] > 0)", None),
        (BY_LABEL, "KEYS.exists(k, v[k][node.labels[k]] > 0)", [(1, ("labels", 0))]),
        (BY_LABEL, "v.keys().exists(k, k in node.labels && v[k][node.labels[k]] > 0)", [(1, ("labels", 0))]),
        (BY_LABEL, "KEYS.exists(k, v[k][node.labels[k + k]] > 0)", None),
        (BY_LABEL, "KEYS.exists(k, node.labels[k] in v[k])", [(1, ("labels", 0))]),
        (BY_LABEL, "KEYS.exists(k, v[node.labels[k]][k] > 0)", None),
    ],
)
def test_patterns(view: str, condition: str, found: list[tuple[int, tuple[str | int, ...]]] | None) -> None:
    assert patterns(f'const KEYS = ["a", "b"]\npredicate P {{ {view} deny "no" when {condition} }}') == found


@pytest.mark.parametrize(
    ("condition", "presence"),
    [
        ("v[node.name] > 0", True),
        ("0 == v[node.name]", True),
        ("v[node.name] >= 1 || node.name in v", True),
        ("v[node.name] > 0 && v[node.name] > 1", False),
        ("v[node.name] >= 0", False),
        ("v[node.name] + 1 > 0", False),
        ("v[node.name] > node.podCount", False),
    ],
)
def test_some_rules_only_see_whether_an_entry_is_there(condition: str, presence: bool) -> None:
    found = view_entries(rule(f'predicate P {{ {BY_NODE} deny "no" when {condition} }}'))
    assert found == {"v": (EntryPattern(0, ("name",), presence),)}


def test_sums_can_be_0_while_their_entries_are_there() -> None:
    by_node = "view v = sum p.spec.priority for p in cluster.pods by p.node.name"
    found = view_entries(rule(f'predicate P {{ {by_node} deny "no" when v[node.name] > 0 }}'))
    assert found == {"v": (EntryPattern(0, ("name",), presence=False),)}
    by_zone = 'view v = sum p.spec.priority for p in cluster.pods by p.node.labels["zone"], p.name'
    found = view_entries(rule(f'predicate P {{ {by_zone} deny "no" when size(v[node.labels["zone"]]) > 3 }}'))
    assert found == {"v": (EntryPattern(0, ("labels", "zone"), presence=True),)}


def test_names_stand_for_what_they_are_given() -> None:
    text = """
    const zone = "z"
    fn of(counted: map<string, map<string, int>>, node: Node, key: string): int = counted[key][node.labels[key]]
    predicate P {
      view v = count p in cluster.pods, key in ["a"] by key, p.node.labels[key]
      let a = v["a"]
      let mine = node.labels[zone]
      for term in pod.requiredAffinity {
        let key = term.topologyKey
        let here = node.labels[key]
        deny "${of(v, node, key)}" when v[key][here] > 0
      }
      deny "no" when a[mine] > 0
    }"""
    assert patterns(text) == [(1, ("labels", 0)), (1, ("labels", "z"))]


def test_what_is_read_before_nodes_has_no_entries() -> None:
    text = """predicate P {
      view v = count p in cluster.pods by p.node.name
      stop when size(v) == 0
      deny "${v.keys()[0]}" when node.podCount > v.values().max(0) || v[pod.spec.nodeName] > 1
    }"""
    assert view_entries(rule(text)) in ({}, {"v": ()})


def test_scores_read_entries_too_and_views_of_feasible_nodes_do_not_matter() -> None:
    text = """priority P {
      view v = count p in cluster.pods by p.node.name
      score v[node.name]
      normalize { view w = sum n.score for n in feasible by n.name score w[node.name] }
    }"""
    assert list(view_entries(rule(text))) == ["v"]


def test_a_pattern_names_the_part_of_an_entry() -> None:
    assert EntryPattern(1, ("labels", 0)).of(("zone", "a")) == (("labels", "zone"), "a")
    assert EntryPattern(0, ("name",)).of(("n7", "disk")) == (("name",), "n7")


def test_names_within_names_are_written_out_only_so_far() -> None:
    lets = "\n".join(f"let x{i} = x{i - 1} + x{i - 1}" for i in range(1, 10))
    text = f"""predicate P {{
      view v = count p in cluster.pods by p.node.name
      let x0 = pod.name
      {lets}
      deny "no" when v[node.labels[x9]] > 0
    }}"""
    assert patterns(text) is None
