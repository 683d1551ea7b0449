"""Rules decide, functions do not: none of the language sees a pod and a node, but for the matching of volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from pathlib import Path

from ksp.check.functions import ERROR_ROWS, FUNCTIONS, METHODS, Row, parse_row
from ksp.check.parts import expressions
from ksp.check.program import Checker
from ksp.check.schema import struct_names
from ksp.check.stages import walk
from ksp.check.typed import Apply, Rule
from ksp.check.types import BOOL, DOUBLE, INT, STRING, List, Map, Struct, Type
from ksp.compile.inline import inline
from ksp.source.origin import shipped

LANGUAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
MOST = 3  # arguments that are tried; what takes more takes numbers only

VOLUMES = [name for name in struct_names() if "Volume" in name]
OF_PODS = ["Pod", "PodSpec", "PodStatus", *VOLUMES]
OF_NODES = ["Node", "NodeSpec", "NodeStatus", "CSINode", "CSINodeSpec", "CSINodeDriver"]
OTHERS: tuple[Type, ...] = (BOOL, INT, DOUBLE, STRING, List(STRING), Map(STRING, STRING), Struct("LabelSelector"))


def table() -> list[Row]:
    """Every function that the checker can find for a call."""
    rows = [row for table in (FUNCTIONS, METHODS) for rows in table.values() for row in rows]
    return [*rows, *ERROR_ROWS.values(), *(parse_row(name, str) for name in struct_names())]


def forms(names: Iterable[str]) -> Iterator[Type]:
    """A type alone, in a list, and in a map."""
    for name in names:
        yield from (Struct(name), List(Struct(name)), Map(STRING, Struct(name)))


def takes_both(row: Row) -> bool:
    """There are arguments that the function accepts, one of a pod or of volumes and one of a node."""
    for pod, node in product(forms(OF_PODS), forms(OF_NODES)):
        for number in range(MOST - 1):
            for fill in product(OTHERS, repeat=number):
                if any(row.accepts(arguments) for arguments in permutations((pod, node, *fill))):
                    return True
    return False


def test_no_function_takes_a_pod_or_its_volumes_together_with_a_node_but_for_the_matching_of_volumes() -> None:
    assert [row.name for row in table() if takes_both(row)] == ["matchVolumes"]


def test_functions_of_more_arguments_than_are_tried_take_numbers() -> None:
    rows = [row for row in table() if row.arity[1] > MOST]
    assert [row.name for row in rows] == ["min", "max"]
    assert not any(row.accepts([Struct(name)] * number) for row in rows for name in OF_PODS for number in range(2, 17))


def test_the_signatures_say_the_same() -> None:
    found = [row.name for row in table() if "node" in row.signature.lower() and "volume" in row.signature.lower()]
    found += [row.name for row in table() if "node" in row.signature.lower() and "pod" in row.signature.lower()]
    assert [name for name in found if name != "parse"] == ["matchVolumes"]


def test_no_other_function_reads_the_cluster_beside_its_arguments() -> None:
    assert [row.name for row in table() if row.reads] == ["matchVolumes"]


def test_the_matching_of_volumes_is_documented_and_used_by_one_rule() -> None:
    assert "| `matchVolumes(list<PersistentVolumeClaim>, node)" in LANGUAGE.read_text(encoding="utf-8")
    library = shipped()
    checker = Checker(library)
    modules = [checker.check(path) for path in library.files() if not path.endswith(".test.ksp")]
    rules = [rule for module in modules if module is not None for rule in module.own_rules()]
    assert [rule.name for rule in rules if "matchVolumes" in called(rule)] == ["CheckVolumeBinding"]


def called(rule: Rule) -> set[str]:
    """The functions of the language that the rule calls, through its own functions too."""
    parts = (part for expr in expressions(rule) for part in walk(inline(expr)))
    return {part.row.name for part in parts if isinstance(part, Apply)}


def test_a_function_that_takes_both_would_be_found() -> None:
    def typing(arguments: Sequence[Type]) -> Type | None:
        return BOOL if tuple(arguments) == (STRING, List(Struct("Node")), Struct("Pod")) else None

    assert takes_both(Row("fits", False, "fits(text, list<Node>, pod): bool", typing, "", bool, (3, 3)))
