"""The function table: every function and method that a policy can call, a row each.

The checker reads the types, the compiler the implementation, the documentation the help, `did you mean` the names. A row
says what it reads beyond its arguments; nothing here looks at a clock, at chance or at the world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ksp.check import builtins as run
from ksp.check.schema import LABELS, NODE, POD
from ksp.check.types import (
    ANY_INT,
    BOOL,
    DOUBLE,
    INT,
    STRING,
    UNKNOWN,
    Bool,
    Double,
    Int,
    List,
    Map,
    String,
    Struct,
    Type,
    Unknown,
    fits,
    join,
)
from ksp.model.volumes import match_volumes

Typing = Callable[[Sequence[Type]], Type | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A function. `signature` is for readers; `typing` gives the result for argument types, None if they do not fit;
    `grows` if the result can be larger than the arguments; `reads` names the cluster's objects that it reads: if it
    names any, `run` gets `cluster.objects` before the arguments. `part` if the result is part of the first argument, and
    so empty where that is."""

    name: str
    method: bool
    signature: str
    typing: Typing
    help: str
    run: Callable[..., object]
    arity: tuple[int, int]
    reads: tuple[str, ...] = ()
    unordered: bool = False
    part: bool = False

    @property
    def receivers(self) -> frozenset[str]:
        """The types, as its signature names them, whose method it is: `string`, `list`, `map`, or a struct."""
        return frozenset(part.split(".")[0] for part in self._signatures() if "." in part.split("(")[0])

    def _signatures(self) -> list[str]:
        return [part.strip() for part in self.signature.split(";")]

    def signatures_for(self, receiver: str) -> list[str]:
        """How it is written for one type."""
        return [part for part in self._signatures() if part.startswith(f"{receiver}.")]

    def is_method_of(self, receiver: Type) -> bool:
        """Some arguments would make it fit."""
        return isinstance(receiver, Struct | String | List | Map) and receiver_name(receiver) in self.receivers

    def accepts(self, arguments: Sequence[Type]) -> bool:
        """Its number of arguments, of types that fit."""
        offset = 1 if self.method else 0
        in_number = self.arity[0] + offset <= len(arguments) <= self.arity[1] + offset
        return in_number and self.typing(arguments) is not None


def receiver_name(type: Type) -> str:
    """What a signature calls a type that has methods."""
    return type.name if isinstance(type, Struct) else type.__class__.__name__.lower()


def _fixed(parameters: Sequence[Type], result: Type) -> Typing:
    def typing(arguments: Sequence[Type]) -> Type | None:
        if len(arguments) != len(parameters):
            return None
        return result if all(fits(a, p) for a, p in zip(arguments, parameters, strict=True)) else None

    return typing


def _size(arguments: Sequence[Type]) -> Type | None:
    return INT if len(arguments) == 1 and isinstance(arguments[0], String | List | Map | Unknown) else None


def _number(type: Type) -> bool:
    return isinstance(type, Int | Double | Unknown)


def _joined(arguments: Sequence[Type]) -> Type | None:
    result: Type | None = UNKNOWN
    for argument in arguments:
        result = None if result is None else join(result, argument)
    return result


def _extreme(arguments: Sequence[Type]) -> Type | None:
    if len(arguments) < 2 or not all(_number(a) for a in arguments):
        return None
    return _joined(arguments)


def _extreme_of_list(arguments: Sequence[Type]) -> Type | None:
    if len(arguments) != 2 or not isinstance(arguments[0], List) or not isinstance(arguments[1], Int | Double | String):
        return None
    return join(arguments[0].item, arguments[1])


def _sum(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (List(Unknown()),):
            return ANY_INT
        case (List(Int() | Double() as item),):
            return item
    return None


def _div(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (Int(a), Int(b), Int(c)):
            dimension = None if a is None or b is None else (a[0] - b[0], a[1] - b[1])
            return join(Int(dimension), Int(c))
        case (Double(), Double(), Double()):
            return DOUBLE
    return UNKNOWN if any(isinstance(a, Unknown) for a in arguments) else None


def _same_number(arguments: Sequence[Type]) -> Type | None:
    return arguments[0] if len(arguments) == 1 and _number(arguments[0]) else None


def _to_int(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (Int() as type,):
            return type
        case (Double() | String() | Unknown(),):
            return ANY_INT
    return None


def _to_double(arguments: Sequence[Type]) -> Type | None:
    return DOUBLE if len(arguments) == 1 and isinstance(arguments[0], Int | Double | String | Unknown) else None


def _to_string(arguments: Sequence[Type]) -> Type | None:
    scalar = Bool | Int | Double | String | Unknown
    return STRING if len(arguments) == 1 and isinstance(arguments[0], scalar) else None


def _list_item(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (List(item), other) if join(item, other) is not None:
            return INT
    return None


def _find(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (String(), String()) | (String(), String(), Int()):
            return INT
    return _list_item(arguments)


def _sortable(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (List(Int() | Double() | String() | Bool() | Unknown()),):
            return BOOL
    return None


def _same_list(arguments: Sequence[Type]) -> Type | None:
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], List) else None


def _keys(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (Map(key, _),):
            return List(key)
    return None


def _values(arguments: Sequence[Type]) -> Type | None:
    match arguments:
        case (Map(_, value),):
            return List(value)
    return None


SELECTOR = Struct("LabelSelector")
TERM = Struct("NodeSelectorTerm")
CLAIMS = List(Struct("PersistentVolumeClaim"))


def _function(
    name: str, signature: str, typing: Typing, help: str, run: Callable[..., object], arity: tuple[int, int]
) -> Row:
    return Row(name, False, signature, typing, help, run, arity)


def _method(
    name: str,
    signature: str,
    typing: Typing,
    help: str,
    run: Callable[..., object],
    *,
    least: int = 0,
    most: int = 0,
    unordered: bool = False,
    part: bool = False,
) -> Row:
    return Row(name, True, signature, typing, help, run, (least, most), unordered=unordered, part=part)


# fmt: off
ROWS: tuple[Row, ...] = (
    # numbers
    _function("div", "div(a, b, otherwise)", _div, "a / b, towards zero for ints; `otherwise` where b is 0", run.div, (3, 3)),
    _function("min", "min(a, b, ...)", _extreme, "the smallest of its arguments", run.smallest, (2, 16)),
    _function("max", "max(a, b, ...)", _extreme, "the largest of its arguments", run.largest, (2, 16)),
    _function("abs", "abs(a)", _same_number, "the value without its sign", run.absolute, (1, 1)),
    _function("ln", "ln(double): double", _fixed((DOUBLE,), DOUBLE), "the natural logarithm; 0 for what is not positive", run.ln, (1, 1)),
    _function("sqrt", "sqrt(double): double", _fixed((DOUBLE,), DOUBLE), "the square root; 0 for what is not positive", run.sqrt, (1, 1)),
    _function("round", "round(double): int", _fixed((DOUBLE,), ANY_INT), "the nearest int, halves away from 0", run.rounded, (1, 1)),
    _function("int", "int(double | string): int", _to_int, "towards zero; 0 for NaN, infinities and text that is no int; what is too large becomes the largest int", run.to_int, (1, 1)),
    _function("double", "double(int | string): double", _to_double, "the nearest double; 0.0 for text that is no number", run.to_double, (1, 1)),
    _function("string", "string(bool | int | double): string", _to_string, "as text", run.to_string, (1, 1)),
    # text
    _function("sha1", "sha1(string): string", _fixed((STRING,), STRING), "the SHA-1 of the UTF-8 text, as 40 hex digits", run.sha1, (1, 1)),
    _method("startsWith", "string.startsWith(prefix): bool", _fixed((STRING, STRING), BOOL), "it begins with the prefix", run.starts_with, least=1, most=1),
    _method("endsWith", "string.endsWith(suffix): bool", _fixed((STRING, STRING), BOOL), "it ends with the suffix", run.ends_with, least=1, most=1),
    _method("contains", "string.contains(part): bool", _fixed((STRING, STRING), BOOL), "the part occurs in it", run.contains, least=1, most=1),
    _method("split", "string.split(separator): list<string>", _fixed((STRING, STRING), List(STRING)), "the parts between separators; the characters where the separator is empty", run.split, least=1, most=1),
    _method("trim", "string.trim(): string", _fixed((STRING,), STRING), "without white space at both ends", run.trim),
    _method("substring", "string.substring(from[, to]): string", lambda a: STRING if fits(a[0], STRING) and all(fits(x, INT) for x in a[1:]) else None, "the characters from one position to before another; what lies outside is left out", run.substring, least=1, most=2),
    _method("lowerAscii", "string.lowerAscii(): string", _fixed((STRING,), STRING), "with A to Z made small", run.lower_ascii),
    _method("upperAscii", "string.upperAscii(): string", _fixed((STRING,), STRING), "with a to z made capital", run.upper_ascii),
    _method("indexOf", "string.indexOf(part[, from]): int; list.indexOf(item): int", _find, "the first position, or -1", run.index_of, least=1, most=2),
    _method("lastIndexOf", "string.lastIndexOf(part[, upTo]): int; list.lastIndexOf(item): int", _find, "the last position, or -1", run.last_index_of, least=1, most=2),
    # lists and maps
    _method("sum", "list.sum()", _sum, "the sum from the left; 0 of an empty list", run.total),
    _method("min", "list.min(otherwise)", _extreme_of_list, "the smallest item; `otherwise` of an empty list", run.smallest_of, least=1, most=1, unordered=True),
    _method("max", "list.max(otherwise)", _extreme_of_list, "the largest item; `otherwise` of an empty list", run.largest_of, least=1, most=1, unordered=True),
    _method("isSorted", "list.isSorted(): bool", _sortable, "no item is smaller than the one before it", run.is_sorted),
    _method("distinct", "list.distinct()", _same_list, "each item once, where it first stood", run.distinct, part=True),
    _method("keys", "map.keys()", _keys, "the keys in order", run.keys, part=True),
    _method("values", "map.values()", _values, "the values in the order of their keys", run.values, part=True),
    # selectors, taints and terms
    _function("selector", "selector(map<string, string>): LabelSelector", _fixed((LABELS,), SELECTOR), "asks for exactly these labels", run.selector, (1, 1)),
    _method("matches", "LabelSelector.matches(labels): bool", _fixed((SELECTOR, LABELS), BOOL), "the selector selects the labels; a missing or malformed one selects nothing", run.selector_matches, least=1, most=1),
    _method("isEmpty", "LabelSelector.isEmpty(): bool", _fixed((SELECTOR,), BOOL), "it asks for nothing", run.selector_is_empty),
    _method("matches", "NodeSelectorTerm.matches(node): bool", _fixed((TERM, NODE), BOOL), "the node's labels and name meet the term", run.term_matches_node, least=1, most=1),
    _method("matches", "NodeSelectorTerm.matches(labels): bool", _fixed((TERM, LABELS), BOOL), "the labels meet the term; a field reads as absent", run.term_matches_labels, least=1, most=1),
    _method("matches", "NodeSelectorRequirement.matches(labels): bool", _fixed((Struct("NodeSelectorRequirement"), LABELS), BOOL), "the labels meet the requirement; a malformed one is met by nothing", run.requirement_matches, least=1, most=1),
    _method("matches", "AffinityTerm.matches(pod): bool", _fixed((Struct("AffinityTerm"), POD), BOOL), "the pod is in a namespace of the term and its labels are selected", run.affinity_term_matches, least=1, most=1),
    _method("tolerates", "Toleration.tolerates(taint): bool", _fixed((Struct("Toleration"), Struct("Taint")), BOOL), "the taint does not keep away who has this toleration", run.tolerates, least=1, most=1),
    # resources and volumes
    _function("isBasicResource", "isBasicResource(name): bool", _fixed((STRING,), BOOL), "cpu, memory or ephemeral-storage", run.is_basic_resource, (1, 1)),
    _function("isExtendedResource", "isExtendedResource(name): bool", _fixed((STRING,), BOOL), "a resource that Kubernetes does not define itself, such as nvidia.com/gpu", run.is_extended_resource, (1, 1)),
    Row(
        "matchVolumes", False, "matchVolumes(list<PersistentVolumeClaim>, node): list<PersistentVolumeClaim>",
        _fixed((CLAIMS, NODE), CLAIMS),
        "the claims for which the volume binder finds no existing volume on the node", match_volumes, (2, 2),
        reads=("persistentVolumes",), part=True,
    ),
)
# fmt: on

# `x.error` of these types is a field for the reader, a function for the compiler.
ERROR_FIELDS: dict[str, Callable[..., object]] = {
    "LabelSelector": run.selector_error,
    "NodeSelectorRequirement": run.requirement_error,
}
ERROR_ROWS: dict[str, Row] = {
    name: Row(
        "error",
        True,
        f"{name}.error: string",
        _fixed((Struct(name),), STRING),
        "what is malformed, or empty",
        function,
        (0, 0),
    )
    for name, function in ERROR_FIELDS.items()
}
SIZE = Row(
    "size",
    False,
    "size(x): int; string.size(): int; list.size(): int; map.size(): int",
    _size,
    "how many characters, items or entries",
    run.size,
    (1, 1),
    unordered=True,
)
MATCHES = Row(
    "matches",
    True,
    "string.matches(pattern): bool",
    _fixed((STRING, STRING), BOOL),
    "the RE2 pattern, a constant, occurs in it",
    run.pattern_found,
    (1, 1),
)
MACROS = ("all", "exists", "exists_one", "filter", "map")

FUNCTIONS: dict[str, list[Row]] = {}
METHODS: dict[str, list[Row]] = {}
for _row in (*ROWS, SIZE):
    (METHODS if _row.method else FUNCTIONS).setdefault(_row.name, []).append(_row)
METHODS.setdefault("size", []).append(SIZE)
METHODS["matches"].insert(0, MATCHES)


def parse_row(struct: str, implementation: Callable[..., object]) -> Row:
    """`TYPE.parse(json)` of one type."""
    help = "the object that the JSON text describes; an empty one if it is malformed"
    return Row(
        "parse",
        False,
        f"{struct}.parse(json): {struct}",
        _fixed((STRING,), Struct(struct)),
        help,
        implementation,
        (1, 1),
    )
