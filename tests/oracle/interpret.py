"""What expressions mean, as plainly as it can be said: the typed tree, walked once for each value that is wanted.

Nothing is staged, remembered or put in place of its call: a `let` is computed wherever it is read, a `fn` is called, a
view is one full pass over its relation. Slow, and short enough to be believed; compiled rules are held against it.

Lists are tuples, maps are dicts, structs are those of `ksp.model`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ksp.check.schema import FieldInfo, struct_names
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Has,
    If,
    In,
    Invoke,
    Kind,
    ListOf,
    Logic,
    MapOf,
    NodeScore,
    Op,
    Read,
    Ref,
    StructOf,
    Text,
    View,
)
from ksp.check.types import Int, List, Map, Struct, Type
from ksp.compile.zeros import zero_of
from ksp.model.info import EMPTY_NODE, EMPTY_POD, NodeInfo, PodInfo
from ksp.model.quantity import QuantityError
from ksp.model.requests import amount

Names = Mapping[Binding, Any]
MODULUS = 1 << 64


@dataclass(frozen=True)
class Cluster:
    """What rules see of the cluster: visible pods as they came, nodes in the order of the node list, other objects."""

    pods: Sequence[PodInfo] = ()
    nodes: Sequence[NodeInfo] = ()
    objects: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, relation: str) -> Iterator[Any]:
        """The rows in their order: nodes as they are listed, pods by their node and then as they came."""
        if relation == "nodes":
            yield from self.nodes
            return
        for node in self.nodes:
            yield from (pod for pod in self.pods if pod.node is node)


@dataclass(frozen=True)
class World:
    """What the roots stand for. `scores` are, in `normalize`, what the first step gave to nodes by name."""

    pod: PodInfo = EMPTY_POD
    node: NodeInfo = EMPTY_NODE
    cluster: Cluster = field(default_factory=Cluster)
    feasible: Sequence[NodeInfo] = ()
    scores: Mapping[str, int] = field(default_factory=dict)


def wrapped(n: int) -> int:
    """The low 64 bits, as a signed number."""
    low = n % MODULUS
    return low - MODULUS if low >= MODULUS // 2 else low


def divided(a: int, b: int) -> int:
    """Towards zero."""
    quotient = abs(a) // abs(b)
    return wrapped(quotient if (a < 0) == (b < 0) else -quotient)


def evaluate(expr: Expr, names: Names, world: World) -> Any:
    """The value of an expression, with values for the names that it does not bind itself."""
    match expr:
        case Constant(value=value):
            return value
        case Ref(binding=binding):
            return _named(binding, names, world)
        case Read(value=value, field=read):
            if read.owner == "cluster":
                return world.cluster.objects[read.name]
            return _field(evaluate(value, names, world), read, expr.type)
        case Has(value=value, field=read):
            return _has(evaluate(value, names, world), read)
        case At(value=value, key=key):
            return _element(evaluate(value, names, world), evaluate(key, names, world), expr)
        case In(item=item, container=container):
            wanted = evaluate(item, names, world)
            return any(wanted == found for found in evaluate(container, names, world))
        case Op(operator=operator, operands=operands):
            return _operator(operator, [evaluate(operand, names, world) for operand in operands], expr.type)
        case Logic(operator="&&", items=items):
            return all(evaluate(item, names, world) for item in items)
        case Logic(items=items):
            return any(evaluate(item, names, world) for item in items)
        case If(condition=condition, then=then, otherwise=otherwise):
            return evaluate(then if evaluate(condition, names, world) else otherwise, names, world)
        case Apply(row=row, arguments=arguments):
            values = [evaluate(argument, names, world) for argument in arguments]
            return _applied(expr, [world.cluster.objects, *values] if row.reads else values)
        case Invoke(function=function, arguments=arguments):
            values = [evaluate(argument, names, world) for argument in arguments]
            return evaluate(function.value, {**names, **dict(zip(function.parameters, values, strict=True))}, world)
        case Comprehend():
            return _macro(expr, names, world)
        case ListOf(items=items):
            return tuple(evaluate(item, names, world) for item in items)
        case MapOf(entries=entries):
            return {evaluate(key, names, world): evaluate(value, names, world) for key, value in entries}
        case StructOf(fields=fields):
            return _struct(expr.type, {given: evaluate(value, names, world) for given, value in fields})
        case Text(parts=parts):
            return "".join(p if isinstance(p, str) else _shown(evaluate(p, names, world)) for p in parts)
        case NodeScore(node=node):
            return world.scores.get(evaluate(node, names, world).name, 0)
    raise AssertionError(f"the checker does not make {expr!r}")


def entries(variables: Sequence[Binding], collection: Any, names: Names) -> Iterator[Names]:
    """The names of a macro or a `for`, once for each item of a list or entry of a map, by key."""
    if isinstance(collection, Mapping):
        pairs = [(key, collection[key]) for key in sorted(collection)]
        alone = [key for key, _ in pairs]
    else:
        alone = list(collection)
        pairs = list(enumerate(alone))
    for pair, item in zip(pairs, alone, strict=True):
        yield {**names, **dict(zip(variables, pair if len(variables) == 2 else (item,), strict=True))}


def view_value(view: View, names: Names, world: World) -> Any:
    """The view, by one pass over all rows."""
    rows = world.feasible if view.relation == "feasible" else list(world.cluster.rows(view.relation))
    variable = view.joins[0].variable
    if view.form == "first":
        chosen = (r for r in rows if view.where is None or evaluate(view.where, {**names, variable: r}, world))
        return next(chosen, EMPTY_POD if view.relation == "pods" else EMPTY_NODE)
    sums: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        for inner in _joined(view, 1, {**names, variable: row}, world):
            if view.where is not None and not evaluate(view.where, inner, world):
                continue
            keys = tuple(evaluate(key, inner, world) for key in view.keys)
            more = 1 if view.amount is None else evaluate(view.amount, inner, world)
            sums[keys] = _operator("+", [sums.get(keys, type(more)()), more], _amount_type(view))
    return sums.get((), zero_of(view.type)) if not view.keys else _nested(sums)


def _joined(view: View, position: int, names: Names, world: World) -> Iterator[Names]:
    if position == len(view.joins):
        yield names
        return
    join = view.joins[position]
    assert join.range is not None
    for item in evaluate(join.range, names, world):
        yield from _joined(view, position + 1, {**names, join.variable: item}, world)


def _amount_type(view: View) -> Type:
    return Int() if view.amount is None else view.amount.type


def _nested(sums: Mapping[tuple[Any, ...], Any]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for (*outer, last), value in sums.items():
        inside = result
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = value
    return result


def _named(binding: Binding, names: Names, world: World) -> Any:
    if binding in names:
        return names[binding]
    if binding.kind is Kind.ROOT:
        return getattr(world, binding.name)
    if binding.view is not None:
        return view_value(binding.view, names, world)
    assert binding.value is not None, binding
    return evaluate(binding.value, names, world)


def _field(value: Any, read: FieldInfo, type: Type) -> Any:
    for attribute in read.path:
        value = getattr(value, attribute)
    if value is None:
        return zero_of(type)
    return {name: _amount(name, stated) for name, stated in value.items()} if read.quantities else value


def _amount(name: str, stated: Any) -> int:
    try:
        return amount(name, stated)
    except QuantityError:
        return 0


def _has(value: Any, read: FieldInfo) -> bool:
    """What the API tells from absent is there if it is not null; anything else, if it is not the zero of its type."""
    for attribute in read.path:
        value = getattr(value, attribute)
    return value is not None if read.nullable else bool(value != zero_of(read.type))


def _element(value: Any, key: Any, expr: At) -> Any:
    if isinstance(expr.value.type, Map):
        return value[key] if key in value else zero_of(expr.type)
    return value[key] if 0 <= key < len(value) else zero_of(expr.type)


def _operator(operator: str, operands: list[Any], type: Type) -> Any:
    match operator, operands:
        case "!", [a]:
            return not a
        case "neg", [a]:
            return wrapped(-a) if isinstance(type, Int) else -a
        case "==", [a, b]:
            return a == b
        case "!=", [a, b]:
            return a != b
        case "<", [a, b]:
            return a < b
        case "<=", [a, b]:
            return a <= b
        case ">", [a, b]:
            return a > b
        case ">=", [a, b]:
            return a >= b
        case _, [a, b]:
            return _arithmetic(operator, a, b, type)
    raise AssertionError(operator)


def _arithmetic(operator: str, a: Any, b: Any, type: Type) -> Any:
    if isinstance(type, Int):
        match operator:
            case "/":
                assert b != 0, "the checker let a zero through"
                return divided(a, b)
            case "%":
                assert b != 0, "the checker let a zero through"
                return wrapped(a - b * divided(a, b))
    if operator == "/":
        return _double_divided(a, b)
    result = a + b if operator == "+" else a - b if operator == "-" else a * b
    return wrapped(result) if isinstance(type, Int) else result


def _double_divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    return math.nan if a == 0 or math.isnan(a) else sign * math.inf


def _applied(expr: Apply, arguments: list[Any]) -> Any:
    if expr.row.name == "sum":
        total = zero_of(expr.type)
        for item in arguments[0]:
            total = _arithmetic("+", total, item, expr.type)
        return total
    result = expr.row.run(*arguments)
    if isinstance(expr.type, Int):
        assert isinstance(result, int)
        return wrapped(result)
    return result


def _macro(expr: Comprehend, names: Names, world: World) -> Any:
    collection = evaluate(expr.range, names, world)
    rounds = list(entries(expr.variables, collection, names))
    results = [evaluate(expr.body, inner, world) for inner in rounds]
    match expr.kind:
        case "all":
            return False not in results
        case "exists":
            return True in results
        case "exists_one":
            return results.count(True) == 1
        case "map":
            return tuple(results)
    kept = [inner for inner, result in zip(rounds, results, strict=True) if result]
    if isinstance(expr.type, Map):
        key, value = expr.variables
        return {inner[key]: inner[value] for inner in kept}
    assert isinstance(expr.type, List)
    return tuple(inner[expr.variables[-1]] for inner in kept)


def _struct(type: Type, values: Mapping[FieldInfo, Any]) -> Any:
    assert isinstance(type, Struct)
    given = {read.path[0]: _written(value) if read.quantities else value for read, value in values.items()}
    return struct_names()[type.name](**given)


def _written(amounts: Mapping[str, int]) -> dict[str, Any]:
    """A resource list as the API writes it."""
    return {name: f"{n}m" if name == "cpu" else n for name, n in amounts.items()}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        from ksp.check.builtins import to_string  # the shortest decimal is no business of the oracle's

        return to_string(value)
    return str(value)
