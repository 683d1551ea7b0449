"""What generated code can call beside the function table: this, and nothing else, is in its reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ksp.check import builtins
from ksp.compile import narrow
from ksp.compile.tables import identity, tally
from ksp.model.info import EMPTY_NODE, NodeInfo, PodInfo
from ksp.model.int64 import wrap
from ksp.model.quantity import Quantity, QuantityError
from ksp.model.requests import amount


@dataclass(frozen=True, slots=True)
class Denial:
    """A rule does not admit a node. `unresolvable`: removing pods from the node cannot help."""

    unresolvable: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule ends the attempt with an error."""

    message: str


def element(values: Sequence[Any], index: int, otherwise: Any) -> Any:
    """The element, or the zero where there is none."""
    return values[index] if 0 <= index < len(values) else otherwise


def remainder(a: int, b: int) -> int:
    return builtins.remainder(a, b) if b else 0


def same(a: Any, b: Any) -> bool:
    """Equal, and no NaN in them."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    return bool(a == b)


def contains(values: Any, item: Any) -> bool:
    """`item in values`, for lists of doubles and of what holds doubles; of a map, the key."""
    return item in values if isinstance(values, Mapping) else any(same(value, item) for value in values)


def amounts(resources: Mapping[str, Quantity]) -> dict[str, int]:
    """A resource list as the API writes it, in base units. What does not parse reads as 0."""
    found = {}
    for name, quantity in resources.items():
        try:
            found[name] = amount(name, quantity)
        except QuantityError:
            found[name] = 0
    return found


def quantities(resources: Mapping[str, int]) -> dict[str, Quantity]:
    """The inverse of `amounts`."""
    return {name: f"{n}m" if name == "cpu" else n for name, n in resources.items()}


def fixed(value: Any) -> Callable[[Any], Any]:
    """The `at` of a rule that asks for no view."""
    return lambda _views: value


def witness(value: Any) -> Any:
    """What of pods and nodes tells that a rule would read the same of them again."""
    match value:
        case PodInfo():
            return identity(value), value.node.name, value.node.generation
        case tuple():
            return tuple(witness(item) for item in value)
        case Mapping():
            return {key: witness(item) for key, item in value.items()}
    return identity(value)


def largest(_feasible: Sequence[NodeInfo], raw: Sequence[int]) -> list[int]:
    """`normalize`: 100 for the highest score, the others in proportion; 0 for all if none is above 0."""
    most = max(raw, default=0)
    return [builtins.div(wrap(100 * score), most, 0) for score in raw] if most > 0 else [0] * len(raw)


def reversed_(_feasible: Sequence[NodeInfo], raw: Sequence[int]) -> list[int]:
    """`normalize reversed`: the other way round; 100 for all if none is above 0."""
    return [100 - score for score in largest(_feasible, raw)]


RUNTIME: dict[str, object] = {
    "len": len,
    "any": any,
    "all": all,
    "tuple": tuple,
    "sorted": sorted,
    "sum": sum,
    "float": float,
    "min": min,
    "max": max,
    "enumerate": enumerate,
    "int": int,
    "abs": abs,
    "_total": builtins.total,
    "_to_int": builtins.to_int,
    "_wrap": wrap,
    "_div": builtins.div,
    "_double_quotient": builtins.double_quotient,
    "_remainder": remainder,
    "_same": same,
    "_contains": contains,
    "_element": element,
    "_to_string": builtins.to_string,
    "_amounts": amounts,
    "_quantities": quantities,
    "_identity": identity,
    "_witness": witness,
    "_fixed": fixed,
    "_Denial": Denial,
    "_Failure": Failure,
    "dict": dict,
    "zip": zip,
    "_empty_node": EMPTY_NODE,
    "_tally": tally,
    "_in_namespace": narrow.in_namespace,
    "_labelled": narrow.labelled,
    "_selected": narrow.selected,
    "_about": narrow.about,
    "_both": narrow.both,
    "_either": narrow.either,
    "_largest": largest,
    "_reversed": reversed_,
}
