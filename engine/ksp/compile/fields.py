"""Which fields of pods a rule reads, those of the elements of lists included, whatever names they go by on the way.

A rule seldom names a field from its root: it filters a list, gives that a name, goes through it, and reads a field of
what it finds. So the names that stand for a part of a pod are followed: lets, the variables of macros and loops, the
arguments of functions that were put in the place of their calls.

    let hard = pod.spec.topologySpreadConstraints.filter(c, c.whenUnsatisfiable == "DoNotSchedule")
    for c in hard { deny "…" when size(domains) < c.minDomains }     spec.topologySpreadConstraints[…].minDomains
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ksp.check.parts import expressions
from ksp.check.stages import walk
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Collect,
    Comprehend,
    Expr,
    For,
    Has,
    If,
    In,
    Kind,
    LetIn,
    ListOf,
    Op,
    Read,
    Ref,
    Rule,
    Statement,
    Text,
)
from ksp.check.types import List, Map, Struct, Type
from ksp.compile.inline import inline

ELEMENT = "[…]"
_LIST = "a list of"  # as the last step: a list whose elements are what the steps before lead to

# Where a value comes from: the pod, or a row of a view, and the steps from there.
_Source = tuple[Binding, tuple[str, ...]]
_Sources = frozenset[_Source]
_NOWHERE: _Sources = frozenset()


@dataclass(frozen=True, slots=True)
class FieldReads:
    """Fields by their path from the pod, `spec.tolerations[…].key`, with all that lies on the way to them: those of
    the pod that is to be placed, and those of the pods that are rows of a view.

    `structs` are fields by the type that they are read of, however its values are come by: `Volume.name`; and the type
    alone, `Volume`, where its values are compared, shown or handed to functions as they are, be it in lists and maps.
    """

    pod: frozenset[str]
    rows: frozenset[str]
    structs: frozenset[str]


def field_reads(rule: Rule) -> FieldReads:
    """The fields of pods that a checked rule reads."""
    origins = _Origins(rule)
    pod: set[str] = set()
    rows: set[str] = set()
    structs: set[str] = set()
    for whole in expressions(rule):
        for part in walk(origins.learn(inline(whole))):
            structs.update(_of_structs(part))
            if isinstance(part, Read | Has):
                for root, steps in origins.of(part.value):
                    (pod if root.kind is Kind.ROOT else rows).add(_written((*steps, part.field.name)))
    return FieldReads(frozenset(pod), frozenset(rows), frozenset(structs))


def _of_structs(part: Expr) -> Iterator[str]:
    """What an expression itself reads of structs, its parts apart."""
    match part:
        case Read(value=value, field=field) | Has(value=value, field=field):
            yield from (f"{name}.{field.name}" for name in _structs_in(value.type))
        case Op(operator="==" | "!=", operands=whole):
            yield from (name for each in whole for name in _structs_in(each.type))
        case In(item=item):
            yield from _structs_in(item.type)
        case Apply(row=row, arguments=whole) if row.name != "size":
            yield from (name for each in whole for name in _structs_in(each.type))
        case Text(parts=parts):
            yield from (name for each in parts if not isinstance(each, str) for name in _structs_in(each.type))


def _structs_in(type_: Type) -> Iterator[str]:
    match type_:
        case Struct(name=name):
            yield name
        case List(item=inner) | Map(value=inner):
            yield from _structs_in(inner)


def _written(steps: Iterable[str]) -> str:
    return "".join(step if step == ELEMENT else f".{step}" for step in steps).removeprefix(".")


class _Origins:
    """Answers from which parts of pods the values of a rule may come."""

    def __init__(self, rule: Rule) -> None:
        self._rows = {b.view.joins[0].variable for b in rule.views if b.view is not None and b.view.relation == "pods"}
        # What a name stands for: a value, or its elements.
        self._meaning: dict[Binding, tuple[Expr, bool]] = {}
        self._known: dict[Binding, _Sources] = {}
        for loop in _loops((*rule.before, *rule.body, *(rule.normalize.body if rule.normalize else ()))):
            self._mean(loop.variables[-1], loop.range)
        for binding in rule.views:
            for join in binding.view.joins if binding.view is not None else ():
                if join.range is not None:
                    self._mean(join.variable, join.range)

    def learn(self, expr: Expr) -> Expr:
        """Take note of the names that the expression, which calls no functions, binds. The expression itself."""
        for part in walk(expr):
            match part:
                case Comprehend(variables=variables, range=range_):
                    self._meaning[variables[-1]] = range_, True
                case LetIn(binding=binding, value=value):
                    self._meaning[binding] = value, False
        return expr

    def of(self, expr: Expr) -> _Sources:
        """Where the value of an expression may come from."""
        match expr:
            case Ref(binding=binding):
                return self._of_name(binding)
            case Read(value=value, field=field):
                return _step(self.of(value), field.name)
            case At(value=value):
                return _step(self.of(value), ELEMENT)
            case If(then=then, otherwise=otherwise):
                return self.of(then) | self.of(otherwise)
            case Comprehend(kind="filter", range=range_):
                return self.of(range_)
            case Comprehend(kind="map", body=body):
                return _step(self.of(body), _LIST)
            case ListOf(items=items):
                return _step(_NOWHERE.union(*map(self.of, items)), _LIST)
            case Op(operator="+", operands=operands):
                return _NOWHERE.union(*map(self.of, operands))
            case LetIn(body=body):
                return self.of(body)
            case Apply(row=row, arguments=(first, *_)) if row.part:
                return self.of(first)
        return _NOWHERE

    def _of_name(self, binding: Binding) -> _Sources:
        if binding not in self._known:
            self._known[binding] = self._found(binding)
        return self._known[binding]

    def _found(self, binding: Binding) -> _Sources:
        if binding.view is not None:
            first = binding.view.joins[0].variable
            return frozenset({(first, ())}) if binding.view.form == "first" and first in self._rows else _NOWHERE
        if (binding.kind is Kind.ROOT and binding.name == "pod") or binding in self._rows:
            return frozenset({(binding, ())})
        if binding in self._meaning:
            value, elements = self._meaning[binding]
            return _step(self.of(value), ELEMENT) if elements else self.of(value)
        if binding.kind is Kind.LET and binding.value is not None:
            return self.of(self.learn(inline(binding.value)))
        return _NOWHERE

    def _mean(self, variable: Binding, range_: Expr) -> None:
        self._meaning[variable] = self.learn(inline(range_)), True


def _loops(statements: Iterable[Statement]) -> Iterator[For]:
    for statement in statements:
        match statement:
            case For(body=body):
                yield statement
                yield from _loops(body)
            case Collect(body=body):
                yield from _loops(body)


def _step(sources: _Sources, step: str) -> _Sources:
    """The sources one step further on. Elements of a list of something are that thing."""
    return frozenset(
        (root, steps[:-1]) if step == ELEMENT and steps[-1:] == (_LIST,) else (root, (*steps, step))
        for root, steps in sources
    )
