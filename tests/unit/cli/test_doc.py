from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.commands import ROOM, ksp, room, written

from ksp.source.origin import shipped

RULES = """\
// Rules of the house.
import "lib/room.ksp"

/// A pod must fit | somewhere.
///
/// Else it waits.
predicate Room implements Space {
  /// What stays free.
  param spare: int = 1 +
      2
  param names: list<string>
  view users = count p in cluster.pods where p.namespace == pod.namespace by p.node.name
  prefilter { fail "odd `${pod.name}`" when pod.terminating }
  deny unresolvable "only ${left(node)} left", "full" when pod.requests.cpu > left(node)
  deny "full" when users[node.name] > spare || node.name in names || "a" in cluster.services["x"]
}

priority Free { score 100 }

/// Both of them.
provider Both {
  predicates { Room(spare: 7, names: ["a",
                                      "b"]) }
  priorities { Free: 3 }
}

provider More extends Both {}

/// For all.
profile "all" uses Both {
  Room.spare = 2 percentageOfNodesToScore = 50
  preemption = false alwaysCheckAllPredicates = true
}

/// How many.
const many = [1,
              2]
"""
LIBRARY = """\
/// What is left of a node.
fn left(n: Node): cpu = n.allocatable.cpu - n.requested.cpu
"""
PAGE = """\
# Policy reference

Made by `ksp doc` from the policies, whose comments (`///`) it repeats: edit them, not this page.

## Contents

- [Files](#files)
- [Providers](#providers): [Both](#both), [More](#more)
- [Profiles](#profiles): [all](#all)
- [Predicates](#predicates): [Room](#room)
- [Priorities](#priorities): [Free](#free)
- [Functions](#functions): [left](#left)
- [Constants](#constants): [many](#many)

## Files

| file | about |
| --- | --- |
| [`house.ksp`](house/house.ksp) | Rules of the house. |
| [`lib/room.ksp`](house/lib/room.ksp) |  |

## Providers

### Both

Provider, in [`house.ksp`](house/house.ksp).

Both of them.

Predicates, in the order in which they are asked:

1. [Room](#room) with `spare: 7, names: ["a", "b"]`

| priority | weight |
| --- | --- |
| [Free](#free) | 3 |

### More

Provider, in [`house.ksp`](house/house.ksp); made of [Both](#both).

Predicates, in the order in which they are asked:

1. [Room](#room) with `spare: 7, names: ["a", "b"]`

| priority | weight |
| --- | --- |
| [Free](#free) | 3 |

## Profiles

### all

Profile, in [`house.ksp`](house/house.ksp); uses [Both](#both).

For all.

- `Room.spare = 2`
- `percentageOfNodesToScore = 50`
- `preemption = false`
- `alwaysCheckAllPredicates = true`

## Predicates

| predicate | plugin | |
| --- | --- | --- |
| [Room](#room) | `Space` | A pod must fit \\| somewhere. |

### Room

Predicate, in [`house.ksp`](house/house.ksp); implements the plugin `Space`.

A pod must fit | somewhere.

Else it waits.

| parameter | type | default | |
| --- | --- | --- | --- |
| `spare` | `int` | `1 + 2` | What stays free. |
| `names` | `list<string>` | zero |  |

- **reasons:** `only … left` (unresolvable), `full` (unresolvable), `full`
- **errors:** `` odd `…` ``
- **reads of the pod:** `name`, `namespace`, `requests["cpu"]`, `terminating`
- **reads of a node:** `allocatable["cpu"]`, `name`, `requested["cpu"]`
- **view `users` of pods:** `namespace`, `node.name`
- **other objects:** `services`
- **denied pods are tried again after:** `AssignedPodDelete`, `AssignedPodRequests(less)`, `NodeAdd`, \
`NodeAllocatable(more)`, `ServiceAdd`/`Delete`/`Update`
- **cost:** `O(names + pods)`
- **in:** [Both](#both), [More](#more)

## Priorities

| priority | plugin | |
| --- | --- | --- |
| [Free](#free) | `Free` |  |

### Free

Priority, in [`house.ksp`](house/house.ksp).

- **cost:** `O(1)`
- **in:** [Both](#both) (weight 3), [More](#more) (weight 3)

## Functions

### left

Function, in [`lib/room.ksp`](house/lib/room.ksp).

```ksp
fn left(n: Node): cpu
```

What is left of a node.

## Constants

### many

Constant of the type `list<int>`, in [`house.ksp`](house/house.ksp).

How many.

```ksp
const many = [1,
              2]
```
"""


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tests = 'import "house.ksp"\nprovider Tested { predicates { Room } }\n'
    texts = {"house/house.ksp": RULES, "house/lib/room.ksp": LIBRARY, "house/house.test.ksp": tests}
    return written(tmp_path, texts)


@pytest.mark.usefixtures("house")
def test_the_page_has_all_that_the_policies_declare() -> None:
    result = ksp("doc", "house")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == PAGE


def test_a_page_in_a_file_links_from_where_it_lies(house: Path) -> None:
    (house / "docs" / "deep").mkdir(parents=True)
    result = ksp("doc", "house/", "--output", "docs/deep/page.md")
    assert (result.exit_code, result.output) == (0, "")
    assert (house / "docs/deep/page.md").read_text() == PAGE.replace("(house/", "(../../house/")


def test_what_is_named_twice_is_there_once(house: Path) -> None:
    result = ksp("doc", "house", "house/house.ksp", str(house / "house" / "lib"))
    assert result.stdout == PAGE


def test_links_and_commands_bear_names_with_spaces(house: Path) -> None:
    (house / "my rules.ksp").write_text("priority Free { score 100 }\n")
    result = ksp("doc", "my rules.ksp", "--check", "my page.md")
    assert result.stderr.endswith("\n  ksp doc 'my rules.ksp' --output 'my page.md'\n")
    ksp("doc", "my rules.ksp", "--output", "my page.md")
    assert "| [`my rules.ksp`](my%20rules.ksp) |" in (house / "my page.md").read_text()


def test_a_file_that_is_the_page_passes(house: Path) -> None:
    ksp("doc", "house", "--output", "page.md")
    before = (house / "page.md").stat().st_mtime_ns
    result = ksp("doc", "house", "--check", "page.md")
    assert (result.exit_code, result.output) == (0, "")
    assert (house / "page.md").stat().st_mtime_ns == before


def test_a_file_that_is_not_the_page_fails_with_what_differs_and_what_to_run(house: Path) -> None:
    ksp("doc", "house", "--output", "page.md")
    (house / "house/house.ksp").write_text(RULES.replace("Free: 3", "Free: 4"))
    result = ksp("doc", "house", "--check", "page.md")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "\n-| [Free](#free) | 3 |\n+| [Free](#free) | 4 |\n" in result.stderr
    assert result.stderr.endswith("ksp doc house --output page.md\n")


@pytest.mark.usefixtures("house")
def test_a_file_that_is_not_there_fails_with_what_to_run() -> None:
    result = ksp("doc", "house", "--check", "none.md")
    assert result.exit_code == 1
    assert result.stderr == "none.md does not exist; write it with\n  ksp doc house --output none.md\n"


@pytest.mark.usefixtures("house")
def test_to_write_and_to_compare_exclude_each_other() -> None:
    result = ksp("doc", "house", "--check", "a.md", "--output", "b.md")
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


def test_errors_of_a_policy_are_shown_and_nothing_is_written(house: Path) -> None:
    (house / "house/house.ksp").write_text(RULES + "predicate P { deny 1 when true }\n")
    result = ksp("doc", "house", "--output", "page.md")
    assert result.exit_code == 1
    assert "error[KSP" in result.stderr
    assert not (house / "page.md").exists()


@pytest.mark.usefixtures("house")
def test_a_file_of_tests_is_left_out_unless_it_is_named() -> None:
    assert "Tested" not in ksp("doc", "house").stdout
    assert "### Tested" in ksp("doc", "house/house.test.ksp").stdout


def test_a_folder_of_tests_alone_has_no_page(tmp_path: Path) -> None:
    written(tmp_path, {"a.test.ksp": 'predicate P { deny "x" when node.name == "a" }\n'})
    result = ksp("doc", tmp_path)
    assert result.exit_code == 2
    assert "only tests" in result.stderr


def test_what_is_imported_is_named_without_a_link(tmp_path: Path) -> None:
    room(tmp_path)
    text = 'import "room.ksp"\nprovider Mine extends Both {}\n'
    written(tmp_path, {"mine.ksp": text})
    page = ksp("doc", tmp_path / "mine.ksp").stdout
    assert "made of `Both`." in page
    assert "1. `Room`\n" in page
    assert "## Predicates" not in page


def test_two_of_one_name_are_told_apart(tmp_path: Path) -> None:
    written(
        tmp_path, {"a/room.ksp": ROOM, "a/lib/room.ksp": "", "b.ksp": 'predicate Room { deny "x" when pod.name == "" }'}
    )
    written(tmp_path, {"a/room.ksp": 'predicate Room { deny "x" when node.name == "a" }'})
    page = ksp("doc", tmp_path).stdout
    assert "- [Predicates](#predicates): [Room](#room), [Room](#room-1)\n" in page


def test_without_paths_it_is_about_the_shipped_policies() -> None:
    page = ksp("doc").stdout
    assert "### DefaultProvider" in page
    assert "| `ksp:lib/nodes.ksp` | " in page
    assert "(ksp:" not in page
    assert [key for key in shipped().files() if key.endswith(".test.ksp") and key in page] == []
